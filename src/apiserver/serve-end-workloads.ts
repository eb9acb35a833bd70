/** Serves the path at which `lifepod down` asks a running engine to end its workloads. Upstream has no such path. */
import { badRequest, methodNotAllowed } from '../machinery/status.ts';
import { aborted } from '../platform/on-abort.ts';
import { type Exchange, startAnswer } from './http/exchange.ts';

export const END_WORKLOADS_PATH = '/end-workloads';

/**
 * Requests the end of the workloads, and withdraws the request when `until` aborts. `gracePeriodSeconds` replaces the grace periods of
 * static Pods.
 */
export type EndWorkloads = (gracePeriodSeconds: number | undefined, until: AbortSignal) => void;

/**
 * Responds to a POST with the headers when the controllers create no more Pods. The response ends only with the server: a client that
 * disconnects, for example because it was killed, withdraws the request. Rejects with 405 for other methods, and with 400 if the parameter
 * gracePeriodSeconds is not a whole number.
 */
export async function serveEndWorkloads(exchange: Exchange, endWorkloads: EndWorkloads): Promise<void> {
  const { method, query, response, signal, outgoing } = exchange;
  if (method !== 'POST') throw methodNotAllowed();
  const seconds = query.get('gracePeriodSeconds') ?? undefined;
  if (seconds !== undefined && !/^\d{1,9}$/.test(seconds))
    throw badRequest(`gracePeriodSeconds: ${JSON.stringify(seconds)} is not a whole number of seconds`);
  exchange.endWithServer();
  endWorkloads(seconds === undefined ? undefined : Number(seconds), signal);
  startAnswer(exchange, 200, { 'Content-Type': 'text/plain' });
  response.flushHeaders();
  await aborted(signal);
  outgoing.end();
}
