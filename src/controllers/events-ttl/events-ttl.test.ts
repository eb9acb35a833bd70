import { expect, test, vi } from 'vitest';
import type { CoreV1Event } from '../../api/generated/types.ts';
import { EVENTS } from '../../api/resources.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { inProcessClient } from '../../client/typed-client.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { startEventsTtl } from './events-ttl.ts';

const MINUTE = 60_000;

test('an Event that is written again just before its deletion is deleted an hour after that', async () => {
  const timers = createVirtualTimers();
  const backend = await registryBackend({ timers, namespaces: ['a'] });
  const { signal } = new AbortController();
  const event = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'e', namespace: 'a' },
    involvedObject: { kind: 'Pod', namespace: 'a', name: 'p' },
    reportingComponent: 'x',
  } as CoreV1Event;
  await backend.set(EVENTS, event);
  const remove = backend.delete.bind(backend);
  vi.spyOn(backend, 'delete').mockImplementationOnce(async (...call) => {
    await backend.set(EVENTS, { ...event, message: 'again' } as CoreV1Event);
    return remove(...call);
  });
  await startEventsTtl({ client: inProcessClient(backend), timers, log: silentLog, signal });
  timers.advance(60 * MINUTE);
  await vi.waitFor(() => expect(backend.delete).toHaveBeenCalledTimes(1));
  await vi.waitFor(() => expect(backend.objects(EVENTS)).toMatchObject([{ message: 'again' }]));
  await new Promise(setImmediate);
  await timers.run(() => backend.objects(EVENTS).length === 0, timers.now() + 65 * MINUTE);
  expect(backend.objects(EVENTS)).toEqual([]);
});
