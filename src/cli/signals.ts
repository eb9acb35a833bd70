/** The signals that interrupt a command, and the exit codes that they cause. */
import { UserError } from '../platform/files.ts';

/** The exit codes of shells for programs that a signal has ended. */
export const SIGNAL_CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

export type InterruptingSignal = keyof typeof SIGNAL_CODES;

/** The error of a command that a signal has interrupted. The command exits with the code of the signal. */
export class InterruptedError extends UserError {
  readonly signal: InterruptingSignal;
  readonly exitCode: number;

  constructor(message: string, signal: InterruptingSignal) {
    super(message);
    this.signal = signal;
    this.exitCode = SIGNAL_CODES[signal];
  }
}

export const exitCodeOf = (error: unknown): number => (error instanceof InterruptedError ? error.exitCode : 1);
