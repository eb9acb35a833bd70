/** Writes a backup durably and atomically: a file with the name of a backup is complete, even if the process was killed while it wrote. */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, openSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { type Header, type Pack, pack } from 'tar-stream';
import { syncFolder } from '../../platform/folders/written-file.ts';
import { type BackedUpFile, FILES_PREFIX, MANIFEST_NAME, type Manifest } from './manifest.ts';

/** `path`: the path in the data folder. A large file is read from `file`. */
export type Source = { path: string } & ({ content: Buffer } | { file: string });

export async function describeSource(source: Source): Promise<BackedUpFile> {
  const { path } = source;
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of 'content' in source ? [source.content] : createReadStream(source.file)) {
    hash.update(chunk as Buffer);
    bytes += (chunk as Buffer).length;
  }
  return { path, bytes, sha256: hash.digest('hex') };
}

/**
 * Writes the backup to `file` with mode 0600, and replaces an older one only when the new one is complete. If writing fails or `signal`
 * aborts, leaves no new file. Removes the incomplete files that killed processes have left for a backup of this name.
 */
export async function writeArchive(
  file: string,
  manifest: Manifest,
  sources: readonly Source[],
  signal: AbortSignal,
): Promise<void> {
  removeLeftovers(file);
  const unfinished = `${file}.${process.pid}.new`;
  const tar = pack();
  try {
    // The file is opened here. A stream would open it asynchronously, perhaps after an abort, when the file has already been removed.
    const output = createWriteStream(unfinished, { fd: openSync(unfinished, 'wx', 0o600), flush: true });
    const written = pipeline(tar, createGzip(), output, { signal });
    await Promise.all([written, addAll(tar, manifest, sources, written)]);
    signal.throwIfAborted();
    renameSync(unfinished, file);
    syncFolder(dirname(file));
  } catch (error) {
    rmSync(unfinished, { force: true });
    signal.throwIfAborted();
    // The error of a failed write does not include the path.
    throw Object.assign(error as Error, { path: file });
  }
}

/**
 * Adds all files to the archive. Rejects as soon as `written` rejects: nothing reads from the archive any more, so the next entry would
 * never end.
 */
async function addAll(
  tar: Pack,
  manifest: Manifest,
  sources: readonly Source[],
  written: Promise<void>,
): Promise<void> {
  const failed = written.then(() => undefined);
  failed.catch(() => undefined);
  const common = { mode: 0o600, uid: 0, gid: 0, mtime: new Date(manifest.created) };
  const add = (header: Partial<Header> & { name: string }, content?: Buffer | string): NodeJS.WritableStream => {
    const entry = content === undefined ? tar.entry(header) : tar.entry(header, content);
    // Each entry fails together with the archive. An unhandled error event would end the process.
    return entry.on('error', () => undefined) as unknown as NodeJS.WritableStream;
  };
  add({ ...common, name: MANIFEST_NAME }, `${JSON.stringify(manifest, undefined, 2)}\n`);
  for (const [index, source] of sources.entries()) {
    const name = `${FILES_PREFIX}${source.path}`;
    if ('content' in source) add({ ...common, name }, source.content);
    else {
      const entry = add({ ...common, name, size: manifest.files[index]?.bytes ?? 0 });
      await Promise.race([pipeline(createReadStream(source.file), entry), failed]);
    }
  }
  tar.finalize();
}

function removeLeftovers(file: string): void {
  const folder = dirname(file);
  const prefix = `${basename(file)}.`;
  for (const name of readdirSync(folder)) {
    const [, pid] = name.startsWith(prefix) ? (/^(\d+)\.new$/.exec(name.slice(prefix.length)) ?? []) : [];
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(join(folder, name), { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
