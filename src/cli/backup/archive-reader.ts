/** Reads and verifies a backup, whose content is not trusted. */
import { createHash } from 'node:crypto';
import { closeSync, createReadStream, openSync, readSync, statSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { extract } from 'tar-stream';
import { DATA_FORMAT_VERSION, newerFormat } from '../../engine/data-folder/format.ts';
import { readProblem } from '../../machinery/read-problem.ts';
import { UserError } from '../../platform/files.ts';
import {
  BACKUP_FORMAT,
  type BackedUpFile,
  FILES_PREFIX,
  MANIFEST_NAME,
  type Manifest,
  manifestProblem,
} from './manifest.ts';

/** A backup with a larger manifest is refused. The manifest of a backup with 10,000 static Pods has about 2 MiB. */
const MAX_MANIFEST_BYTES = 16 * 2 ** 20;

/** `content` yields the bytes of the file in chunks; their checksum has not been verified yet. */
export type Visit = (file: BackedUpFile, content: AsyncIterable<Buffer>) => Promise<void>;

/**
 * Reads the backup, calls `visit` with each file, and verifies the checksums. Rejects with a UserError if the backup is missing, unreadable
 * or not valid; with the system error of another failed read; and with the error of `visit`, which must be a UserError or have a `path`.
 */
export async function readArchive(backup: string, visit: Visit = drop): Promise<Manifest> {
  checkGzip(backup);
  const seen: Seen = {};
  await readTo(seen, backup, visit);
  return seen.manifest as Manifest;
}

/** Returns whether the file begins like a backup; true also for a damaged backup, and for one of a newer lifepod. */
export async function isBackup(file: string): Promise<boolean> {
  const seen: Seen = {};
  await readTo(seen, file, () => Promise.reject(new UserError('the manifest has been read'))).catch(() => undefined);
  return seen.manifest !== undefined;
}

async function readTo(seen: Seen, backup: string, visit: Visit): Promise<void> {
  const tar = extract();
  const entries = tar as unknown as AsyncIterable<Entry>;
  const read = readEntries(backup, entries, visit, seen).catch((error: unknown) => {
    // A damaged archive also makes readEntries() reject. failureOf() then returns a clearer error.
    seen.failure ??= error;
    tar.destroy();
  });
  const [, stream] = await Promise.allSettled([read, pipeline(createReadStream(backup), createGunzip(), tar)]);
  if (stream.status === 'rejected') throw failureOf(backup, stream.reason, seen);
  if (seen.failure !== undefined) throw seen.failure;
}

interface Seen {
  manifest?: Manifest;
  failure?: unknown;
}

const drop: Visit = async (_file, content) => {
  for await (const _ of content);
};

const damaged = (backup: string, how: string): UserError =>
  new UserError(`the backup ${backup} is damaged (${how}): use another one, or copy it again`);

const foreign = (backup: string): UserError =>
  new UserError(`${backup} is not a backup of lifepod: give a file that 'lifepod backup' has written`);

function failureOf(backup: string, error: unknown, { manifest, failure }: Seen): unknown {
  const { code = '' } = error as NodeJS.ErrnoException;
  if (code === 'Z_BUF_ERROR') return damaged(backup, 'its end is missing');
  if (code === 'Z_DATA_ERROR') return damaged(backup, 'it cannot be decompressed');
  if (/^E[A-Z]+$/.test(code)) return error;
  if (failure instanceof UserError || (failure as NodeJS.ErrnoException | undefined)?.path !== undefined)
    return failure;
  return manifest === undefined ? foreign(backup) : damaged(backup, 'it is not a whole archive');
}

function checkGzip(backup: string): void {
  const magic = Buffer.alloc(2);
  try {
    if (!statSync(backup).isFile()) throw foreign(backup);
    const fd = openSync(backup, 'r');
    try {
      readSync(fd, magic, 0, 2, 0);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (['ENOENT', 'EACCES', 'ENOTDIR'].includes(code)) throw new UserError(`the file ${backup} ${readProblem(error)}`);
    throw error;
  }
  if (magic[0] !== 0x1f || magic[1] !== 0x8b) throw foreign(backup);
}

type Entry = Readable & { header: { name: string; type?: string | null; size?: number } };

async function readEntries(backup: string, tar: AsyncIterable<Entry>, visit: Visit, seen: Seen): Promise<void> {
  let rest: BackedUpFile[] = [];
  for await (const entry of tar) {
    const { name, type, size = 0 } = entry.header;
    if (seen.manifest === undefined) {
      if (name !== MANIFEST_NAME || type !== 'file' || size > MAX_MANIFEST_BYTES) throw foreign(backup);
      seen.manifest = parsed(backup, await bytesOf(entry));
      check(backup, seen.manifest);
      rest = [...seen.manifest.files];
      continue;
    }
    const file = rest.shift();
    if (file === undefined || type !== 'file' || name !== `${FILES_PREFIX}${file.path}` || size !== file.bytes) {
      throw damaged(backup, `${JSON.stringify(name)} is not what its manifest says`);
    }
    const hash = createHash('sha256');
    await visit(file, hashed(entry, hash));
    if (hash.digest('hex') !== file.sha256) throw damaged(backup, `the checksum of ${file.path} is wrong`);
  }
  if (seen.manifest === undefined) throw foreign(backup);
  if (rest.length > 0) throw damaged(backup, `${rest[0]?.path} is missing`);
}

async function* hashed(entry: Entry, hash: ReturnType<typeof createHash>): AsyncGenerator<Buffer> {
  for await (const chunk of entry) {
    hash.update(chunk as Buffer);
    yield chunk as Buffer;
  }
}

async function bytesOf(entry: Entry): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of entry) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function parsed(backup: string, text: Buffer): Manifest {
  let manifest: Manifest | null;
  try {
    manifest = JSON.parse(text.toString()) as Manifest | null;
  } catch {
    throw foreign(backup);
  }
  const { format = 0 } = manifest ?? {};
  if (manifest === null || !Number.isSafeInteger(format) || format < 1) throw foreign(backup);
  return manifest;
}

function check(backup: string, manifest: Manifest): void {
  const { format, dataFormat, lifepod } = manifest;
  const writer = typeof lifepod === 'string' ? lifepod : undefined;
  if (format > BACKUP_FORMAT || (Number.isSafeInteger(dataFormat) && dataFormat > DATA_FORMAT_VERSION)) {
    throw new UserError(
      `the backup ${backup} ${newerFormat(Math.max(format, dataFormat), writer, 'use another backup')}`,
    );
  }
  const problem = manifestProblem(manifest);
  if (problem !== undefined) throw damaged(backup, problem);
}
