/** Composes the messages for a kubeconfig of lifepod whose engine does not answer or refuses it, or that belongs to another user. */

import { dirname, resolve } from 'node:path';
import { userKubeconfigPath } from '../../engine/certificates/user-kubeconfigs.ts';
import { engineProcesses, visibleOwner } from '../../engine/data-folder/engine-processes.ts';
import { lostText } from '../../engine/data-folder/lost-folder.ts';
import { DEFAULT_DATA_DIR, kubeconfigPath } from '../../engine/settings.ts';
import { dataDirOwner, UserError } from '../../platform/files.ts';
import { runsAsRoot } from '../../platform/programs/pid-namespace.ts';
import { hintsFor, UNKNOWN_FOLDER } from '../hints.ts';
import { apiHangs, changingNow, hasStopped, notRunning, startCommand } from '../service/not-running.ts';
import { type ServiceState, serviceState } from '../service/service-state.ts';
import { dataFolderOf } from './engine-folders.ts';

/** Matches the path of the copy of a kubeconfig that `lifepod up` makes for a user, and that `lifepod down` removes. Group 1: the UID. */
const COPY = /^\/run\/lifepod\/[0-9a-f]{8}\/(\d+)\.kubeconfig$/;

/**
 * Returns the error to show for `error`, which has occurred when a kubeconfig was read. Returns a UserError that says what to type if the
 * kubeconfig is one of lifepod that is missing or belongs to another user, or if KUBECONFIG names another file that cannot be read;
 * otherwise returns `error`.
 */
export function explainUnread(
  error: unknown,
  paths: readonly string[],
  dataDir: string | undefined,
  env: NodeJS.ProcessEnv,
  engineOf = dataFolderOf,
  serviceOf = stateOf,
  lostIn = lostText,
  runningFolders = foldersOfRunning,
  stoppedText = textOfStopped,
): unknown {
  const [path = '', ...others] = paths;
  const known = dataDir ?? engineOf([path]);
  const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException;
  if (!(error instanceof UserError) || others.length > 0) return error;
  const isCopy = COPY.test(path);
  const running = runningFolders().find((each) =>
    code === 'EACCES' ? resolve(path) === kubeconfigPath(each) : code === 'ENOENT' && isCopyOf(path, each),
  );
  const folder = folderOf(path, known ?? running);
  const { engine } = hintsFor({ dataDir: folder }, env, undefined, true);
  // A deleted folder no longer shows that it was a data folder, so the file is recognized by its name.
  const around = dirname(resolve(path));
  const lost = code === 'ENOENT' && resolve(path) === kubeconfigPath(around) ? lostIn(around) : undefined;
  if (lost !== undefined) return new UserError(lost, { cause: error.cause });
  if (code === 'ENOENT' && isCopy) {
    const service = serviceOf(folder);
    const start = startCommand(folder, env, service, true);
    // As long as KUBECONFIG is set, commands do not use the engine of the default data folder.
    const orUnset = env['KUBECONFIG'] === path && folder !== undefined ? ", or type 'unset KUBECONFIG'" : '';
    // An engine that systemd starts makes no copy for the user.
    const renew = `get a new one with 'eval "$(${engine('kubeconfig')})"'`;
    if (service !== undefined)
      return new UserError(
        `the kubeconfig ${path} was removed when its engine or the machine stopped: ` +
          `${service === 'stopped' ? `start the engine with '${start}', then ` : ''}${renew}${noteOn(folder)}${orUnset}`,
        { cause: error.cause },
      );
    if (running !== undefined)
      // Only root can find out whether the engine has started.
      return new UserError(
        `the kubeconfig ${path} was removed, and its engine is running or starting: when it is ready, ${renew}${orUnset}`,
        { cause: error.cause },
      );
    return new UserError(
      `the engine of the kubeconfig ${path} was stopped, which removed this file: start the engine with '${start}'${noteOn(folder)}${orUnset}`,
      { cause: error.cause },
    );
  }
  // Before the first start of an engine, only the path of the default folder shows that the kubeconfig is one of lifepod.
  const owner = known ?? (resolve(path) === kubeconfigPath(DEFAULT_DATA_DIR) ? DEFAULT_DATA_DIR : undefined);
  if (code === 'ENOENT' && owner !== undefined && resolve(path) === kubeconfigPath(owner)) {
    const stopped = stoppedText(owner, env);
    return stopped === undefined ? error : new UserError(stopped, { cause: error.cause });
  }
  const isOwn = isCopy || path === `${folder ?? DEFAULT_DATA_DIR}/kubeconfig`;
  if (code === 'EACCES' && isOwn)
    return new UserError(
      `the kubeconfig ${path} belongs to another user: get one of your own with 'eval "$(${engine('kubeconfig')})"'${noteOn(folder)}`,
      { cause: error.cause },
    );
  if (!['ENOENT', 'EACCES'].includes(code ?? '') || known !== undefined || env['KUBECONFIG'] !== path) return error;
  return new UserError(`${error.message}: the variable KUBECONFIG names it; correct it, or type 'unset KUBECONFIG'`, {
    cause: error.cause,
  });
}

