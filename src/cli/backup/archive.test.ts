import { pbkdf2, randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DATA_FORMAT_VERSION } from '../../engine/data-folder/format.ts';
import { readArchive } from './archive-reader.ts';
import { describeSource, type Source, writeArchive } from './archive-writer.ts';
import { BACKUP_FORMAT, isPartFile, type Manifest } from './manifest.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-archive-'));
  file = join(folder, 'backup.tar.gz');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const BASE: Manifest = {
  format: BACKUP_FORMAT,
  dataFormat: DATA_FORMAT_VERSION,
  lifepod: '0.1.0',
  created: '2026-01-02T03:04:05.000Z',
  nodeName: 'node-1',
  revision: 12,
  objects: 3,
  files: [],
};
const SMALL: Source[] = [
  { path: 'engine.json', content: Buffer.from('{}') },
  { path: 'format-version', content: Buffer.from('2\n') },
  { path: 'manifests/a pod.yaml', content: Buffer.alloc(0) },
];
const never = new AbortController().signal;

async function sourcesOf(): Promise<{ manifest: Manifest; sources: Source[] }> {
  const store = join(folder, 'store');
  writeFileSync(store, randomBytes(300_000));
  const sources: Source[] = [...SMALL, { path: 'store/data.mdb', file: store }];
  return { manifest: { ...BASE, files: await Promise.all(sources.map(describeSource)) }, sources };
}

async function writeGood(): Promise<Manifest> {
  const { manifest, sources } = await sourcesOf();
  await writeArchive(file, manifest, sources, never);
  return manifest;
}

async function writeEntries(entries: { name: string; text?: string; type?: 'symlink' | 'directory' }[]): Promise<void> {
  const tar = pack();
  for (const { name, text = '', type } of entries) {
    if (type === undefined) tar.entry({ name }, text);
    else tar.entry({ name, type, linkname: '/etc/passwd' });
  }
  tar.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of tar) chunks.push(chunk as Buffer);
  writeFileSync(file, gzipSync(Buffer.concat(chunks)));
}

test('an archive has mode 0600, and is read with the manifest and contents that were written', async () => {
  const manifest = await writeGood();
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const read = new Map<string, Buffer>();
  const seen = await readArchive(file, async ({ path }, content) => {
    const chunks: Buffer[] = [];
    for await (const chunk of content) chunks.push(chunk);
    read.set(path, Buffer.concat(chunks));
  });
  expect(seen).toEqual(manifest);
  expect(read.get('engine.json')?.toString()).toBe('{}');
  expect(read.get('store/data.mdb')).toEqual(readFileSync(join(folder, 'store')));
  expect(readdirSync(folder).sort()).toEqual(['backup.tar.gz', 'store']);
});

test('a failed or interrupted backup leaves the older one, and nothing else', async () => {
  await writeGood();
  const before = readFileSync(file);
  const { manifest, sources } = await sourcesOf();
  const interrupted = new AbortController();
  interrupted.abort(new Error('interrupted'));
  await expect(writeArchive(file, manifest, sources, interrupted.signal)).rejects.toThrow('interrupted');
  const missing: Source[] = [...SMALL, { path: 'store/data.mdb', file: join(folder, 'none') }];
  await expect(writeArchive(file, manifest, missing, never)).rejects.toMatchObject({ code: 'ENOENT', path: file });
  expect(readFileSync(file)).toEqual(before);
  expect(readdirSync(folder).sort()).toEqual(['backup.tar.gz', 'store']);
});

test('a backup that fails while its file is being opened leaves nothing', async () => {
  const { manifest } = await sourcesOf();
  // Calculations occupy the threads of Node.js. An asynchronous open of the archive would thus end only after the failure of the source,
  // which has an invalid path.
  const calculations = Array.from({ length: 8 }, () => promisify(pbkdf2)('', '', 100_000, 64, 'sha512'));
  const invalid: Source[] = [...SMALL, { path: 'store/data.mdb', file: 'a\0b' }];
  await expect(writeArchive(file, manifest, invalid, never)).rejects.toMatchObject({ code: 'ERR_INVALID_ARG_VALUE' });
  await Promise.all(calculations);
  expect(readdirSync(folder)).toEqual(['store']);
});

test('a backup removes what killed processes have left of backups with its name', async () => {
  const names = ['backup.tar.gz.999999999.new', 'other.tar.gz.999999999.new', `backup.tar.gz.${process.ppid}.new`];
  for (const name of names) writeFileSync(join(folder, name), '');
  await writeGood();
  expect(readdirSync(folder).sort()).toEqual([names[2], 'backup.tar.gz', names[1], 'store'].sort());
});

