/**
 * `lifepod restore`: replaces the store, the keys, the settings and the static Pods of a data folder with those of a backup.
 *
 * Invariants:
 *  1. The whole backup has been verified before anything is created. Each file is verified again when it is extracted.
 *  2. The data folder has either its former content or that of the backup, however the process ends (replacement.ts).
 *  3. The revision continues far beyond that of the backup, and earlier revisions cannot be read. A client that has seen changes since the
 *     backup thus gets the error 410 and lists again, instead of missing changes.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmdirSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { checkReplaceableFormat } from '../../engine/data-folder/format.ts';
import { refuseInnerFolder } from '../../engine/data-folder/inner-folder.ts';
import { refuseLost } from '../../engine/data-folder/lost-folder.ts';
import { refuseUnusableFolder, refuseUnusablePath } from '../../engine/data-folder/new-folder.ts';
import {
  abandonReplacement,
  checkMovable,
  commitReplacement,
  finishReplacement,
  PARTS,
  prepareReplacement,
} from '../../engine/data-folder/replacement.ts';
import { requireRoot } from '../../engine/machine-checks.ts';
import type { EngineRecord } from '../../engine/settings.ts';
import { settledRecord } from '../../engine/start/first-start.ts';
import { refuseRuntimeChange } from '../../engine/start/runtime-change.ts';
import {
  dataDirOwner,
  ensureDataDir,
  FolderInUseError,
  lockDataDir,
  readTextIfPresent,
  UserError,
  writeFileAtomic,
} from '../../platform/files.ts';
import { syncFolder } from '../../platform/folders/written-file.ts';
import { nodePlatform, systemTimers } from '../../platform/node-js.ts';
import { forgetHistory } from '../../store/lmdb/copy-file.ts';
import { hintsFor } from '../hints.ts';
import { printLine } from '../progress/standard-output.ts';
import { readArchive } from './archive-reader.ts';
import { interruption } from './interruption.ts';
import type { BackedUpFile, Manifest } from './manifest.ts';
import { volumeNotes, volumePaths } from './volume-notes.ts';

/**
 * The number that a restore adds to the revision. It must exceed the number of revisions that the engine has written since the backup. An
 * engine writes at most a few thousand in a second, and usually far fewer.
 * Source: upstream's advice for `etcdutl snapshot restore --bump-revision`.
 */
const MORE_REVISIONS = 1_000_000_000;

/** Entries of a data folder that are not data. A restore to a folder that contains nothing else does not need --force. */
const NOT_DATA: readonly string[] = ['lost+found', 'lock', 'restore'];

export interface RestoreOptions {
  dataDir: string;
  force?: boolean;
}

/**
 * Rejects with a UserError if the backup is not valid, if an engine uses the folder, or if the content of the folder must not be replaced.
 * An abort of `signal` before the replacement leaves the folder unchanged.
 */
export async function restore(
  file: string,
  { dataDir, force = false }: RestoreOptions,
  signal = interruption(),
): Promise<void> {
  requireRoot();
  const manifest = await readArchive(file);
  checkReplaceableFormat(dataDir);
  await refuseLost(dataDir, systemTimers());
  const isNew = !existsSync(dataDir);
  if (isNew) {
    refuseUnusableFolder(dataDir, { isPrivate: false });
    checkParent(dataDir);
  } else {
    // Only the folders above are searched: in a folder below, an interrupted restore may have left the record of this engine.
    if (!existsSync(join(dataDir, 'engine.json'))) refuseInnerFolder(dataDir);
    // The message about a folder that is not empty would advise --force, which does not help while an engine runs.
    const pid = dataDirOwner(dataDir);
    if (pid !== undefined) throw new FolderInUseError(dataDir, pid);
    checkContent(dataDir, force);
  }
  ensureDataDir(dataDir);
  const lock = lockDataDir(dataDir, 'restore');
  let kept: string | undefined;
  let volumes: string[];
  try {
    finishReplacement(dataDir);
    checkContent(dataDir, force);
    try {
      volumes = await prepare(file, dataDir, manifest, signal);
      commitReplacement(dataDir, new Date().toISOString());
    } catch (error) {
      abandonReplacement(dataDir);
      if (isNew) removeNew(dataDir);
      signal.throwIfAborted();
      throw error;
    }
    kept = finishReplacement(dataDir);
  } finally {
    lock.release();
  }
  printLine(
    `restored ${file} to ${dataDir}: ${manifest.objects} objects of ${manifest.created}, node ${manifest.nodeName}`,
  );
  if (kept !== undefined)
    printLine(`the former data is in ${kept}, also its keys: remove it when you do not need it any more`);
  for (const note of volumeNotes(volumes, dataDir)) printLine(note);
  printLine(`start the engine with '${hintsFor({ dataDir }, process.env).start()}'`);
}

