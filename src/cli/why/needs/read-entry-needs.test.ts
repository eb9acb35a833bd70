import { expect, test } from 'vitest';
import type { ConfigMap, Container, Pod, Secret } from '../../../api/generated/types.ts';
import { CONFIG_MAPS, SECRETS } from '../../../api/resources.ts';
import { registryBackend } from '../../../client/registry-fixture.ts';
import { clientOf } from '../../../client/typed-client.ts';
import { forbidden } from '../../../machinery/status.ts';
import { readEntryNeeds } from './read-entry-needs.ts';

const podOf = (environment: Partial<Container>, more: Partial<Pod['metadata']> = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'a', ...more },
  spec: {
    containers: [{ name: 'app', image: 'i', envFrom: [{ configMapRef: { name: 'of-the-app' } }] }],
    deferContainers: [{ name: 'bye', image: 'i', ...environment }],
  },
});

const ENVIRONMENT: Partial<Container> = {
  env: [
    { name: 'A', valueFrom: { configMapKeyRef: { name: 'settings', key: 'text' } } },
    { name: 'B', valueFrom: { configMapKeyRef: { name: 'settings', key: 'bytes' } } },
    { name: 'C', valueFrom: { configMapKeyRef: { name: 'settings', key: 'absent' } } },
    { name: 'D', valueFrom: { configMapKeyRef: { name: 'settings', key: 'absent', optional: true } } },
    { name: 'E', valueFrom: { secretKeyRef: { name: 'login', key: 'password' } } },
    { name: 'F', value: 'plain' },
  ],
  envFrom: [
    { configMapRef: { name: 'none' } },
    { configMapRef: { name: 'none-either', optional: true } },
    { secretRef: { name: 'no-secret' } },
  ],
};

async function start() {
  const backend = await registryBackend();
  const meta = (name: string) => ({ apiVersion: 'v1', metadata: { name, namespace: 'a' } });
  await backend.set<ConfigMap>(CONFIG_MAPS, {
    ...meta('settings'),
    kind: 'ConfigMap',
    data: { text: 'x' },
    binaryData: { bytes: 'eA==' },
  });
  await backend.set<Secret>(SECRETS, { ...meta('login'), kind: 'Secret', data: { password: 'eA==' } });
  const client = clientOf(backend);
  return { backend, read: (pod: Pod) => readEntryNeeds(client, pod) };
}

test('readEntryNeeds() finds the objects and keys that the defer containers need and that do not exist', async () => {
  const { read } = await start();
  expect(await read(podOf(ENVIRONMENT))).toEqual([
    { entry: 'bye', kind: 'ConfigMap', name: 'settings', key: 'absent' },
    { entry: 'bye', kind: 'ConfigMap', name: 'none' },
    { entry: 'bye', kind: 'Secret', name: 'no-secret' },
  ]);
});

test('readEntryNeeds() omits objects that the user may not read', async () => {
  const { backend, read } = await start();
  backend.failNext('get secrets', forbidden(SECRETS, 'no-secret', 'no'));
  expect(await read(podOf({ envFrom: [{ secretRef: { name: 'no-secret' } }] }))).toEqual([]);
});

test('readEntryNeeds() reads nothing for a Pod that is being deleted', async () => {
  const { read } = await start();
  expect(await read(podOf(ENVIRONMENT, { deletionTimestamp: '2026-01-31T12:00:00Z' }))).toEqual([]);
});
