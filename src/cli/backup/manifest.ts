/**
 * Defines and checks the form of a backup: a gzip-compressed tar archive. Its first entry is `manifest.json`; the others are files of the
 * data folder, below `data/`, in the order of the manifest.
 */
import { PARTS } from '../../engine/data-folder/replacement.ts';

/** The version of the form of a backup. Increase it if an older lifepod cannot read a backup in the new form. */
export const BACKUP_FORMAT = 1;

export const MANIFEST_NAME = 'manifest.json';
export const FILES_PREFIX = 'data/';
export const STORE_PATH = 'store/data.mdb';

export interface BackedUpFile {
  path: string;
  bytes: number;
  sha256: string;
}

export interface Manifest {
  format: number;
  dataFormat: number;
  lifepod: string;
  /** When the backup began, in RFC 3339 format. */
  created: string;
  nodeName: string;
  revision: number;
  objects: number;
  files: BackedUpFile[];
}

const isText = (value: unknown): value is string => typeof value === 'string';
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/** Returns whether the value is a relative path at or below one of PARTS. `.` and `..` could lead out of the data folder. */
export function isPartFile(path: unknown): path is string {
  if (!isText(path) || path.includes('\0') || path.includes('\\')) return false;
  const [part = '', ...rest] = path.split('/');
  return PARTS.includes(part) && rest.every((name) => name !== '' && name !== '.' && name !== '..');
}

/** Returns what is wrong with a manifest of the format BACKUP_FORMAT, as a phrase; undefined if the manifest is valid. */
export function manifestProblem({
  dataFormat,
  lifepod,
  created,
  nodeName,
  revision,
  objects,
  files,
}: Manifest): string | undefined {
  if (![dataFormat, revision, objects].every(isCount) || ![lifepod, created, nodeName].every(isText)) {
    return 'its manifest lacks a field';
  }
  if (!Array.isArray(files)) return 'its manifest has no list of files';
  const paths = new Set<string>();
  for (const { path, bytes, sha256 } of files) {
    if (!isPartFile(path) || !isCount(bytes) || !isText(sha256)) {
      return `its manifest has a file that no backup contains: ${JSON.stringify(path)}`;
    }
    paths.add(path);
  }
  if (paths.size < files.length) return 'its manifest names a file twice';
  const missing = [STORE_PATH, 'engine.json', 'format-version'].find((path) => !paths.has(path));
  return missing && `it does not contain ${missing}`;
}
