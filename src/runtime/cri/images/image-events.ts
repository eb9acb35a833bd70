/**
 * Reports images that are added, updated or removed for any reason: a pull, a loaded archive, a tag, a garbage collection. Works only with
 * containerd, because CRI has no events for images.
 *
 * Invariants:
 *  1. An image is reported as present only when CRI lists it, and as absent only when CRI no longer lists it.
 *  2. At the start and after each cut of the stream, changes may have been missed. The listener is therefore called with undefined.
 */
import type { Log, Timers } from '../../../platform/platform.ts';
import { CRI_NAMESPACE } from '../../containerd/paths.ts';
import type { ImageChange } from '../../runtime.ts';
import { type Connection, delay, hasCode, runtimeInitialized } from '../connection.ts';
import { imageStatus } from './image-service.ts';

const CONTAINERD = 'containerd.services.events.v1';
const FIRST_RECONNECT_MILLIS = 20;
const LONGEST_RECONNECT_MILLIS = 2000;
/**
 * The interval at which CRI is polled after an event. containerd's CRI plugin receives the same events, then adds or removes the images,
 * and does not report when that is done.
 */
const POLL_MILLIS = 10;
const SETTLED_WITHIN_MILLIS = 5000;

interface ImageSource {
  connection: Connection;
  log: Log;
  timers: Timers;
}

/** Calls the listener with each change that CRI shows. Resolves when `signal` aborts, or early if the runtime lacks containerd's events. */
export async function followImages(
  source: ImageSource,
  listener: (change: ImageChange | undefined) => void,
  signal: AbortSignal,
): Promise<void> {
  const { connection, log, timers } = source;
  for (let wait = FIRST_RECONNECT_MILLIS; !signal.aborted; wait = Math.min(wait * 2, LONGEST_RECONNECT_MILLIS)) {
    const cut = new AbortController();
    const either = AbortSignal.any([signal, cut.signal]);
    const began = async (): Promise<void> => {
      // containerd does not report when a subscription has begun. Once it has responded to two later calls, the subscription has begun.
      await runtimeInitialized(connection, timers, either);
      await runtimeInitialized(connection, timers, either);
      wait = FIRST_RECONNECT_MILLIS;
      listener(undefined);
    };
    began().catch(() => undefined);
    try {
      await subscribe(source, listener, either);
    } catch (error) {
      if (signal.aborted || hasCode(error, 'Unimplemented')) return;
      log.debug('the stream of image events ended; connecting again', { error: String(error) });
    } finally {
      cut.abort(new Error('the stream ended'));
    }
    await delay(wait, timers, signal).catch(() => undefined);
  }
}

function subscribe(source: ImageSource, listener: (change: ImageChange) => void, signal: AbortSignal): Promise<never> {
  const { connection } = source;
  const looking = new Set<string>();
  const onEnvelope = ({ topic, event }: { topic: string; event: { value: Buffer } | null }): void => {
    const { name } = connection.decode<{ name: string }>(`${CONTAINERD}.ImageChange`, event?.value ?? Buffer.alloc(0));
    const change: ImageChange = { name, present: !topic.endsWith('/delete') };
    const key = `${name} ${change.present}`;
    // CRI also adds an image's ID as a name of the image. The event for the image's other name is sufficient.
    if (name.startsWith('sha256:') || looking.has(key)) return;
    looking.add(key);
    settled(source, change, signal)
      .then((holds) => {
        if (holds && !signal.aborted) listener(change);
      })
      .catch((error: unknown) => source.log.debug('cannot look up an image', { ...change, error: String(error) }))
      .finally(() => looking.delete(key));
  };
  const filters = [`namespace==${CRI_NAMESPACE},topic~="^/images/(create|update|delete)$"`];
  return connection.stream(`${CONTAINERD}.Events/Subscribe`, { filters }, onEnvelope, signal);
}

/** Resolves with false if CRI does not show the change within SETTLED_WITHIN_MILLIS. */
async function settled(
  { connection, timers }: ImageSource,
  { name, present }: ImageChange,
  signal: AbortSignal,
): Promise<boolean> {
  const deadline = timers.now() + SETTLED_WITHIN_MILLIS;
  while (((await imageStatus(connection, name, signal)) !== undefined) !== present) {
    if (timers.now() > deadline) return false;
    await delay(POLL_MILLIS, timers, signal);
  }
  return true;
}
