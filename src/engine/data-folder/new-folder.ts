/**
 * Refuses a folder that must not become a data folder: a folder whose path no container can use, a folder inside or around the data folder
 * of another engine, and a folder with files of other programs, such as /etc. The first start would change the mode of the folder and mix
 * the files of lifepod with the others. The user may create some parts of a data folder before the first start, such as `manifests`.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from '../../platform/files.ts';
import { printable } from '../../platform/log/printable.ts';
import { isDataFolder, refuseNestedFolder } from './inner-folder.ts';
import { PARTS } from './replacement.ts';

/** The entries that lifepod creates in a data folder, in addition to the parts of a backup. */
const OTHER_PARTS: readonly string[] = [
  'backup',
  'ballast',
  'cni',
  'containerd',
  'dns.log',
  'kubeconfig',
  'lock',
  'logs',
  'pause.tar',
  'pods',
  'pods-memory',
  'restore',
  'run',
  'volumes',
];

/** Matches logs, data that a restore has replaced, and temporary files of writeFileAtomic(), which may remain if the process is killed. */
const OTHER_NAMES = /^(?:lifepod\.log|before-restore-)|\.new$/;

/** Matches the entries of an empty disk, `lost+found` and files of quotas, and hidden entries, which file systems and programs add. */
const NOT_FILES = /^(?:lost\+found$|a?quota\.(?:user|group)$|\.)/;

/**
 * Matches the characters that the path of a data folder must not contain: `:`, `,` and the backslash, which separate or escape the mount
 * options of overlayfs, and `:` also the files of KUBECONFIG; `%` and control characters, because containerd parses paths as URIs; and `[`,
 * because it parses its root as a pattern.
 */
const UNUSABLE = /[:,\\%[\p{Cc}]/u;

/** Throws a UserError if containers cannot run in a data folder with this path. `remedy`: what the user can do. */
export function refuseUnusablePath(path: string, remedy = 'choose another --data-dir'): void {
  const [character] = UNUSABLE.exec(path) ?? [];
  if (character === undefined) return;
  const named = /\p{Cc}/u.test(character) ? 'a control character' : `'${character}'`;
  throw new UserError(`containers cannot run in ${printable(path)}, because the path contains ${named}: ${remedy}`);
}

/**
 * Throws a UserError if the folder, in which no engine has run, must not become a data folder. `isForeign`: another user owns it, so that
 * hidden entries count, too: they may be all that a home folder contains. `isPrivate`: lifepod's own containerd runs the containers, which
 * keeps their files in the folder.
 */
export function refuseUnusableFolder(dataDir: string, { isForeign = false, isPrivate = true } = {}): void {
  if (isPrivate) refuseUnusablePath(dataDir);
  refuseNestedFolder(dataDir);
  refuseOtherFiles(dataDir, isForeign);
}

/**
 * Returns the message of refuseUnusableFolder(), so that a user who has mistyped a path is not advised to start an engine there; undefined
 * if the folder is a data folder or can become one.
 */
export function unusableFolder(dataDir: string, isForeign = false): string | undefined {
  if (isDataFolder(dataDir)) return undefined;
  try {
    refuseUnusableFolder(dataDir, { isForeign });
    return undefined;
  } catch (error) {
    if (error instanceof UserError) return error.message;
    throw error;
  }
}

/** Throws a UserError if the folder is not a data folder, and contains an entry that is not a part of a data folder. */
export function refuseOtherFiles(dataDir: string, isForeign = false): void {
  if (existsSync(join(dataDir, 'format-version')) || existsSync(join(dataDir, 'store/data.mdb'))) return;
  // The folder of a first start that was killed, or that was removed only in part, has a record.
  if (isDataFolder(dataDir)) return;
  const other = namesIn(dataDir).find(
    (name) =>
      !PARTS.includes(name) &&
      !OTHER_PARTS.includes(name) &&
      !OTHER_NAMES.test(name) &&
      (!NOT_FILES.test(name) || (isForeign && name.startsWith('.'))),
  );
  if (other === undefined) return;
  throw new UserError(
    `the folder ${dataDir} is not empty, and is not a data folder of lifepod (it contains ${other}): choose another --data-dir, or, if the ` +
      'folder is meant for lifepod, move other files out of it',
  );
}

/** Returns none if the folder does not exist or cannot be read, which a later step of the start reports. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}
