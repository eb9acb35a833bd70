import { expect, test, vi } from 'vitest';
import type { Pod } from '../api/generated/types.ts';
import { PODS } from '../api/resources.ts';
import { registryBackend } from '../client/registry-fixture.ts';
import { clientOf } from '../client/typed-client.ts';
import { systemTimers } from '../platform/node-js.ts';
import { silentLog } from '../platform/silent-log.ts';
import { withShortDeletions } from './short-deletions.ts';

test('a Pod that another component deletes gets the short grace period, and other Pods are not deleted', async () => {
  const backend = await registryBackend();
  const client = clientOf(backend);
  const pods = client.resource<Pod>(PODS);
  for (const name of ['owned', 'other']) {
    const spec = { nodeName: 'n', containers: [{ name: 'app', image: 'x' }] };
    await backend.set<Pod>(PODS, { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default' }, spec });
  }
  const graceOf = async (name: string) => (await pods.get(name, 'default')).metadata.deletionGracePeriodSeconds;
  const shortening = { client, platform: { timers: systemTimers(), log: silentLog }, gracePeriodSeconds: 2 };
  await withShortDeletions(shortening, new AbortController().signal, async () => {
    await pods.delete('owned', 'default', {});
    await vi.waitFor(async () => expect(await graceOf('owned')).toBe(2));
  });
  expect(await graceOf('other')).toBeUndefined();
});