test('a file that is missing, or not a backup, is refused', async () => {
  await expect(readArchive(join(folder, 'none'))).rejects.toThrow(/^the file .*none does not exist$/);
  const foreign = `${file} is not a backup of lifepod: give a file that 'lifepod backup' has written`;
  await expect(readArchive(folder)).rejects.toThrow(`${folder} is not a backup of lifepod`);
  for (const content of [Buffer.alloc(0), Buffer.from('text'), gzipSync('text'), gzipSync(Buffer.alloc(2000, 'x'))]) {
    writeFileSync(file, content);
    await expect(readArchive(file)).rejects.toThrow(foreign);
  }
  await writeEntries([{ name: 'index.json', text: '{}' }]);
  await expect(readArchive(file)).rejects.toThrow(foreign);
  await writeEntries([{ name: 'manifest.json', text: 'no JSON' }]);
  await expect(readArchive(file)).rejects.toThrow(foreign);
  await writeEntries([{ name: 'manifest.json', text: '[]' }]);
  await expect(readArchive(file)).rejects.toThrow(foreign);
});

test('a backup that is cut anywhere, or of which any byte has changed, is refused', async () => {
  await writeGood();
  const { size } = statSync(file);
  const whole = readFileSync(file);
  const says = new RegExp(`^(the backup )?${file} is (damaged \\(|not a backup of lifepod)`);
  for (const bytes of [2, 10, 200, Math.floor(size / 2), size - 9, size - 1]) {
    truncateSync(file, bytes);
    await expect(readArchive(file), `${bytes} bytes`).rejects.toThrow(says);
    writeFileSync(file, whole);
  }
  for (const at of [12, 60, 300, Math.floor(size / 2), size - 6]) {
    const changed = Buffer.from(whole);
    changed[at] = (changed[at] ?? 0) ^ 0x55;
    writeFileSync(file, changed);
    await expect(readArchive(file), `byte ${at}`).rejects.toThrow(says);
  }
});

test('a backup whose content differs from its manifest is refused', async () => {
  const { manifest } = await sourcesOf();
  const text = JSON.stringify({
    ...manifest,
    files: manifest.files.filter(({ path }) => path !== 'manifests/a pod.yaml'),
  });
  const first = { name: 'manifest.json', text };
  const format = { name: 'data/format-version', text: '2\n' };
  await writeEntries([first, { name: 'data/engine.json', text: '[]' }, format]);
  await expect(readArchive(file)).rejects.toThrow('is damaged (the checksum of engine.json is wrong)');
  await writeEntries([first, { name: 'data/engine.json', text: '{}' }, format]);
  await expect(readArchive(file)).rejects.toThrow('is damaged (store/data.mdb is missing)');
  for (const name of ['data/../../etc/passwd', '/etc/passwd', 'data/pki/ca.key']) {
    await writeEntries([first, { name, text: '{}' }]);
    await expect(readArchive(file)).rejects.toThrow(
      `is damaged (${JSON.stringify(name)} is not what its manifest says)`,
    );
  }
  await writeEntries([first, { name: 'data/engine.json', type: 'symlink' }]);
  await expect(readArchive(file)).rejects.toThrow('is not what its manifest says');
});

test('a manifest that names other files than those of a backup is refused', async () => {
  for (const path of [
    '../engine.json',
    '/etc/passwd',
    'pki/../../x',
    'pki//x',
    'pki/.',
    'volumes/x',
    'pki\\x',
    '',
    7,
  ]) {
    expect(isPartFile(path)).toBe(false);
    const files = [{ path, bytes: 0, sha256: '' }];
    await writeEntries([{ name: 'manifest.json', text: JSON.stringify({ ...BASE, files }) }]);
    await expect(readArchive(file)).rejects.toThrow(
      `is damaged (its manifest has a file that no backup contains: ${JSON.stringify(path)})`,
    );
  }
  expect(['pki/ca.key', 'engine.json', 'certs.d/a:5000/hosts.toml', 'manifests/..a'].every(isPartFile)).toBe(true);
  for (const [wrong, says] of [
    [{ ...BASE, files: undefined }, 'has no list of files'],
    [{ ...BASE, revision: -1 }, 'lacks a field'],
    [BASE, 'does not contain store/data.mdb'],
  ] as const) {
    await writeEntries([{ name: 'manifest.json', text: JSON.stringify(wrong) }]);
    await expect(readArchive(file)).rejects.toThrow(says);
  }
});

test('a backup of a newer lifepod is refused with its version', async () => {
  for (const newer of [{ format: BACKUP_FORMAT + 1 }, { dataFormat: DATA_FORMAT_VERSION + 1 }]) {
    await writeEntries([{ name: 'manifest.json', text: JSON.stringify({ ...BASE, ...newer, lifepod: '7.1.0' }) }]);
    await expect(readArchive(file)).rejects.toThrow(
      /^the backup .* was written by a newer lifepod \(version 7\.1\.0, format \d\), .*: update lifepod to 7\.1\.0 or newer, or use another backup$/,
    );
  }
});
