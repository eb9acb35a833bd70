/** Reads image archives that `docker save` made or that have an OCI image layout, uncompressed or compressed with gzip or zstd. */
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { posix } from 'node:path';
import { pipeline as connect, type Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { extract } from 'tar-stream';
import { readProblem } from '../../machinery/read-problem.ts';
import { UserError } from '../../platform/files.ts';
import { MAKE_AGAIN } from './import-failure.ts';
import { imageNameRule, referenceError, storedName } from './references.ts';

export type OnRead = (bytes: number) => void;

/** Larger documents are ignored, to limit the use of memory. */
const MAX_MANIFEST_BYTES = 4 * 1024 * 1024;
/** Further documents in blobs are ignored. */
const MAX_BLOBS_BYTES = 4 * MAX_MANIFEST_BYTES;
const OBJECT_BEGIN = '{'.charCodeAt(0);

export interface ArchiveContent {
  /** The names of the images, as written in the archive. */
  names: string[];
  /** The index of an OCI image layout; undefined if the archive has no index.json. */
  index: OciIndex | undefined;
  /** The paths of the blobs, such as blobs/sha256/HEX, with the text of those that are JSON objects: manifests and configurations. */
  blobs: ReadonlyMap<string, string | undefined>;
}

/** The part of index.json that contains the names of images. Source: OCI Image Layout Specification. */
export interface OciIndex {
  manifests?: OciDescriptor[];
}

export interface OciDescriptor {
  digest?: unknown;
  platform?: { os?: unknown; architecture?: unknown };
  annotations?: Record<string, unknown>;
}

/**
 * Rejects with a UserError if the file cannot be read, is not an archive of images, contains no names, or contains an invalid name or one
 * with the digest of another image.
 */
export async function readArchive(file: string, signal: AbortSignal, onRead?: OnRead): Promise<ArchiveContent> {
  let documents: Documents;
  try {
    documents = await readDocuments(file, signal, onRead);
  } catch (error) {
    if (signal.aborted) throw error;
    const { code = '' } = error as NodeJS.ErrnoException;
    if (['ENOENT', 'EACCES', 'EISDIR'].includes(code)) throw new UserError(`the file ${file} ${readProblem(error)}`);
    if (error instanceof UserError) throw error;
    throw error instanceof Damaged
      ? new UserError(`the image archive ${file} is damaged${error.message}: ${MAKE_AGAIN}`)
      : notAnArchive(file);
  }
  const [docker, oci] = [documents.indexes.get('manifest.json'), documents.indexes.get('index.json')];
  if (docker === undefined && oci === undefined) throw notAnArchive(file);
  let index: OciIndex | undefined;
  let named: Named[];
  try {
    index = oci === undefined ? undefined : ociIndex(JSON.parse(oci));
    named = dockerNames(JSON.parse(docker ?? '[]')).map((name) => ({ name }));
    for (const each of index?.manifests ?? [])
      named.push(...ociName(each).map((name) => ({ name, digest: each.digest })));
  } catch {
    throw notAnArchive(file);
  }
  const names = new Set(named.map(({ name }) => name));
  if (names.size === 0) {
    throw new UserError(
      `the images in ${file} have no name: write the archive with a name and a tag, as 'docker save NAME:TAG' or 'skopeo copy SOURCE oci-archive:FILE:NAME:TAG' do`,
    );
  }
  const [wrong] = [...names].filter((name) => referenceError(name) !== undefined);
  if (wrong !== undefined) {
    const shown = JSON.stringify(wrong);
    throw new UserError(
      `the archive ${file} names an image ${shown}: that is not a valid reference; ${imageNameRule(wrong)}`,
    );
  }
  const untrue = withUntrueDigest(named);
  if (untrue !== undefined) {
    throw new UserError(
      `the archive ${file} names an image ${JSON.stringify(untrue)}, but contains no image with this digest under this name: write it with a tag instead`,
    );
  }
  return { names: [...names], index, blobs: documents.blobs };
}

interface Named {
  name: string;
  /** The digest in the index. manifest.json has none. */
  digest?: unknown;
}

/**
 * Returns a name with a digest that is not the digest of its image. containerd would accept the name, and a Pod that names an image by
 * this digest would run another image.
 */
function withUntrueDigest(named: readonly Named[]): string | undefined {
  const byDigest = named.filter(({ name }) => name.includes('@'));
  const isTrue = ({ name, digest }: Named): boolean => name.endsWith(`@${digest}`);
  const confirmed = new Set(byDigest.filter(isTrue).map(({ name }) => storedName(name)));
  return byDigest.find((each) => !isTrue(each) && (each.digest !== undefined || !confirmed.has(storedName(each.name))))
    ?.name;
}

const notAnArchive = (file: string): UserError =>
  new UserError(
    `${file} is not an archive of images: give a file made by 'docker save' or one with an OCI image layout`,
  );

/** Returns the path in the form in which containerd compares it, for example without a leading `./`. */
export const entryName = ({ name }: { name: string }): string => posix.normalize(name);

/** A tar file is damaged after at least one whole header. The message is empty, or is the damage in parentheses. */
class Damaged extends Error {}

interface Documents {
  /** The content of manifest.json and index.json. */
  indexes: Map<string, string>;
  blobs: Map<string, string | undefined>;
}

async function readDocuments(file: string, signal: AbortSignal, onRead?: OnRead): Promise<Documents> {
  const [indexes, blobs] = [new Map<string, string>(), new Map<string, string | undefined>()];
  const tar = extract();
  let entries = 0;
  let blobsBytes = 0;
  const read = (async () => {
    for await (const entry of tar) {
      entries += 1;
      const name = entryName(entry.header);
      const [isIndex, isBlob] = [name === 'manifest.json' || name === 'index.json', name.startsWith('blobs/')];
      if (isBlob) blobs.set(name, undefined);
      if ((isIndex || isBlob) && (entry.header.size ?? 0) <= MAX_MANIFEST_BYTES) {
        const chunks: Buffer[] = [];
        for await (const chunk of entry) chunks.push(chunk as Buffer);
        const content = Buffer.concat(chunks);
        if (isIndex) indexes.set(name, content.toString());
        else if (content[0] === OBJECT_BEGIN && blobsBytes + content.length <= MAX_BLOBS_BYTES) {
          blobsBytes += content.length;
          blobs.set(name, content.toString());
        }
      } else {
        entry.resume();
      }
    }
  })();
  try {
    await Promise.all([pipeline(await openArchive(file, onRead), tar, { signal }), read]);
  } catch (error) {
    const { message, syscall } = error as NodeJS.ErrnoException;
    if (entries === 0 || signal.aborted || syscall !== undefined) throw error;
    // tar-stream and zlib report an incomplete file with these texts.
    throw new Damaged(/^unexpected end of (data|file)$/i.test(message) ? ' (its end is missing)' : '');
  }
  return { indexes, blobs };
}

/** Resolves with a stream of the archive, decompressed if necessary. Calls `onRead` for each piece of the file that has been read. */
export async function openArchive(file: string, onRead: OnRead = () => undefined): Promise<Readable> {
  const decompress = await decompressorOf(file);
  let bytes = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _, next) {
      bytes += chunk.length;
      onRead(bytes);
      next(null, chunk);
    },
  });
  // An error destroys all streams, so that the reader of the last stream gets the error.
  const [source, ignored] = [createReadStream(file), (): void => undefined];
  return decompress === undefined ? connect(source, counted, ignored) : connect(source, counted, decompress(), ignored);
}

