/**
 * The outage in which no agent ran does not count towards the grace periods of terminating Pods. The sign of life is the renewal of the
 * node's Lease, so the Lease must be read before this agent renews it.
 */

import type { Lease } from '../../api/generated/types.ts';
import { LEASES } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { isApiError } from '../../machinery/status.ts';
import type { Millis } from '../../machinery/time.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import { LEASE_NAMESPACE } from './node-lease.ts';

/** More than a reachable API needs, but short, because static Pods wait for the result. */
const ANSWERED_WITHIN_MILLIS = 1000;

/**
 * Resolves to the time at which the previous agent last renewed the node's Lease; undefined if it never did, or the Lease cannot be read in
 * time.
 */
export async function readLastSignOfLife(
  { client, timers, log }: { client: Client; timers: Timers; log: Log },
  nodeName: string,
): Promise<Millis | undefined> {
  const late = Promise.withResolvers<never>();
  const timer = timers.at(timers.now() + ANSWERED_WITHIN_MILLIS, () =>
    late.reject(new Error('the API does not answer')),
  );
  try {
    const lease = await Promise.race([client.resource<Lease>(LEASES).get(nodeName, LEASE_NAMESPACE), late.promise]);
    const renewed = Date.parse(lease.spec?.renewTime ?? '');
    return Number.isNaN(renewed) ? undefined : renewed;
  } catch (error) {
    if (!isApiError(error, 'NotFound'))
      log.warn(
        'cannot determine how long no agent ran: this time counts towards the grace periods of terminating Pods',
        {
          error: String(error),
        },
      );
    return undefined;
  } finally {
    timer.cancel();
  }
}

export interface OutageClock {
  /** Returns the outage for a worker that starts now, or an empty object if there was none. */
  of(): { outage?: { from: Millis; to: Millis } };
  /** Called when all Pods from before this agent have workers. For workers that start later, the outage ends with this call. */
  end(): void;
}

/**
 * `from`: when the previous agent was last alive, according to its clock. There is no outage if `from` is undefined, or in the future
 * according to the clock of this agent.
 */
export function createOutageClock(from: Millis | undefined, timers: Pick<Timers, 'now'>): OutageClock {
  let end: Millis | undefined;
  return {
    of() {
      const to = end ?? timers.now();
      return from === undefined || from >= to ? {} : { outage: { from, to } };
    },
    end() {
      end = timers.now();
    },
  };
}
