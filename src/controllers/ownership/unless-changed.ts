/** Writes of controllers that another client may overtake. */
import { isApiError } from '../../machinery/status.ts';

/** Returns undefined if the object has been deleted or changed meanwhile: its change queues its owner again. */
export async function unlessChanged<T>(write: Promise<T>): Promise<T | undefined> {
  try {
    return await write;
  } catch (error) {
    if (isApiError(error, 'NotFound') || isApiError(error, 'Conflict')) return undefined;
    throw error;
  }
}
