/**
 * Appends the lines of the audit log to a file, and rotates the file. Calls of append() must not overlap.
 *
 * Invariants:
 *  1. The remains of a failed write are cut off. A line that a crash has cut gets a line break when the file is opened again.
 *  2. A failure affects only the lines of the call: the next call tries again, and opens the file if it is closed.
 *
 * Source: lumberjack v2, which kube-apiserver v1.33 uses (behavior), except that a line longer than the limit is not lost.
 */
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Millis } from '../../machinery/time.ts';
import { isDiskFull } from '../../platform/folders/written-file.ts';
import { backupName, expiredBackups, type Retention } from './backups.ts';
import type { Output } from './sink.ts';

export interface LogFileOptions extends Retention {
  path: string;
  maxBytes: number;
  now(): Millis;
}

const LINE_BREAK = '\n'.charCodeAt(0);

/**
 * Creates the file with mode 0600 if it does not exist. Rejects if the file cannot be opened, except if the disk is full: the engine then
 * starts, and its first events are lost.
 */
export async function openLogFile(options: LogFileOptions): Promise<Output> {
  const file = new LogFile(options);
  await file.open().catch((error: unknown) => {
    if (!isDiskFull(error)) throw error;
  });
  return file;
}

class LogFile implements Output {
  readonly #options: LogFileOptions;
  #handle: FileHandle | undefined;
  #bytes = 0;

  constructor(options: LogFileOptions) {
    this.#options = options;
  }

  async open(): Promise<void> {
    const { path } = this.#options;
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const found = await stat(path).catch(() => undefined);
    // Only a regular file can be rotated, and a write to a pipe that no program reads would never end.
    if (found?.isFile() === false) throw new Error('it is not a regular file');
    const handle = await open(path, 'a+', 0o600);
    try {
      this.#bytes = await endLastLine(handle);
    } catch (error) {
      await handle.close();
      throw error;
    }
    this.#handle = handle;
    await this.#removeExpired();
  }

  async append(lines: readonly Buffer[]): Promise<{ written: number; error?: Error }> {
    let written = 0;
    try {
      while (written < lines.length) {
        if (this.#handle === undefined) await this.open();
        const part = this.#fitting(lines.slice(written));
        if (part.length === 0) await this.#rotate();
        else await this.#write(Buffer.concat(part));
        written += part.length;
      }
      return { written };
    } catch (error) {
      await this.#cutOff();
      return { written, error: error as Error };
    }
  }

  async close(): Promise<void> {
    await this.#handle?.close().catch(() => undefined);
    this.#handle = undefined;
  }

  #fitting(lines: readonly Buffer[]): Buffer[] {
    let bytes = this.#bytes;
    const count = lines.findIndex((line) => {
      const isTooLong = bytes > 0 && bytes + line.length > this.#options.maxBytes;
      bytes += line.length;
      return isTooLong;
    });
    return lines.slice(0, count < 0 ? lines.length : count);
  }

  async #write(bytes: Buffer): Promise<void> {
    await this.#handle?.appendFile(bytes);
    this.#bytes += bytes.length;
  }

  async #rotate(): Promise<void> {
    const { path, now } = this.#options;
    await this.close();
    let at = now();
    let backup: string;
    // Two rotations within a millisecond must not replace each other's file.
    do backup = join(dirname(path), backupName(basename(path), at++));
    while ((await stat(backup).catch(() => undefined)) !== undefined);
    await rename(path, backup);
    await this.open();
  }

  /** Removes the bytes that a failed write has left. If this fails, the next open() ends the last line. */
  async #cutOff(): Promise<void> {
    try {
      const { size } = (await this.#handle?.stat()) ?? { size: 0 };
      if (size > this.#bytes) await this.#handle?.truncate(this.#bytes);
    } catch {
      await this.close();
    }
  }

  /** A file that cannot be removed must not stop the log, so failures are ignored. */
  async #removeExpired(): Promise<void> {
    const { path, maxBackups, maxAgeDays, now } = this.#options;
    if (maxBackups === 0 && maxAgeDays === 0) return;
    const folder = dirname(path);
    const names = await readdir(folder).catch(() => []);
    for (const name of expiredBackups(basename(path), names, { maxBackups, maxAgeDays }, now()))
      await rm(join(folder, name), { force: true }).catch(() => undefined);
  }
}

/** Resolves to the length of the file in bytes, after adding a line break to a last line that has none. */
async function endLastLine(handle: FileHandle): Promise<number> {
  const { size } = await handle.stat();
  if (size === 0) return 0;
  const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
  if (buffer[0] === LINE_BREAK) return size;
  await handle.write('\n');
  return size + 1;
}
