/** Composes the error messages of `lifepod logs`, which are worded like kubectl's. */
import { isApiError } from '../machinery/status.ts';
import { UserError } from '../platform/files.ts';

/** Returns the message for the error; undefined if it is neither a UserError nor an API error. */
export function kubectlErrorText(error: unknown): string | undefined {
  if (error instanceof UserError) return `error: ${error.message}`;
  if (isApiError(error)) return `Error from server (${error.reason || 'Unknown'}): ${error.message}`;
  return undefined;
}
