import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { CONFIG_MAPS, SECRETS } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { type FollowedObjects, followObjects } from './followed-objects.ts';

let backend: RegistryBackend;
let objects: FollowedObjects;
let stop: AbortController;
const keys: string[] = [];

beforeEach(async () => {
  backend = await registryBackend();
  stop = new AbortController();
  keys.length = 0;
  const options = { client: clientOf(backend), timers: createVirtualTimers(), log: silentLog, signal: stop.signal };
  objects = followObjects(options, (key) => void keys.push(key));
});
afterEach(() => stop.abort());

const write = (kind: 'ConfigMap' | 'Secret', name: string, data: Record<string, string> = {}): Promise<unknown> => {
  const object = { apiVersion: 'v1', kind, metadata: { name, namespace: 'a' }, data };
  return backend.set(kind === 'Secret' ? SECRETS : CONFIG_MAPS, object as KubeObject);
};
const reported = async (...expected: string[]): Promise<void> => {
  await vi.waitFor(() => expect(keys.toSorted()).toEqual(expected.toSorted()));
  keys.length = 0;
};
const watches = (): number => backend.calls.filter((call) => call.startsWith('watch ')).length;

test('each followed object is reported if it exists, and when it is added, changed or deleted, and others are not', async () => {
  await write('ConfigMap', 'old');
  await write('Secret', 'other');
  objects.follow('pod', new Set(['configmaps/a/old', 'secrets/a/new']));
  await reported('configmaps/a/old');
  await vi.waitFor(() => expect(watches()).toBe(2));
  await write('Secret', 'other', { key: 'eA==' });
  await write('Secret', 'new');
  await reported('secrets/a/new');
  await write('ConfigMap', 'old', { key: 'x' });
  await reported('configmaps/a/old');
  await backend.remove(CONFIG_MAPS, 'a', 'old');
  await reported('configmaps/a/old');
});

test('owners of the same object share its watch, which ends with the last owner', async () => {
  await write('ConfigMap', 'old');
  objects.follow('one', new Set(['configmaps/a/old']));
  objects.follow('two', new Set(['configmaps/a/old', 'configmaps/a/more']));
  await reported('configmaps/a/old');
  await vi.waitFor(() => expect(watches()).toBe(2));
  objects.unfollow('one');
  await write('ConfigMap', 'old', { key: 'x' });
  await reported('configmaps/a/old');
  objects.follow('two', new Set(['configmaps/a/more']));
  await write('ConfigMap', 'old', { key: 'y' });
  await write('ConfigMap', 'more');
  await reported('configmaps/a/more');
  objects.unfollow('two');
  objects.unfollow('two');
  objects.follow('three', new Set(['configmaps/a/old']));
  await reported('configmaps/a/old');
  expect(watches()).toBe(3);
});

test('no object is followed after the signal has aborted', async () => {
  stop.abort();
  objects.follow('one', new Set(['configmaps/a/old']));
  await write('ConfigMap', 'old');
  expect(watches()).toBe(0);
});
