/**
 * Measures a folder that Pods write to. The folder may contain anything, including files that cannot be read and paths that are longer than
 * the kernel accepts.
 *
 * Invariants:
 * - Few files are open at a time, however deep the folders are. Only the names of folders and the numbers of inodes with several hard links
 *   are kept in memory.
 * - A call runs one file system call at a time, so that it puts little load on the disk.
 */
import type { Dir, Stats } from 'node:fs';
import { constants } from 'node:fs';
import { type FileHandle, lstat, open, opendir } from 'node:fs/promises';

export interface DiskUse {
  bytes: number;
  inodes: number;
}

/**
 * A folder with a longer path, in bytes, is opened in several steps. The kernel accepts paths of up to 4096 bytes, and the name of an entry
 * in the folder, with its slash, adds up to 256 bytes.
 */
const LONGEST_PATH = 3800;
const BLOCK_BYTES = 512;

/**
 * `parent`: undefined for the measured folder, whose `name` is its path. `name` has one character per byte (Latin-1), because file names
 * need not be valid UTF-8.
 */
interface Folder {
  name: string;
  parent: Folder | undefined;
}

/**
 * Resolves to the disk usage of the file or folder at `path`, with everything below it on the same file system. A file with several hard
 * links counts once. What cannot be read counts as zero; the error is reported to `unreadable`, unless the entry no longer exists. Rejects
 * only when `signal` aborts.
 */
export async function folderUsage(
  path: string,
  signal: AbortSignal,
  unreadable: (error: Error) => void = () => undefined,
): Promise<DiskUse> {
  const use: DiskUse = { bytes: 0, inodes: 0 };
  const failed = (error: NodeJS.ErrnoException): undefined => {
    if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') unreadable(error);
    return undefined;
  };
  const root = await lstat(path).catch(failed);
  if (root === undefined) return use;
  const linked = new Set<number>();
  const count = (file: Stats): void => {
    use.bytes += file.blocks * BLOCK_BYTES;
    use.inodes++;
  };
  count(root);
  const waiting: Folder[] = root.isDirectory()
    ? [{ name: Buffer.from(path).toString('latin1'), parent: undefined }]
    : [];
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    const opened = await openFolder(folder).catch(failed);
    if (opened === undefined) continue;
    try {
      for await (const { name } of opened.entries) {
        signal.throwIfAborted();
        const file = await lstat(bytesOf(`${opened.path}/${name}`)).catch(failed);
        if (file === undefined || file.dev !== root.dev || linked.has(file.ino)) continue;
        if (file.nlink > 1 && !file.isDirectory()) linked.add(file.ino);
        count(file);
        if (file.isDirectory()) waiting.push({ name, parent: folder });
      }
    } catch (error) {
      signal.throwIfAborted();
      failed(error as NodeJS.ErrnoException);
    } finally {
      await opened.handle?.close();
    }
  }
  return use;
}

const bytesOf = (path: string): Buffer => Buffer.from(path, 'latin1');

/** `path` is valid until the caller closes `handle`; `handle` is undefined if the path was short enough to open the folder directly. */
async function openFolder(folder: Folder): Promise<{ path: string; entries: Dir; handle?: FileHandle }> {
  const names: string[] = [];
  for (let each: Folder | undefined = folder; each !== undefined; each = each.parent) names.push(each.name);
  let handle: FileHandle | undefined;
  let path = names.pop() ?? '';
  try {
    for (let name = names.pop(); name !== undefined; name = names.pop()) {
      if (path.length + name.length >= LONGEST_PATH) {
        const next = await open(bytesOf(path), constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
        await handle?.close();
        handle = next;
        path = `/proc/self/fd/${handle.fd}`;
      }
      path += `/${name}`;
    }
    const entries = await opendir(bytesOf(path), { encoding: 'latin1' });
    return { path, entries, handle };
  } catch (error) {
    await handle?.close();
    throw error;
  }
}
