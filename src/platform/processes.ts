/** Runs other programs without a shell, captures their output, and kills them when a signal aborts. */
import { spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { setPriority } from 'node:os';
import { delimiter, join } from 'node:path';

export interface CommandResult {
  /** The exit code. If a signal ended the program, 128 plus its number, as in a shell; 129 for a signal not in SIGNAL_NUMBERS. */
  code: number;
  stdout: string;
  stderr: string;
}

export interface CommandOptions {
  signal?: AbortSignal;
  /** Written to the standard input of the program, which is empty by default. */
  input?: string;
  env?: NodeJS.ProcessEnv;
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
        code: code ?? 128 + signalNumber(signal),
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

const SIGNAL_NUMBERS: Readonly<Record<string, number>> = { SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGTERM: 15 };
const signalNumber = (signal: NodeJS.Signals | null): number => SIGNAL_NUMBERS[signal ?? ''] ?? 1;

/** Sends a signal to a process. Does nothing if the process has already exited. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
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
    accessSync(file, constants.X_OK);
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
