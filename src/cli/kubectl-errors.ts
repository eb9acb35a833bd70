/** Failures in the words of kubectl, for the commands that do what one of kubectl's does. */
import { isApiError } from '../machinery/status.ts';
import { UserError } from '../platform/files.ts';

/** Undefined: not a failure that a user can answer. */
export function kubectlErrorText(error: unknown): string | undefined {
  if (error instanceof UserError) return `error: ${error.message}`;
  if (isApiError(error)) return `Error from server (${error.reason || 'Unknown'}): ${error.message}`;
  return undefined;
}
