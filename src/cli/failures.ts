/** Composes the error message of a command that failed. */
import { isApiError } from '../machinery/status.ts';
import { UserError } from '../platform/files.ts';
import { CommandError } from '../platform/processes.ts';
import { StorageFullError } from '../store/store.ts';

/** Messages by the error code of a system call. The path of the file is printed before the message. */
const SYSTEM_ERRORS: Readonly<Record<string, string>> = {
  ENOSPC: 'cannot be written: the disk is full; free some space and try again',
  EDQUOT: 'cannot be written: the disk quota is exceeded; free some space and try again',
  EROFS: 'cannot be written: the disk is mounted read-only; mount it for writing, or choose another --data-dir',
  EACCES: 'cannot be opened: permission denied; run lifepod with sudo',
};

/** Returns one sentence if the error is of an expected kind; otherwise, returns the message with the stack trace. */
export function failureText(error: unknown): string {
  const { name, message, code, path, stack } = error as NodeJS.ErrnoException;
  if (error instanceof UserError || error instanceof StorageFullError || isApiError(error)) return message;
  // These errors are recognized by their names, because importing the class RuntimeCallError would load gRPC.
  if (name === 'RuntimeCallError' || name === 'OutcomeUnknownError')
    return `the container runtime failed or did not answer: ${message}`;
  if (error instanceof CommandError) return oneLine(message) + rightsFor(message);
  const systemError = SYSTEM_ERRORS[code ?? ''];
  return systemError === undefined ? (stack ?? String(error)) : `${path ?? 'a file'} ${systemError}`;
}

const oneLine = (text: string): string => text.replace(/\s*\n\s*/g, '; ');

const rightsFor = (message: string): string =>
  /not permitted/i.test(message)
    ? '; lifepod needs all capabilities of root, including CAP_NET_ADMIN (see capabilities(7))'
    : '';