/**
 * Returns the message for a server that refuses connections; undefined if there are several kubeconfigs, or if the server is on another
 * machine and the kubeconfig is not known to be one of lifepod.
 */
export function engineSilent(
  server: string,
  paths: readonly string[],
  dataDir: string | undefined,
  env: NodeJS.ProcessEnv,
  engineOf = dataFolderOf,
  isStopped = hasStopped,
  serviceOf = stateOf,
): string | undefined {
  const [path = '', ...others] = paths;
  const known = dataDir ?? engineOf([path]);
  if (others.length > 0) return undefined;
  if (known === undefined && !COPY.test(path)) return isLoopback(server) ? nothingListens(server, path) : undefined;
  // The kubeconfig of a killed engine remains in the data folder.
  if (known !== undefined && isStopped(known)) return notRunning(known, env);
  const folder = folderOf(path, known);
  const service = serviceOf(folder);
  const changing = folder === UNKNOWN_FOLDER ? undefined : changingNow(folder ?? DEFAULT_DATA_DIR, true, service);
  if (changing !== undefined) return changing;
  const status = hintsFor({ dataDir: folder }, env).engine('status');
  return `lifepod does not answer at ${server}: '${status}' shows whether it runs, and '${startCommand(folder, env, service)}' starts it${noteOn(folder)}`;
}

/**
 * Returns the message for a server that accepts connections but has not answered for `silenceMillis`. Names the engine, if this user may
 * know its PID.
 */
export function engineHangs(
  server: string,
  silenceMillis: number,
  paths: readonly string[],
  dataDir: string | undefined,
  env: NodeJS.ProcessEnv,
  engineOf = dataFolderOf,
  pidOf = dataDirOwner,
): string {
  const [path = '', ...others] = paths;
  const known = others.length > 0 ? undefined : (dataDir ?? engineOf([path]));
  const pid = known === undefined ? undefined : visibleOwner(known, pidOf);
  if (known !== undefined && pid !== undefined) return apiHangs(known, pid, server);
  const silent = `the API server at ${server} has not answered for ${silenceMillis / 1000} s`;
  if (others.length > 0 || (known === undefined && !COPY.test(path))) return silent;
  const folder = folderOf(path, known);
  return `${silent}: '${hintsFor({ dataDir: folder }, env).engine('status')}' shows whether its engine runs${noteOn(folder)}`;
}

/**
 * Returns the message for a server with a certificate of another authority than the one in the kubeconfig; undefined if there are several
 * kubeconfigs, or if the server is on another machine.
 */
