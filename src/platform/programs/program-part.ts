import { fileURLToPath } from 'node:url';
import { internalError } from '../../machinery/status.ts';

/** The folder of the clone or of the npm package. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '');
const MISSING: readonly unknown[] = ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND', 'ENOENT'];

/**
 * Resolves with the result of `load`. A running engine loads parts of its program only when it needs them, and the npm package may have
 * been removed or replaced by then: rejects with 500 InternalError and what to do if a file is missing. A failure is not cached, so that a
 * later call succeeds if the file is back.
 */
export async function programPart<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (!MISSING.includes(code)) throw error;
    throw internalError(
      `the program of lifepod in ${ROOT} was removed or replaced while the engine runs: install lifepod again, and restart the engine (${message})`,
    );
  }
}
