import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { UserError } from '../../platform/files.ts';
import { openArchive, readArchive } from './archive-reader.ts';

const { signal } = new AbortController();
const MAX_BYTES = 4 * 1024 * 1024;
let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-archive-'));
  file = join(folder, 'image.tar');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Writes the archive. Content that is not a string is written as JSON. */
async function archive(files: Record<string, unknown>, compress = (bytes: Buffer): Buffer => bytes): Promise<void> {
  const tar = pack();
  for (const [name, content] of Object.entries(files))
    tar.entry({ name }, typeof content === 'string' ? content : JSON.stringify(content));
  tar.finalize();
  writeFileSync(file, compress(await buffer(tar)));
}
const references = async (): Promise<string[]> => (await readArchive(file, signal)).names;
const docker = (...names: unknown[]): unknown => [{ Config: 'c', RepoTags: names }];
const DIGEST = `sha256:${'1'.repeat(64)}`;
const oci = (annotations?: unknown): unknown => ({
  manifests: [{ digest: DIGEST, ...(annotations === undefined ? {} : { annotations }) }],
});
const OTHER = `sha256:${'2'.repeat(64)}`;
const OCI_NAME = 'org.opencontainers.image.ref.name';
const CONTAINERD_NAME = 'io.containerd.image.name';

test.each<[string, Record<string, unknown>, string[]]>([
  ['docker save', { 'layer.tar': 'x', 'manifest.json': docker('a:1', 'b:2') }, ['a:1', 'b:2']],
  [
    'docker save, with several images',
    { 'manifest.json': [{ RepoTags: ['a:1'] }, { RepoTags: ['b:2'] }, {}] },
    ['a:1', 'b:2'],
  ],
  ['an image layout', { 'index.json': oci({ [OCI_NAME]: 'a:1' }) }, ['a:1']],
  [
    'an image layout of containerd',
    { 'index.json': oci({ [OCI_NAME]: '1', [CONTAINERD_NAME]: 'docker.io/library/a:1' }) },
    ['docker.io/library/a:1'],
  ],
  ['tar with ./ before the names', { './manifest.json': docker('a:1') }, ['a:1']],
  ['a tool that does not shorten paths', { './x/..//index.json': oci({ [OCI_NAME]: 'a:1' }) }, ['a:1']],
  [
    'containerd, of an image without a tag',
    {
      'manifest.json': docker(`a@${DIGEST}`),
      'index.json': oci({ [CONTAINERD_NAME]: `docker.io/library/a@${DIGEST}` }),
    },
    [`a@${DIGEST}`, `docker.io/library/a@${DIGEST}`],
  ],
  [
    'a tool that writes both formats',
    { 'manifest.json': docker('a:1', 'b:2'), 'index.json': oci({ [OCI_NAME]: 'b:2' }) },
    ['a:1', 'b:2'],
  ],
  [
    'a tool that names only some images',
    { 'manifest.json': docker('a:1'), 'index.json': oci({ [OCI_NAME]: '' }) },
    ['a:1'],
  ],
])('the names in an archive of %s are read', async (_, files, names) => {
  await archive(files);
  expect(await references()).toEqual(names);
});

test.each<[string, Record<string, unknown>]>([
  ['index.json', { 'index.json': oci({ [OCI_NAME]: `a@${OTHER}` }) }],
  ['index.json, with a tag', { 'index.json': oci({ [CONTAINERD_NAME]: `a:1@${OTHER}` }) }],
  ['manifest.json', { 'manifest.json': docker(`a@${OTHER}`) }],
  [
    'manifest.json beside an index',
    { 'manifest.json': docker(`a@${OTHER}`), 'index.json': oci({ [OCI_NAME]: 'a:1' }) },
  ],
])('a name with the digest of another image is refused in %s', async (_, files) => {
  await archive(files);
  const refused = references();
  await expect(refused).rejects.toBeInstanceOf(UserError);
  await expect(refused).rejects.toThrow(
    /^the archive .* names an image "a(:1)?@sha256:2{64}", but contains no image with this digest under this name: write it with a tag instead$/,
  );
});

