/**
 * Composes the commands in messages for the user. They reach the same server as the command that prints the message.
 *
 * A command has the options --data-dir, --kubeconfig and --context that the user has given, as far as the command accepts them. A command
 * of kubectl names the kubeconfig if kubectl would read another one. A command of lifepod begins with the path of the program if its folder
 * is not on the PATH. A command that needs root names the data folder unless it is the default one, because root may not have the user's
 * KUBECONFIG. A command without sudo names no kubeconfig that only root can read.
 */
import { delimiter } from 'node:path';
import { copyOfInvoker } from '../engine/certificates/user-kubeconfigs.ts';
import { hasLockOpen } from '../engine/data-folder/engine-processes.ts';
import { runtimeCommands } from '../engine/options/runtime-endpoint.ts';
import { DEFAULT_DATA_DIR, kubeconfigPath } from '../engine/settings.ts';
import { hasArgument } from '../platform/processes.ts';
import { type ServiceCommands, serviceCommands } from '../platform/programs/service-commands.ts';
import {
  asRoot,
  isThroughSudo,
  needsSudo,
  reinstallFirst,
  rootProgram,
  shellQuoted,
  typedProgram,
} from '../platform/programs/typed-program.ts';
import { isKubectlPlugin, kubectlKubeconfigs } from './kubeconfig/kubectl.ts';
import { runsAsService } from './service/service-state.ts';

/** Options with which a command was called. An option that was not given is undefined. */
export interface HintOptions {
  dataDir?: string | undefined;
  kubeconfig?: string | undefined;
  context?: string | undefined;
  /** The data folder of the engine whose kubeconfig the command uses without --data-dir; undefined if it is not known. */
  engineFolder?: string | undefined;
  /** Whether the server may be an engine with an unknown data folder. */
  isFolderUnknown?: boolean;
  server?: string | undefined;
  /** Returns whether systemd runs the engine. A function, because systemd may be slow to answer. */
  isService?: () => boolean;
  /** Whether the user has other engines, so that a command that names no data folder might reach another engine. */
  isOneOfSeveral?: boolean;
}

/** Stands for a data folder that is not known. */
export const UNKNOWN_FOLDER = 'FOLDER';

export interface Hints {
  /**
   * Returns a command of lifepod that accepts --data-dir, --kubeconfig and --context, with sudo in front if only root can read the
   * kubeconfig. `words` begins with the name of the command.
   */
  lifepod(words: string): string;
  /** Returns a command of lifepod that accepts --data-dir only and needs root, such as `image load FILE`. */
  engine(words: string): string;
  /** Returns the command that starts the engine. For a user who needs sudo, the command also sets KUBECONFIG. */
  start(): string;
  /** Returns a command of another program that runs as root: after sudo, doas or pkexec if the user is not root. */
  asRoot(command: string): string;
  /** Returns the commands for the machine's container runtime whose socket the text names; undefined if they are not known. */
  runtime(text: string): ServiceCommands | undefined;
  /**
   * Returns a command of kubectl that reaches the same server, with sudo in front if only root can read the kubeconfig. `words` begins with
   * the name of kubectl's command.
   */
  kubectl(words: string): string;
  /** The end of a sentence that names commands of lifepod, for processes that may outlive the installed program: see reinstallFirst(). */
  reinstall: string;
  /** Whether systemd runs the engine, so that systemctl starts and stops it. */
  isService: boolean;
  /** The engine that answers requests, in words such as `the engine in /var/lib/lifepod`; undefined if it is not known. */
  answering: string | undefined;
}

/**
 * Returns functions that compose commands for the engine or server that the options select. `paths` are the kubeconfigs that the printing
 * command reads; undefined if it reads the one in the data folder. `sudo` is whether the user who types the commands needs sudo. `copyOf`
 * returns the copy of an engine's kubeconfig that the user of sudo can read.
 */