export function otherServer(
  server: string,
  paths: readonly string[],
  dataDir: string | undefined,
  env: NodeJS.ProcessEnv,
  engineOf = dataFolderOf,
): string | undefined {
  const [path = '', ...others] = paths;
  if (others.length > 0 || !isLoopback(server)) return undefined;
  const known = dataDir ?? engineOf([path]);
  // Until an engine has started, its kubeconfig is from the previous engine, whose port another program may use.
  const changing = known === undefined ? undefined : changingNow(known);
  if (changing !== undefined) return changing;
  // A started engine has replaced the kubeconfig in its data folder, so the server is that of another folder.
  const isOther = known === undefined ? !COPY.test(path) : resolve(path) === kubeconfigPath(known);
  const folder = isOther ? UNKNOWN_FOLDER : folderOf(path, known);
  const { engine } = hintsFor({ dataDir: folder }, env);
  return (
    `the server at ${server} is not that of the kubeconfig ${path}, because its certificate is from another certificate authority: ` +
    `another or a newer engine, or another program, uses the port; get the kubeconfig of an engine with 'eval "$(${engine('kubeconfig')})"'${noteOn(folder)}`
  );
}

/** Returns the message for a server that does not accept the credentials of the kubeconfigs, although its certificate is as expected. */
export function credentialsRefused(
  server: string,
  paths: readonly string[],
  dataDir: string | undefined,
  env: NodeJS.ProcessEnv,
  engineOf = dataFolderOf,
): string {
  const [path = '', ...others] = paths;
  const refused =
    `the server at ${server} does not accept the credentials in the kubeconfig ${paths.join(':')}: ` +
    'they are wrong, have expired or are those of another server';
  if (others.length > 0 || !isLoopback(server))
    return `${refused}; ask the administrator of the server for a kubeconfig`;
  const known = dataDir ?? engineOf([path]);
  const folder = known === undefined && !COPY.test(path) ? UNKNOWN_FOLDER : folderOf(path, known);
  const { engine } = hintsFor({ dataDir: folder }, env);
  return `${refused}; get the kubeconfig of an engine with 'eval "$(${engine('kubeconfig')})"'${noteOn(folder)}`;
}

const stateOf = (folder: string | undefined): ServiceState | undefined =>
  folder === UNKNOWN_FOLDER ? undefined : serviceState(folder ?? DEFAULT_DATA_DIR);

/** Returns the sentence about an engine that does not run, or that is starting or stopping; undefined for another running engine. */
const textOfStopped = (dataDir: string, env: NodeJS.ProcessEnv): string | undefined =>
  visibleOwner(dataDir) === undefined ? notRunning(dataDir, env) : changingNow(dataDir);

/** Returns the data folder to name in a command: undefined for the default one, a placeholder if only the hash of its path is known. */
function folderOf(path: string, dataDir: string | undefined): string | undefined {
  const [, uid] = COPY.exec(path) ?? [];
  if (dataDir !== undefined) return dataDir === DEFAULT_DATA_DIR ? undefined : dataDir;
  if (uid === undefined || userKubeconfigPath(DEFAULT_DATA_DIR, Number(uid)) === path) return undefined;
  return UNKNOWN_FOLDER;
}

/**
 * Returns the data folders in the command lines of running engines. Ignores processes of other users than root, because any user can start
 * a process with such a command line.
 */
const foldersOfRunning = (): string[] =>
  engineProcesses().flatMap(({ pid, dataDir }) => (dataDir !== undefined && runsAsRoot(pid) ? [dataDir] : []));

const isCopyOf = (path: string, dataDir: string): boolean =>
  userKubeconfigPath(dataDir, Number(COPY.exec(path)?.[1])) === path;

const noteOn = (folder: string | undefined): string =>
  folder === UNKNOWN_FOLDER ? `, with its data folder as ${UNKNOWN_FOLDER}` : '';

const isLoopback = (server: string): boolean => /^(?:127\.[\d.]+|\[::1\]|localhost)$/.test(new URL(server).hostname);

const nothingListens = (server: string, path: string): string =>
  `no API server listens at ${server}, the address on this machine that the kubeconfig ${path} names: start its engine, or ask the administrator to start it`;
