import { existsSync, lstatSync, readdirSync, readFileSync, renameSync, rmSync, watch } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import type { Secret } from '../../../src/api/generated/types.ts';
import { SECRETS } from '../../../src/api/resources.ts';
import { clientFromKubeconfig } from '../../../src/client/kubeconfig.ts';
import { pod, WAIT } from '../../support/manifests.ts';
import { lifepod, useOwnEngine } from '../../support/own-engine.ts';

const PASSWORD = 'correct-horse-battery-staple';
const encoded = Buffer.from(PASSWORD).toString('base64');
/** The rotation of these Secrets takes much longer than a kill of the engine. */
const COUNT = 800;

useOwnEngine();

const folder = (): string => join(lifepod.dataDir, 'encryption');
const keyFile = (): string => join(folder(), 'keys.json');
const keyNames = (): string[] =>
  [...readFileSync(keyFile(), 'utf8').matchAll(/"name": "([^"]+)"/g)].map((match) => match[1] ?? '');

/** Omits other file systems, such as the tmpfs for volumes and network namespaces. */
function filesOnDisk(path: string, device = lstatSync(path).dev): string[] {
  return readdirSync(path, { withFileTypes: true }).flatMap((entry) => {
    const each = join(path, entry.name);
    if (lstatSync(each).dev !== device) return [];
    if (entry.isDirectory()) return filesOnDisk(each, device);
    return entry.isFile() ? [each] : [];
  });
}

const filesWith = (...texts: string[]): string[] =>
  filesOnDisk(lifepod.dataDir).filter((path) => {
    const content = readFileSync(path);
    return texts.some((text) => content.includes(text));
  });

/** Resolves when a rotation has written its new key, and has not removed the old one yet. */
function rotating(): Promise<void> {
  return new Promise((resolve) => {
    const watcher = watch(folder(), () => {
      if (keyNames().length < 2) return;
      watcher.close();
      resolve();
    });
  });
}

const passwordOf = async (name: string): Promise<string | undefined> =>
  (await lifepod.get<Secret>('secret', name)).data?.['password'];

beforeAll(async () => {
  await lifepod.kubectlOk('create', 'secret', 'generic', 'db', `--from-literal=password=${PASSWORD}`);
  const manifest = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'applied' },
    stringData: { password: PASSWORD },
  };
  await lifepod.kubectlInput(JSON.stringify(manifest), 'apply', '-f', '-');
  const volumeMounts = [{ name: 'secret', mountPath: '/secret' }];
  await lifepod.apply(
    pod('reader', {
      app: [{ name: 'app', script: WAIT, volumeMounts }],
      spec: { volumes: [{ name: 'secret', secret: { secretName: 'db' } }] },
    }),
  );
  await lifepod.wait('--for=condition=Ready', 'pod/reader');
});

test('no file shows a Secret before and after a rotation of the key, and Pods and clients read the Secrets', async () => {
  expect(filesWith(PASSWORD, encoded)).toEqual([]);
  expect(filesWith('k8s:enc:aesgcm:v2:')).toEqual([join(lifepod.dataDir, 'store/data.mdb')]);
  const [old = ''] = keyNames();
  // The rotation also replaces a lost key file, without which no backup is useful.
  rmSync(keyFile());
  const file = join(lifepod.dataDir, 'elsewhere.tar.gz');
  expect(await lifepod.cli('backup', file)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /^lifepod: the key file .* is missing, .*'lifepod secrets rotate-key .* writes the file/,
    ),
  });
  expect(existsSync(file)).toBe(false);
  expect(await lifepod.cliOk('secrets', 'rotate-key')).toMatch(
    /^a new key encrypts Secrets: \d+ values have been encrypted again, and the old key has been removed\nback up .*\/encryption, /,
  );
  expect(keyNames()).toHaveLength(1);
  expect(keyNames()).not.toContain(old);
  expect(filesWith(PASSWORD, encoded)).toEqual([]);
  expect(await lifepod.cliOk('backup', file)).toContain('the file contains the keys of the cluster and of its Secrets');
  rmSync(file);
  expect([await passwordOf('db'), await passwordOf('applied')]).toEqual([encoded, encoded]);
  expect(await lifepod.execOk('reader', '--', 'cat', '/secret/password')).toBe(PASSWORD);
});

test('a rotation that is interrupted by kill -9 continues at the next start, and loses nothing', async () => {
  const client = (await clientFromKubeconfig(lifepod.kubeconfig)).resource<Secret>(SECRETS);
  const names = Array.from({ length: COUNT }, (_, index) => `many-${index}`);
  const secretOf = (name: string): Secret =>
    ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace: 'default' },
      data: { password: encoded },
    }) as Secret;
  for (let at = 0; at < COUNT; at += 100) {
    await Promise.all(names.slice(at, at + 100).map((name) => client.create(secretOf(name))));
  }
  const began = rotating();
  const rotation = lifepod.cli('secrets', 'rotate-key');
  await began;
  await lifepod.kill('SIGKILL');
  expect(await rotation).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('the engine stopped before it had replaced the key: its next start continues'),
  });
  expect(keyNames()).toHaveLength(2);
  expect(filesWith(PASSWORD, encoded)).toEqual([]);
  const [current = '', old = ''] = keyNames();
  await lifepod.up();
  expect(keyNames()).toEqual([current]);
  expect(filesWith(PASSWORD, encoded, `aesgcm:v2:${old}:`)).toEqual([]);
  const { items } = await lifepod.get<{ items: Secret[] }>('secrets');
  expect(items.filter(({ data }) => data?.['password'] === encoded)).toHaveLength(COUNT + 2);
  expect(await lifepod.cliOk('secrets', 'rotate-key')).toContain('values have been encrypted again');
  expect(keyNames()).not.toContain(current);
});

test('without its key file, the engine does not start, says what to do, and creates no new key', async () => {
  await lifepod.kill('SIGTERM');
  const elsewhere = `${lifepod.dataDir}/elsewhere`;
  renameSync(folder(), elsewhere);
  // A file that cannot be read is not recorded for the next start.
  const file = ['--encryption-provider-config', '/nowhere'];
  const refused = await lifepod.cli('up', '--detach', ...file, ...lifepod.options);
  expect(refused.stderr).toContain('--encryption-provider-config /nowhere does not exist: give a file with');
  const result = await lifepod.cli('up', '--detach', ...lifepod.options);
  expect(result.code).toBe(1);
  expect(result.stderr).toMatch(
    /^lifepod: the key file .*\/encryption\/keys\.json is missing, and the store has values that are encrypted with its keys, such as \/registry\/core\/secrets\/[^:]*: restore the file from a backup\. If it is lost, 'lifepod secrets discard --data-dir .*' deletes these values\n$/,
  );
  const listed = await lifepod.cliOk('secrets', 'discard');
  expect(listed).toContain('/registry/core/secrets/default/db\n');
  expect(listed).toMatch(
    /these \d+ values cannot be read: restore the key file, or repeat the command with --yes to delete them\n$/,
  );
  renameSync(elsewhere, folder());
  await lifepod.up();
  expect(await passwordOf('db')).toBe(encoded);
  expect(await lifepod.execOk('reader', '--', 'cat', '/secret/password')).toBe(PASSWORD);
});
