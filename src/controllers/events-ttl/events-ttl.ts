/**
 * Deletes Events an hour after they were last written. The times that clients put into an Event do not count for that:
 * they may be of any year.
 *
 * Reads: events. Writes: events (delete).
 * Source: the API server's --event-ttl of v1.33, 1h by default; a write begins the hour anew.
 */
import type { CoreV1Event } from '../../api/generated/types.ts';
import { createInformer } from '../../client/informer.ts';
import { isApiError } from '../../machinery/status.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import { onAbort } from '../../platform/on-abort.ts';
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

  /** By the state of the Event that was written: the next one is another object. */
  const writtenAt = new WeakMap<CoreV1Event, Millis>();
  const events = createInformer(
    eventClient,
    { log, timers, signal },
    {
      added(event) {
        writtenAt.set(event, lastWritten(event, timers.now()));
        arm(expiry(event));
      },
      // The timer is for the oldest one: a later end of this one moves nothing.
      updated: (event) => void writtenAt.set(event, timers.now()),
    },
  );
  const expiry = (event: CoreV1Event): Millis => (writtenAt.get(event) ?? timers.now()) + TTL_MILLIS;

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

  onAbort(signal, () => timer?.timer.cancel());
  await events.synced;
}

/**
 * When an Event that was not seen before was last written: the server stamps only its creation. What its client says of
 * repetitions since then is believed, so that an Event that repeats does not expire early after a restart of the engine.
 */
function lastWritten({ series, lastTimestamp, eventTime, metadata }: CoreV1Event, now: Millis): Millis {
  const created = parseTime(metadata.creationTimestamp) ?? now;
  const said = [series?.lastObservedTime, lastTimestamp, eventTime].map((time) => parseTime(time) ?? created);
  return Math.max(created, Math.min(now, Math.max(...said)));
}
