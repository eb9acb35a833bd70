import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { EVENTS } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { notFound, objectModified, serviceUnavailable } from '../../machinery/status.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import { startEventsTtl } from './events-ttl.ts';

const SECOND = 1000;
const HOUR = 3600 * SECOND;

let backend: RegistryBackend;
let timers: VirtualTimers;
let stop: AbortController;
let warnings: string[];
beforeEach(async () => {
  timers = createVirtualTimers();
  backend = await registryBackend({ timers });
  stop = new AbortController();
  warnings = [];
});
afterEach(() => stop.abort());

const write = (name: string) =>
  backend.set(EVENTS, {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name, namespace: 'a' },
    involvedObject: { kind: 'Pod', namespace: 'a', name: 'p' },
  } as never);
const left = (): string[] => backend.objects(EVENTS).map(({ metadata }) => metadata.name);
const deletions = (): number => backend.calls.filter((call) => call.startsWith('delete events')).length;
const start = async (): Promise<void> => {
  const log = { ...silentLog, warn: (message: string) => void warnings.push(message) };
  await startEventsTtl(withInformers({ client: clientOf(backend), timers, log, signal: stop.signal }));
  await vi.waitFor(() => expect(backend.calls).toContain('watch events /'));
};
const passed = async (millis: number): Promise<void> => {
  timers.advance(millis);
  for (let i = 0; i < 50; i++) await new Promise(setImmediate);
};

test('Events that expire soon after each other are deleted together, a minute after the first one', async () => {
  await write('first');
  timers.advance(10 * SECOND);
  await write('second');
  await start();
  await passed(HOUR - 10 * SECOND);
  expect(left()).toEqual(['second']);
  await passed(60 * SECOND - 1);
  expect(left()).toEqual(['second']);
  await passed(1);
  expect(left()).toEqual([]);
});

test('an Event that cannot be deleted is deleted a minute later', async () => {
  await write('first');
  await start();
  backend.failNext('delete events', serviceUnavailable('not now'));
  await passed(HOUR);
  await passed(60 * SECOND - 1);
  expect([left(), warnings]).toEqual([['first'], ['events-ttl: cannot delete an event']]);
  await passed(1);
  expect([left(), deletions()]).toEqual([[], 2]);
});

test('an Event whose deletion conflicts with a write is checked again a minute later', async () => {
  await write('first');
  await start();
  backend.failNext('delete events', objectModified(EVENTS, 'first'));
  await passed(HOUR);
  expect([left(), warnings]).toEqual([['first'], []]);
  await passed(60 * SECOND);
  expect(left()).toEqual([]);
});

test('an Event that another client has deleted is not deleted again', async () => {
  await write('first');
  await start();
  backend.failNext('delete events', notFound(EVENTS, 'first'));
  await passed(HOUR);
  await passed(HOUR);
  expect([deletions(), warnings]).toEqual([1, []]);
});

test('a stopped controller deletes no further Event of a sweep', async () => {
  await write('first');
  await write('second');
  await start();
  const { delete: remove } = backend;
  backend.delete = (...call) => {
    stop.abort();
    return remove(...call);
  };
  await passed(HOUR);
  expect(left()).toEqual(['second']);
});
