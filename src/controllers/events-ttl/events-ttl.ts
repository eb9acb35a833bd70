/**
 * Deletes Events an hour after they were last written. The timestamps that clients put into an Event can be arbitrary. Only lastWritten()
 * uses them, for an Event that the informer receives for the first time.
 *
 * Reads: events. Writes: events (delete).
 * Source: the API server's --event-ttl of v1.33, which is 1h by default and counts from the last write.
 */
import type { CoreV1Event } from '../../api/generated/types.ts';
import { EVENTS } from '../../api/resources.ts';
import { isApiError } from '../../machinery/status.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Timer } from '../../platform/platform.ts';
import type { ControllerOptions } from '../controller.ts';

const TTL_MILLIS = 60 * 60 * 1000;
/** The minimum time between two sweeps, so that Events that expire soon after each other share a sweep. */
const SWEEP_MILLIS = 60 * 1000;

export async function startEventsTtl(options: ControllerOptions): Promise<void> {
  const { client, informers, timers, log, signal } = options;
  const eventClient = client.resource<CoreV1Event>(EVENTS);
  let timer: { at: Millis; timer: Timer } | undefined;

  /** The keys are versions of Events: the informer has a new object for each version. */
  const writtenAt = new WeakMap<CoreV1Event, Millis>();
  const events = informers.follow<CoreV1Event>(
    EVENTS,
    { signal },
    {
      added(event) {
        writtenAt.set(event, lastWritten(event, timers.now()));
        arm(expiry(event));
      },
      // arm() is not needed: an update only delays the expiry of the Event.
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
      if (isApiError(error, 'NotFound')) return;
      // Do not log a conflict: the Event was written again meanwhile, and expires later.
      if (!isApiError(error, 'Conflict'))
        log.warn('events-ttl: cannot delete an event', { name, namespace, error: (error as Error).message });
      arm(timers.now() + SWEEP_MILLIS);
    }
  }

  onAbort(signal, () => timer?.timer.cancel());
  await events.synced;
}

/**
 * Returns when an Event that the informer receives for the first time was last written. The API stores only the time of the creation, so a
 * later timestamp of the client counts, but at most the current time. Otherwise a repeated Event would expire too early after a restart of
 * the engine.
 */
function lastWritten({ series, lastTimestamp, eventTime, metadata }: CoreV1Event, now: Millis): Millis {
  const created = parseTime(metadata.creationTimestamp) ?? now;
  const reported = [series?.lastObservedTime, lastTimestamp, eventTime].map((time) => parseTime(time) ?? created);
  return Math.max(created, Math.min(now, Math.max(...reported)));
}
