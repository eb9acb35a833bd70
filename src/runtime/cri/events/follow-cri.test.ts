/** Uses a connection in memory. */
import { beforeEach, expect, test, vi } from 'vitest';
import type { Log } from '../../../platform/platform.ts';
import { createVirtualTimers, type VirtualTimers } from '../../../platform/virtual-timers.ts';
import { type Connection, RuntimeCallError } from '../connection.ts';
import { emptyFacts } from '../facts.ts';
import { ATTEMPT_LABEL } from '../labels.ts';
import type { Observer } from '../observer.ts';
import { followEvents } from './follow-events.ts';

let timers: VirtualTimers;
let opened: number[];
let send: (event: object) => void;
let cutStream: (error: Error) => void;
/** Whether each stream ends as soon as it is opened. */
let refuses: boolean;
let status: () => Promise<object>;
let reported: string[];
let cuts: number;
let warnings: number;
let end: AbortController;

const connection = {
  unaryWhenReachable: () => status(),
  stream: (method: string, _request: object, onMessage: (event: object) => void, signal: AbortSignal) => {
    expect(method).toBe('runtime.v1.RuntimeService/GetContainerEvents');
    opened.push(timers.now());
    send = onMessage;
    const gone = new Error('the stream ended');
    return new Promise((_resolve, reject) => {
      cutStream = reject;
      signal.addEventListener('abort', () => reject(signal.reason));
      if (refuses) reject(gone);
    });
  },
} as unknown as Connection;
const log: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => {
    warnings++;
  },
  error: () => undefined,
  child: () => log,
};

beforeEach(() => {
  timers = createVirtualTimers(0);
  [opened, reported, cuts, warnings, refuses] = [[], [], 0, 0, false];
  status = async () => ({});
  end = new AbortController();
});

function follow(): Promise<void> {
  const observer = {} as Observer;
  const source = { connection, facts: emptyFacts(), observer, scope: { scope: 'mine' }, log, timers };
  return followEvents(
    { ...source, runtimeName: 'cri-o' },
    (event) => reported.push(event.type === 'changed' ? event.podUid : event.type),
    () => {
      cuts++;
    },
    end.signal,
  );
}
const seen = (...expected: string[]) => vi.waitFor(() => expect(reported).toEqual(expected));
const pod = (uid: string, labels: object): object => ({ podSandboxStatus: { metadata: { uid }, labels } });

test('only events of sandboxes that this instance created are reported, and the end is not a cut', async () => {
  const followed = follow();
  await seen('resync');
  send({ podSandboxStatus: null });
  send(pod('foreign', { scope: 'mine' }));
  send(pod('other', { [ATTEMPT_LABEL]: '0', scope: 'other' }));
  send(pod('own', { [ATTEMPT_LABEL]: '0', scope: 'mine' }));
  expect(reported).toEqual(['resync', 'own']);
  end.abort(new Error('enough'));
  await followed;
  expect([opened, cuts, warnings]).toEqual([[0], 0, 0]);
});

test('a resync is sent only once the runtime has responded to two calls', async () => {
  const responses = [Promise.withResolvers<object>(), Promise.withResolvers<object>()];
  let calls = 0;
  status = () => responses[calls++]?.promise ?? Promise.reject(new Error('a third call'));
  const followed = follow();
  responses[0]?.resolve({});
  await vi.waitFor(() => expect(calls).toBe(2));
  expect(reported).toEqual([]);
  responses[1]?.resolve({});
  await seen('resync');
  end.abort();
  await followed;
});

test('a stream that is refused again and again is reopened after 20 ms, and then after up to 2 s', async () => {
  refuses = true;
  status = () => new Promise(() => undefined);
  const followed = follow();
  await timers.run(() => opened.length === 10, 60_000);
  const delays = opened.slice(1).map((time, index) => time - (opened[index] ?? 0));
  expect(delays).toEqual([20, 40, 80, 160, 320, 640, 1280, 2000, 2000]);
  expect([cuts, warnings, reported]).toEqual([10, 10, []]);
  [refuses, status] = [false, async () => ({})];
  await timers.run(() => opened.length === 11, 60_000);
  await seen('resync');
  cutStream(new Error('cut'));
  await timers.run(() => opened.length === 12, 60_000);
  expect((opened[11] ?? 0) - (opened[10] ?? 0)).toBe(20);
  end.abort();
  await followed;
});

test('the stream of a runtime that does not respond to Status is closed and reopened', async () => {
  status = () => Promise.reject(new RuntimeCallError('Unimplemented', 'no'));
  const followed = follow();
  await timers.run(() => opened.length === 2, 60_000);
  expect([opened, cuts, reported]).toEqual([[0, 20], 2, []]);
  end.abort();
  await followed;
});
