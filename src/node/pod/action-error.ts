import { OutcomeUnknownError } from '../../runtime/runtime.ts';

/** `reason`: the reason of the container's waiting state. */
export class ActionError extends Error {
  override readonly name = 'ActionError';
  readonly reason: string;
  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * Returns a handler for .catch() that rethrows the error as an ActionError with this reason. An OutcomeUnknownError is not a failure and is
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
