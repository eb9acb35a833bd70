import { expect, test } from 'vitest';
import type { CoreV1Event } from '../../api/generated/types.ts';
import { EVENTS } from '../../api/resources.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { forbidden } from '../../machinery/status.ts';
import { rebootOf } from './why.ts';

const event = (name: string, reason: string, node: string, lastTimestamp: string): CoreV1Event =>
  ({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name, namespace: 'default' },
    involvedObject: { kind: 'Node', name: node, uid: node },
    type: 'Warning',
    reason,
    lastTimestamp,
  }) as CoreV1Event;

test('the newest restart of the machine is read from the Events of its node', async () => {
  const backend = await registryBackend();
  const client = clientOf(backend);
  expect(await rebootOf(client, 'n')).toBeUndefined();
  await backend.set(EVENTS, event('a', 'Rebooted', 'n', '2026-01-31T11:00:00Z'));
  await backend.set(EVENTS, event('b', 'Rebooted', 'n', '2026-01-31T12:00:00Z'));
  await backend.set(EVENTS, event('c', 'Starting', 'n', '2026-01-31T13:00:00Z'));
  await backend.set(EVENTS, event('d', 'Rebooted', 'other', '2026-01-31T14:00:00Z'));
  expect(await rebootOf(client, 'n')).toBe(Date.parse('2026-01-31T12:00:00Z'));
});

test('a user who may not read the Events of nodes gets no time of a restart', async () => {
  const backend = await registryBackend();
  backend.failNext('list events', forbidden(EVENTS, '', 'no'));
  expect(await rebootOf(clientOf(backend), 'n')).toBeUndefined();
});
