/**
 * Defines the version of the data folder's format, migrates older folders, and refuses newer ones.
 *
 * Boundary: reads and writes the files `format-version` and `migrating-from`, which exists while a migration is unfinished. Reads the
 * version of lifepod in `engine.json`.
 * Invariants:
 *  1. A folder of a newer format is refused before anything in it is changed.
 *  2. `format-version` is increased before a migration changes anything, so that an older lifepod refuses a folder that is migrated in
 *     part.
 *  3. A migration that was interrupted, for example by kill -9, is repeated at the next start.
 *
 * A change needs a new format only if an older lifepod would misread the changed folder. Readers accept files that lack fields of a newer
 * lifepod, and ignore fields that they do not know.
 */
import { existsSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readTextIfPresent, UserError, writeFileAtomic } from '../../platform/files.ts';
import { syncFolder } from '../../platform/folders/written-file.ts';
import type { Log } from '../../platform/platform.ts';
import { rootCommand } from '../../platform/programs/typed-program.ts';
import { LIFEPOD_VERSION } from '../version.ts';

export interface Migration {
  /** The number of the format after the migration. Every format before it has a smaller number. */
  to: number;
  what: string;
  /** Must be durable. May be repeated after it was interrupted at any point. */
  run(dataDir: string): Promise<void>;
}

/** In the order of the formats. The first format is 1. */
export const MIGRATIONS: readonly Migration[] = [
  // There is nothing to run: openEncryptedStore() encrypts the Secrets when it opens a store without a key, and continues after a crash.
  { to: 2, what: 'encrypt the Secrets in the store', run: async () => undefined },
];

const newestOf = (migrations: readonly Migration[]): number => migrations.at(-1)?.to ?? 1;

export const DATA_FORMAT_VERSION = newestOf(MIGRATIONS);

const versionFile = (dataDir: string): string => join(dataDir, 'format-version');
const unfinishedFile = (dataDir: string): string => join(dataDir, 'migrating-from');

function numberIn(text: string): number | undefined {
  const number = Number(text.trim());
  return Number.isInteger(number) && number >= 1 ? number : undefined;
}

/** Returns undefined if the file does not exist. Throws a UserError if the file does not contain a number. */
function readNumber(path: string): number | undefined {
  const text = readTextIfPresent(path);
  if (text === undefined) return undefined;
  const number = numberIn(text);
  if (number !== undefined) return number;
  throw new UserError(
    `${path} does not contain a version number: restore a backup with '${rootCommand('restore FILE --force', dirname(path))}', or choose another --data-dir`,
  );
}

/**
 * Returns undefined if the folder has no data of lifepod. A folder with a store but without a version has the first format. Throws a
 * UserError if the version is invalid.
 */
export const dataFormatOf = (dataDir: string): number | undefined =>
  readNumber(versionFile(dataDir)) ?? (existsSync(join(dataDir, 'store', 'data.mdb')) ? 1 : undefined);

function writerOf(dataDir: string): string | undefined {
  try {
    const { version } = JSON.parse(readTextIfPresent(join(dataDir, 'engine.json')) ?? '{}') as { version?: unknown };
    return typeof version === 'string' ? version : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the end of a message about data of a newer format. `otherwise`: another remedy. */
export function newerFormat(format: number, writer: string | undefined, otherwise: string): string {
  // A build of later, unreleased sources has the same version as this one.
  const isSameVersion = writer === LIFEPOD_VERSION;
  const by = writer === undefined ? `format ${format}` : `version ${writer}, format ${format}`;
  const update = writer === undefined ? 'update lifepod' : `update lifepod to ${writer} or newer`;
  const use = isSameVersion ? `use a later build, which reads format ${format}` : update;
  return `was written by a newer lifepod (${by}), and this one (version ${LIFEPOD_VERSION}) reads formats up to ${DATA_FORMAT_VERSION}: ${use}, or ${otherwise}`;
}

/** Throws a UserError if the folder has a format newer than `newest`, or if `format-version` is invalid. */
export function checkDataFormat(dataDir: string, newest = DATA_FORMAT_VERSION): void {
  const format = dataFormatOf(dataDir);
  if (format === undefined || format <= newest) return;
  throw new UserError(
    `the data folder ${dataDir} ${newerFormat(format, writerOf(dataDir), 'choose another --data-dir')}`,
  );
}

/** Calls checkDataFormat(), unless `format-version` is invalid: a restore replaces this file. */
export function checkReplaceableFormat(dataDir: string): void {
  const text = readTextIfPresent(versionFile(dataDir));
  if (text === undefined || numberIn(text) !== undefined) checkDataFormat(dataDir);
}

/**
 * Brings the folder to the newest format, also after an interrupted migration. The caller has locked the folder. Rejects with a UserError
 * if checkDataFormat() throws one.
 */
export async function migrate(
  dataDir: string,
  log: Pick<Log, 'info'>,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<void> {
  const newest = newestOf(migrations);
  checkDataFormat(dataDir, newest);
  const from = readNumber(unfinishedFile(dataDir)) ?? dataFormatOf(dataDir) ?? newest;
  if (from < newest) writeFileAtomic(unfinishedFile(dataDir), `${from}\n`);
  writeFileAtomic(versionFile(dataDir), `${newest}\n`);
  for (const { to, what, run } of migrations.filter((each) => each.to > from)) {
    log.info('migrating the data folder', { from, to, what });
    await run(dataDir);
    writeFileAtomic(unfinishedFile(dataDir), `${to}\n`);
  }
  rmSync(unfinishedFile(dataDir), { force: true });
  syncFolder(dataDir);
}
