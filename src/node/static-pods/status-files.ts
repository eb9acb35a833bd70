/**
 * The next engine reads the records of the started static Pods, because the API contains only their mirrors. Therefore a Pod is terminated
 * gracefully and runs to completion only once, even if its manifest was removed or the engine was killed.
 */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Pod } from '../../api/generated/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import { ensurePrivateFolder, readTextIfPresent, writeFileAtomic } from '../../platform/files.ts';
import type { Log } from '../../platform/platform.ts';

export interface PodRecord {
  /** The name of the manifest. */
  file: string;
  pod: Pod;
}

export interface Records {
  /** Deletes records that cannot be read. */
  load(): PodRecord[];
  /** The record is durable when the function returns. */
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
          // Without the record, the containers of the Pod are terminated, like those of every unknown Pod, unless the manifest still
          // defines the same Pod.
          log.error('the record of a static Pod cannot be read', { file: name, error: (error as Error).message });
          rmSync(join(folder, name), { force: true });
          return [];
        }
      });
    },
    write: (record) => writeFileAtomic(pathOf(uidOf(record.pod)), JSON.stringify(record)),
    remove: (uid) => rmSync(pathOf(uid), { force: true }),
  };
}
