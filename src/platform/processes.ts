/** Runs other programs without a shell, and finds and signals processes. */
import { spawn } from 'node:child_process';
import { accessSync, constants as fileConstants, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { UserError } from './files.ts';
import type { Timers } from './platform.ts';
import { missingProgram } from './programs/packages.ts';
import { searchFolders } from './programs/programs.ts';

export interface CommandResult {
  /** The exit code. If a signal ended the program: 128 plus the number of the signal, as in a shell. */
  code: number;
  stdout: string;
  stderr: string;
}

export interface CommandOptions {
  signal?: AbortSignal;
  /** The standard input, empty by default. A long text may be given in pieces. */
  input?: string | readonly string[];
  /** The complete environment of the program; by default, that of this process. */
  env?: NodeJS.ProcessEnv;
  cwd?: string;
}

/**
 * Runs a program and resolves when it has ended, with any exit code. Rejects with a UserError if the program is not installed, and with
 * another error if the program cannot start or `signal` aborts. An abort kills the program.
 */
export function runCommand(command: string, args: string[], options: CommandOptions = {}): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      killSignal: 'SIGKILL',
      // The program gets its own process group, so that Ctrl+C on a terminal does not reach it: lifepod may need the program to stop
      // cleanly.
      detached: true,
      signal: options.signal,
      env: options.env,
      cwd: options.cwd,
    });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk));
    // The program may exit without reading its input. Only the exit code matters.
    child.stdin?.on('error', () => undefined);
    if (child.stdin !== null) Readable.from([options.input ?? []].flat(), { objectMode: false }).pipe(child.stdin);
    child.once('error', (error) => reject(startError(command, error)));
    child.once('close', (code, signal) =>
      resolve({
        code: codeOf(code, signal),
        stdout: Buffer.concat(stdout).toString(),
        stderr: Buffer.concat(stderr).toString(),
      }),
    );
  });
}

/** Returns a UserError if the program is not installed, else `error`. */
export function startError(command: string, error: NodeJS.ErrnoException): Error {
  // ENOENT may also mean that the working directory is missing.
  const isMissing = error.code === 'ENOENT' && !command.includes('/') && findProgram(command) === undefined;
  return isMissing ? new UserError(missingProgram(command)) : error;
}

const codeOf = (code: number | null, signal: NodeJS.Signals | null): number =>
  code ?? 128 + (signal === null ? 0 : constants.signals[signal]);

/** The error for an exit code other than 0. The message contains the program's standard error or, if this is empty, standard output. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/** Resolves with the standard output. Rejects like runCommand(), and with a CommandError if the exit code is not 0. */
export async function runCommandOk(command: string, args: string[], options: CommandOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await runCommand(command, args, options);
  if (code !== 0) throw commandError([command, ...args], code, stderr.trim() || stdout.trim());
  return stdout;
}

const commandError = ([command, first = '']: string[], code: number, output: string): CommandError =>
  new CommandError(`${command} ${first} ended with exit code ${code}: ${output || 'no output'}`);

/** The maximum number of characters of the standard error, from its beginning, that an error of linesOf() contains. */
const MAX_ERROR_LENGTH = 4096;

/**
 * Runs a program and yields the lines of its standard output, as many at a time as one read returns. The program waits while the caller
 * processes the lines, so that memory does not grow with the output. Kills the program if the caller ends the iteration.
 * Throws a CommandError after the last line if the exit code is not 0, a UserError if the program is not installed, and another error if
 * the program cannot start or `signal` aborts.
 */
export async function* linesOf(
  command: string,
  args: string[],
  { signal }: Pick<CommandOptions, 'signal'> = {},
): AsyncGenerator<string[], void> {
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    killSignal: 'SIGKILL',
    // The program gets its own process group, as in runCommand().
    detached: true,
    signal,
  });
  const ended = new Promise<number>((resolve, reject) => {
    child.once('error', (error) => reject(startError(command, error)));
    child.once('close', (code, by) => resolve(codeOf(code, by)));
  });
  // `ended` is awaited after the last line. An earlier rejection must not count as unhandled.
  ended.catch(() => undefined);
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = `${errors}${text}`.slice(0, MAX_ERROR_LENGTH);
  });
  let rest = '';
  try {
    for await (const text of child.stdout.setEncoding('utf8') as AsyncIterable<string>) {
      const lines = `${rest}${text}`.split('\n');
      rest = lines.pop() ?? '';
      yield lines;
    }
    if (rest !== '') yield [rest];
    const code = await ended;
    if (code !== 0) throw commandError([command, ...args], code, errors.trim());
  } finally {
    child.kill('SIGKILL');
  }
}

