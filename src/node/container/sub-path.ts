/**
 * Opens subPaths of volumes. A container may replace a folder of its volume with a symbolic link at any moment. Therefore, the links of the
 * path are resolved first, and the resolved path is then traversed with handles, without following links.
 */
import { constants } from 'node:fs';
import { chmod, type FileHandle, lstat, mkdir, open, realpath } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';

/** Linux's O_PATH, which Node.js does not define. The handle identifies a location, without access to the content. */
const O_PATH = 0o10000000;

/** Thrown if a missing folder of a subPath cannot be created, for example because the folder would be outside the volume. */
export class SubPathFolderError extends Error {}

/**
 * Opens the file or folder with the path `subPath` inside the folder `volume`. Creates missing folders of this path with the mode of
 * `volume`. Rejects if the path, with its links resolved, leads outside the volume.
 */
export async function openSubPath(volume: string, subPath: string): Promise<FileHandle> {
  const base = await realpath(volume);
  const { existing, missing } = await deepestExisting(base, subPath);
  if (existing !== base && !existing.startsWith(base.endsWith(sep) ? base : base + sep))
    throw new (missing.length === 0 ? Error : SubPathFolderError)(`${subPath} is outside the volume`);
  const mode = (await lstat(base)).mode & 0o7777;
  let handle = await open(base, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    for (const part of relative(base, existing).split(sep)) if (part !== '') handle = await openEntry(handle, part);
    for (const part of missing) {
      const isNew = await makeFolder(entryOf(handle, part));
      handle = await openEntry(handle, part);
      // Use the handle, since a container may have replaced the name with a link in the meantime.
      if (isNew) await chmod(`/proc/self/fd/${handle.fd}`, mode);
    }
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

const entryOf = (folder: FileHandle, name: string): string => join('/proc/self/fd', String(folder.fd), name);

/**
 * Resolves to false if the path exists, for example because another container of the Pod created the folder first. Rejects with a
 * SubPathFolderError if mkdir() fails for another reason.
 */
const makeFolder = (path: string): Promise<boolean> =>
  mkdir(path).then(
    () => true,
    (cause: NodeJS.ErrnoException) => {
      if (cause.code !== 'EEXIST') throw new SubPathFolderError(cause.message, { cause });
      return false;
    },
  );

/** Closes `folder`. Rejects if the entry is a symbolic link. */
async function openEntry(folder: FileHandle, part: string): Promise<FileHandle> {
  try {
    const next = await open(entryOf(folder, part), O_PATH | constants.O_NOFOLLOW);
    if (!(await next.stat()).isSymbolicLink()) return next;
    await next.close();
    throw new Error(`${part} became a link`);
  } finally {
    await folder.close();
  }
}

/** Splits `subPath` into the longest prefix that exists in the folder `base`, as a real path, and the names of the missing folders. */
async function deepestExisting(base: string, subPath: string): Promise<{ existing: string; missing: string[] }> {
  const parts = subPath.split('/');
  for (let count = parts.length; ; count--) {
    try {
      return { existing: await realpath(join(base, ...parts.slice(0, count))), missing: parts.slice(count) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || count === 0) throw error;
    }
  }
}
