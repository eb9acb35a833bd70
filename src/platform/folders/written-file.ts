/** Calls `write` and returns its result. Adds the path to an error, because the error of a failed write lacks it. */
export function namingFile<T>(path: string, write: () => T): T {
  try {
    return write();
  } catch (error) {
    throw Object.assign(error as Error, { path });
  }
}
