import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { KubeObject } from '../../machinery/meta.ts';
import { type Content, createKeptFiles, type KeptFiles, type Reference } from './kept-files.ts';

let root: string;
let isReady: number;
let files: KeptFiles;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'lifepod-kept-files-'));
  isReady = 0;
  files = createKeptFiles({
    podDirectory: (uid) => join(root, 'disk', uid),
    memory: {
      directory: (uid) => join(root, 'memory', uid),
      async ready() {
        expect(await readdir(root)).not.toContain('memory');
        isReady++;
      },
    },
  });
});
afterEach(() => rm(root, { recursive: true, force: true }));

const settings: Reference = { resource: 'configmaps', name: 'settings' };
const password: Reference = { resource: 'secrets', name: 'password' };
const objectOf = (kind: string, name: string, data: Record<string, string>): KubeObject & Content => ({
  apiVersion: 'v1',
  kind,
  metadata: { name, namespace: 'a', uid: 'o1', labels: { team: 'web' }, resourceVersion: '7' },
  data,
});
const modeOf = async (...path: string[]): Promise<number> => (await stat(join(root, ...path))).mode & 0o777;

it('a copy contains the data, the type and the identity of the object, and nothing else', async () => {
  await files.write('u', password, { ...objectOf('Secret', 'password', { key: 'dg==' }), type: 'Opaque' });
  const metadata = { name: 'password', namespace: 'a', uid: 'o1' };
  const copy = { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data: { key: 'dg==' } };
  expect(await files.read('u', password)).toEqual(copy);
});

it('a copy of a ConfigMap is on disk, and only root can read it', async () => {
  await files.write('u', settings, objectOf('ConfigMap', 'settings', { a: '1' }));
  const folder = ['disk', 'u', 'kept', 'configmaps'];
  expect(await readdir(join(root, ...folder))).toEqual(['settings']);
  expect(await modeOf(...folder, 'settings')).toBe(0o600);
  expect(await modeOf(...folder)).toBe(0o700);
  expect((await modeOf('disk', 'u')) & 0o027).toBe(0);
  expect(await readdir(root)).toEqual(['disk']);
  expect(isReady).toBe(0);
});

it('a copy of a Secret is written only to the tmpfs, once the tmpfs is ready, and the Pod gets a folder on disk', async () => {
  await files.write('u', password, objectOf('Secret', 'password', {}));
  const folder = ['memory', 'u', 'kept', 'secrets'];
  expect(await readdir(join(root, ...folder))).toEqual(['password']);
  expect(await modeOf(...folder, 'password')).toBe(0o600);
  expect(await modeOf(...folder)).toBe(0o700);
  expect(await readdir(join(root, 'disk', 'u'))).toEqual([]);
  expect(isReady).toBe(1);
});

it('only root can read a copy, even if an earlier engine left an unfinished file that others can read', async () => {
  const folder = join(root, 'disk', 'u', 'kept', 'configmaps');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, '.new'), 'unfinished', { mode: 0o644 });
  await files.write('u', settings, objectOf('ConfigMap', 'settings', { a: '1' }));
  expect(await modeOf('disk', 'u', 'kept', 'configmaps', 'settings')).toBe(0o600);
  expect(await files.read('u', settings)).toMatchObject({ data: { a: '1' } });
});

it('a second write replaces the copy', async () => {
  await files.write('u', settings, objectOf('ConfigMap', 'settings', { a: '1' }));
  await files.write('u', settings, objectOf('ConfigMap', 'settings', { b: '2' }));
  expect(await files.read<KubeObject & Content>('u', settings)).toMatchObject({ data: { b: '2' } });
});

it('copies of two Pods and of objects of two kinds with the same name are separate', async () => {
  const secret: Reference = { resource: 'secrets', name: 'settings' };
  await files.write('u', settings, objectOf('ConfigMap', 'settings', { a: '1' }));
  await files.write('u', secret, objectOf('Secret', 'settings', { a: '2' }));
  await files.write('v', settings, objectOf('ConfigMap', 'settings', { a: '3' }));
  const copies = [files.read('u', settings), files.read('u', secret), files.read('v', settings)];
  expect((await Promise.all(copies)).map((copy) => (copy as Content).data)).toEqual([
    { a: '1' },
    { a: '2' },
    { a: '3' },
  ]);
});

it('a name with a slash does not leave the folder of the copies', async () => {
  await files.write('u', { ...settings, name: '../x' }, objectOf('ConfigMap', 'x', {}));
  expect(await readdir(join(root, 'disk', 'u', 'kept'))).toEqual(['configmaps']);
});

it('a copy that is absent, empty or unfinished counts as none', async () => {
  expect(await files.read('u', settings)).toBeUndefined();
  await files.write('u', settings, objectOf('ConfigMap', 'settings', { a: '1' }));
  const file = join(root, 'disk', 'u', 'kept', 'configmaps', 'settings');
  const whole = await readFile(file, 'utf8');
  for (const text of ['', whole.slice(0, -1)]) {
    await writeFile(file, text);
    expect(await files.read('u', settings)).toBeUndefined();
  }
});