/**
 * The first bytes of compressed files, and functions that create their decompressors, or the name of a program whose format Node.js cannot
 * read. Sources: RFC 1952, RFC 8878, the file format of xz, the manual of bzip2.
 */
const COMPRESSIONS: [magic: Buffer, decompressor: (() => Transform) | string][] = [
  [Buffer.from([0x1f, 0x8b]), createGunzip],
  [Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), createZstdDecompress],
  [Buffer.from('\xfd7zXZ\0', 'latin1'), 'xz'],
  [Buffer.from('BZh'), 'bzip2'],
];
const LONGEST_MAGIC = 6;

async function decompressorOf(file: string): Promise<(() => Transform) | undefined> {
  const handle = await open(file);
  try {
    const begin = Buffer.alloc(LONGEST_MAGIC);
    await handle.read(begin, 0, begin.length, 0);
    const decompressor = COMPRESSIONS.find(([magic]) => begin.subarray(0, magic.length).equals(magic))?.[1];
    if (typeof decompressor !== 'string') return decompressor;
    throw new UserError(
      `${file} is compressed with ${decompressor}, and lifepod reads only plain archives and those compressed with gzip or zstd: decompress it with '${decompressor} -dc' first`,
    );
  } finally {
    await handle.close();
  }
}

/** Throws if `manifests` does not have the specified form. Source: Docker Image Specification v1.2. */
const dockerNames = (manifests: unknown): string[] =>
  arrayOf(manifests).flatMap((manifest) => arrayOf(record(manifest)['RepoTags'] ?? []).map(text));

/** Throws if `index` does not have the form of an index. */
function ociIndex(index: unknown): OciIndex {
  for (const manifest of arrayOf(record(index)['manifests'] ?? [])) record(record(manifest)['annotations'] ?? {});
  return index as OciIndex;
}

/** The annotation that takes precedence in containerd. */
export const CONTAINERD_NAME = 'io.containerd.image.name';

/**
 * Returns the name of an image, if it has one. Exporters write names as annotations. Throws if an annotation is not a text. Source: OCI
 * Image Layout Specification; in `ref.name`, a text without any of `/:@` is only a tag, for which containerd invents a name.
 */
export function ociName({ annotations }: OciDescriptor): string[] {
  const whole = text(annotations?.[CONTAINERD_NAME] ?? '');
  const name = text(annotations?.['org.opencontainers.image.ref.name'] ?? '');
  if (whole !== '') return [whole];
  return /[/:@]/.test(name) ? [name] : [];
}

function arrayOf(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new TypeError('not an array');
  return value;
}

function record(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new TypeError('not an object');
  return value as Record<string, unknown>;
}

function text(value: unknown): string {
  if (typeof value !== 'string') throw new TypeError('not a string');
  return value;
}
