/** A PATH often lacks the folders of system programs: the PATH of Debian's users has no /usr/sbin, and `su` without `-` keeps this PATH. */
import { delimiter } from 'node:path';

/** Source: the PATH of root in Debian's login.defs(5). */
const USUAL_FOLDERS = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/** Returns the folders of `path`, the value of a PATH, followed by the usual folders that it lacks. */
export function searchFolders(path = ''): string[] {
  const given = path.split(delimiter).filter((folder) => folder !== '');
  return [...given, ...USUAL_FOLDERS.filter((folder) => !given.includes(folder))];
}

/** Appends the usual folders to PATH in `env`. By default, this affects this process and all programs that it starts. */
export function completePath(env: NodeJS.ProcessEnv = process.env): void {
  env['PATH'] = searchFolders(env['PATH']).join(delimiter);
}
