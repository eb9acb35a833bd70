/**
 * Handles the signals to a session: the first one ends the session, the second one ends its Pods at once, and after the third one the
 * process exits without waiting.
 */
import { isSessionEngine } from '../../platform/files.ts';
import { isDiskFull } from '../../platform/folders/written-file.ts';
import { hintsFor } from '../hints.ts';
import { SIGNAL_CODES } from '../signals.ts';
import { mayLeaveObjects } from './session-records.ts';

export interface Interrupts {
  readonly stop: AbortSignal;
  readonly hurry: AbortSignal;
  /** Returns the exit code of the first interruption; undefined if there was none. */
  exitCode(): number | undefined;
  /** Counts a signal, or an event with the same effect, such as a closed pipe. */
  interrupt(exitCode: number): void;
}

/** The exit code of a program that SIGPIPE has killed. */
const CLOSED_PIPE_CODE = 141;

/** Returns the exit code after an error of standard output. */
export const outputErrorCode = (error: NodeJS.ErrnoException): number =>
  isDiskFull(error) || error.code === 'EFBIG' ? 1 : CLOSED_PIPE_CODE;

/** Calls `leave` with the first exit code at the third interruption and at each later one. */
export function createInterrupts(leave: (exitCode: number) => void): Interrupts {
  const [stop, hurry] = [new AbortController(), new AbortController()];
  let first: number | undefined;
  return {
    stop: stop.signal,
    hurry: hurry.signal,
    exitCode: () => first,
    interrupt(exitCode) {
      if (first === undefined) {
        first = exitCode;
        stop.abort();
      } else if (!hurry.signal.aborted) hurry.abort();
      else leave(first);
    },
  };
}

/** Returns a sentence with the commands that delete what a session has left. `left`: a noun phrase for these objects. */
export function nextDeletes(dataDir: string, left: string): string {
  const { engine, reinstall } = hintsFor({ dataDir }, process.env);
  return `the next '${engine('up FILE')}' or '${engine('down')}' deletes ${left}${reinstall}`;
}

/** Returns a sentence about what remains when a session leaves without waiting. */
export function leftBehind(dataDir: string): string {
  if (mayLeaveObjects(dataDir)) return nextDeletes(dataDir, 'what is left');
  const { engine, reinstall } = hintsFor({ dataDir }, process.env);
  const end = isSessionEngine(dataDir) ? `; '${engine('down')}' ends its engine${reinstall}` : '';
  return `nothing that the session has created is left${end}`;
}

/**
 * Passes signals, and errors of standard output, to `interrupts`. The handlers remain installed, so that no signal ends the process early.
 */
export function handleSignals(interrupts: Interrupts): void {
  for (const [name, code] of Object.entries(SIGNAL_CODES)) {
    process.on(name, () => {
      // The kernel and the shell both send SIGHUP when a terminal is closed.
      if (name !== 'SIGHUP' || interrupts.exitCode() === undefined) interrupts.interrupt(code);
    });
  }
  // A closed terminal or pipe must not end the process before it has deleted its objects.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  // The program that reads the logs has ended, or the disk is full.
  process.stdout.once('error', (error) => {
    if (interrupts.exitCode() === undefined) interrupts.interrupt(outputErrorCode(error));
  });
}
