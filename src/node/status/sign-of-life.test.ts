import { expect, test } from 'vitest';
import type { Client } from '../../client/client.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { serviceUnavailable } from '../../machinery/status.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { startNodeLease } from './node-lease.ts';
import { createOutageClock, readLastSignOfLife } from './sign-of-life.ts';

test('readLastSignOfLife returns when the previous agent last renewed the Lease', async () => {
  const client = clientOf(await registryBackend());
  const timers = createVirtualTimers();
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

test('readLastSignOfLife returns undefined if the API refuses or does not answer within a second', async () => {
  const backend = await registryBackend();
  backend.failNext('get leases', serviceUnavailable('not now'));
  const timers = createVirtualTimers();
  const options = { timers, log: silentLog };
  expect(await readLastSignOfLife({ ...options, client: clientOf(backend) }, 'n1')).toBeUndefined();
  const silent = { resource: () => ({ get: () => new Promise(() => undefined) }) } as unknown as Client;
  const reading = readLastSignOfLife({ ...options, client: silent }, 'n1');
  timers.advance(1000);
  expect(await reading).toBeUndefined();
});

test('the outage of a worker ends when the worker starts, or at the time of end() if the worker starts later', () => {
  const timers = createVirtualTimers();
  const from = timers.now() - 9000;
  const outages = createOutageClock(from, timers);
  timers.advance(100);
  expect(outages.of()).toEqual({ outage: { from, to: from + 9100 } });
  timers.advance(100);
  outages.end();
  timers.advance(60_000);
  expect(outages.of()).toEqual({ outage: { from, to: from + 9200 } });
});

test('there is no outage without a sign of life, or if it is in the future', () => {
  const timers = createVirtualTimers();
  expect(createOutageClock(undefined, timers).of()).toEqual({});
  expect(createOutageClock(timers.now() + 1, timers).of()).toEqual({});
});
