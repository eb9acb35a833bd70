/**
 * `lifepod backup`: writes the store, the keys, the settings and the static Pods of a data folder to one file, also while the engine runs.
 *
 * Invariants:
 *  1. The store in the backup has the state of one revision. The keys in the backup decrypt it, even if the engine replaces its keys
 *     while the command runs.
 *  2. Under the name that the user gave, there is never an incomplete backup.
 */
import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { keyFilePath, keyFolder } from '../../apiserver/encryption/key-file.ts';
import { COPY_STORE_PATH } from '../../apiserver/serve-store-copy.ts';
import { checkDataFormat, dataFormatOf } from '../../engine/data-folder/format.ts';
import { lostText } from '../../engine/data-folder/lost-folder.ts';
import { finishReplacement, PARTS } from '../../engine/data-folder/replacement.ts';
import { copyStore, storeCopyFolder, withStoreCopy } from '../../engine/data-folder/store-copy.ts';
import { requireRoot } from '../../engine/machine-checks.ts';
import { readEngineRecord } from '../../engine/settings.ts';
import { settledRecord } from '../../engine/start/first-start.ts';
import { LIFEPOD_VERSION } from '../../engine/version.ts';
import { isApiError } from '../../machinery/status.ts';
import { dataDirOwner, lockDataDir, readTextIfPresent, UserError } from '../../platform/files.ts';
import { foreignLink, redirectingUser } from '../../platform/folder-owners.ts';
import { nodePlatform } from '../../platform/node-js.ts';
import { userName } from '../../platform/programs/user-name.ts';
import { forgetHistory } from '../../store/lmdb/copy-file.ts';
import { openLmdbStore } from '../../store/lmdb/lmdb-store.ts';
import { engineClient } from '../kubeconfig/engine-client.ts';
import { orOtherFolder } from '../kubeconfig/engine-folders.ts';
import { printLine } from '../progress/standard-output.ts';
import { isBackup } from './archive-reader.ts';
import { describeSource, type Source, writeArchive } from './archive-writer.ts';
import { checkKeys } from './check-keys.ts';
import { interruption } from './interruption.ts';
import { BACKUP_FORMAT, type Manifest, STORE_PATH } from './manifest.ts';

/** The store is copied again if its keys were replaced during the copy. */
const MAX_COPIES = 5;

export interface BackupOptions {
  dataDir: string;
  force?: boolean;
}

/**
 * Writes the backup. If `signal` aborts, no new file remains. Rejects with a UserError if no engine has run in the folder, if the file
 * exists and `force` is false, if the file exists and is not a backup, or if the file cannot be created.
 */
export async function backup(
  file: string,
  { dataDir, force = false }: BackupOptions,
  signal = interruption(),
): Promise<void> {
  requireRoot();
  const target = targetOf(file);
  checkDataFormat(dataDir);
  if (settledRecord(dataDir) === undefined) {
    throw new UserError(
      lostText(dataDir) ?? `lifepod has never run in ${dataDir}: there is nothing to back up${orOtherFolder(dataDir)}`,
    );
  }
  if (existsSync(target)) await checkReplaceable(file, target, force);
  const keys = readEngineRecord(dataDir)?.encryptionProviderConfig ?? '';
  const { objects, revision, files } = await withStoreCopy(dataDir, () => backUp(target, dataDir, keys, signal));
  printLine(`backed up ${dataDir} to ${file}: ${objects} objects at revision ${revision}`);
  const hasKeys = keys === '' && files.some(({ path }) => join(dataDir, path) === keyFilePath(dataDir));
  printLine(
    `the file contains the keys of the cluster${hasKeys ? ' and of its Secrets' : ''}, and only root can read it`,
  );
  const uid = redirectingUser(target);
  if (uid !== undefined)
    printLine(`the user ${userName(uid)} owns a folder above it, and can remove or replace the file`);
  if (keys !== '')
    printLine(`Secrets are encrypted with the keys in ${keys}, which is not in the backup: back it up, too`);
  printLine('images, logs and the content of volumes are not in the backup');
}

/**
 * Returns the path of the file to write, with links resolved. Throws a UserError if no file can be created there, or if another user could
 * redirect root through a link.
 */
function targetOf(file: string): string {
  if (file === '-') {
    throw new UserError(
      'a backup cannot be written to the standard output: give the name of a file, such as lifepod.tar.gz',
    );
  }
  const folder = dirname(resolve(file));
  if (!existsSync(folder))
    throw new UserError(`the folder ${folder} does not exist: create it, or choose another file`);
  if (!statSync(folder).isDirectory()) throw new UserError(`${folder} is not a folder: choose another file`);
  const redirected = foreignLink(file);
  if (redirected !== undefined) throw new UserError(redirected);
  if (file.endsWith('/') && !existsSync(file))
    throw new UserError(`the folder ${file} does not exist: create it, and give the name of a file in it`);
  if (lstatSync(file, { throwIfNoEntry: false }) === undefined) return file;
  const found = statSync(file, { throwIfNoEntry: false });
  if (found?.isDirectory()) {
    throw new UserError(`${file} is a folder: give the name of a file in it, such as ${join(file, 'lifepod.tar.gz')}`);
  }
  if (found === undefined)
    throw new UserError(`${file} is a link to a missing file: remove it, or choose another file`);
  if (!found.isFile()) throw new UserError(`${file} is a device, pipe or socket: give the name of a file`);
  return realpathSync(file);
}