/** Does nothing if the process has already exited. Throws if the signal is not permitted. */
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

/** Returns when the process started, in ticks since the machine booted. Throws if the process does not exist. */
export function processStartTicks(pid: number): number {
  // The second field is the name in parentheses, which may contain any characters. The start time is the 22nd field.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
  return Number(fields[19]);
}

/** Returns the time since the process started, which changes of the wall clock do not affect. Throws if the process does not exist. */
export function processAgeMillis(pid: number): number {
  const startMillis = processStartTicks(pid) * TICK_MILLIS;
  const bootedMillis = Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]) * 1000;
  return Math.max(0, bootedMillis - startMillis);
}

/** Returns an empty list if the process does not exist. */
export function commandLineOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return [];
  }
}

export const hasArgument = (pid: number, word: string): boolean => commandLineOf(pid).includes(word);

/** Searches the folders of `path`, then the usual system folders. Returns undefined if none of them contains the program. */
export function findProgram(name: string, path = process.env['PATH'] ?? ''): string | undefined {
  return searchFolders(path)
    .map((folder) => join(folder, name))
    .find(isExecutable);
}

/** Throws a UserError if the program is not installed. */
export function requireProgram(name: string): string {
  const found = findProgram(name);
  if (found === undefined) throw new UserError(missingProgram(name));
  return found;
}

export function isExecutable(file: string): boolean {
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

/**
 * Sets the name of this process that ps(1) and systemd show. Otherwise, they would show the name of a thread of Node.js. The command line
 * does not change. Source: proc_pid_comm(5).
 */
export function nameProcess(name: string): void {
  try {
    writeFileSync('/proc/self/comm', name);
  } catch {
    // The name only helps people who list processes, so a failure is ignored.
  }
}

export interface ListedProcess {
  pid: number;
  args: string[];
}

const readOrEmpty = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
};

export function listProcesses(): ListedProcess[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ pid: Number(name), args: readOrEmpty(`/proc/${name}/cmdline`).split('\0') }));
}

export function childrenOf(pids: number[]): number[] {
  const parents = new Set(pids);
  return listProcesses()
    .map(({ pid }) => pid)
    .filter((pid) => parents.has(Number(statFields(pid)?.[1])));
}

/** Returns the fields of /proc/<pid>/stat after the command's name: state, parent, …; undefined if the process does not exist. */
function statFields(pid: number): string[] | undefined {
  const stat = readOrEmpty(`/proc/${pid}/stat`);
  return stat === '' ? undefined : stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

const isAlive = (pid: number): boolean => {
  const state = statFields(pid)?.[0];
  return state !== undefined && state !== 'Z' && state !== 'X';
};

/** Returns whether the process is suspended, for example by SIGSTOP. It then reacts only to SIGCONT and SIGKILL. */
export const isSuspended = (pid: number): boolean => statFields(pid)?.[0] === 'T';

const POLL_MILLIS = 10;

/**
 * Resolves with true as soon as all processes have ended, or with false after `withinMillis`. Polls, because the kernel reports an exit
 * only to the parent, and Node.js does not support pidfd_open(2).
 */
export function haveEnded(pids: number[], withinMillis: number, timers: Timers): Promise<boolean> {
  const deadline = timers.now() + withinMillis;
  return new Promise((resolve) => {
    const look = (): void => {
      if (!pids.some(isAlive)) resolve(true);
      else if (timers.now() >= deadline) resolve(false);
      else timers.at(timers.now() + POLL_MILLIS, look);
    };
    look();
  });
}
