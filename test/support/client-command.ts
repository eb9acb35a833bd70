/** Runs a client command in the background, so that a test can wait for parts of its output. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { delimiter, dirname } from 'node:path';
import type { CommandResult } from '../../src/platform/processes.ts';
import { LAUNCHER, type RunningLifepod } from './lifepod.ts';

const DEADLINE_MILLIS = 60_000;

export interface ClientCommand {
  /** Resolves with the match when standard output or standard error matches the pattern. Rejects if the command ends without a match. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  kill(signal: NodeJS.Signals): void;
  /** Resolves when the command has ended. The exit code is -1 if a signal ended the command. */
  ended: Promise<CommandResult>;
}

/** The command has the engine's kubeconfig, and bin/ on the PATH. It is killed after the deadline. */
export function startClient(
  lifepod: RunningLifepod,
  command: string,
  args: string[],
  deadlineMillis = DEADLINE_MILLIS,
): ClientCommand {
  const child = spawn(command, [...args, '--kubeconfig', lifepod.kubeconfig], {
    env: { ...process.env, HOME: lifepod.dataDir, PATH: `${dirname(LAUNCHER)}${delimiter}${process.env['PATH']}` },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: deadlineMillis,
    killSignal: 'SIGKILL',
  });
  let stdout = '';
  let stderr = '';
  let closed = false;
  const waiting = new Set<() => void>();
  const look = (): void => {
    for (const each of waiting) each();
  };
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
    look();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
    look();
  });
  const ended = once(child, 'close').then(([code]) => {
    closed = true;
    look();
    return { code: (code as number | null) ?? -1, stdout, stderr };
  });
  return {
    ended,
    kill: (signal) => void child.kill(signal),
    printed: (pattern) =>
      new Promise((resolve, reject) => {
        const check = (): void => {
          const match = pattern.exec(stdout) ?? pattern.exec(stderr);
          if (match === null && !closed) return;
          waiting.delete(check);
          if (match !== null) resolve(match);
          else reject(new Error(`${command} ${args.join(' ')} ended without ${pattern}:\n${stdout}${stderr}`));
        };
        waiting.add(check);
        check();
      }),
  };
}
