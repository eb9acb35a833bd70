import { expect, test } from 'vitest';
import type { RuntimeEvent } from '../runtime.ts';
import { shareEvents } from './shared-events.ts';

/** A stream whose events the test sends. */
function streamed() {
  const opened: { tell: (event: RuntimeEvent) => void; cut: () => void; signal: AbortSignal }[] = [];
  const events = shareEvents((tell, cut, signal) => {
    opened.push({ tell, cut, signal });
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve());
    });
  });
  const listen = () => {
    const [told, end]: [RuntimeEvent[], AbortController] = [[], new AbortController()];
    const ended = events((event) => told.push(event), end.signal);
    const leave = (): Promise<void> => {
      end.abort();
      return ended;
    };
    return { told, leave };
  };
  return { opened, listen };
}
const resync: RuntimeEvent = { type: 'resync' };
const changed: RuntimeEvent = { type: 'changed', podUid: 'uid' };

test('all listeners share one stream; a listener that joins later gets a resync at once', () => {
  const { opened, listen } = streamed();
  const first = listen();
  opened[0]?.tell(resync);
  const second = listen();
  opened[0]?.tell(changed);
  expect(opened).toHaveLength(1);
  expect([first.told, second.told]).toEqual([
    [resync, changed],
    [resync, changed],
  ]);
});

test('a listener that joins while the stream is cut gets a resync once the stream is open again', () => {
  const { opened, listen } = streamed();
  listen();
  opened[0]?.tell(resync);
  opened[0]?.cut();
  const second = listen();
  expect(second.told).toEqual([]);
  opened[0]?.tell(resync);
  expect(second.told).toEqual([resync]);
});

test('a listener gets no event once its signal has aborted', () => {
  const { opened, listen } = streamed();
  const [first, second] = [listen(), listen()];
  void first.leave();
  opened[0]?.tell(changed);
  expect([first.told, second.told]).toEqual([[], [changed]]);
});

test('the stream ends with its last listener, and the next one opens another', async () => {
  const { opened, listen } = streamed();
  const [first, second] = [listen(), listen()];
  await first.leave();
  expect(opened[0]?.signal.aborted).toBe(false);
  await second.leave();
  expect(opened[0]?.signal.aborted).toBe(true);
  opened[0]?.tell(changed);
  expect([first.told, second.told]).toEqual([[], []]);
  listen();
  expect(opened).toHaveLength(2);
});
