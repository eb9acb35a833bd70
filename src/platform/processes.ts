/**
 * Running other programs: arguments as an array (no shell), output captured, canceled by an AbortSignal.
 */
import { spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { setPriority } from 'node:os';
import { delimiter, join } from 'node:path';

export interface CommandResult {
  /** Exit code; 128 plus the signal number if a signal ended the program, as in a shell. */
  code: number;
  stdout: string;
  stderr: string;
}

export interface CommandOptions {
  signal?: AbortSignal;
  /** Written to its standard input. */
  input?: string;
  env?: NodeJS.ProcessEnv;
  cwd?: string;
}

/** Runs a program and resolves whatever its exit code. Rejects if it cannot start, or if `signal` aborts, which kills it. */
export function runCommand(command: string, args: string[], options: CommandOptions = {}): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      killSignal: 'SIGKILL',
      // Its own process group: Ctrl+C on a terminal must reach lifepod only, which may still need the program to stop cleanly.
      detached: true,
      signal: options.signal,
      env: options.env,
      cwd: options.cwd,
    });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk));
    // The program may exit without reading its input; only its exit code matters.
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

/** A program failed; the message contains its output. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/** Like runCommand, but rejects with a CommandError if the exit code is not 0; resolves with standard output. */
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

/** Ignores a process that has already exited. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** The absolute path of a program in PATH or the usual system folders, or undefined. */
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
 * Gives this process priority over others, so that probes and deadlines are on time even on a busy machine. Child processes inherit
 * the priority. Does nothing without permission.
 */
export function raisePriority(): void {
  try {
    setPriority(ENGINE_NICENESS);
  } catch (error) {
    if ((error as { info?: { code?: string } }).info?.code !== 'EACCES') throw error;
  }
}
