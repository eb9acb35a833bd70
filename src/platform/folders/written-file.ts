import { closeSync, constants, fstatSync, fsyncSync, openSync, writeSync } from 'node:fs';

/** Returns whether an error of the file system means that the disk is full or the disk quota is used up. */
export const isDiskFull = (error: unknown): boolean =>
  ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '');

/** Calls `write` and returns its result. Adds the path to an error, because the error of a failed write lacks it. */
export function namingFile<T>(path: string, write: () => T): T {
  try {
    return write();
  } catch (error) {
    throw Object.assign(error as Error, { path });
  }
}

/** Pads the line to the size of the file, so that one write replaces the whole former line, and needs no space on a full disk. */
export function overwriteLine(fd: number, line: string): void {
  writeSync(fd, `${line.padEnd(fstatSync(fd).size - 1)}\n`, 0);
}

/** Makes the names of the files in the folder durable. */
export function syncFolder(path: string): void {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
