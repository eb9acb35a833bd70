/**
 * Manages one tmpfs for the secret and projected volumes of all Pods, because Secrets and tokens must not reach the disk. The
 * tmpfs is mounted once, not per volume, because starting mount(8) blocks the event loop longer than all other steps for a volume
 * together.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isMountPoint, mountTmpfs } from './mounts.ts';

export const podMemoryFolder = (dataDir: string): string => join(dataDir, 'pods-memory');

export interface PodMemory {
  /** Returns the path of the Pod's folder in the tmpfs. Callers create the folder after ready() and remove it with the Pod's volumes. */
  directory(podUid: string): string;
  /** Mounts the tmpfs, unless it is mounted. */
  ready(): Promise<void>;
}

/** Creates the manager of the tmpfs at `folder` (see podMemoryFolder()). `signal` aborts a mount under way, but does not unmount. */
export function createPodMemory(folder: string, signal: AbortSignal): PodMemory {
  let mounting: Promise<void> | undefined;
  async function mountOnce(): Promise<void> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    if (!(await isMountPoint(folder))) await mountTmpfs(folder, ['mode=0700'], signal);
  }
  return {
    directory: (podUid) => join(folder, podUid),
    ready() {
      mounting ??= mountOnce().finally(() => {
        mounting = undefined;
      });
      return mounting;
    },
  };
}
