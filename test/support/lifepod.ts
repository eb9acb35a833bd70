/**
 * Starts engines for end-to-end tests, each with a scratch data folder, a free port and its own networks. If the test process dies,
 * guardian.ts ends the engine and removes the folder.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { down } from '../../src/cli/down.ts';
import { REFUSED } from '../../src/engine/authorization/components.ts';
import { chooseFreeRanges } from '../../src/engine/free-ranges.ts';
import { clearMachine } from '../../src/engine/leftovers.ts';
import { readEngineRecord } from '../../src/engine/settings.ts';
import { dataDirOwner, dataDirReleased } from '../../src/platform/files.ts';
import { nodePlatform, systemTimers } from '../../src/platform/node-js.ts';
import type { CommandResult } from '../../src/platform/processes.ts';
import { containerdPaths } from '../../src/runtime/containerd/paths.ts';
import { loadImageArchives } from '../../src/runtime/images/load.ts';
import { applier } from './apply.ts';
import { runFromSmallProcess } from './commands.ts';
import { connector } from './connection.ts';
import { deleter } from './delete-objects.ts';
import { followLog, keepLogEnd, printLogEnds } from './engine-logs.ts';
import { busyboxArchive } from './images.ts';
import { killEngine } from './kill-engine.ts';
import { FEW_COLLECTIONS, KUBECTL } from './kubectl.ts';
import { LAUNCHER, REPOSITORY } from './launcher.ts';
import { objectReader } from './read-objects.ts';
import { containerRunner } from './run-in-container.ts';
import { startEngine } from './start-engine.ts';
import { untilLine } from './until-line.ts';
import { waiter } from './wait-for-objects.ts';

export { LAUNCHER, REPOSITORY };

const DEADLINE_MILLIS = 120_000;

/** Waits until its standard input closes. If the folder still exists then, becomes guardian.ts. A shell starts faster than Node.js. */
const GUARD = 'trap "" INT TERM HUP; read -r _; [ ! -e "$GUARDED_FOLDER" ] || exec "$0" "$1"';

/** A folder that a guardian process removes if the test process dies. */
export interface Scratch {
  path: string;
  remove(): Promise<void>;
}

/** `link` is a network interface that is removed together with the folder. */
export function scratchFolder(link?: string): Scratch {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'lifepod-test-')));
  // The folder is not an argument of the guardian, because tests consider processes with this argument as left behind by the engine.
  const env = { ...process.env, GUARDED_FOLDER: path, ...(link === undefined ? {} : { GUARDED_LINK: link }) };
  const cleaner = [process.execPath, join(import.meta.dirname, 'guardian.ts')];
  const guardian: ChildProcess = spawn('sh', ['-c', GUARD, ...cleaner], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
    env,
  });
  return {
    path,
    async remove() {
      await killEngine(path);
      await clearMachine(path, nodePlatform('error'), AbortSignal.timeout(DEADLINE_MILLIS));
      // The folder may be the mount point of a separate disk.
      await runFromSmallProcess('umount', ['--lazy', path]);
      if (link !== undefined) await runFromSmallProcess('ip', ['link', 'delete', link]);
      rmSync(path, { recursive: true, force: true });
      const ended = once(guardian, 'exit');
      guardian.stdin?.end();
      await ended;
    },
  };
}

export interface LifepodClient {
  dataDir: string;
  kubeconfig: string;
  nodeName: string;
  /** Runs the launcher with --data-dir, and with --namespace if there is a default namespace and the command accepts the option. */
  cli(command: string, ...args: string[]): Promise<CommandResult>;
  /** Like cli(), but rejects if the exit code is not 0, and resolves with standard output. */
  cliOk(command: string, ...args: string[]): Promise<string>;
  kubectl(...args: string[]): Promise<CommandResult>;
  kubectlOk(...args: string[]): Promise<string>;
  kubectlInput(input: string, ...args: string[]): Promise<CommandResult>;
  /** Needs no kubectl: see apply.ts. */
  apply(manifest: object | string): Promise<void>;
  /**
   * Runs kubectl until `done` returns true for a line of its output, kills kubectl, and resolves with the lines so far. Rejects with the
   * output if kubectl ends before that.
   */
  until(args: string[], done: (line: string, lines: readonly string[]) => boolean): Promise<string[]>;
  /** Like `kubectl get -o json`: see read-objects.ts. */
  get<T = Record<string, unknown>>(...args: string[]): Promise<T>;
  /** Like `kubectl delete`: see delete-objects.ts. */
  delete(...args: string[]): Promise<void>;
  /** Like `kubectl exec`: see run-in-container.ts. */
  exec(...args: string[]): Promise<CommandResult>;
  /** Like exec(), but rejects if the exit code is not 0, and resolves with standard output. */
  execOk(...args: string[]): Promise<string>;
  /** Like `kubectl wait`: see wait-for-objects.ts. */
  wait(...args: string[]): Promise<void>;
}

