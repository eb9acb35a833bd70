/** What is said of a failure that ends a command. */
import { isApiError } from '../machinery/status.ts';
import { UserError } from '../platform/files.ts';
import { StorageFullError } from '../store/store.ts';

/** By the code of a call to the system: what is the matter, and what to do. */
const CAUSES: Readonly<Record<string, readonly [cause: string, answer: string]>> = {
  ENOSPC: ['the disk is full', 'free some space and try again'],
  EDQUOT: ['the quota of the disk is used up', 'free some space and try again'],
  EROFS: ['the disk is mounted read-only', 'mount it for writing, or choose another --data-dir'],
};

/** One sentence where it is of a kind that a user can answer; where it is not, where in lifepod it comes from as well. */
export function failureText(error: unknown): string {
  if (error instanceof UserError || error instanceof StorageFullError || isApiError(error)) return error.message;
  const { code, path, stack } = error as NodeJS.ErrnoException;
  const [cause, answer] = CAUSES[code ?? ''] ?? [];
  if (cause === undefined) return stack ?? String(error);
  return `${path === undefined ? 'a file' : path} cannot be written: ${cause}; ${answer}`;
}
