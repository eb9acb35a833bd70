import type { Timers } from '../../platform/platform.ts';
import { type ExecResult, ExecTimeoutError } from '../runtime.ts';

export interface ExecScript {
  /** Absent: 0. */
  millis?: number;
  /** Absent: 0. */
  exitCode?: number;
  stdout?: string;
  stderr?: string;
}

export interface SimulatedExec {
  command: readonly string[];
  /** After this time, the command is killed; 0: no limit. */
  timeoutMillis: number;
  /** `done` must be called when the container ends, which kills the command. */
  onExit(done: () => void): void;
}

export function execInTime(
  timers: Timers,
  script: ExecScript,
  { command, timeoutMillis, onExit }: SimulatedExec,
  signal: AbortSignal,
): Promise<ExecResult> {
  signal.throwIfAborted();
  const millis = script.millis ?? 0;
  const late = timeoutMillis > 0 && timeoutMillis < millis;
  return new Promise((resolve, reject) => {
    const settle = (outcome: () => void): void => {
      timer.cancel();
      signal.removeEventListener('abort', abort);
      outcome();
    };
    const end = (exitCode: number): void =>
      settle(() => resolve({ exitCode, stdout: script.stdout ?? '', stderr: script.stderr ?? '' }));
    const abort = (): void => settle(() => reject(signal.reason));
    const timer = timers.at(timers.now() + (late ? timeoutMillis : millis), () =>
      late ? settle(() => reject(new ExecTimeoutError(command))) : end(script.exitCode ?? 0),
    );
    signal.addEventListener('abort', abort, { once: true });
    onExit(() => end(137));
  });
}
