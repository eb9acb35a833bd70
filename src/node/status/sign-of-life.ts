/**
 * When the agent before was last known to live, and thus the time in which no agent ran: it is taken out of the time that ending
 * Pods have. The sign is the node's Lease, so it is read before it is renewed.
 */
import type { Lease } from '../../api/generated/types.ts';
import { LEASES } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { isApiError } from '../../machinery/status.ts';
import type { Log, Millis, Timers } from '../../platform/platform.ts';
import { LEASE_NAMESPACE } from './node-lease.ts';

/** Longer than an API that can be reached takes; static Pods wait for it. */
const ANSWERED_WITHIN_MILLIS = 1000;

/** undefined: there was no agent, or the API does not answer. */
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
      log.warn('it is not known how long no agent ran: that time counts for Pods that end', { error: String(error) });
    return undefined;
  } finally {
    timer.cancel();
  }
}

export interface OutageClock {
  /** For a worker that starts now: it may have the time until now to make up for. */
  of(): { outage?: { from: Millis; to: Millis } };
  /** The Pods that were there have their workers; for those to come it ended now. */
  end(): void;
}

/** `from`: a time of the clock of the agent before; where that was ahead of this one, nothing is known. */
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
