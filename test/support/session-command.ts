/** The runtime of the data folder already has the image busybox:1.28. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { REGISTRY_PREFIX } from '../../src/apiserver/cache/keys.ts';
import { SESSION_LABEL } from '../../src/cli/session/plan.ts';
import { dataDirOwner } from '../../src/platform/files.ts';
import { sendSignal } from '../../src/platform/processes.ts';
import { silentLog } from '../../src/platform/silent-log.ts';
import { openLmdbStore } from '../../src/store/lmdb/lmdb-store.ts';
import { LAUNCHER, type Lifepod, startLifepod } from './lifepod.ts';

/** After this time, the command is killed, so that the test reports its output instead of hanging. */
const DEADLINE_MILLIS = 120_000;

export interface SessionCommand {
  pid: number;
  /** Rejects with the output if the command ends without a match. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  /** Sends the signal to the process group of the command. Does nothing if the command has ended. */
  signal(name: NodeJS.Signals): void;
  /** The exit code is null if a signal ended the command. */
  ended: Promise<{ code: number | null; stdout: string; stderr: string }>;
}

/** The command runs in its own process group. `input` is its standard input, `env` its environment. */
export function startSession(
  dataDir: string,
  command: 'up' | 'run',
  args: string[],
  input = '',
  env = process.env,
  launcher = LAUNCHER,
): SessionCommand {
  return startCommand([command, '--data-dir', dataDir, ...args], input, env, launcher);
}

export function startCommand(args: string[], input = '', env = process.env, launcher = LAUNCHER): SessionCommand {
  const child: ChildProcess = spawn(launcher, args, {
    env,
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
    timeout: DEADLINE_MILLIS,
    killSignal: 'SIGKILL',
  });
  const output = { stdout: '', stderr: '' };
  const looks = new Set<() => void>();
  let isClosed = false;
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.on('data', (chunk: Buffer) => {
      output[name] += chunk.toString();
      for (const look of looks) look();
    });
  }
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(input);
  const ended = once(child, 'close').then(([code]) => {
    isClosed = true;
    for (const look of looks) look();
    return { code: code as number | null, ...output };
  });
  return {
    pid: child.pid ?? 0,
    ended,
    // The whole group gets the signal, as from a terminal.
    signal: (name) => sendSignal(-(child.pid ?? 0), name),
    printed: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(output.stdout) ?? pattern.exec(output.stderr);
          if (match !== null) resolve(match);
          else if (isClosed)
            reject(new Error(`the command ended without ${pattern}:\n${output.stdout}${output.stderr}`));
          else return;
          looks.delete(look);
        };
        looks.add(look);
        look();
      }),
  };
}

/** Copies the lifepod that the tests run into the folder, from which it can then be removed, like an installed package. */
export function copyLauncher(folder: string): string {
  const from = join(LAUNCHER, '../..');
  for (const part of ['bin', 'dist', 'src', 'package.json'])
    if (existsSync(join(from, part)))
      cpSync(join(from, part), join(folder, part), { recursive: true, dereference: true });
  symlinkSync(join(from, 'node_modules'), join(folder, 'node_modules'));
  return join(folder, 'bin/lifepod');
}

/** Starts an engine once, so that its data folder has the image and the options of tests. Stops the engine, and resolves with it. */
export async function stoppedLifepod(): Promise<Lifepod> {
  const lifepod = await startLifepod();
  await lifepod.cliOk('down');
  return lifepod;
}

export const engineRuns = ({ dataDir }: Lifepod): boolean => dataDirOwner(dataDir) !== undefined;

/** Resolves with the keys of the stored objects that have the label of a session. The engine must not be running. */
export async function markedKeys({ dataDir }: Lifepod): Promise<string[]> {
  const store = await openLmdbStore({ directory: join(dataDir, 'store'), log: silentLog });
  try {
    const { items } = await store.range({ prefix: REGISTRY_PREFIX });
    return items.filter(({ value }) => Buffer.from(value).includes(SESSION_LABEL)).map(({ key }) => key);
  } finally {
    await store.close();
  }
}
