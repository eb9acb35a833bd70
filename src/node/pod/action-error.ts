import { OutcomeUnknownError } from '../../runtime/runtime.ts';

/** A failure with the reason that the waiting container shows. */
export class ActionError extends Error {
  override readonly name = 'ActionError';
  readonly reason: string;
  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** For a catch of a call of the runtime: makes its error one with the reason. An unknown outcome is no failure, and stays. */
export function failsWith(reason: string, say: (why: string) => string = (why) => why): (error: unknown) => never {
  return (error) => {
    if (error instanceof OutcomeUnknownError) throw error;
    throw new ActionError(reason, say(error instanceof Error ? error.message : String(error)));
  };
}
