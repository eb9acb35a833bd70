/**
 * Runs other programs without a shell, captures their output, and kills them when a signal aborts. Also sends signals, reads the age of a
 * process, finds programs, and raises the priority of this process.
 */
import { spawn } from 'node:child_process';
import { accessSync, constants as fileConstants, readFileSync, statSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { delimiter, join } from 'node:path';

export interface CommandResult {
  /** The exit code. If a signal ended the program, 128 plus its number, as in a shell. */
  code: number;
  stdout: string;
  stderr: string;
}

export interface CommandOptions {
  signal?: AbortSignal;
  /** Written to the standard input of the program, which is empty by default. */
  input?: string;
  /** The complete environment of the program; by default, that of this process. */
  env?: NodeJS.ProcessEnv;
  /** The working directory of the program; by default, that of this process. */
  cwd?: string;
}

/** Runs a program and resolves when it has ended, with any exit code. Rejects if it cannot start, or if `signal` aborts and kills it. */
export function runCommand(command: string, args: string[], options: CommandOptions = {}): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      killSignal: 'SIGKILL',
      // The program gets its own process group, so that Ctrl+C on a terminal reaches only lifepod, which may still need the program
      // in order to stop cleanly.
      detached: true,
      signal: options.signal,
      env: options.env,
      cwd: options.cwd,
    });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk));
    // The program may exit without reading its input. This is not an error: only the exit code matters.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(options.input);
    child.once('error', reject);
    child.once('close', (code, signal) =>
      resolve({
        code: code ?? 128 + (signal === null ? 0 : constants.signals[signal]),
        stdout: Buffer.concat(stdout).toString(),
        stderr: Buffer.concat(stderr).toString(),
      }),
    );
  });
}

/** The error for an exit code other than 0. The message contains the program's standard error or, if that is empty, standard output. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/** Like runCommand(), but rejects with a CommandError if the exit code is not 0, and resolves with the standard output. */
export async function runCommandOk(command: string, args: string[], options: CommandOptions = {}): Promise<string> {
  const result = await runCommand(command, args, options);
  if (result.code !== 0) {
    const words = result.stderr.trim() || result.stdout.trim() || 'no output';
    throw new CommandError(`${command} ${args[0] ?? ''} ended with exit code ${result.code}: ${words}`);
  }
  return result.stdout;
}

/** Sends a signal to a process. Does nothing if the process has already exited. Throws if the signal is not permitted. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/**
 * The unit of the times in /proc/PID/stat. Linux reports hundredths of a second on all processors that Node.js supports.
 * Source: proc_pid_stat(5).
 */
const TICK_MILLIS = 10;

/** Returns the time since the process started, which changes of the wall clock do not affect. Throws if the process does not exist. */
export function processAgeMillis(pid: number): number {
  // The second field is the name in parentheses, which may contain any characters. The start time since boot is the 22nd field.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
  const bootedMillis = Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]) * 1000;
  return Math.max(0, bootedMillis - Number(fields[19]) * TICK_MILLIS);
}

/** Returns the path of a program in the folders of `path` or the usual system folders, or undefined if it is not found. */
export function findProgram(name: string, path = process.env['PATH'] ?? ''): string | undefined {
  const folders = [
    ...path.split(delimiter).filter((folder) => folder !== ''),
    '/usr/sbin',
    '/sbin',
    '/usr/bin',
    '/bin',
  ];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, fileConstants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

const ENGINE_NICENESS = -10;

/**
 * Gives this process priority over other processes, so that probes and deadlines are on time even on a busy machine. Child processes
 * inherit the priority. Does nothing if the process may not raise its priority.
 */
export function raisePriority(): void {
  try {
    setPriority(ENGINE_NICENESS);
  } catch (error) {
    if ((error as { info?: { code?: string } }).info?.code !== 'EACCES') throw error;
  }
}
