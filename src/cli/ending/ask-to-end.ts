/** Asks a running engine to end its workloads, so that no controller replaces the Pods that `lifepod down` deletes. */
import { finished } from 'node:stream/promises';
import { END_WORKLOADS_PATH } from '../../apiserver/serve-end-workloads.ts';
import type { HttpClient } from '../../client/http-client.ts';
import { queryText } from '../../client/paths.ts';
import { isApiError } from '../../machinery/status.ts';
import { pause } from '../../platform/pause.ts';
import { sendSignal } from '../../platform/processes.ts';
import { type Patience, sendPatiently } from '../delete-patiently.ts';

/**
 * Asks an engine of an older lifepod, which does not serve END_WORKLOADS_PATH, to end its workloads. If `lifepod down` is interrupted, such
 * an engine does not run its workloads again.
 */
const OLDER_SIGNAL = 'SIGUSR2';

/** How long to wait after a lost connection, so that connections that are lost immediately do not flood the engine with requests. */
const LOST_MILLIS = 200;

export interface Asking extends Patience {
  /** Called when the connection was lost and the engine refuses another request: its workloads run again. */
  refused(error: unknown): void;
}

/**
 * Resolves when the controllers of the engine create no more Pods, and its static Pods are ending. The request stays open until the signal
 * aborts or this process ends, even by kill -9; then the engine runs its workloads again. If the connection is lost while the request is
 * open, asks again. Rejects if the signal aborts before the engine answers. `gracePeriodSeconds` replaces the grace periods of static Pods.
 */
export async function askToEnd(
  client: HttpClient,
  pid: number,
  gracePeriodSeconds: number | undefined,
  asking: Asking,
): Promise<void> {
  const { timers, signal, refused } = asking;
  const path = END_WORKLOADS_PATH + queryText({ gracePeriodSeconds });
  const ask = async (): Promise<void> => {
    const response = await client.open(path, signal, 'POST');
    // An engine that stops ends the response without an error.
    finished(response.resume()).catch(() => askAgain().catch(refused));
  };
  const askAgain = async (): Promise<void> => {
    await pause(timers, LOST_MILLIS, signal);
    await sendPatiently(ask, asking);
  };
  await sendPatiently(ask, asking).catch((error: unknown) => {
    if (!isApiError(error, 'NotFound')) throw error;
    sendSignal(pid, OLDER_SIGNAL);
  });
  signal.throwIfAborted();
}
