/** Tests backups and restores of data folders without an engine. test/e2e tests them with engines. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { KeyFile } from '../../apiserver/encryption/key-file.ts';
import { DATA_FORMAT_VERSION } from '../../engine/data-folder/format.ts';
import { lockDataDir } from '../../platform/files.ts';
import { containerdPaths } from '../../runtime/containerd/paths.ts';
import { openLmdbStore } from '../../store/lmdb/lmdb-store.ts';
import { CompactedError, type Store } from '../../store/store.ts';
import { backup } from './backup.ts';
import { restore } from './restore.ts';

const never = new AbortController().signal;

let folder: string;
let dataDir: string;
let file: string;
let printed: string;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-backup-'));
  dataDir = join(folder, 'data');
  file = join(folder, 'backup.tar.gz');
  printed = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed += text;
    return true;
  });
  // The commands require root, but need none of its rights in these tests.
  vi.spyOn(process, 'geteuid').mockReturnValue(0);
  for (const name of ['/dev/null', 'pki', 'encryption', 'certs.d/registry', 'manifests', 'volumes/claim']) {
    mkdirSync(join(dataDir, name), { recursive: true });
  }
  const record = { version: '0.1.0', nodeName: 'node-1', state: 'down', shutdown: { podsLeft: [] }, unknown: 'kept' };
  write('engine.json', JSON.stringify(record));
  write('format-version', `${DATA_FORMAT_VERSION}\n`);
  write('pki/ca.key', 'key');
  write('pki/ca.key.123.new', 'unfinished');
  await KeyFile.create(dataDir, false);
  write('encryption/rewrite-due', '');
  write('certs.d/registry/hosts.toml', 'hosts');
  write('manifests/pod.yaml', 'pod');
  write('volumes/claim/file', 'data');
  await put('/a', 'before');
  await put('/a', 'at the backup');
  await put('/b', 'b');
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true, force: true });
});

const write = (name: string, text: string): void => writeFileSync(join(dataDir, name), text);
const read = (root: string, name: string): string => readFileSync(join(root, name), 'utf8');

async function withStore<T>(root: string, body: (store: Store) => Promise<T>): Promise<T> {
  const store = await openLmdbStore({ directory: join(root, 'store') });
  try {
    return await body(store);
  } finally {
    await store.close();
  }
}
const put = (key: string, value: string, root = dataDir) =>
  withStore(root, (store) => store.txn({ compare: [], puts: [{ key, value: Buffer.from(value) }] }));
const valueAt = (key: string, root = dataDir): Promise<string | undefined> =>
  withStore(root, async (store) => {
    const found = await store.get(key);
    return found && Buffer.from(found.value).toString();
  });

test('a restore to another folder has the store, keys, settings and manifests of the backup', async () => {
  await backup(file, { dataDir }, never);
  expect(printed).toContain(`backed up ${dataDir} to ${file}: 2 objects at revision 3\nthe file contains the keys`);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(dataDir)).not.toContain('backup');
  const other = join(folder, 'other');
  await restore(file, { dataDir: other }, never);
  expect(printed).toContain(`restored ${file} to ${other}: 2 objects of `);
  expect(readdirSync(other, { recursive: true }).sort()).toEqual([
    'certs.d',
    'certs.d/registry',
    'certs.d/registry/hosts.toml',
    'encryption',
    'encryption/keys.json',
    'engine.json',
    'format-version',
    'lock',
    'manifests',
    'manifests/pod.yaml',
    'pki',
    'pki/ca.key',
    'store',
    'store/data.mdb',
  ]);
  expect(statSync(join(other, 'pki/ca.key')).mode & 0o777).toBe(0o600);
  expect(read(other, 'manifests/pod.yaml')).toBe('pod');
  // The next `lifepod down` must end the Pods.
  expect(JSON.parse(read(other, 'engine.json'))).toEqual({
    version: '0.1.0',
    nodeName: 'node-1',
    state: 'up',
    unknown: 'kept',
  });
  expect(await valueAt('/a', other)).toBe('at the backup');
});

test('a restore says where the files of volumes are, and which of their folders are missing', async () => {
  const volume = (name: string, provisioner = 'lifepod.io/local-path') =>
    put(
      `/registry/core/persistentvolumes/${name}`,
      JSON.stringify({
        metadata: { name, annotations: { 'pv.kubernetes.io/provisioned-by': provisioner } },
        spec: { local: { path: join(dataDir, 'volumes', name) } },
      }),
    );
  await volume('claim');
  await volume('other', 'example.com/other');
  await backup(file, { dataDir }, never);
  const note = '1 PersistentVolume keeps its files in';
  await restore(file, { dataDir, force: true }, never);
  expect(printed).not.toContain('PersistentVolume');
  await restore(file, { dataDir: join(folder, 'other') }, never);
  expect(printed).toContain(`${note} ${join(dataDir, 'volumes')}, outside of this data folder: its Pods write there`);
  expect(printed).not.toContain('missing');
  rmSync(join(dataDir, 'volumes/claim'), { recursive: true });
  await restore(file, { dataDir, force: true }, never);
  expect(printed).toContain(
    `the folder of 1 PersistentVolume is missing, because a backup does not contain the files of volumes: copy or create it before its Pods can start: ${join(dataDir, 'volumes/claim')}\n`,
  );
});

test('no client can continue from a revision that it saw before the restore', async () => {
  await backup(file, { dataDir }, never);
  const later = await put('/a', 'after the backup');
  await restore(file, { dataDir, force: true }, never);
  await withStore(dataDir, async (store) => {
    const { revision: newest } = await store.range({ prefix: '/' });
    expect(newest).toBe(1_000_000_003);
    for (const revision of [1, 3, later.revision, newest - 1]) {
      expect(() => store.watch('/', revision, () => undefined)).toThrow(CompactedError);
      await expect(store.range({ prefix: '/', revision })).rejects.toThrow(CompactedError);
    }
    expect((await store.get('/a'))?.modRevision).toBe(2);
    expect(await store.txn({ compare: [{ key: '/a', modRevision: 2 }], deletes: ['/a'] })).toEqual({
      succeeded: true,
      revision: newest + 1,
    });
  });
});

test('a restore replaces data only with --force, keeps the former data, and leaves volumes unchanged', async () => {
  await backup(file, { dataDir }, never);
  await put('/a', 'after the backup');
  write('pki/extra.key', 'later');
  await expect(restore(file, { dataDir }, never)).rejects.toThrow(
    `the data folder ${dataDir} is not empty: choose another --data-dir, or replace its data with --force`,
  );
  expect(await valueAt('/a')).toBe('after the backup');
  await restore(file, { dataDir, force: true }, never);
  expect(await valueAt('/a')).toBe('at the backup');
  expect(existsSync(join(dataDir, 'pki/extra.key'))).toBe(false);
  expect(read(dataDir, 'volumes/claim/file')).toBe('data');
  const [kept = ''] = readdirSync(dataDir).filter((name) => name.startsWith('before-restore-'));
  expect(printed).toContain(`the former data is in ${join(dataDir, kept)}, also its keys`);
  expect(read(join(dataDir, kept), 'pki/extra.key')).toBe('later');
  expect(await valueAt('/a', join(dataDir, kept))).toBe('after the backup');
});

test('a restore refuses folders in use, and folders of other programs and of newer versions', async () => {
  await backup(file, { dataDir }, never);
  const lock = lockDataDir(dataDir);
  for (const force of [true, false])
    await expect(restore(file, { dataDir, force }, never)).rejects.toThrow('is in use by a running lifepod');
  lock.release();
  const foreign = join(folder, 'foreign');
  mkdirSync(join(foreign, 'documents'), { recursive: true });
  await expect(restore(file, { dataDir: foreign, force: true }, never)).rejects.toThrow('has no data of lifepod');
  expect(readdirSync(foreign)).toEqual(['documents']);
  await expect(restore(file, { dataDir: file }, never)).rejects.toThrow('is not a folder: choose another --data-dir');
  write('format-version', `${DATA_FORMAT_VERSION + 1}\n`);
  await expect(restore(file, { dataDir, force: true }, never)).rejects.toThrow('was written by a newer lifepod');
  await expect(backup(file, { dataDir }, never)).rejects.toThrow('was written by a newer lifepod');
});

test.runIf(userInfo().uid === 0)('a restore into a folder of the data of another engine is refused', async () => {
  await backup(file, { dataDir }, never);
  write('engine.json', JSON.stringify({ nodeName: 'node-1', podCidr: '10.222.0.0/16', state: 'down' }));
  const inner = join(dataDir, 'volumes/inner');
  for (const prepare of [() => undefined, () => mkdirSync(inner)]) {
    prepare();
    await expect(restore(file, { dataDir: inner }, never)).rejects.toThrow(
      `${inner} is inside ${dataDir}, the data folder of another engine`,
    );
  }
  expect(readdirSync(inner)).toEqual([]);
});

test('a restore with --force replaces a damaged version, which everything else refuses', async () => {
  await backup(file, { dataDir }, never);
  for (const damaged of ['x', '', '0']) {
    write('format-version', damaged);
    write('migrating-from', damaged);
    await expect(backup(file, { dataDir }, never)).rejects.toThrow(
      `lifepod restore FILE --force --data-dir ${dataDir}`,
    );
    await expect(restore(file, { dataDir }, never)).rejects.toThrow('is not empty');
    await restore(file, { dataDir, force: true }, never);
    expect(read(dataDir, 'format-version')).toBe(`${DATA_FORMAT_VERSION}\n`);
    expect(existsSync(join(dataDir, 'migrating-from'))).toBe(false);
  }
});

test('a restore with --force replaces a damaged engine record', async () => {
  await backup(file, { dataDir }, never);
  for (const damaged of ['', '{']) {
    write('engine.json', damaged);
    await restore(file, { dataDir, force: true }, never);
    expect(JSON.parse(read(dataDir, 'engine.json'))).toMatchObject({ nodeName: 'node-1', state: 'up' });
  }
});

test('a restore that fails creates no folder and changes none', async () => {
  await backup(file, { dataDir }, never);
  const other = join(folder, 'other');
  const interrupted = new AbortController();
  interrupted.abort(new Error('interrupted'));
  await expect(restore(file, { dataDir: other }, interrupted.signal)).rejects.toThrow('interrupted');
  expect(existsSync(other)).toBe(false);
  const before = readdirSync(dataDir, { recursive: true }).sort();
  await expect(restore(file, { dataDir, force: true }, interrupted.signal)).rejects.toThrow('interrupted');
  expect(readdirSync(dataDir, { recursive: true }).sort()).toEqual(before);
  await expect(restore(file, { dataDir: join(other, 'data') }, never)).rejects.toThrow(
    `${other} does not exist: create`,
  );
  expect(existsSync(other)).toBe(false);
  writeFileSync(file, readFileSync(file).subarray(0, -20));
  await expect(restore(file, { dataDir: other }, never)).rejects.toThrow('is damaged (its end is missing)');
  expect(existsSync(other)).toBe(false);
});

test('a backup names the folder or file that it cannot use', async () => {
  await expect(backup(folder, { dataDir }, never)).rejects.toThrow(
    `${folder} is a folder: give the name of a file in it`,
  );
  await expect(backup(join(folder, 'none/file'), { dataDir }, never)).rejects.toThrow('none does not exist: create it');
  await expect(backup(`${folder}/none/`, { dataDir }, never)).rejects.toThrow(
    'none/ does not exist: create it, and give',
  );
  writeFileSync(file, '');
  await expect(backup(join(file, 'below'), { dataDir }, never)).rejects.toThrow(
    `${file} is not a folder: choose another`,
  );
  await expect(backup('-', { dataDir }, never)).rejects.toThrow(
    'cannot be written to the standard output: give the name',
  );
  await expect(backup(file, { dataDir: join(folder, 'none') }, never)).rejects.toThrow('there is nothing to back up');
  expect(existsSync(join(folder, 'none'))).toBe(false);
});

test('a backup replaces an older backup or an empty file, and only with --force', async () => {
  await backup(file, { dataDir }, never);
  const older = readFileSync(file);
  await expect(backup(file, { dataDir }, never)).rejects.toThrow(
    `the file ${file} exists already: choose another file, or replace it with --force`,
  );
  expect(readFileSync(file)).toEqual(older);
  for (const content of [older, older.subarray(0, -20), '']) {
    writeFileSync(file, content);
    await backup(file, { dataDir, force: true }, never);
    await restore(file, { dataDir: join(folder, `other-${content.length}`) }, never);
  }
});

test('a backup never replaces a file that is not a backup, also not through a link', async () => {
  symlinkSync(file, join(folder, 'link'));
  for (const content of ['notes', gzipSync('notes'), gzipSync(randomBytes(5000)).subarray(0, 4000)]) {
    writeFileSync(file, content);
    for (const force of [true, false]) {
      await expect(backup(file, { dataDir, force }, never)).rejects.toThrow(
        `${file} is not a backup of lifepod, and is not replaced: choose another file, or remove it`,
      );
      await expect(backup(join(folder, 'link'), { dataDir, force }, never)).rejects.toThrow(
        `link leads to ${file}, which is not a backup of lifepod`,
      );
    }
    expect(readFileSync(file)).toEqual(Buffer.from(content));
  }
});

test('a backup replaces no socket or missing target of a link, and writes through a link to a file', async () => {
  const server = createServer().listen(join(folder, 'socket'));
  await once(server, 'listening');
  symlinkSync(join(folder, 'socket'), join(folder, 'link-to-socket'));
  symlinkSync(join(folder, 'none'), join(folder, 'dangling'));
  symlinkSync(file, join(folder, 'link'));
  for (const name of [join(folder, 'socket'), join(folder, 'link-to-socket')]) {
    await expect(backup(name, { dataDir }, never)).rejects.toThrow(
      `${name} is a device, pipe or socket: give the name`,
    );
  }
  await expect(backup(join(folder, 'dangling'), { dataDir }, never)).rejects.toThrow('is a link to a missing file');
  expect(lstatSync(join(folder, 'socket')).isSocket()).toBe(true);
  server.close();
  writeFileSync(file, '');
  await backup(join(folder, 'link'), { dataDir, force: true }, never);
  expect(lstatSync(join(folder, 'link')).isSymbolicLink()).toBe(true);
  await restore(file, { dataDir: join(folder, 'other') }, never);
});

test.runIf(userInfo().uid === 0)(
  'a backup into the folder of another user belongs to root and follows no link of the user',
  async () => {
    const home = join(folder, 'home');
    mkdirSync(home);
    symlinkSync(file, join(home, 'link'));
    for (const path of [home, join(home, 'link')]) lchownSync(path, 54_321, 54_321);
    writeFileSync(file, 'kept');
    await expect(backup(join(home, 'link'), { dataDir }, never)).rejects.toThrow(
      'link belongs to the user 54321, who could',
    );
    expect(readFileSync(file, 'utf8')).toBe('kept');
    await backup(join(home, 'backup'), { dataDir }, never);
    expect(statSync(join(home, 'backup'))).toMatchObject({ uid: 0, mode: 0o100_600 });
    expect(printed).toContain('the user 54321 owns a folder above it, and can remove or replace the file');
  },
);

test.runIf(userInfo().uid === 0)(
  'a restore to a deleted folder is refused while processes of its engine run',
  async () => {
    await backup(file, { dataDir }, never);
    const deleted = join(folder, 'deleted');
    const args = ['-c', 'read line', '--config', containerdPaths(deleted).config];
    const containerd = spawn('/bin/sh', args, { argv0: 'containerd', stdio: ['pipe', 'ignore', 'ignore'] });
    const exited = once(containerd, 'exit');
    try {
      await expect(restore(file, { dataDir: deleted }, never)).rejects.toThrow(
        `the data folder ${deleted} was deleted or moved while processes of its engine ran: `,
      );
      expect(existsSync(deleted)).toBe(false);
      // Processes of a stopped engine that still has its folder do not prevent a restore.
      mkdirSync(join(deleted, 'manifests'), { recursive: true });
      writeFileSync(join(deleted, 'engine.json'), '{}');
      await restore(file, { dataDir: deleted, force: true }, never);
    } finally {
      containerd.stdin.end();
      await exited;
    }
  },
);

test('a backup is refused without the keys that decrypt the store, and says which keys it contains', async () => {
  const keyFile = join(dataDir, 'encryption/keys.json');
  await backup(file, { dataDir }, never);
  expect(printed).toContain(
    '\nthe file contains the keys of the cluster and of its Secrets, and only root can read it\n',
  );
  rmSync(keyFile);
  await backup(file, { dataDir, force: true }, never);
  expect(printed).toContain('\nthe file contains the keys of the cluster, and only root can read it\n');

  const name = '/registry/core/secrets/default/db';
  const { configuration } = await KeyFile.create(dataDir, false);
  const stored = configuration.transformerFor(name).toStorage(name, Buffer.from('{}'));
  await withStore(dataDir, (store) => store.txn({ compare: [], puts: [{ key: name, value: stored }] }));
  await backup(file, { dataDir, force: true }, never);
  const former = readFileSync(file);
  const remedy = "restore the file from a backup. If it is lost, 'lifepod secrets discard --data-dir ";
  rmSync(keyFile);
  await expect(backup(file, { dataDir, force: true }, never)).rejects.toThrow(
    `the key file ${keyFile} is missing, and the store has values that are encrypted with its keys, such as ${name}: ${remedy}`,
  );
  await KeyFile.create(dataDir, false);
  await expect(backup(file, { dataDir, force: true }, never)).rejects.toThrow(
    `the keys in ${keyFile} do not decrypt values of the store, such as ${name}: ${remedy}`,
  );
  await withStore(dataDir, (store) => store.txn({ compare: [], puts: [{ key: name, value: Buffer.from('{}') }] }));
  await expect(backup(file, { dataDir, force: true }, never)).rejects.toThrow(
    `the value of ${name} in the store is not encrypted, but ${keyFile} has no provider identity for it: add identity`,
  );
  write('encryption/keys.json', 'damaged');
  await expect(backup(file, { dataDir, force: true }, never)).rejects.toThrow(`${keyFile} is not a valid`);
  expect(readFileSync(file)).toEqual(former);
});

test('a backup says that the keys in a file of the administrator are not in it', async () => {
  write('engine.json', JSON.stringify({ nodeName: 'node-1', encryptionProviderConfig: '/etc/keys.yaml' }));
  await backup(file, { dataDir }, never);
  expect(printed).toContain('\nthe file contains the keys of the cluster, and only root can read it\n');
  expect(printed).toContain('Secrets are encrypted with the keys in /etc/keys.yaml, which is not in the backup');
});

test('a path that only the private containerd cannot use is refused only for a backup of an engine with this containerd', async () => {
  const other = join(folder, 'a:b');
  await backup(file, { dataDir }, never);
  await expect(restore(file, { dataDir: other }, never)).rejects.toThrow(
    `containers cannot run in ${other}, because the path contains ':': choose another --data-dir`,
  );
  expect(readdirSync(folder)).not.toContain('a:b');
  write('engine.json', JSON.stringify({ nodeName: 'node-1', containerRuntimeEndpoint: 'unix:///run/c.sock' }));
  await backup(file, { dataDir, force: true }, never);
  await restore(file, { dataDir: other }, never);
  expect(printed).toContain(`restored ${file} to ${other}: `);
});

test.runIf(userInfo().uid === 0)(
  'a backup of an engine with another runtime is not restored while Pods run in the runtime of the data folder',
  async () => {
    write('engine.json', JSON.stringify({ nodeName: 'node-1', containerRuntimeEndpoint: 'unix:///run/c.sock' }));
    await backup(file, { dataDir }, never);
    write('engine.json', '{"state":"up"}');
    const args = ['-c', 'read line', '-address', containerdPaths(dataDir).socket];
    const shim = spawn('/bin/sh', args, { argv0: 'containerd-shim-runc-v2', stdio: ['pipe', 'ignore', 'ignore'] });
    const exited = once(shim, 'exit');
    try {
      await expect(restore(file, { dataDir, force: true }, never)).rejects.toThrow(
        /^1 Pod of \S+ runs in the private containerd, .* down .*, or restore to another --data-dir, because the backup /,
      );
      expect(readFileSync(join(dataDir, 'engine.json'), 'utf8')).toBe('{"state":"up"}');
    } finally {
      shim.stdin.end();
      await exited;
    }
  },
);
