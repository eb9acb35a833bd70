import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { extract, type Header } from 'tar-stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readArchive } from './archive-reader.ts';
import { type Entry, type ImageConfig, writeImageArchive } from './archive-writer.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-archive-'));
  file = join(folder, 'image.tar');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
async function entriesOf(tar: Buffer): Promise<{ header: Header; content: Buffer }[]> {
  const entries: { header: Header; content: Buffer }[] = [];
  for await (const entry of Readable.from([tar]).pipe(extract()))
    entries.push({ header: entry.header, content: await buffer(entry) });
  return entries;
}
async function written(entries: Entry[], config: Partial<ImageConfig> = {}) {
  await writeImageArchive(file, 'docker.io/library/a:1', entries, { env: [], ...config });
  const [layer, image, manifest] = await entriesOf(readFileSync(file));
  if (layer === undefined || image === undefined || manifest === undefined)
    throw new Error('the archive is incomplete');
  return { layer, image, manifest, config: JSON.parse(String(image.content)) as Record<string, object> };
}

test('an archive has the layer and the configuration under their digests, and a manifest that names them', async () => {
  const { layer, image, manifest } = await written([{ type: 'directory', path: 'bin/', mode: 0o755 }]);
  expect(layer.header.name).toBe(`${sha256(layer.content)}/layer.tar`);
  expect(image.header.name).toBe(`${sha256(image.content)}.json`);
  expect(manifest.header.name).toBe('manifest.json');
  expect(JSON.parse(String(manifest.content))).toEqual([
    { Config: image.header.name, RepoTags: ['docker.io/library/a:1'], Layers: [layer.header.name] },
  ]);
  expect([layer, image, manifest].map(({ header }) => header.mode)).toEqual([0o644, 0o644, 0o644]);
  expect((await readArchive(file, new AbortController().signal)).names).toEqual(['docker.io/library/a:1']);
});

test('an archive may have several names for its image', async () => {
  const names = ['docker.io/library/a:1', 'docker.io/library/b:1'];
  await writeImageArchive(file, names, [], { env: [] });
  expect((await readArchive(file, new AbortController().signal)).names).toEqual(names);
});

test('the layer has the entries with their types, modes and contents, owned by root', async () => {
  const { layer } = await written([
    { type: 'directory', path: 'tmp/', mode: 0o1777 },
    { type: 'file', path: 'tmp/a', mode: 0o4755, content: Buffer.from('text') },
    { type: 'link', path: 'tmp/b', target: 'tmp/a' },
    { type: 'symlink', path: 'tmp/c', target: 'a' },
  ]);
  const entries = await entriesOf(layer.content);
  const root = { uid: 0, gid: 0, mtime: new Date(0) };
  expect(entries).toMatchObject([
    { header: { ...root, type: 'directory', name: 'tmp/', mode: 0o1777 } },
    { header: { ...root, type: 'file', name: 'tmp/a', mode: 0o4755 }, content: Buffer.from('text') },
    { header: { ...root, type: 'link', name: 'tmp/b', linkname: 'tmp/a', mode: 0o755 } },
    { header: { ...root, type: 'symlink', name: 'tmp/c', linkname: 'a', mode: 0o777 } },
  ]);
  expect(entries).toHaveLength(4);
});

test('the configuration of an image names the operating system and the layer, and no field that is not set', async () => {
  const { config, layer } = await written([], { env: ['A=1'] });
  expect(config).toEqual({
    architecture: expect.any(String),
    os: 'linux',
    created: '1970-01-01T00:00:00.000Z',
    config: { Env: ['A=1'] },
    rootfs: { type: 'layers', diff_ids: [`sha256:${sha256(layer.content)}`] },
    history: [{ created: '1970-01-01T00:00:00.000Z' }],
  });
});

test.each<[Partial<ImageConfig>, object]>([
  [{ entrypoint: ['/pause'] }, { Entrypoint: ['/pause'] }],
  [{ command: ['sh'] }, { Cmd: ['sh'] }],
  [{ stopSignal: 'SIGINT' }, { StopSignal: 'SIGINT' }],
  [{ user: 'web:7' }, { User: 'web:7' }],
])('the configuration %j is written as %j', async (image, expected) => {
  const { config } = await written([], image);
  expect(config['config']).toEqual({ Env: [], ...expected });
});

test.each([
  ['x64', 'amd64'],
  ['arm64', 'arm64'],
  ['arm', 'arm'],
  ['riscv64', 'riscv64'],
])('on a processor that Node.js names %s, the architecture of the image is %s', async (name, expected) => {
  const own = Object.getOwnPropertyDescriptor(process, 'arch') as PropertyDescriptor;
  Object.defineProperty(process, 'arch', { ...own, value: name });
  try {
    expect((await written([])).config['architecture']).toBe(expected);
  } finally {
    Object.defineProperty(process, 'arch', own);
  }
});

test('the same input results in the same bytes', async () => {
  const entries: Entry[] = [{ type: 'file', path: 'a', mode: 0o644, content: 'text' }];
  await written(entries);
  const first = readFileSync(file);
  await written(entries);
  expect(readFileSync(file).equals(first)).toBe(true);
});

test('an archive is private to its owner, replaces an earlier file, and leaves no temporary file', async () => {
  writeFileSync(file, 'old', { mode: 0o644 });
  writeFileSync(`${file}.new`, 'left from a crash', { mode: 0o644 });
  await written([]);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(existsSync(`${file}.new`)).toBe(false);
});

test('the error of a full disk names the archive', async () => {
  symlinkSync('/dev/full', `${file}.new`);
  const failure = await writeImageArchive(file, 'a:1', [], { env: [] }).catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: 'ENOSPC', path: file });
});
