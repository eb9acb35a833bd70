/** Manages the folders of PersistentVolumes of the class local-path: <data-dir>/volumes/<name of the volume>. */
import { mkdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { removeTree } from '../../platform/remove-tree.ts';
import { makeFolder } from './empty-dir.ts';
import { mountsFrom, mountsUnder } from './mounts.ts';

export interface LocalFolders {
  nodeName: string;
  path(name: string): string;
  create(name: string): Promise<void>;
  remove(name: string): Promise<void>;
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
      // Writable for everyone, since Pods run as any user.
      await makeFolder(folder);
    },
    async remove(name) {
      const folder = path(name);
      const [mount] = await mountsUnder(folder);
      if (mount !== undefined) throw new Error(`cannot remove ${folder}: ${mount} is mounted`);
      // A container may exist for a moment longer than its Pod's object.
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
