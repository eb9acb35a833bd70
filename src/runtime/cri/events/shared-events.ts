/**
 * Shares one stream of Pod events among all listeners of a connection, because each stream causes work for the runtime. A listener that is
 * added after the stream's resync gets a resync of its own, because it has missed the earlier events.
 */

import { onAbort } from '../../../platform/on-abort.ts';
import type { RuntimeEvent } from '../../runtime.ts';

type Listener = (event: RuntimeEvent) => void;

/** Calls the listener with each event until the signal aborts. `cut`: called when the stream has ended and will be reopened. */
export type Follow = (listener: Listener, cut: () => void, signal: AbortSignal) => Promise<void>;

interface Stream {
  listeners: Set<Listener>;
  /** Whether there has been a resync since the stream was last opened or cut. */
  synced: boolean;
  end: AbortController;
  ended: Promise<void>;
}

/**
 * Returns a function that adds a listener, removes it when `signal` aborts, and then resolves. The stream is open as long as it has a
 * listener.
 */
export function shareEvents(follow: Follow): (listener: Listener, signal: AbortSignal) => Promise<void> {
  let current: Stream | undefined;
  const open = (): Stream => {
    const [listeners, end] = [new Set<Listener>(), new AbortController()];
    const stream: Stream = { listeners, end, synced: false, ended: Promise.resolve() };
    const sendAll = (event: RuntimeEvent): void => {
      if (event.type === 'resync') stream.synced = true;
      for (const listener of [...listeners]) listener(event);
    };
    const cut = (): void => {
      stream.synced = false;
    };
    stream.ended = follow(sendAll, cut, end.signal);
    return stream;
  };
  return async (listener, signal) => {
    if (signal.aborted) return;
    const stream = current ?? open();
    current = stream;
    const own: Listener = (event) => {
      if (!signal.aborted) listener(event);
    };
    stream.listeners.add(own);
    const leave = (): void => {
      stream.listeners.delete(own);
      if (stream.listeners.size > 0) return;
      if (current === stream) current = undefined;
      stream.end.abort();
    };
    const left = new Promise<void>((resolve) => {
      onAbort(signal, resolve);
    });
    if (stream.synced) listener({ type: 'resync' });
    try {
      await Promise.race([left, stream.ended]);
    } finally {
      leave();
      if (stream.listeners.size === 0) await stream.ended;
    }
  };
}
