import { lstatSync } from 'node:fs';
import { dirname } from 'node:path';
import { readTextIfPresent, UserError } from '../../platform/files.ts';

/**
 * Throws a UserError if the folder is inside the data folder of another engine: `lifepod down` of that engine ends all processes and mounts
 * in its folder, so also those of an engine in the inner one.
 */
export function refuseInnerFolder(dataDir: string): void {
  let inner = dataDir;
  for (let outer = dirname(inner); outer !== inner; outer = dirname(outer)) {
    if (isDataFolder(outer))
      throw new UserError(
        `${dataDir} is inside ${outer}, the data folder of another engine: choose another --data-dir`,
      );
    inner = outer;
  }
}

/**
 * Returns whether the folder contains the record of an engine. Another program may have a file of the same name. A file of another user is not
 * read, because it may be a pipe, which would block.
 */
function isDataFolder(folder: string): boolean {
  try {
    const found = lstatSync(`${folder}/engine.json`, { throwIfNoEntry: false });
    if (found?.isFile() !== true || found.uid !== process.geteuid?.()) return false;
    const record: unknown = JSON.parse(readTextIfPresent(`${folder}/engine.json`) ?? 'null');
    return typeof record === 'object' && record !== null && 'podCidr' in record && 'nodeName' in record;
  } catch {
    return false;
  }
}
