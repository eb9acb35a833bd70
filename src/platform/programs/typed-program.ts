/** Determines the command with which the user can run lifepod again. A clone or an npm folder in a home folder is often not on the PATH. */
import { realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { searchFolders } from './programs.ts';

/** Source: secure_path of Debian's sudoers(5). */
const SUDO_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * Returns `lifepod` if the PATH leads to the running program, or to another one after the running one was removed, else the path that the
 * user typed, from LIFEPOD_PROGRAM (`lifepod` if the variable is not set). `sudo`: whether the user will type the result after sudo, which
 * has a PATH of its own.
 */
export function typedProgram(env: NodeJS.ProcessEnv, sudo: boolean): string {
  const typed = env['LIFEPOD_PROGRAM'];
  if (!typed) return 'lifepod';
  // In a process that sudo has started, the PATH is already that of sudo.
  const found = searchFolders(sudo && !isThroughSudo(env) ? SUDO_PATH : env['PATH'])
    .map((folder) => realPath(join(folder, 'lifepod')))
    .find((path) => path !== undefined);
  if (found !== undefined && (found === realPath(typed) || isMissing(typed))) return 'lifepod';
  return typed.includes('/') ? typed : `./${typed}`;
}

/**
 * Returns the end of a sentence that names commands of lifepod: what to do first if npm has removed the program while this process ran.
 * Returns an empty text otherwise.
 */
export function reinstallFirst(env: NodeJS.ProcessEnv, sudo = needsSudo(env)): string {
  const typed = env['LIFEPOD_PROGRAM'];
  if (!typed || !isMissing(typed) || typedProgram(env, sudo) === 'lifepod') return '';
  return ` (first install lifepod again, because ${typed} has been removed)`;
}

/** Returns whether sudo, doas or pkexec has started this process or one of its parents. */
export const isThroughSudo = (env: NodeJS.ProcessEnv): boolean =>
  ['SUDO_UID', 'DOAS_USER', 'PKEXEC_UID'].some((name) => env[name] !== undefined);

/** Returns whether the user who types the commands is not root, although sudo, doas or pkexec may run this process as root. */
export const needsSudo = (env: NodeJS.ProcessEnv): boolean =>
  process.geteuid?.() !== 0 ||
  [env['SUDO_UID'] ?? '0', env['PKEXEC_UID'] ?? '0'].some((uid) => uid !== '0') ||
  (env['DOAS_USER'] ?? 'root') !== 'root';

/** Returns the program that has started this process as root; sudo if there is none. */
export const sudoProgram = (env: NodeJS.ProcessEnv): 'sudo' | 'doas' | 'pkexec' => {
  if (env['SUDO_UID'] !== undefined) return 'sudo';
  if (env['DOAS_USER'] !== undefined) return 'doas';
  return env['PKEXEC_UID'] === undefined ? 'sudo' : 'pkexec';
};

/** Returns the command as the user must type it. By default, sudo, doas or pkexec is added unless the user is root. */
export const asRoot = (command: string, env: NodeJS.ProcessEnv, sudo = needsSudo(env)): string =>
  sudo ? `${sudoProgram(env)} ${command}` : command;

/**
 * Returns the words with which the user runs lifepod as root, such as `sudo lifepod`. bin/lifepod passes the folder of its Node.js in
 * LIFEPOD_NODE_FOLDER. If sudo does not search that folder, the words keep the PATH of the user.
 */
export function rootProgram(env: NodeJS.ProcessEnv = process.env, sudo = needsSudo(env)): string {
  const folder = env['LIFEPOD_NODE_FOLDER'];
  const keepsPath = sudo && !!folder && !searchFolders(SUDO_PATH).includes(folder);
  const program = shellQuoted(typedProgram(env, sudo && !keepsPath));
  return asRoot(keepsPath ? `env "PATH=$PATH" ${program}` : program, env, sudo);
}

/** `words` begins with the name of the command. */
export const rootCommand = (words: string, dataDir: string, env: NodeJS.ProcessEnv = process.env): string =>
  `${rootProgram(env)} ${words} --data-dir ${shellQuoted(dataDir)}`;

/** Returns the text as one word of a POSIX shell, in quotes only if it needs them. */
export const shellQuoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

function isMissing(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) === undefined;
  } catch {
    // This user may not read a folder of the path.
    return false;
  }
}
