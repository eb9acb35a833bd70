/**
 * Deletes Events an hour after they were last written.
 *
 * Reads: events. Writes: events (delete).
 * Source: the API server's --event-ttl of v1.33, 1h by default; a write begins the hour anew.
 */
import type { CoreV1Event } from '../../api/generated/types.ts';
import { createInformer } from '../../client/informer.ts';
import { isApiError } from '../../machinery/status.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import type { Timer } from '../../platform/platform.ts';
import type { ControllerOptions } from '../controller.ts';
import { EVENTS } from '../resources.ts';

const TTL_MILLIS = 60 * 60 * 1000;
/** Events that expire within this of each other go together. */
const SWEEP_MILLIS = 60 * 1000;

export async function startEventsTtl(options: ControllerOptions): Promise<void> {
  const { client, timers, log, signal } = options;
  const eventClient = client.resource<CoreV1Event>(EVENTS);
  /** For the oldest Event; none where there are no Events. */
  let timer: { at: Millis; timer: Timer } | undefined;

  const events = createInformer(eventClient, { log, timers, signal }, { added: (event) => arm(expiry(event)) });
  const expiry = (event: CoreV1Event): Millis => (lastWritten(event) ?? timers.now()) + TTL_MILLIS;

  function arm(at: Millis): void {
    if (signal.aborted || (timer !== undefined && timer.at <= at)) return;
    timer?.timer.cancel();
    timer = { at, timer: timers.at(at, () => void sweep()) };
  }

  async function sweep(): Promise<void> {
    timer = undefined;
    const now = timers.now();
    const left: Millis[] = [];
    for (const event of events.list()) {
      if (signal.aborted) return;
      if (expiry(event) <= now) await remove(event);
      else left.push(expiry(event));
    }
    const next = left.reduce((least, at) => Math.min(least, at), Number.POSITIVE_INFINITY);
    if (left.length > 0) arm(Math.max(next, now + SWEEP_MILLIS));
  }

  async function remove({ metadata: { name, namespace, uid, resourceVersion } }: CoreV1Event): Promise<void> {
    try {
      await eventClient.delete(name, namespace, { preconditions: { uid, resourceVersion } });
    } catch (error) {
      if (isApiError(error, 'NotFound') || isApiError(error, 'Conflict')) return;
      log.warn('events-ttl: cannot delete an event', { name, namespace, error: (error as Error).message });
      arm(timers.now() + SWEEP_MILLIS);
    }
  }

  signal.addEventListener('abort', () => timer?.timer.cancel());
  await events.synced;
}

function lastWritten({ series, lastTimestamp, eventTime, metadata }: CoreV1Event): Millis | undefined {
  const times = [series?.lastObservedTime, lastTimestamp, eventTime, metadata.creationTimestamp];
  return times.map(parseTime).find((time) => time !== undefined);
}
