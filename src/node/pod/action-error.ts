import { OutcomeUnknownError } from '../../runtime/runtime.ts';

/** The failure of an action, with the reason for the container's waiting state. */
export class ActionError extends Error {
  override readonly name = 'ActionError';
  readonly reason: string;
  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * Returns a handler for .catch() of a runtime call that rethrows the error as an ActionError with this reason. `formatMessage` makes
 * its message from the error's message; by default, the message is unchanged. An OutcomeUnknownError is not a failure and is
 * rethrown unchanged.
 */
export function failsWith(
  reason: string,
  formatMessage: (cause: string) => string = (cause) => cause,
): (error: unknown) => never {
  return (error) => {
    if (error instanceof OutcomeUnknownError) throw error;
    throw new ActionError(reason, formatMessage(messageOf(error)));
  };
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
