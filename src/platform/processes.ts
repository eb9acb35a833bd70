/**
 * Running other programs: arguments as an array (no shell), output captured, cancelled by an AbortSignal.
 */
import { spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { setPriority } from 'node:os';
import { delimiter, join } from 'node:path';

export interface CommandResult {
  /** Exit code; 128 and the signal's number where a signal ended it, as a shell says it. */
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

/** Runs to the end and returns whatever the exit code. Rejects where it cannot start or `signal` aborts (it is killed). */
export function runCommand(command: string, args: string[], options: CommandOptions = {}): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      killSignal: 'SIGKILL',
      // A group of its own: Ctrl+C on a terminal is for lifepod, which may have to go on to end well.
      detached: true,
      ...(options.signal === undefined ? {} : { signal: options.signal }),
      ...(options.env === undefined ? {} : { env: options.env }),
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk));
    // The program may end without reading its input; its exit code tells.
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

/** A program failed; in its own words. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/** As runCommand, but rejects with a CommandError where the exit code is not 0; returns standard output. */
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

/** A process that has ended needs none. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** The absolute path of a program in PATH (and in the system's usual folders), or undefined. */
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
 * Lets this process go before others when the machine is busy: probes and deadlines are kept then, too. What it starts
 * inherits that. Without the right to it nothing changes.
 */
export function raisePriority(): void {
  try {
    setPriority(ENGINE_NICENESS);
  } catch (error) {
    if ((error as { info?: { code?: string } }).info?.code !== 'EACCES') throw error;
  }
}