/** Throws a UserError if the parent of a new data folder is missing, because the path is then probably mistyped. */
function checkParent(dataDir: string): void {
  const parent = dirname(resolve(dataDir));
  if (existsSync(parent)) return;
  throw new UserError(`the folder ${parent} does not exist: create it, or choose another --data-dir`);
}

function checkContent(dataDir: string, force: boolean): void {
  if (!statSync(dataDir).isDirectory()) throw new UserError(`${dataDir} is not a folder: choose another --data-dir`);
  const names = readdirSync(dataDir).filter((name) => !NOT_DATA.includes(name));
  if (names.length === 0) return;
  if (!names.some((name) => PARTS.includes(name))) {
    throw new UserError(`the folder ${dataDir} is not empty, and has no data of lifepod: choose another --data-dir`);
  }
  if (!force) {
    throw new UserError(
      `the data folder ${dataDir} is not empty: choose another --data-dir, or replace its data with --force, which keeps the former data in a folder`,
    );
  }
  checkMovable(dataDir);
}

function removeNew(dataDir: string): void {
  rmSync(join(dataDir, 'lock'), { force: true });
  rmdirSync(dataDir);
}

/** Extracts the backup to the folder of the replacement. Resolves with the paths of the volumes in the backup. */
async function prepare(file: string, dataDir: string, { files }: Manifest, signal: AbortSignal): Promise<string[]> {
  const folder = prepareReplacement(dataDir);
  await readArchive(file, (each, content) => extractTo(folder, each, content, signal));
  const folders = new Set(files.map(({ path }) => dirname(join(folder, path))));
  const recordPath = join(folder, 'engine.json');
  const { shutdown: _, ...record } = JSON.parse(readTextIfPresent(recordPath) ?? '') as EngineRecord;
  const { containerRuntimeEndpoint = '' } = record;
  if (containerRuntimeEndpoint === '') refuseUnusablePath(dataDir);
  await refuseRuntimeChange(
    { dataDir, containerRuntimeEndpoint },
    formerRecord(dataDir),
    nodePlatform('error'),
    'restore to another --data-dir, because the backup is of an engine with another --container-runtime-endpoint',
  );
  // `lifepod down` ends the Pods in the store only if the state is `up`.
  writeFileAtomic(recordPath, `${JSON.stringify({ ...record, state: 'up' }, undefined, 2)}\n`);
  const store = join(folder, 'store');
  await forgetHistory(store, MORE_REVISIONS);
  const volumes = await volumePaths(folder, record.encryptionProviderConfig ?? '');
  rmSync(join(store, 'lock.mdb'), { force: true });
  for (const each of folders) syncFolder(each);
  syncFolder(folder);
  return volumes;
}

/** Returns undefined if the record is damaged, because a restore must be able to replace it. */
function formerRecord(dataDir: string): EngineRecord | undefined {
  try {
    return settledRecord(dataDir);
  } catch (error) {
    if (error instanceof UserError) return undefined;
    throw error;
  }
}

async function extractTo(
  folder: string,
  { path }: BackedUpFile,
  content: AsyncIterable<Buffer>,
  signal: AbortSignal,
): Promise<void> {
  const target = join(folder, path);
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
  const fd = openSync(target, 'wx', 0o600);
  try {
    for await (const chunk of content) {
      signal.throwIfAborted();
      for (let written = 0; written < chunk.length; ) written += writeSync(fd, chunk, written);
    }
    fsyncSync(fd);
  } catch (error) {
    // The error of a failed write does not include the path.
    throw Object.assign(error as Error, { path: target });
  } finally {
    closeSync(fd);
  }
}
