const PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  ENOTDIR: 'does not exist',
  EISDIR: 'is a folder',
  EACCES: 'cannot be read: permission denied',
};

/** Returns a text that follows the path of the file in a message, such as `does not exist`. `error`: the error of a system call. */
export function readProblem(error: unknown): string {
  const { code = '', message } = error as Error & { code?: string };
  return PROBLEMS[code] ?? `cannot be read: ${message}`;
}
