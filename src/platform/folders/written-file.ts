/**
 * Calls `write`, which writes to the open file at `path`, and returns its result. If the call fails, adds the path to the error, because
 * the error of a failed write does not include it.
 */
export function namingFile<T>(path: string, write: () => T): T {
  try {
    return write();
  } catch (error) {
    throw Object.assign(error as Error, { path });
  }
}
