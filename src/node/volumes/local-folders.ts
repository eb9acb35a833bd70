/** Manages the folders of the PersistentVolumes of the StorageClass local-path: <data-dir>/volumes/<name of the PersistentVolume>. */
import { mkdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { removeTree } from '../../platform/remove-tree.ts';
import { makeFolder } from './empty-dir.ts';
import { mountsFrom, mountsUnder } from './mounts.ts';

export interface LocalFolders {
  nodeName: string;
  path(name: string): string;
  create(name: string): Promise<void>;
  /** Rejects if something is mounted in the folder, or if the folder or something in it is mounted elsewhere. */
  remove(name: string): Promise<void>;
  /** Does nothing if the folder is not empty or does not exist. */
  removeUnused(name: string): Promise<void>;
}

export function createLocalFolders(dataDir: string, nodeName: string): LocalFolders {
  const root = join(dataDir, 'volumes');
  const path = (name: string): string => {
    if (!/^[a-z0-9][a-z0-9.-]*$/.test(name)) throw new Error(`invalid volume name: ${JSON.stringify(name)}`);
    return join(root, name);
  };
  return {
    nodeName,
    path,
    async create(name) {
      const folder = path(name);
      await mkdir(root, { recursive: true, mode: 0o700 });
      // The containers may run as any user, so everyone may write to the folder.
      await makeFolder(folder);
    },
    async remove(name) {
      const folder = path(name);
      const [mount] = await mountsUnder(folder);
      if (mount !== undefined) throw new Error(`cannot remove ${folder}: ${mount} is mounted`);
      // A container may still exist for a short time after its Pod's object was deleted.
      const [user] = await mountsFrom(folder);
      if (user !== undefined) throw new Error(`cannot remove ${folder}: it is mounted at ${user}`);
      await removeTree(folder);
    },
    async removeUnused(name) {
      await rmdir(path(name)).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT' && error.code !== 'ENOTEMPTY') throw error;
      });
    },
  };
}