/**
 * Rejects with a UserError if the existing file must not be replaced: it is not a backup, or `force` is false. Even with `force`, a file
 * that is neither empty nor a backup remains, because a mistyped name or a link may lead to any file.
 */
async function checkReplaceable(file: string, target: string, force: boolean): Promise<void> {
  if (statSync(target).size > 0 && !(await isBackup(target))) {
    const which = target === resolve(file) ? file : `${file} leads to ${target}, which`;
    throw new UserError(`${which} is not a backup of lifepod, and is not replaced: choose another file, or remove it`);
  }
  if (!force) throw new UserError(`the file ${file} exists already: choose another file, or replace it with --force`);
}

/**
 * Writes the backup, and resolves with its manifest. `keyConfig`: the file in which the administrator keeps the keys; '' if the keys are in
 * the data folder.
 */
async function backUp(file: string, dataDir: string, keyConfig: string, signal: AbortSignal): Promise<Manifest> {
  const created = new Date().toISOString();
  const { sources, keys } = await copyWithKeys(dataDir);
  signal.throwIfAborted();
  if (keyConfig === '') await checkKeys(dataDir, storeCopyFolder(dataDir), keys);
  const content = await forgetHistory(storeCopyFolder(dataDir));
  sources.push({ path: STORE_PATH, file: join(storeCopyFolder(dataDir), 'data.mdb') });
  const manifest: Manifest = {
    format: BACKUP_FORMAT,
    dataFormat: dataFormatOf(dataDir) ?? 1,
    lifepod: LIFEPOD_VERSION,
    created,
    nodeName: readEngineRecord(dataDir)?.nodeName ?? '',
    revision: content.revision,
    objects: content.values,
    files: [],
  };
  for (const source of sources) manifest.files.push(await describeSource(source));
  await writeArchive(file, manifest, sources, signal);
  return manifest;
}

/**
 * Resolves with the files of the backup except the store, and with the text of the key file. Copies the store again if the keys change
 * during the copy.
 */
async function copyWithKeys(dataDir: string): Promise<{ sources: Source[]; keys: string | undefined }> {
  for (let copies = 0; copies < MAX_COPIES; copies++) {
    const keys = readTextIfPresent(keyFilePath(dataDir));
    await copyNow(dataDir);
    const sources = readSources(dataDir);
    if (readTextIfPresent(keyFilePath(dataDir)) === keys) return { sources, keys };
  }
  throw new UserError(`the keys of ${dataDir} are being replaced: wait until that has finished, and try again`);
}

async function copyNow(dataDir: string): Promise<void> {
  const pid = dataDirOwner(dataDir);
  if (pid === undefined) return copyStopped(dataDir);
  const client = await engineClient(dataDir);
  await client.post(COPY_STORE_PATH, new AbortController().signal).catch((error: unknown) => {
    if (isApiError(error, 'NotFound')) {
      throw new UserError(`the running engine (PID ${pid}) is of an older lifepod: restart it, and try again`);
    }
    if (!isApiError(error, 'ServiceUnavailable')) throw error;
    throw new UserError(`the engine (PID ${pid}) does not answer: see its log ${dataDir}/lifepod.log, and try again`);
  });
}

async function copyStopped(dataDir: string): Promise<void> {
  const lock = lockDataDir(dataDir, 'backup');
  try {
    finishReplacement(dataDir);
    const store = await openLmdbStore({ directory: join(dataDir, 'store'), log: nodePlatform('error').log });
    try {
      await copyStore(store, dataDir);
    } finally {
      await store.close();
    }
  } finally {
    lock.release();
  }
}

/** Follows links, and omits files that disappear meanwhile. */
function readSources(dataDir: string): Source[] {
  return PARTS.filter((part) => part !== 'store').flatMap((part) =>
    filesBelow(join(dataDir, part)).flatMap((path) => {
      const content = readIfPresent(path);
      // The file rewrite-due beside the keys makes the next start copy the store. The store in the backup is a copy already.
      const isKept = dirname(path) !== keyFolder(dataDir) || path === keyFilePath(dataDir);
      return content === undefined || !isKept ? [] : [{ path: relative(dataDir, path).split(sep).join('/'), content }];
    }),
  );
}

/** Omits files that end with .new, which a writer has not completed. */
function filesBelow(path: string): string[] {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isFile()) return /\.new$/.test(path) ? [] : [path];
  if (!found?.isDirectory()) return [];
  return readdirSync(path)
    .sort()
    .flatMap((name) => filesBelow(join(path, name)));
}

function readIfPresent(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