test.each([
  ['gzip', gzipSync],
  ['zstd', zstdCompressSync],
])('an archive compressed with %s is read as the archive itself', async (_, compress: (bytes: Buffer) => Buffer) => {
  await archive({ 'manifest.json': docker('a:1') }, compress);
  expect(await references()).toEqual(['a:1']);
  await archive({ 'manifest.json': docker('a:1') });
  const plain = await buffer(await openArchive(file));
  writeFileSync(file, compress(plain));
  expect(await buffer(await openArchive(file))).toEqual(plain);
});

test.each([[Buffer.from([0x1f, 0, 1])], [Buffer.from([0, 0x8b, 1])], [Buffer.from([0x1f])]])(
  'a file that does not begin with the two magic bytes of gzip is not decompressed: %j',
  async (bytes) => {
    writeFileSync(file, bytes);
    expect(await buffer(await openArchive(file))).toEqual(bytes);
  },
);

test('blobs that are JSON objects of at most 4 MiB are read, up to 16 MiB, and of others only the names', async () => {
  const document = '{}'.padEnd(MAX_BYTES);
  const read = Object.fromEntries(['a', 'b', 'c', 'd'].map((name) => [`blobs/sha256/${name}`, document]));
  const named = { './blobs/sha256/e': '{}', 'blobs/sha256/f': `${document} `, 'blobs/sha256/g': 'layer' };
  await archive({ 'layer.json': '{}', ...read, ...named, 'manifest.json': docker('a:1') });
  const { blobs } = await readArchive(file, signal);
  const others = ['e', 'f', 'g'].map((name) => [`blobs/sha256/${name}`, undefined]);
  expect(blobs).toEqual(new Map(Object.entries({ ...read, ...Object.fromEntries(others) })));
});

test('a manifest.json of 4 MiB is read, and a larger one is ignored', async () => {
  const text = JSON.stringify(docker('a:1'));
  await archive({ 'manifest.json': text.padEnd(MAX_BYTES) });
  expect(await references()).toEqual(['a:1']);
  await archive({ 'manifest.json': text.padEnd(MAX_BYTES + 1), 'index.json': oci({ [OCI_NAME]: 'b:1' }) });
  expect(await references()).toEqual(['b:1']);
});

test.each<[string, Record<string, unknown>]>([
  ['without manifest.json and index.json', { 'layer.tar': 'x' }],
  ['with a manifest.json in a folder', { 'folder/manifest.json': docker('a:1') }],
  ['whose manifest.json is not JSON', { 'manifest.json': '{' }],
  ['whose manifest.json is not an array', { 'manifest.json': {} }],
  ['whose manifest.json contains a text', { 'manifest.json': ['a:1'] }],
  ['whose manifest.json contains null', { 'manifest.json': [null] }],
  ['whose manifest.json contains an array', { 'manifest.json': [['a:1']] }],
  ['whose manifest.json has RepoTags that are not an array', { 'manifest.json': [{ RepoTags: 'a:1' }] }],
  ['whose manifest.json has a number as a name', { 'manifest.json': docker(1) }],
  ['whose index.json is an array', { 'index.json': [] }],
  ['whose index.json is null', { 'index.json': null }],
  ['whose index.json has manifests that are not an array', { 'index.json': { manifests: {} } }],
  ['whose index.json has annotations that are a text', { 'index.json': oci('a:1') }],
  ['whose index.json has a number as a name', { 'index.json': oci({ [OCI_NAME]: 1 }) }],
])('a tar file %s is not an archive of images', async (_, files) => {
  await archive(files);
  const text = `${file} is not an archive of images: give a file made by 'docker save' or one with an OCI image layout`;
  await expect(references()).rejects.toThrow(new UserError(text));
});

