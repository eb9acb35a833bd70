/** Asks a running engine to end its workloads, so that no controller replaces the Pods that `lifepod down` deletes. */
import { END_WORKLOADS_PATH } from '../../apiserver/serve-end-workloads.ts';
import type { HttpClient } from '../../client/http-client.ts';
import { queryText } from '../../client/paths.ts';
import { isApiError } from '../../machinery/status.ts';
import { sendSignal } from '../../platform/processes.ts';
import { type Patience, sendPatiently } from '../delete-patiently.ts';

/** Asks an engine of an older lifepod, which does not serve END_WORKLOADS_PATH. Its workloads do not run again after an interruption. */
const OLDER_SIGNAL = 'SIGUSR2';

/**
 * Resolves when the controllers of the engine create no more Pods, and its static Pods are ending. The request stays open until the signal
 * aborts or this process ends, even by kill -9; then the engine runs its workloads again. Rejects if the signal aborts before.
 * `gracePeriodSeconds` replaces the grace periods of static Pods.
 */
export async function askToEnd(
  client: HttpClient,
  pid: number,
  gracePeriodSeconds: number | undefined,
  patience: Patience,
): Promise<void> {
  const { signal } = patience;
  const path = END_WORKLOADS_PATH + queryText({ gracePeriodSeconds });
  const ask = async (): Promise<void> => {
    const response = await client.open(path, signal, 'POST');
    // The engine ends the response when it stops.
    response.on('error', () => undefined).resume();
  };
  await sendPatiently(ask, patience).catch((error: unknown) => {
    if (!isApiError(error, 'NotFound')) throw error;
    sendSignal(pid, OLDER_SIGNAL);
  });
  signal.throwIfAborted();
}