export interface RunningLifepod extends LifepodClient {
  options: string[];
  /** Throws if the engine is not running. */
  pid(): number;
  /** Starts the engine again, after it was killed or stopped, by default with the options of its first start: see start-engine.ts. */
  up(options?: readonly string[]): Promise<void>;
  /** Sends the signal to the engine's process only. Resolves when that process has ended. */
  kill(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>;
}

export interface Lifepod extends RunningLifepod {
  /**
   * Does what `lifepod down` does, and removes the data folder. Also rejects if the engine has refused a request of one of its own
   * components, because then the component's role lacks a right.
   */
  stop(): Promise<void>;
}

const succeeded = (what: string, result: CommandResult): string => {
  if (result.code !== 0) throw new Error(`${what}: exit code ${result.code}\n${result.stdout}${result.stderr}`);
  return result.stdout;
};

/** sudo and similar programs name the invoking user in these variables. Without them, lifepod acts as if root had started it. */
const NO_INVOKING_USER = { SUDO_UID: undefined, DOAS_USER: undefined, PKEXEC_UID: undefined };

const launchEnvironment = (): NodeJS.ProcessEnv => ({ ...process.env, ...NO_INVOKING_USER });

export const launch = (args: string[], env: NodeJS.ProcessEnv = {}, launcher = LAUNCHER): Promise<CommandResult> =>
  runFromSmallProcess(launcher, args, { env: { ...launchEnvironment(), ...env } });

/** With these options, a full disk causes no eviction and no image removal. Tests of these use separate disks. */
const WHATEVER_THE_DISK_HAS_LEFT = ['--eviction-hard', 'memory.available<100Mi', '--image-gc-high-threshold', '100'];

export interface EngineOptions {
  /** In addition to the options that every test uses. */
  options?: string[];
  /** Becomes the data folder. Absent: a new one. */
  scratch?: Scratch;
  /** Starts the engine for the first time, for example in an older version. Absent: LAUNCHER. */
  launcher?: string;
}

/** Resolves with options of `lifepod up`. Other tests may use the default port and address ranges. */
export async function freeNetwork(): Promise<string[]> {
  const { podCidr, serviceCidr } = await chooseFreeRanges();
  return ['--port', '0', '--pod-cidr', podCidr, '--service-cidr', serviceCidr];
}

/** Also loads the image busybox:1.28 into the engine. */
export async function startLifepod(extra: EngineOptions = {}): Promise<Lifepod> {
  const scratch = extra.scratch ?? scratchFolder();
  followLog(scratch.path);
  try {
    const own = ['--node-name', 'node-1', ...(await freeNetwork()), ...WHATEVER_THE_DISK_HAS_LEFT];
    const lifepod = lifepodOf(scratch, [...own, ...(extra.options ?? [])]);
    if (extra.launcher === undefined) await lifepod.up();
    else {
      const up = ['up', '--detach', '--data-dir', scratch.path, ...lifepod.options];
      succeeded('lifepod up', await launch(up, {}, extra.launcher));
    }
    await loadBusybox(scratch.path);
    return lifepod;
  } catch (error) {
    printLogEnds();
    await launch(['down', '--data-dir', scratch.path]);
    keepLogEnd(scratch.path);
    await scratch.remove();
    throw error;
  }
}

/** Saves the process of `lifepod image load` in almost every test file. */
async function loadBusybox(dataDir: string): Promise<void> {
  const endpoint = readEngineRecord(dataDir)?.containerRuntimeEndpoint ?? `unix://${containerdPaths(dataDir).socket}`;
  const signal = AbortSignal.timeout(DEADLINE_MILLIS);
  await loadImageArchives({ endpoint, timers: systemTimers() }, [await busyboxArchive()], signal);
}

/** Does what `lifepod down` does, but starts a process only if the engine was killed. */
async function endEngine(dataDir: string): Promise<void> {
  const wasKilled = dataDirOwner(dataDir) === undefined && readEngineRecord(dataDir)?.state !== 'down';
  // After a kill, down() starts the engine again, and the engine must be a process of lifepod, not the test process.
  if (wasKilled) succeeded('lifepod down', await launch(['down', '--data-dir', dataDir]));
  else await down(dataDir, () => undefined, { signal: AbortSignal.timeout(DEADLINE_MILLIS) });
}

/** Words that are followed by a command of lifepod. */
const COMMAND_GROUPS = ['certs', 'image', 'secrets'];
/** The roles of the engine's components did not allow these requests. */
const refusalsIn = (dataDir: string): string[] =>
  ['lifepod.log.1', 'lifepod.log']
    .map((name) => join(dataDir, name))
    .filter((path) => existsSync(path))
    .flatMap((path) => readFileSync(path, 'utf8').split('\n'))
    .filter((line) => line.includes(REFUSED));

const NAMESPACED_COMMANDS = ['describe', 'logs', 'skip', 'status', 'timeline', 'why'];

/** `namespace` is the default namespace for kubectl and lifepod. */
export function clientOf(dataDir: string, kubeconfig: string, namespace?: string): LifepodClient {
  const env = { ...process.env, ...FEW_COLLECTIONS, KUBECONFIG: kubeconfig, HOME: dataDir };
  const kubectl = (args: string[], input?: string): Promise<CommandResult> =>
    runFromSmallProcess(KUBECTL, args, { env, input });
  const connect = connector(kubeconfig);
  const read = objectReader(connect);
  const run = containerRunner(kubeconfig);
  const self: LifepodClient = {
    dataDir,
    kubeconfig,
    nodeName: 'node-1',
    cli: (command, ...args) => {
      const words = [command, ...(COMMAND_GROUPS.includes(command) ? args.splice(0, 1) : [])];
      const within = namespace !== undefined && NAMESPACED_COMMANDS.includes(command) ? ['--namespace', namespace] : [];
      return launch([...words, '--data-dir', dataDir, ...within, ...args]);
    },
    cliOk: async (command, ...args) =>
      succeeded(`lifepod ${command} ${args.join(' ')}`, await self.cli(command, ...args)),
    kubectl: (...args) => kubectl(args),
    kubectlInput: (input, ...args) => kubectl(args, input),
    kubectlOk: async (...args) => succeeded(`kubectl ${args.join(' ')}`, await kubectl(args)),
    apply: applier(connect),
    until: (args, done) => untilLine(KUBECTL, args, env, done),
    get: async <T>(...args: string[]) => (await read(...args)) as T,
    delete: deleter(connect),
    exec: run,
    execOk: async (...args) => succeeded(`exec ${args.join(' ')}`, await run(...args)),
    wait: waiter(connect),
  };
  return self;
}

function lifepodOf(scratch: Scratch, options: string[]): Lifepod {
  const dataDir = scratch.path;
  const client = clientOf(dataDir, join(dataDir, 'kubeconfig'));
  const self: Lifepod = {
    ...client,
    options,
    pid() {
      const pid = dataDirOwner(dataDir);
      if (pid === undefined) throw new Error('the engine does not run');
      return pid;
    },
    up: (again = options) => startEngine(dataDir, again, launchEnvironment()),
    async kill(signal) {
      const released = dataDirReleased(dataDir, AbortSignal.timeout(DEADLINE_MILLIS));
      process.kill(self.pid(), signal);
      await released;
    },
    async stop() {
      const [result] = await Promise.allSettled([endEngine(dataDir)]);
      const refusals = refusalsIn(dataDir);
      keepLogEnd(dataDir);
      if (result.status === 'rejected') printLogEnds();
      await scratch.remove();
      if (result.status === 'rejected') throw result.reason;
      if (refusals.length > 0) throw new Error(`requests of components were refused:\n${refusals.join('\n')}`);
    },
  };
  return self;
}