test.each([
  ['text', Buffer.from('no archive')],
  ['damaged compressed data', gzipSync('x').subarray(0, 12)],
])('a file that contains %s is not an archive of images', async (_, bytes) => {
  writeFileSync(file, bytes);
  await expect(references()).rejects.toThrow('is not an archive of images');
});

test.each([
  ['gzip', (bytes: Buffer) => gzipSync(bytes, { level: 0 })],
  ['zstd', (bytes: Buffer) => zstdCompressSync(bytes)],
  ['no compression', (bytes: Buffer) => bytes],
])('an archive with other bytes in its middle is damaged: %s', async (_, compress: (bytes: Buffer) => Buffer) => {
  await archive({ 'manifest.json': docker('a:1'), 'layer.tar': randomBytes(1_000_000).toString('hex') });
  const bytes = compress(readFileSync(file));
  // With no compression, the damage must be in the header of the second file.
  const at = bytes[0] === 'm'.charCodeAt(0) ? 1024 : Math.floor(bytes.length / 2);
  writeFileSync(file, bytes.fill('X', at, at + 400_000));
  const text = `the image archive ${file} is damaged: create it or copy it again`;
  await expect(references()).rejects.toThrow(new UserError(text));
});

test.each([
  ['a plain archive', (bytes: Buffer) => bytes.subarray(0, 700)],
  ['a compressed archive', (bytes: Buffer) => gzipSync(bytes.subarray(0, 700))],
  ['compressed data', (bytes: Buffer) => gzipSync(bytes, { level: 0 }).subarray(0, 900)],
])('an archive without its end is damaged: %s', async (_, cut) => {
  await archive({ 'manifest.json': docker('a:1') });
  writeFileSync(file, cut(readFileSync(file)));
  const text = `the image archive ${file} is damaged (its end is missing): create it or copy it again`;
  await expect(references()).rejects.toThrow(new UserError(text));
});

test.each<[string, Record<string, unknown>]>([
  ['manifest.json', { 'manifest.json': docker() }],
  ['manifest.json, where RepoTags is null', { 'manifest.json': [{ RepoTags: null }] }],
  ['index.json', { 'index.json': {} }],
  ['index.json, without annotations', { 'index.json': oci() }],
  ['index.json, where the name is empty', { 'index.json': oci({ [OCI_NAME]: '' }) }],
  ['index.json, where the name is only a tag', { 'index.json': oci({ [OCI_NAME]: 'v7' }) }],
])('an archive without names in %s is refused with advice', async (_, files) => {
  await archive(files);
  const text = `the images in ${file} have no name: write the archive with a name and a tag, as 'docker save NAME:TAG' or 'skopeo copy SOURCE oci-archive:FILE:NAME:TAG' do`;
  await expect(references()).rejects.toThrow(new UserError(text));
});

test('an archive with an invalid name is refused with the name', async () => {
  await archive({ 'manifest.json': docker('a:1', 'B:"1') });
  const text = `the archive ${file} names an image "B:\\"1": that is not a valid reference; an image name is [REGISTRY/]PATH[:TAG] with a PATH in lower case, such as registry.example/team/app:1.2`;
  await expect(references()).rejects.toThrow(new UserError(text));
});

test('a file that does not exist and a folder are refused with the reason', async () => {
  await expect(references()).rejects.toThrow(new UserError(`the file ${file} does not exist`));
  mkdirSync(file);
  await expect(references()).rejects.toThrow(new UserError(`the file ${file} is a folder`));
});

test.each([
  ['xz', Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0])],
  ['bzip2', Buffer.from('BZh9')],
])('a file compressed with %s is refused with the command that decompresses it', async (program, bytes) => {
  writeFileSync(file, bytes);
  const text = `${file} is compressed with ${program}, and lifepod reads only plain archives and those compressed with gzip or zstd: decompress it with '${program} -dc' first`;
  await expect(references()).rejects.toThrow(new UserError(text));
});

test('an aborted read rejects with the reason of the abort', async () => {
  await archive({ 'manifest.json': docker('a:1') });
  const error = await readArchive(file, AbortSignal.abort()).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ name: 'AbortError' });
});
