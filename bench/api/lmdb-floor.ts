/** The floor of writes: plain puts to LMDB with the options of the store. A put counts when it is durable. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from 'lmdb';

export interface LmdbFloor {
  /** `atOnce` puts are in each commit. Resolves with the puts per second. */
  rate(atOnce: number, count: number): Promise<number>;
  close(): Promise<void>;
}

export async function openLmdbFloor(value: Buffer): Promise<LmdbFloor> {
  const folder = await mkdtemp(join(tmpdir(), 'lifepod-bench-lmdb-'));
  const database = open<Buffer, string>({
    path: folder,
    noSubdir: false,
    encoding: 'binary',
    overlappingSync: false,
    eventTurnBatching: false,
  });
  let puts = 0;
  return {
    async rate(atOnce, count) {
      const began = performance.now();
      for (let done = 0; done < count; done += atOnce)
        await database.batch(() => {
          for (let i = 0; i < atOnce; i++) database.put(`/registry/pods/default/pod-${puts++}`, value);
        });
      return count / ((performance.now() - began) / 1000);
    },
    async close() {
      await database.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
