/**
 * The static Pods that were begun, each with its status, in a file of its own: what the API keeps of other Pods.
 * A Pod that has its record ends gracefully and completes only once, also where its manifest went, or the engine died.
 */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Pod } from '../../api/generated/types.ts';
import { ensurePrivateFolder, readTextIfPresent, writeFileAtomic } from '../../platform/files.ts';
import type { Log } from '../../platform/platform.ts';

export interface PodRecord {
  /** The manifest's name in its folder. */
  file: string;
  pod: Pod;
}

export interface Records {
  /** What an earlier engine left. */
  load(): PodRecord[];
  /** Durable when it returns. */
  write(record: PodRecord): void;
  remove(uid: string): void;
}

const SUFFIX = '.json';

export function openRecords(folder: string, log: Log): Records {
  ensurePrivateFolder(folder);
  const pathOf = (uid: string): string => join(folder, `${uid}${SUFFIX}`);
  return {
    load() {
      const names = readdirSync(folder).filter((name) => name.endsWith(SUFFIX));
      return names.sort().flatMap((name) => {
        try {
          return [JSON.parse(readTextIfPresent(join(folder, name)) ?? '') as PodRecord];
        } catch (error) {
          // What runs of it is ended as that of any Pod that nobody knows.
          log.error('the record of a static Pod cannot be read', { file: name, error: (error as Error).message });
          rmSync(join(folder, name), { force: true });
          return [];
        }
      });
    },
    write: (record) => writeFileAtomic(pathOf(record.pod.metadata.uid ?? ''), JSON.stringify(record)),
    remove: (uid) => rmSync(pathOf(uid), { force: true }),
  };
}
