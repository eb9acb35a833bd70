/** What is said of a failure that ends a command. */
import { isApiError } from '../machinery/status.ts';
import { UserError } from '../platform/files.ts';
import { CommandError } from '../platform/processes.ts';
import { StorageFullError } from '../store/store.ts';

/** By the code of a call to the system. */
const OF_CALLS: Readonly<Record<string, string>> = {
  ENOSPC: 'cannot be written: the disk is full; free some space and try again',
  EDQUOT: 'cannot be written: the quota of the disk is used up; free some space and try again',
  EROFS: 'cannot be written: the disk is mounted read-only; mount it for writing, or choose another --data-dir',
  EACCES: 'is not for this user to open: run lifepod with sudo',
};

/** One sentence where it is of a kind that a user can answer; where it is not, where in lifepod it comes from as well. */
export function failureText(error: unknown): string {
  const { name, message, code, path, stack } = error as NodeJS.ErrnoException;
  if (error instanceof UserError || error instanceof StorageFullError || isApiError(error)) return message;
  // By its name: its module brings gRPC along.
  if (name === 'RuntimeCallError' || name === 'OutcomeUnknownError')
    return `the container runtime refuses, or does not answer: ${message}`;
  if (error instanceof CommandError) return oneLine(message) + rightsFor(message);
  const ofCall = OF_CALLS[code ?? ''];
  return ofCall === undefined ? (stack ?? String(error)) : `${path ?? 'a file'} ${ofCall}`;
}

const oneLine = (text: string): string => text.replace(/\s*\n\s*/g, '; ');

const rightsFor = (message: string): string =>
  /not permitted/i.test(message) ? '; lifepod needs all rights of root (see capabilities(7)), also on networks' : '';
