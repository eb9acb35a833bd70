/**
 * Replaces the parts of a data folder that a backup contains, for `lifepod restore`: all of them or none.
 *
 * Reads and writes the folder `restore` of the data folder: the new parts in `new`, the former ones in `old`, and the file `commit`.
 * Invariants:
 *  1. Before `commit` exists, nothing outside of the folder `restore` has changed: a replacement that was killed has not happened.
 *  2. Once `commit` exists, finishReplacement() completes the replacement, however often it is killed.
 *  3. The former parts are kept, in a folder whose name begins with `before-restore-`.
 *
 * Images, containers, volumes and logs are not parts: they remain unchanged.
 */
import { existsSync, lstatSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { lockDataDir, readTextIfPresent, UserError, writeFileAtomic } from '../../platform/files.ts';
import { syncFolder } from '../../platform/folders/written-file.ts';

/** The files and folders of the data folder that a backup contains, and that a restore replaces or removes. */
export const PARTS: readonly string[] = [
  'certs.d',
  'encryption',
  'engine.json',
  'format-version',
  'manifests',
  'migrating-from',
  'pki',
  'seccomp',
  'sessions',
  'static-pods',
  'store',
];

/** Files with facts about single Pods. A restore removes them, because they are newer than the status in the backup. */
const POD_FILES = ['journal.json', 'node-end.json'];

const rootOf = (dataDir: string): string => join(dataDir, 'restore');
const commitFile = (dataDir: string): string => join(rootOf(dataDir), 'commit');

interface Commit {
  /** A former part whose name is not in the list is moved away without a replacement. */
  parts: string[];
  kept: string;
}

/** Returns whether a replacement has been decided and is not complete, so that parts of the folder may be missing. */
export const isReplacing = (dataDir: string): boolean => existsSync(commitFile(dataDir));

/** Calls finishReplacement() with the data folder locked, if a replacement was interrupted. */
export function completeRestore(dataDir: string): void {
  if (!existsSync(rootOf(dataDir))) return;
  const lock = lockDataDir(dataDir, 'restore');
  finishReplacement(dataDir);
  lock.release();
}

/** Returns an empty folder for the new parts. The caller has locked the data folder, and has called finishReplacement(). */
export function prepareReplacement(dataDir: string): string {
  rmSync(rootOf(dataDir), { recursive: true, force: true });
  const folder = join(rootOf(dataDir), 'new');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}

/** Removes the folder of prepareReplacement(), unless commitReplacement() has decided that the replacement takes place. */
export function abandonReplacement(dataDir: string): void {
  if (!existsSync(commitFile(dataDir))) rmSync(rootOf(dataDir), { recursive: true, force: true });
}

/** Throws a UserError if another disk is mounted at a part, which then cannot be moved. */
export function checkMovable(dataDir: string): void {
  const device = lstatSync(dataDir).dev;
  for (const name of PARTS) {
    const path = join(dataDir, name);
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found !== undefined && found.dev !== device) {
      throw new UserError(`another disk is mounted at ${path}: unmount it, and mount it again after the restore`);
    }
  }
}

/**
 * Decides that the new parts, which must be on the disk, replace the former ones. `time`, such as 2026-01-02T03:04:05.678Z, becomes a part
 * of the name of the folder with the former parts.
 */
export function commitReplacement(dataDir: string, time: string): void {
  const parts = PARTS.filter((part) => existsSync(join(rootOf(dataDir), 'new', part)));
  const name = `before-restore-${time.replaceAll(/[-:]|\.\d+/g, '')}`;
  let kept = name;
  for (let others = 2; existsSync(join(dataDir, kept)); others++) kept = `${name}-${others}`;
  syncFolder(dataDir);
  writeFileAtomic(commitFile(dataDir), JSON.stringify({ parts, kept } satisfies Commit));
}

/**
 * Completes a replacement that commitReplacement() has decided, and removes an undecided one. Returns the folder with the former parts;
 * undefined if there is none. The caller has locked the data folder. `rename` is for tests.
 */
export function finishReplacement(dataDir: string, rename = renameSync): string | undefined {
  const root = rootOf(dataDir);
  const text = readTextIfPresent(commitFile(dataDir));
  if (text === undefined) {
    rmSync(root, { recursive: true, force: true });
    return undefined;
  }
  const { parts, kept } = JSON.parse(text) as Commit;
  const old = join(root, 'old');
  mkdirSync(old, { recursive: true, mode: 0o700 });
  for (const name of PARTS) {
    const [fresh, present] = [join(root, 'new', name), join(dataDir, name)];
    // A new part that is missing in its folder has already been moved by an interrupted call.
    if (parts.includes(name) && !existsSync(fresh)) continue;
    if (lstatSync(present, { throwIfNoEntry: false }) !== undefined) rename(present, join(old, name));
    if (parts.includes(name)) rename(fresh, present);
  }
  removePodFiles(dataDir);
  const keptFolder = join(dataDir, kept);
  if (readdirSync(old).length > 0) rename(old, keptFolder);
  syncFolder(dataDir);
  rmSync(commitFile(dataDir));
  syncFolder(root);
  rmSync(root, { recursive: true });
  return existsSync(keptFolder) ? keptFolder : undefined;
}

function removePodFiles(dataDir: string): void {
  const folder = join(dataDir, 'pods');
  if (!existsSync(folder)) return;
  for (const uid of readdirSync(folder)) {
    for (const name of POD_FILES) rmSync(join(folder, uid, name), { force: true });
  }
}
