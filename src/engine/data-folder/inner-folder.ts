/**
 * Refuses a data folder that is inside the data folder of another engine, or contains one, because `lifepod down` ends all processes and
 * mounts in its data folder.
 */
import { lstatSync, readdirSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { readTextIfPresent, realFolder, UserError } from '../../platform/files.ts';
import { knownDataDirs } from '../certificates/user-kubeconfigs.ts';
import { DEFAULT_DATA_DIR } from '../settings.ts';
import { engineProcesses } from './engine-processes.ts';

/** Throws a UserError if the folder, in which no engine has run, is inside the data folder of another engine, or contains one. */
export function refuseNestedFolder(dataDir: string): void {
  refuseInnerFolder(dataDir);
  refuseOuterFolder(dataDir, candidates());
}

const candidates = (): string[] => [
  realFolder(DEFAULT_DATA_DIR),
  ...knownDataDirs(),
  ...engineProcesses().flatMap((each) => each.dataDir ?? []),
];

/**
 * Throws a UserError if `dataDir` contains a data folder: one of `folders`, or a direct subfolder. Does not search deeper, because
 * `dataDir` may be the root of a large disk.
 */
export function refuseOuterFolder(dataDir: string, folders: readonly string[]): void {
  const above = dataDir.endsWith(sep) ? dataDir : `${dataDir}${sep}`;
  const inner = [...folders.filter((each) => each.startsWith(above)), ...entriesOf(dataDir)].find(isDataFolder);
  if (inner !== undefined)
    throw new UserError(`${dataDir} contains ${inner}, the data folder of another engine: choose another --data-dir`);
}

function entriesOf(folder: string): string[] {
  try {
    // A restore keeps the former parts of the data folder in a folder that looks like a data folder.
    return readdirSync(folder).flatMap((name) => (name.startsWith('before-restore-') ? [] : [join(folder, name)]));
  } catch {
    return [];
  }
}

/**
 * Throws a UserError if the folder is inside the data folder of another engine: `lifepod down` of that engine would also end the processes
 * of this folder.
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
 * Returns whether the folder contains an engine record, engine.json, of this user. Returns false without reading if engine.json is not a
 * regular file, because reading a pipe would block.
 */
export function isDataFolder(folder: string): boolean {
  try {
    const found = lstatSync(`${folder}/engine.json`, { throwIfNoEntry: false });
    if (found?.isFile() !== true || found.uid !== process.geteuid?.()) return false;
    const record: unknown = JSON.parse(readTextIfPresent(`${folder}/engine.json`) ?? 'null');
    return typeof record === 'object' && record !== null && 'podCidr' in record && 'nodeName' in record;
  } catch {
    return false;
  }
}
