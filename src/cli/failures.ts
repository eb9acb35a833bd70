/** Composes the error message of a command that failed. */
import { unusableFolder } from '../engine/data-folder/new-folder.ts';
import { NeedsRootError } from '../engine/machine-checks.ts';
import { runtimeCommands, startRuntimeHint } from '../engine/options/runtime-endpoint.ts';
import { DEFAULT_DATA_DIR } from '../engine/settings.ts';
import { isApiError } from '../machinery/status.ts';
import { FolderInUseError, ForeignFolderError, UserError } from '../platform/files.ts';
import { CommandError } from '../platform/processes.ts';
import { rootProgram, shellQuoted } from '../platform/programs/typed-program.ts';
import { shortCallError } from '../runtime/error-text.ts';
import { StorageFullError } from '../store/store.ts';
import { waysToStop } from './hints.ts';
import { foldersOfUser, orOtherFolder } from './kubeconfig/engine-folders.ts';

/** Messages by the error code of a system call. The path of the file is printed before the message. */
const SYSTEM_ERRORS: Readonly<Record<string, string>> = {
  ENOSPC: 'cannot be written: the disk is full; free some space and try again',
  EDQUOT: 'cannot be written: the disk quota is exceeded; free some space and try again',
  EROFS: 'cannot be written: the disk is mounted read-only; mount it for writing, or choose another --data-dir',
  EACCES: 'cannot be opened: permission denied',
};

/**
 * Returns one sentence about an error of an expected kind, and the stack trace with the message for any other error. `words`: the
 * arguments of the command that failed. `folders`: returns the data folders of the engines whose kubeconfig the user has.
 */
export function failureText(
  error: unknown,
  words: readonly string[] = process.argv.slice(2),
  isRoot = process.geteuid?.() === 0,
  env: NodeJS.ProcessEnv = process.env,
  folders = foldersInKubeconfig,
): string {
  const { name, message, code, path, stack, syscall } = error as NodeJS.ErrnoException;
  const refused = error instanceof NeedsRootError || isRoot ? error : refusedAccess(code, path);
  if (refused instanceof NeedsRootError) {
    const { what, command = `${rootProgram(env, true)} ${words.map(shellQuoted).join(' ')}`, otherwise } = refused;
    // A command that needs root ignores KUBECONFIG, so the user may mean an engine outside the default folder.
    const isElsewhere = refused.command === undefined && !words.some((word) => /^--data-dir(?:=|$)/.test(word));
    const other = isElsewhere ? orOtherFolder(DEFAULT_DATA_DIR, env, folders) : '';
    return `only root can ${what}: type '${command}'${otherwise}${other}`;
  }
  if (error instanceof FolderInUseError && error.pid !== undefined)
    return `${message}, or stop that engine: ${waysToStop(error.dataDir, error.pid, env)}`;
  // A user who has mistyped a path, or has given a home folder, must not get the advice to change the owner of the folder to root.
  if (error instanceof ForeignFolderError) return unusableFolder(error.dataDir, true) ?? message;
  if (error instanceof UserError || error instanceof StorageFullError || isApiError(error)) return message;
  // These errors are recognized by their names, because importing the class RuntimeCallError would load gRPC.
  if (name === 'RuntimeCallError' || name === 'OutcomeUnknownError')
    return `the container runtime failed or did not answer: ${shortCallError(message)}${runtimeAdvice(message)}`;
  if (error instanceof CommandError) return oneLine(message) + rightsFor(message);
  // Any relative path, such as that of an option or in KUBECONFIG, needs the current folder.
  if (syscall === 'uv_cwd') return 'the current folder no longer exists: change to another folder with cd';
  if (isIncomplete(code, message))
    return `a part of lifepod's program is missing, or is for another kind of processor: install lifepod again (${firstLine(message)})`;
  const systemError = SYSTEM_ERRORS[code ?? ''];
  if (systemError === undefined) return stack ?? String(error);
  return `${path ?? 'a file'} ${systemError}`;
}

const runtimeAdvice = (message: string): string =>
  runtimeCommands(message) === undefined ? '' : `; ${startRuntimeHint(message)}`;

const foldersInKubeconfig = (env: NodeJS.ProcessEnv): string[] => foldersOfUser(env, () => []);

function refusedAccess(code: string | undefined, path: string | undefined): NeedsRootError | undefined {
  if (code !== 'EACCES') return undefined;
  // Users do not know the lock of a data folder, so the message is about the command instead of the file.
  return path?.endsWith('/lock') ? new NeedsRootError() : new NeedsRootError(`open ${path ?? 'a file'}`);
}

export const errorLine = (text: string): string => (text.startsWith('lifepod ') ? text : `lifepod: ${text}`);

/** Returns whether a module of lifepod, or of a package that it needs, cannot be loaded. Source: the loaders of Node.js and of lmdb. */
const isIncomplete = (code: string | undefined, message: string): boolean =>
  code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND' || message.startsWith('No native build was found');

const firstLine = (text: string): string => text.split('\n', 1)[0] ?? '';

const oneLine = (text: string): string => text.replace(/\s*\n\s*/g, '; ');

const rightsFor = (message: string): string =>
  /not permitted/i.test(message)
    ? '; lifepod needs all capabilities of root, including CAP_NET_ADMIN (see capabilities(7))'
    : '';