export function hintsFor(
  options: HintOptions,
  env: NodeJS.ProcessEnv,
  paths?: readonly string[],
  sudo = needsSudo(env),
  copyOf = copyOfInvoker,
): Hints {
  const { kubeconfig, context } = options;
  const isPlugin = isKubectlPlugin(env);
  const withoutDefault = (folder: string | undefined): string | undefined =>
    folder === DEFAULT_DATA_DIR ? undefined : folder;
  // Without --data-dir, a command that needs root uses the default data folder. Other commands prefer KUBECONFIG, and a plugin uses the
  // kubeconfig of kubectl.
  const other = ![undefined, '', kubeconfigPath(DEFAULT_DATA_DIR)].includes(env['KUBECONFIG']);
  const dataDir = isPlugin || other ? options.dataDir : withoutDefault(options.dataDir);
  const ofFolder = option(
    'data-dir',
    isPlugin && options.dataDir !== undefined
      ? options.dataDir
      : withoutDefault(
          options.dataDir ?? options.engineFolder ?? (options.isFolderUnknown === true ? UNKNOWN_FOLDER : undefined),
        ),
  );
  const ofContext = option('context', context);
  const program = isPlugin ? 'kubectl lifepod' : shellQuoted(typedProgram(env, false));
  const forRoot = rootProgram(env, sudo);
  const folder = options.dataDir ?? options.engineFolder ?? DEFAULT_DATA_DIR;
  const listed = paths ?? [kubeconfig ?? kubeconfigPath(options.dataDir ?? DEFAULT_DATA_DIR)];
  // The user of sudo cannot read the administrator's kubeconfig without sudo, although this process can.
  const isForRoot = sudo && isThroughSudo(env) && listed.join(delimiter) === kubeconfigPath(folder);
  const copy = isForRoot ? copyOf(folder, env) : undefined;
  const onlyRoot = isForRoot && copy === undefined;
  // sudo does not pass KUBECONFIG on, and without sudo the variable of the user may name another kubeconfig.
  const ofVariable = isForRoot && kubeconfig === undefined ? withoutDefault(options.engineFolder) : undefined;
  const named = dataDir ?? (options.isOneOfSeveral === true ? options.engineFolder : ofVariable);
  const own = copy ?? listed.join(delimiter);
  const read = !isForRoot && own === kubectlKubeconfigs(env).join(delimiter) ? undefined : own;
  return {
    lifepod: (words) =>
      withOptions(`${onlyRoot ? forRoot : program} ${words}`, [
        ...option('data-dir', named),
        ...option('kubeconfig', kubeconfig && (copy ?? kubeconfig)),
        ...ofContext,
      ]),
    engine: (words) => withOptions(`${forRoot} ${words}`, ofFolder),
    start: () => {
      const command = withOptions(`${forRoot} up --detach`, ofFolder);
      return sudo ? `eval "$(${command})"` : command;
    },
    asRoot: (command) => asRoot(command, env, sudo),
    runtime: (text) => runtimeCommands(text, (unit) => serviceCommands(unit, env, sudo)),
    reinstall: reinstallFirst(env, sudo),
    get isService() {
      return options.isService?.() === true;
    },
    answering: engineName(options.dataDir ?? options.engineFolder, options.server),
    kubectl: (words) =>
      withOptions(asRoot(`kubectl ${words}`, env, onlyRoot), [
        ...option('kubeconfig', copy ?? kubeconfig ?? read),
        ...ofContext,
      ]),
  };
}

export const engineName = (dataDir: string | undefined, server: string | undefined): string | undefined =>
  dataDir !== undefined ? `the engine in ${dataDir}` : server && `the server ${server}`;

/** Returns the end of a sentence about a missing object. The user may mean an engine other than the one that has answered. */
export const answeredBy = ({ answering }: Hints): string =>
  answering === undefined ? '' : ` (answered by ${answering})`;

export const effectOfKill = (pid: number): string =>
  hasArgument(pid, '--shutdown-on-stop') ? 'shuts its node down and ends its Pods' : 'leaves its Pods running';

/**
 * Returns the commands that stop a running engine, and their effect on its Pods. Without `isHere` (see hasLockOpen()), the engine runs
 * elsewhere, for example in a container, and `pid` may be that of an unrelated process.
 */
export const waysToStop = (
  dataDir: string,
  pid: number,
  env: NodeJS.ProcessEnv = process.env,
  isService = runsAsService(dataDir, pid),
  isHere = hasLockOpen(dataDir, pid),
): string =>
  isHere
    ? `'${asRoot(isService ? 'systemctl stop lifepod' : `kill ${pid}`, env)}' ${effectOfKill(pid)}, and '${hintsFor({ dataDir }, env).engine('down')}' ends them, too`
    : "'lifepod down' where it runs, for example in a container that has the folder as a volume, ends it and its Pods";

/** Returns the sentence that says how to restore the kubeconfig of a running engine after the file was deleted. */
export const missingKubeconfig = (
  dataDir: string,
  pid: number,
  env: NodeJS.ProcessEnv = process.env,
  isService = runsAsService(dataDir, pid),
): string =>
  `${kubeconfigPath(dataDir)} is missing, so the running engine (PID ${pid}) cannot be reached: ${rewriteKubeconfig(dataDir, pid, env, isService)}`;

/** Returns the sentence that says how to restore the kubeconfig of a running engine after its credentials were changed. */
export const refusedKubeconfig = (dataDir: string, pid: number): string =>
  `the running engine (PID ${pid}) does not accept the credentials in ${kubeconfigPath(dataDir)}: ${rewriteKubeconfig(dataDir, pid, process.env, runsAsService(dataDir, pid))}`;

function rewriteKubeconfig(dataDir: string, pid: number, env: NodeJS.ProcessEnv, isService: boolean): string {
  const restart = isService
    ? `'${asRoot('systemctl restart lifepod', env)}', which leaves its Pods running and`
    : `'${asRoot(`kill ${pid}`, env)}', which ${effectOfKill(pid)}, then '${hintsFor({ dataDir }, env).start()}', which`;
  return `type ${restart} writes the file again`;
}

const option = (name: string, value: string | undefined): string[] =>
  value === undefined ? [] : [`--${name} ${shellQuoted(value)}`];

/** Adds the options to the end of the command, but before the arguments of a program after `--`. */
function withOptions(command: string, options: readonly string[]): string {
  const [own = '', ...program] = command.split(' -- ');
  return [[own, ...options].join(' '), ...program].join(' -- ');
}
