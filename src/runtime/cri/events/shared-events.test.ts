import { expect, test } from 'vitest';
import type { RuntimeEvent } from '../../runtime.ts';
import { shareEvents } from './shared-events.ts';

/**
 * Returns `listen`, which adds a listener to a shared stream, and `opened`: for each opening of the stream, the functions that send an
 * event and cut the stream, and the signal that closes the stream.
 */
function streamed() {
  const opened: { send: (event: RuntimeEvent) => void; cut: () => void; signal: AbortSignal }[] = [];
  const events = shareEvents((send, cut, signal) => {
    opened.push({ send, cut, signal });
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve());
    });
  });
  const listen = () => {
    const [received, end]: [RuntimeEvent[], AbortController] = [[], new AbortController()];
    const ended = events((event) => received.push(event), end.signal);
    const leave = (): Promise<void> => {
      end.abort();
      return ended;
    };
    return { received, leave };
  };
  return { opened, listen };
}
const resync: RuntimeEvent = { type: 'resync' };
const changed: RuntimeEvent = { type: 'changed', podUid: 'uid' };

test('all listeners share one event stream, and a listener that joins later immediately gets a resync', () => {
  const { opened, listen } = streamed();
  const first = listen();
  opened[0]?.send(resync);
  const second = listen();
  opened[0]?.send(changed);
  expect(opened).toHaveLength(1);
  expect([first.received, second.received]).toEqual([
    [resync, changed],
    [resync, changed],
  ]);
});

test('a listener that joins while the event stream is cut gets a resync once the stream is open again', () => {
  const { opened, listen } = streamed();
  listen();
  opened[0]?.send(resync);
  opened[0]?.cut();
  const second = listen();
  expect(second.received).toEqual([]);
  opened[0]?.send(resync);
  expect(second.received).toEqual([resync]);
});

test('a listener of runtime events gets no event once its signal has aborted', () => {
  const { opened, listen } = streamed();
  const [first, second] = [listen(), listen()];
  void first.leave();
  opened[0]?.send(changed);
  expect([first.received, second.received]).toEqual([[], [changed]]);
});

test('the event stream is closed after its last listener has left, and the next listener opens a new stream', async () => {
  const { opened, listen } = streamed();
  const [first, second] = [listen(), listen()];
  await first.leave();
  expect(opened[0]?.signal.aborted).toBe(false);
  await second.leave();
  expect(opened[0]?.signal.aborted).toBe(true);
  opened[0]?.send(changed);
  expect([first.received, second.received]).toEqual([[], []]);
  listen();
  expect(opened).toHaveLength(2);
});
