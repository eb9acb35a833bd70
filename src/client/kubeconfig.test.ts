import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { readKubeconfig } from './kubeconfig.ts';

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

test('takes the current context; certificates inline or in files beside it', async () => {
  writeFileSync(join(directory, 'me.key'), 'KEY');
  const path = write(config({ 'client-certificate-data': base64('CERT'), 'client-key': 'me.key' }));
  expect(await readKubeconfig(path)).toEqual({
    server: 'https://127.0.0.1:6443',
    caPem: 'CA',
    certPem: 'CERT',
    keyPem: 'KEY',
  });
});

test('says in one sentence what is wrong', async () => {
  const failure = (value: unknown) =>
    readKubeconfig(write(value)).catch((error: Error) => `${error.name}: ${error.message}`);
  const path = join(directory, 'kubeconfig');
  expect(await failure('a: [')).toBe(`UserError: kubeconfig ${path} is not YAML`);
  expect(await failure('just text')).toBe(`UserError: kubeconfig ${path} is not YAML`);
  expect(await failure(config({}))).toBe(`UserError: kubeconfig ${path}: client-certificate is missing`);
  expect(await failure({ ...config({}), users: [] })).toBe(`UserError: kubeconfig ${path}: users has no entry "me"`);
  const plain = config({}, { server: 'http://127.0.0.1' });
  expect(await failure(plain)).toBe(`UserError: kubeconfig ${path}: the server is not an https:// address`);
  await expect(readKubeconfig(join(directory, 'none'))).rejects.toThrow(/cannot be read: ENOENT/);
});
