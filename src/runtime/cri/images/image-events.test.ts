import { expect, test, vi } from 'vitest';
import { silentLog } from '../../../platform/silent-log.ts';
import { createVirtualTimers } from '../../../platform/virtual-timers.ts';
import type { ImageChange } from '../../runtime.ts';
import { type Connection, RuntimeCallError, type RuntimeErrorCode } from '../connection.ts';
import { followImages } from './image-events.ts';

type Listener = (message: object) => void;

/** The test writes and ends the runtime's stream of events. */
function start(...present: string[]) {
  const images = new Set(present);
  const timers = createVirtualTimers();
  const stop = new AbortController();
  const changes: (ImageChange | undefined)[] = [];
  let [subscriptions, looks] = [0, 0];
  let onMessage: Listener = () => undefined;
  let end: (error: Error) => void = () => undefined;
  const connection = {
    unary: async (_method: string, request: { image: { image: string } }) => {
      looks++;
      const { image } = request.image;
      return {
        image: images.has(image)
          ? { id: image, repoTags: [image], repoDigests: [], size: 1, uid: null, username: '' }
          : null,
      };
    },
    unaryWhenReachable: async () => ({}),
    decode: (_type: string, bytes: Buffer) => ({ name: bytes.toString() }),
    stream: (_method: string, _request: object, listener: Listener, signal: AbortSignal) => {
      subscriptions++;
      onMessage = listener;
      return new Promise((_resolve, reject) => {
        end = reject;
        signal.addEventListener('abort', () => reject(signal.reason as Error));
      });
    },
  } as unknown as Connection;
  const followed = followImages({ connection, timers, log: silentLog }, (change) => changes.push(change), stop.signal);
  return {
    images,
    timers,
    changes,
    looks: () => looks,
    subscriptions: () => subscriptions,
    event: (topic: string, name: string) => onMessage({ topic, event: { value: Buffer.from(name) } }),
    cut: (code: RuntimeErrorCode) => end(new RuntimeCallError(code, 'cut')),
    followed,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await followed;
    },
  };
}
/** Resolves when all promises that do not wait for a timer have settled. */
const settle = (): Promise<void> => new Promise(setImmediate);

test('a new and a removed image are reported once CRI shows the change', async () => {
  await using runtime = start('old:1');
  await vi.waitFor(() => expect(runtime.changes).toEqual([undefined]));
  runtime.event('/images/create', 'new:1');
  runtime.event('/images/delete', 'old:1');
  await settle();
  expect(runtime.changes).toEqual([undefined]);
  runtime.images.add('new:1');
  runtime.images.delete('old:1');
  runtime.timers.advance(10);
  await settle();
  expect(runtime.changes).toEqual([undefined, { name: 'new:1', present: true }, { name: 'old:1', present: false }]);
});

test('events of the same change are looked up once, and events of IDs never', async () => {
  await using runtime = start();
  await vi.waitFor(() => expect(runtime.changes).toEqual([undefined]));
  for (const topic of ['/images/create', '/images/update']) runtime.event(topic, 'new:1');
  runtime.event('/images/create', 'sha256:abc');
  await settle();
  expect(runtime.looks()).toBe(1);
});

test('a change that CRI does not show within 5 s is not reported', async () => {
  await using runtime = start();
  await vi.waitFor(() => expect(runtime.changes).toEqual([undefined]));
  runtime.event('/images/create', 'new:1');
  await runtime.timers.run(() => false, runtime.timers.now() + 6000);
  // CRI is queried every 10 ms until more than 5 s have passed: at 0, 10, …, 5000 and 5010 ms.
  expect(runtime.looks()).toBe(502);
  runtime.images.add('new:1');
  await runtime.timers.run(() => false, runtime.timers.now() + 1000);
  expect(runtime.changes).toEqual([undefined]);
});

test('after a cut of the stream, the runtime is subscribed again and missed changes are reported as undefined', async () => {
  await using runtime = start();
  await vi.waitFor(() => expect(runtime.changes).toEqual([undefined]));
  runtime.cut('Unavailable');
  await runtime.timers.run(() => runtime.subscriptions() === 2, runtime.timers.now() + 60_000);
  await vi.waitFor(() => expect(runtime.changes).toEqual([undefined, undefined]));
});

test("a runtime without containerd's events is not subscribed again", async () => {
  await using runtime = start();
  runtime.cut('Unimplemented');
  await runtime.followed;
  expect(runtime.subscriptions()).toBe(1);
});
