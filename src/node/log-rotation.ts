/**
 * Keeps a container's log from filling the disk: a file that has grown too large is set aside and the runtime told
 * to open a new one; the oldest ones go.
 * Source: containerLogMaxSize and containerLogMaxFiles of v1.33's kubelet (defaults, names of the files; here not compressed).
 */
import { readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

export const MAX_LOG_BYTES = 10 * 1024 * 1024;
/** With the one being written. */
export const MAX_LOG_FILES = 5;

export interface Rotation {
  path: string;
  maxBytes: number;
  maxFiles: number;
  /** Milliseconds since the epoch: the name of the file set aside. */
  now: number;
  /** Makes the runtime open the path anew. */
  reopen(): Promise<void>;
}

/** Returns whether the log was rotated. Rejects where the runtime does not open a new one: the old one then stays in place. */
export async function rotateLog({ path, maxBytes, maxFiles, now, reopen }: Rotation): Promise<boolean> {
  const size = await stat(path).then(
    (found) => found.size,
    () => 0,
  );
  if (size <= maxBytes) return false;
  const aside = `${path}.${new Date(now).toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '-')}`;
  await rename(path, aside);
  try {
    await reopen();
  } catch (error) {
    await rename(aside, path);
    throw error;
  }
  const rotated = (await rotatedFiles(path)).sort();
  for (const file of rotated.slice(0, Math.max(0, rotated.length - (maxFiles - 1)))) await rm(file, { force: true });
  return true;
}

/** The files set aside of this log: its name and a time. */
export async function rotatedFiles(path: string): Promise<string[]> {
  const prefix = `${basename(path)}.`;
  const entries = await readdir(dirname(path)).catch(() => []);
  return entries
    .filter((entry) => entry.startsWith(prefix) && /^\d{8}-\d{6}$/.test(entry.slice(prefix.length)))
    .map((entry) => join(dirname(path), entry));
}
