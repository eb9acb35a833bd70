import { expect, it, vi } from 'vitest';
import type { Lease, Node } from '../../api/generated/types.ts';
import { LEASES } from '../../api/resources.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { conflict, serviceUnavailable } from '../../machinery/status.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { startNodeLease } from './node-lease.ts';

const NODE: Node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', uid: 'u1' } };

it('the node renews its Lease every ten seconds, also after a failed renewal', async () => {
  const timers = createVirtualTimers();
  const backend = await registryBackend({ timers });
  const stop = new AbortController();
  const renewed = () => (backend.objects(LEASES)[0] as Lease | undefined)?.spec?.renewTime;
  await startNodeLease({
    client: clientOf(backend),
    node: () => NODE,
    timers,
    log: silentLog,
    signal: stop.signal,
  });
  expect(backend.objects(LEASES)[0]).toMatchObject({
    metadata: { name: 'n1', namespace: 'kube-node-lease', ownerReferences: [{ kind: 'Node', name: 'n1', uid: 'u1' }] },
    spec: { holderIdentity: 'n1', leaseDurationSeconds: 40, renewTime: '2026-01-31T00:00:00.000000Z' },
  });
  for (const error of [conflict(LEASES, 'n1', 'changed'), serviceUnavailable('not now')]) {
    const before = renewed();
    backend.failNext('update leases', error);
    timers.advance(10_000);
    await new Promise(setImmediate);
    expect(renewed()).toBe(before);
  }
  timers.advance(10_000);
  await vi.waitFor(() => expect(renewed()).toBe('2026-01-31T00:00:30.000000Z'));

  const { length } = backend.calls;
  stop.abort();
  timers.advance(60_000);
  expect(backend.calls).toHaveLength(length);
});
