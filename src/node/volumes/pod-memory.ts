/**
 * Manages one tmpfs for the secret and projected volumes of all Pods, because Secrets and tokens must not reach the disk. There is one
 * mount for all volumes, because starting mount(8) blocks the event loop longer than all other steps for a volume together.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isMountPoint, mountTmpfs } from './mounts.ts';

export const podMemoryFolder = (dataDir: string): string => join(dataDir, 'pods-memory');

export interface PodMemory {
  /** Callers create the folder after ready() and remove it with the Pod's volumes. */
  directory(podUid: string): string;
  ready(): Promise<void>;
}

/** `folder`: from podMemoryFolder(). `signal` aborts a mount under way, but does not unmount. */
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
