import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { readKubeconfig, readKubeconfigs } from './kubeconfig.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'lifepod-kubeconfig-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const config = (user: object, cluster: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Config',
  'current-context': 'two',
  contexts: [
    { name: 'one', context: { cluster: 'other', user: 'other' } },
    { name: 'two', context: { cluster: 'here', user: 'me' } },
  ],
  clusters: [
    {
      name: 'here',
      cluster: { server: 'https://127.0.0.1:6443', 'certificate-authority-data': base64('CA'), ...cluster },
    },
  ],
  users: [{ name: 'me', user }],
});
const write = (value: unknown): string => {
  const path = join(directory, 'kubeconfig');
  writeFileSync(path, typeof value === 'string' ? value : stringify(value));
  return path;
};

test('readKubeconfig() reads the current context, with certificates inline or in files relative to the kubeconfig', async () => {
  writeFileSync(join(directory, 'me.key'), 'KEY');
  const path = write(config({ 'client-certificate-data': base64('CERT'), 'client-key': 'me.key' }));
  expect(await readKubeconfig(path)).toEqual({
    server: 'https://127.0.0.1:6443',
    caPem: 'CA',
    certPem: 'CERT',
    keyPem: 'KEY',
  });
});

test('a user may have a token or a file with a token, with or without a certificate', async () => {
  const read = async (user: object) => {
    const { server: _, caPem, ...credentials } = await readKubeconfig(write(config(user)));
    return credentials;
  };
  writeFileSync(join(directory, 'token'), 'of-file\n');
  expect(await read({ token: 'inline' })).toEqual({ token: 'inline' });
  expect(await read({ token: 'inline', tokenFile: 'token' })).toEqual({ token: 'of-file' });
  const certificate = { 'client-certificate-data': base64('CERT'), 'client-key-data': base64('KEY') };
  expect(await read({ token: 'inline', ...certificate })).toEqual({ token: 'inline', certPem: 'CERT', keyPem: 'KEY' });
  expect(await read({ token: '', ...certificate })).toEqual({ certPem: 'CERT', keyPem: 'KEY' });
  await expect(read({ tokenFile: 'none' })).rejects.toThrow(/tokenFile cannot be read: ENOENT/);
});

test('an invalid kubeconfig is a UserError that names the file and the problem', async () => {
  const failure = (value: unknown) =>
    readKubeconfig(write(value)).catch((error: Error) => `${error.name}: ${error.message}`);
  const path = join(directory, 'kubeconfig');
  const unreadable = `UserError: kubeconfig ${path} is neither YAML nor JSON: give a kubeconfig`;
  for (const text of ['a: [', '{"a":', 'just text', 'users: *none']) expect(await failure(text)).toBe(unreadable);
  for (const text of ['', '\n', '# nothing\n', '{}', '---\n', '{}\n---\na: ['])
    expect(await failure(text)).toBe(`UserError: kubeconfig ${path}: it is empty: give a kubeconfig`);
  expect(await failure('apiVersion: v1\nkind: Pod\nmetadata: {name: web}')).toBe(
    `UserError: ${path} is not a kubeconfig but has an object of the kind Pod: give a kubeconfig`,
  );
  expect(await failure(config({}))).toBe(`UserError: kubeconfig ${path}: client-certificate is missing`);
  expect(await failure(config({ 'client-certificate': 'none.crt' }))).toMatch(
    /^UserError: kubeconfig .*: client-certificate cannot be read: ENOENT: .*none\.crt'$/,
  );
  const without = `UserError: kubeconfig ${path}: it has no context: give a kubeconfig with one`;
  expect(await failure({ apiVersion: 'v1', kind: 'Config' })).toBe(without);
  for (const contexts of [{}, 'me', null, [null]]) expect(await failure({ ...config({}), contexts })).toBe(without);
  const plain = config({}, { server: 'http://127.0.0.1' });
  expect(await failure(plain)).toBe(`UserError: kubeconfig ${path}: the server is not an https:// address`);
  await expect(readKubeconfig(join(directory, 'none'))).rejects.toThrow(/none does not exist$/);
});

test('a context without a usable cluster or user is a UserError that names the context', async () => {
  const failure = (value: object) => readKubeconfig(write(value)).catch((error: Error) => error.message);
  const problem = (text: string): string =>
    `kubeconfig ${join(directory, 'kubeconfig')}: the context "two" ${text}: correct it, or give another kubeconfig`;
  const contexts = (context: unknown) => ({ ...config({}), contexts: [{ name: 'two', context }] });
  expect(await failure({ ...config({}), users: [] })).toBe(problem('names the user "me", which is not in users'));
  expect(await failure({ ...config({}), clusters: null })).toBe(
    problem('names the cluster "here", which is not in clusters'),
  );
  expect(await failure(contexts({ cluster: 'here' }))).toBe(problem('names no user'));
  for (const context of [{ user: 'me' }, { cluster: '', user: 'me' }, {}, undefined])
    expect(await failure(contexts(context))).toBe(problem('names no cluster'));
});

describe('several files', () => {
  const credentials = { 'client-certificate-data': base64('CERT'), 'client-key-data': base64('KEY') };
  const file = (name: string, value: object): string => {
    const path = join(directory, name);
    writeFileSync(path, stringify(value));
    return path;
  };

  test('several files are merged: the first file that defines an entry wins, and missing files are skipped', async () => {
    const first = file('first', {
      'current-context': '',
      contexts: [{ name: 'two', context: { cluster: 'here', user: 'me', namespace: 'mine' } }],
    });
    const empty = join(directory, 'empty');
    writeFileSync(empty, '');
    const paths = [first, empty, join(directory, 'none'), write(config(credentials))];
    expect(await readKubeconfigs(paths)).toMatchObject({ server: 'https://127.0.0.1:6443', namespace: 'mine' });
  });

  test('file names in one of several kubeconfigs are relative to the kubeconfig that contains them', async () => {
    const inner = join(directory, 'inner');
    mkdirSync(inner);
    writeFileSync(join(inner, 'me.key'), 'INNER');
    const users = [{ name: 'me', user: { ...credentials, 'client-key-data': undefined, 'client-key': 'me.key' } }];
    const paths = [file('inner/users', { users }), write(config(credentials))];
    expect(await readKubeconfigs(paths)).toMatchObject({ keyPem: 'INNER' });
  });

  test('if none of several files exists, the error names them', async () => {
    await expect(readKubeconfigs(['/none/a', '/none/b'])).rejects.toThrow(
      'none of the kubeconfigs /none/a, /none/b exists: correct KUBECONFIG',
    );
  });

  test('a context can be chosen by name', async () => {
    const path = write({
      ...config(credentials),
      'current-context': 'one',
    });
    expect(await readKubeconfigs([path], 'two')).toMatchObject({ certPem: 'CERT' });
    await expect(readKubeconfigs([path], 'three')).rejects.toThrow(
      `kubeconfig ${path}: there is no context "three": give --context with one of one, two`,
    );
    const without = write({ ...config(credentials), 'current-context': '' });
    await expect(readKubeconfigs([without])).rejects.toThrow(
      `kubeconfig ${path}: no current-context is set: give --context with one of one, two`,
    );
    const single = write({ ...config(credentials), contexts: [{ name: 'one', context: {} }] });
    await expect(readKubeconfigs([single], 'three')).rejects.toThrow('"three": give --context one');
    await expect(readKubeconfigs([join(directory, 'none')])).rejects.toThrow(/none does not exist$/);
  });
});
