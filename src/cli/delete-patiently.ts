import { backOffMillis } from '../client/back-off.ts';
import type { ResourceClient } from '../client/client.ts';
import type { KubeObject } from '../machinery/meta.ts';
import { type ApiError, isApiError } from '../machinery/status.ts';
import { pause } from '../platform/pause.ts';
import type { Timers } from '../platform/platform.ts';
import type { DeleteOptions } from '../ports/backend.ts';

const RETRY_BASE_MILLIS = 200;
const RETRY_MAX_MILLIS = 10_000;

export interface Patience {
  timers: Timers;
  /** An abort ends the attempts, which then count as successful. */
  signal: AbortSignal;
  /** Reports the error if the first attempt fails with a 5xx error. */
  failed(error: ApiError): void;
}

/**
 * Deletes the object. Retries after 5xx errors, which mean for example that the server's disk is full or that the connection was lost.
 * Resolves when the server has accepted the request, if the object does not exist, and when `signal` aborts. Rejects with any other error.
 */
export const deletePatiently = <T extends KubeObject>(
  resource: ResourceClient<T>,
  { name, namespace }: { name: string; namespace?: string },
  options: DeleteOptions,
  patience: Patience,
): Promise<void> =>
  sendPatiently(async () => {
    try {
      await resource.delete(name, namespace, options);
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
    }
  }, patience);

/** Calls `send` until it resolves or `signal` aborts. Rejects with an error of `send` other than 5xx. */
export async function sendPatiently(send: () => Promise<unknown>, { timers, signal, failed }: Patience): Promise<void> {
  for (let failures = 1; !signal.aborted; failures++) {
    try {
      await send();
      return;
    } catch (error) {
      if (!isApiError(error) || error.code < 500) throw error;
      // An abort ends the request with an error as well.
      if (failures === 1 && !signal.aborted) failed(error);
    }
    await pause(timers, backOffMillis(failures, RETRY_BASE_MILLIS, RETRY_MAX_MILLIS), signal);
  }
}
