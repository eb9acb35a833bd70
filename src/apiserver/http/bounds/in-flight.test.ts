import { expect, test } from 'vitest';
import { createVirtualTimers } from '../../../platform/virtual-timers.ts';
import type { UserInfo } from '../../../ports/request.ts';
import { turns } from '../../server-fixture.ts';
import { fairQueue } from './in-flight.ts';

const REFUSED = { code: 429, reason: 'TooManyRequests', message: 'Too many requests, please try again later.' };

const user = (name: string, ...groups: string[]): UserInfo => ({ name, groups });

function start(limits = { inFlight: 4, queued: 100 }) {
  const timers = createVirtualTimers();
  const { enter, wait } = fairQueue(limits, timers);
  const happened: string[] = [];
  const leave = new Map<string, () => void>();
  const send = async (request: string, signal = new AbortController().signal): Promise<void> => {
    const who = user(request.split(' ')[0] ?? '');
    try {
      leave.set(request, enter(who) ?? (await wait(who, signal)));
      happened.push(request);
    } catch (error) {
      happened.push(`${request}: ${(error as Error).message}`);
    }
  };
  return {
    timers,
    send,
    async end(request: string): Promise<string[]> {
      leave.get(request)?.();
      await turns(1);
      return happened.splice(0);
    },
    async happened(): Promise<string[]> {
      await turns(1);
      return happened.splice(0);
    },
  };
}

test('users with waiting requests take turns, and the requests of one user proceed in their order', async () => {
  const queue = start({ inFlight: 1, queued: 100 });
  for (const request of ['a 1', 'a 2', 'a 3', 'b 1', 'b 2', 'c 1']) void queue.send(request);
  expect(await queue.happened()).toEqual(['a 1']);
  for (const [ended, next] of [
    ['a 1', 'a 2'],
    ['a 2', 'b 1'],
    ['b 1', 'c 1'],
    ['c 1', 'a 3'],
    ['a 3', 'b 2'],
  ] as const)
    expect(await queue.end(ended)).toEqual([next]);
});

test('a freed place goes to a user who has a smaller part than others, or stays free for the next user', async () => {
  const queue = start();
  for (const request of ['a 1', 'a 2', 'a 3', 'b 1', 'b 2', 'b 3', 'c 1']) void queue.send(request);
  expect(await queue.happened()).toEqual(['a 1', 'a 2', 'b 1']);
  expect(await queue.end('b 1')).toEqual(['b 2']);
  expect(await queue.end('a 1')).toEqual(['c 1']);
  expect(await queue.end('c 1')).toEqual([]);
  expect(await queue.end('a 2')).toEqual(['a 3']);
});

test('a new request does not overtake the waiting requests of its user', async () => {
  const queue = start();
  for (const request of ['a 1', 'a 2', 'a 3']) void queue.send(request);
  await queue.happened();
  expect(await queue.end('a 1')).toEqual(['a 3']);
  void queue.send('a 4');
  expect(await queue.happened()).toEqual([]);
  expect(await queue.end('a 2')).toEqual(['a 4']);
});

test('a request that has waited for 15 s is refused, and takes no place afterwards', async () => {
  const queue = start({ inFlight: 1, queued: 100 });
  for (const request of ['a 1', 'a 2']) void queue.send(request);
  queue.timers.advance(14_999);
  expect(await queue.happened()).toEqual(['a 1']);
  queue.timers.advance(1);
  expect(await queue.end('a 1')).toEqual([`a 2: ${REFUSED.message}`]);
  void queue.send('b 1');
  expect(await queue.happened()).toEqual(['b 1']);
});

test('a waiting request whose client disconnects leaves the queue', async () => {
  const queue = start({ inFlight: 1, queued: 100 });
  const gone = new AbortController();
  void queue.send('a 1');
  void queue.send('a 2', gone.signal);
  void queue.send('b 1');
  gone.abort(new Error('gone'));
  expect(await queue.end('a 1')).toEqual(['a 1', 'a 2: gone', 'b 1']);
  expect(await queue.end('b 1')).toEqual([]);
});

test('one user cannot fill the queue, and a request that finds no place in it is refused', async () => {
  const { wait } = fairQueue({ inFlight: 1, queued: 8 }, createVirtualTimers());
  const { signal } = new AbortController();
  for (let index = 0; index < 3; index++) wait(user('a'), signal).catch(() => undefined);
  await expect(wait(user('a'), signal)).rejects.toMatchObject({
    status: { ...REFUSED, details: { retryAfterSeconds: 1 } },
  });
  for (const name of ['b', 'b', 'c']) wait(user(name), signal).catch(() => undefined);
  await expect(wait(user('c'), signal)).rejects.toMatchObject(REFUSED);
});

test('members of system:masters need no place', () => {
  const { enter } = fairQueue({ inFlight: 1, queued: 1 }, createVirtualTimers());
  for (let index = 0; index < 10; index++) expect(enter(user('admin', 'system:masters'))).toBeDefined();
  expect(enter(user('a'))).toBeDefined();
});
