import { expect, test, vi } from 'vitest';
import { CONFIG_MAPS, SECRETS } from '../../api/resources.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { createSharedInformers } from '../../client/shared-informers.ts';
import { clientOf } from '../../client/typed-client.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { followObjects } from './followed-objects.ts';

test('followObjects() reports each ConfigMap and Secret that exists, is added, changes or is deleted', async () => {
  const backend = await registryBackend();
  const stop = new AbortController();
  const keys: string[] = [];
  const write = (kind: 'ConfigMap' | 'Secret', name: string, data: Record<string, string>): Promise<unknown> => {
    const object = { apiVersion: 'v1', kind, metadata: { name, namespace: 'a' }, data };
    return backend.set(kind === 'Secret' ? SECRETS : CONFIG_MAPS, object as KubeObject);
  };
  const reported = async (...expected: string[]): Promise<void> => {
    await vi.waitFor(() => expect(keys.toSorted()).toEqual(expected.toSorted()));
    keys.length = 0;
  };
  try {
    await write('ConfigMap', 'old', {});
    await write('Secret', 'old', {});
    const options = { client: clientOf(backend), timers: createVirtualTimers(), log: silentLog };
    followObjects(createSharedInformers(options), stop.signal, (key) => void keys.push(key));
    await reported('configmaps/a/old', 'secrets/a/old');
    await write('ConfigMap', 'new', {});
    await write('Secret', 'old', { key: 'eA==' });
    await reported('configmaps/a/new', 'secrets/a/old');
    await backend.remove(CONFIG_MAPS, 'a', 'old');
    await backend.remove(SECRETS, 'a', 'old');
    await reported('configmaps/a/old', 'secrets/a/old');
  } finally {
    stop.abort();
  }
});
