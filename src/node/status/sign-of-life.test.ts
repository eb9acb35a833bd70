import { expect, test } from 'vitest';
import type { Client } from '../../client/client.ts';
import { memoryBackend, silentLog, testTimers } from '../../client/testing.ts';
import { inProcessClient } from '../../client/typed-client.ts';
import { serviceUnavailable } from '../../machinery/status.ts';
import { startNodeLease } from './node-lease.ts';
import { createOutageClock, readLastSignOfLife } from './sign-of-life.ts';

test('the last sign of life is the last renewal of the Lease by the agent before', async () => {
  const client = inProcessClient(memoryBackend());
  const timers = testTimers();
  const read = () => readLastSignOfLife({ client, timers, log: silentLog }, 'n1');
  expect(await read()).toBeUndefined();
  const before = new AbortController();
  const node = () => ({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', uid: 'u1' } });
  await startNodeLease({ client, node, timers, log: silentLog, signal: before.signal });
  const renewed = timers.now();
  before.abort();
  timers.advance(47_000);
  expect(await read()).toBe(renewed);
});

test('an API that refuses, or does not answer within a second, leaves it unknown', async () => {
  const backend = memoryBackend();
  backend.failNext('get leases', serviceUnavailable('not now'));
  const timers = testTimers();
  const options = { timers, log: silentLog };
  expect(await readLastSignOfLife({ ...options, client: inProcessClient(backend) }, 'n1')).toBeUndefined();
  const silent = { resource: () => ({ get: () => new Promise(() => undefined) }) } as unknown as Client;
  const reading = readLastSignOfLife({ ...options, client: silent }, 'n1');
  timers.advance(1000);
  expect(await reading).toBeUndefined();
});

test('the outage lasts until the worker of a Pod that was there starts, for later Pods until all of those had', () => {
  const timers = testTimers();
  const from = timers.now() - 9000;
  const outages = createOutageClock(from, timers);
  timers.advance(100);
  expect(outages.of()).toEqual({ outage: { from, to: from + 9100 } });
  timers.advance(100);
  outages.end();
  timers.advance(60_000);
  expect(outages.of()).toEqual({ outage: { from, to: from + 9200 } });
});

test('without a sign of life, or with one that is still to come by this clock, there is no outage', () => {
  const timers = testTimers();
  expect(createOutageClock(undefined, timers).of()).toEqual({});
  expect(createOutageClock(timers.now() + 1, timers).of()).toEqual({});
});
