/**
 * Refuses a folder that must not become a data folder: one inside that of another engine, or around one, and one with files of other
 * programs, such as /etc, whose mode the first start would change and whose files would lie beside those of lifepod.
 *
 * Reads the names in the folder. Changes nothing. The user may put some parts into the folder before the first start, such as `manifests`.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from '../../platform/files.ts';
import { isDataFolder, refuseNestedFolder } from './inner-folder.ts';
import { PARTS } from './replacement.ts';

/** The entries that lifepod creates in a data folder, in addition to the parts of a backup. */
const OTHER_PARTS: readonly string[] = [
  'backup',
  'ballast',
  'cni',
  'containerd',
  'dns.log',
  'ending-grace-period',
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

/** Logs, data that a restore has replaced, and the temporary files of writeFileAtomic(), which a kill leaves. */
const OTHER_NAMES = /^(?:lifepod\.log|before-restore-)|\.new$/;

/** A new disk has `lost+found`, and perhaps files of quotas. File systems and programs add hidden entries, such as `.snapshot`. */
const NOT_FILES = /^(?:lost\+found$|a?quota\.(?:user|group)$|\.)/;

/** Throws a UserError if the folder, in which no engine has run, must not become a data folder. */
export function refuseUnusableFolder(dataDir: string): void {
  refuseNestedFolder(dataDir);
  refuseOtherFiles(dataDir);
}

/** Throws a UserError if the folder is not a data folder, and contains what lifepod has not created and the user does not put there. */
export function refuseOtherFiles(dataDir: string): void {
  if (existsSync(join(dataDir, 'format-version')) || existsSync(join(dataDir, 'store/data.mdb'))) return;
  // The folder of a first start that was killed, or that was removed only in part, has a record.
  if (isDataFolder(dataDir)) return;
  const other = namesIn(dataDir).find(
    (name) => !PARTS.includes(name) && !OTHER_PARTS.includes(name) && !OTHER_NAMES.test(name) && !NOT_FILES.test(name),
  );
  if (other === undefined) return;
  throw new UserError(
    `the folder ${dataDir} is not empty, and is not a data folder of lifepod (it contains ${other}): choose another --data-dir, or, if the ` +
      'folder is meant for lifepod, move other files out of it',
  );
}

/** Returns the sorted names; none if the folder does not exist or cannot be read. A later step reports that the folder cannot be read. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}
