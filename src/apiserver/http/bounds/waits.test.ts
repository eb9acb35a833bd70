import { expect, test } from 'vitest';
import { configMap } from '../../registry/testing.ts';
import { turns } from '../../server-fixture.ts';
import { limitedWaits, type Waits } from './limits.ts';
import type { CompletePart } from './unfinished.ts';
import { waitsOutside } from './waits.ts';

const REFUSED = { code: 429, reason: 'TooManyRequests' };

function bodyOf(bytes: number, value: unknown = {}) {
  const happened: string[] = [];
  const room = Promise.withResolvers<void>();
  const part: CompletePart = {
    bytes,
    leave: () => happened.push('left'),
    return: () => {
      happened.push('returns');
      return room.promise;
    },
    end: () => undefined,
  };
  return { body: { room: part, value }, happened, giveRoom: room.resolve };
}

/** Resolves once the wait counts, to a function that ends the wait. */
async function beginWait(waits: Waits, signal = new AbortController().signal) {
  const waiting = Promise.withResolvers<void>();
  const over = waitsOutside(waits, signal)(waiting.promise, []).catch(() => undefined);
  await turns(1);
  return async () => {
    waiting.resolve();
    await over;
  };
}

test('a wait counts from its beginning to its end, and a wait beyond the limit on the number is refused', async () => {
  const waits = limitedWaits(1, 1000);
  const end = await beginWait(waits);
  const never = new Promise<void>(() => {});
  const { body, happened } = bodyOf(10);
  await expect(waitsOutside(waits, new AbortController().signal, body)(never, [])).rejects.toMatchObject(REFUSED);
  expect(happened).toEqual([]);
  await end();
  await beginWait(waits);
});

test('the memory of a wait is that of its body and of the largest object', async () => {
  const objects = ['x', 'y'].map((char) => configMap('a', { k: char.repeat(500) }));
  const never = new Promise<void>(() => {});
  const outside = (limitBytes: number) =>
    waitsOutside(limitedWaits(1, limitBytes), AbortSignal.abort(), bodyOf(5000).body)(never, objects);
  await expect(outside(5500)).rejects.toMatchObject(REFUSED);
  await expect(outside(6500)).rejects.toThrow('aborted');
});

test('the memory of a wait includes the structure of the body, whose fields need not be those of the object', async () => {
  const body = (values: number) => bodyOf(10, { unknown: Array.from({ length: values }, () => ({})) }).body;
  const outside = (values: number) =>
    waitsOutside(limitedWaits(1, 64_000), AbortSignal.abort(), body(values))(new Promise<void>(() => {}), []);
  await expect(outside(990)).rejects.toThrow('aborted');
  await expect(outside(1000)).rejects.toMatchObject(REFUSED);
});

test('a promise that settles within one turn of the event loop is not refused, and the body keeps its room', async () => {
  const { body, happened } = bodyOf(10);
  const outside = waitsOutside(limitedWaits(0), new AbortController().signal, body);
  await outside(Promise.resolve(), []);
  await expect(outside(Promise.reject(new Error('no')), [])).rejects.toThrow('no');
  expect(happened).toEqual([]);
});

test.each(['resolves', 'rejects'])('a wait that %s counts until the body has room again', async (how) => {
  const waits = limitedWaits(1);
  const { body, happened, giveRoom } = bodyOf(10);
  const waiting = Promise.withResolvers<void>();
  const over = waitsOutside(waits, new AbortController().signal, body)(waiting.promise, []).catch(String);
  await turns(1);
  expect(happened).toEqual(['left']);
  if (how === 'resolves') waiting.resolve();
  else waiting.reject(new Error('no'));
  await turns(1);
  expect(happened).toEqual(['left', 'returns']);
  expect(() => waits.begin(1)).toThrow('Too many requests');
  giveRoom();
  expect(await over).toBe(how === 'resolves' ? undefined : 'Error: no');
  waits.begin(1);
});

test.each(['the wait', 'the wait for room'])('a wait ends if the client disconnects during %s', async (during) => {
  const waits = limitedWaits(1);
  const gone = new AbortController();
  const waiting = Promise.withResolvers<void>();
  const over = waitsOutside(waits, gone.signal, bodyOf(10).body)(waiting.promise, []);
  await turns(1);
  if (during === 'the wait for room') {
    waiting.resolve();
    await turns(1);
  }
  gone.abort();
  await expect(over).rejects.toThrow('aborted');
  waits.begin(1);
});
