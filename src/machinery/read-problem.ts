/** Describes why a file cannot be read, for messages that name the file. */

const PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  ENOTDIR: 'does not exist',
  EISDIR: 'is a folder',
  EACCES: 'cannot be read: permission denied',
};

/** Returns the end of a sentence that begins with the path of the file, such as `does not exist`. `error`: the error of a system call. */
export function readProblem(error: unknown): string {
  const { code = '', message } = error as Error & { code?: string };
  return PROBLEMS[code] ?? `cannot be read: ${message}`;
}
