import { expect, test } from 'vitest';
import type { ConfigMap, Container, Pod, Secret } from '../../../api/generated/types.ts';
import { CONFIG_MAPS, SECRETS } from '../../../api/resources.ts';
import { registryBackend } from '../../../client/registry-fixture.ts';
import { clientOf } from '../../../client/typed-client.ts';
import { forbidden } from '../../../machinery/status.ts';
import { entryNeedsReader } from './read-entry-needs.ts';

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
  const unread: string[] = [];
  return { backend, unread, read: entryNeedsReader(client, (kind) => unread.push(kind)) };
}

test('entryNeedsReader() finds the objects and keys that the defer containers need and that do not exist', async () => {
  const { read } = await start();
  expect(await read(podOf(ENVIRONMENT))).toEqual([
    { entry: 'bye', kind: 'ConfigMap', name: 'settings', key: 'absent' },
    { entry: 'bye', kind: 'ConfigMap', name: 'none' },
    { entry: 'bye', kind: 'Secret', name: 'no-secret' },
  ]);
});

test('entryNeedsReader() omits objects that the user may not read, and reports their kind', async () => {
  const { backend, unread, read } = await start();
  backend.failNext('get secrets', forbidden(SECRETS, 'no-secret', 'no'));
  expect(await read(podOf({ envFrom: [{ secretRef: { name: 'no-secret' } }] }))).toEqual([]);
  expect(unread).toEqual(['Secret']);
});

test('entryNeedsReader() reads nothing for a Pod that is being deleted', async () => {
  const { read } = await start();
  expect(await read(podOf(ENVIRONMENT, { deletionTimestamp: '2026-01-31T12:00:00Z' }))).toEqual([]);
});

test('entryNeedsReader() reads an object once, although several Pods need it, but reads that of each namespace', async () => {
  const { backend, read } = await start();
  const environment: Partial<Container> = { envFrom: [{ configMapRef: { name: 'settings' } }] };
  expect(await read(podOf(environment))).toEqual([]);
  backend.failNext('get configmaps a/settings', forbidden(CONFIG_MAPS, 'settings', 'no'));
  expect(await read(podOf(environment))).toEqual([]);
  expect(await read(podOf(environment, { namespace: 'b' }))).toHaveLength(1);
});

test('entryNeedsReader() reads the first 100 objects of a Pod, one after the other', async () => {
  const { backend } = await start();
  const envFrom = Array.from({ length: 150 }, (_, index) => ({ configMapRef: { name: `c${index}` } }));
  const open = { now: 0, most: 0 };
  const client = clientOf({
    ...backend,
    get(...object) {
      open.most = Math.max(open.most, ++open.now);
      return backend.get(...object).finally(() => open.now--);
    },
  });
  expect(await entryNeedsReader(client)(podOf({ envFrom }))).toHaveLength(100);
  expect(open.most).toBe(1);
});
