import { expect, test } from 'vitest';
import type { Deployment, ReplicaSet } from '../../api/generated/types.ts';
import { DEPLOYMENTS, REPLICA_SETS } from '../../api/resources.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { serviceUnavailable } from '../../machinery/status.ts';
import { createRootSearch } from './root-owner.ts';

const spec = {
  selector: { matchLabels: { app: 'web' } },
  template: {
    metadata: { name: '', labels: { app: 'web' } },
    spec: { containers: [{ name: 'app', image: 'i' }] },
  },
};

test('after a failed read of a Deployment, the search from a Pod of its ReplicaSet reads the Deployment again', async () => {
  const backend = await registryBackend();
  const client = clientOf(backend);
  const head = { apiVersion: 'apps/v1', kind: 'Deployment' };
  await backend.set<Deployment>(DEPLOYMENTS, { ...head, metadata: { name: 'web', namespace: 'a' }, spec });
  const { metadata } = await client.resource<Deployment>(DEPLOYMENTS).get('web', 'a');
  const owner = { ...head, name: 'web', uid: metadata.uid ?? '', controller: true };
  await backend.set<ReplicaSet>(REPLICA_SETS, {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name: 'web-1', namespace: 'a', ownerReferences: [owner] },
    spec,
  });
  const set = await client.resource<ReplicaSet>(REPLICA_SETS).get('web-1', 'a');
  const reference = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-1', uid: set.metadata.uid ?? '' };
  const search = createRootSearch({
    client,
    findKind: async (_, kind) => ({
      ...(kind === 'Deployment' ? DEPLOYMENTS : REPLICA_SETS),
      kind,
      namespaced: true,
    }),
    isRoot: ({ kind }) => kind === 'Deployment',
  });
  backend.failNext('get deployments', serviceUnavailable('not now'));
  expect(await search(reference, 'a')).toBeUndefined();
  expect(await search(reference, 'a')).toEqual({ uid: metadata.uid, kind: 'Deployment', name: 'web' });
});
