import { expect, test } from 'vitest';
import { DEPLOYMENTS, REPLICA_SETS } from '../../api/resources.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import type { KubeObject, ResourceRef } from '../../machinery/meta.ts';
import { forbidden } from '../../machinery/status.ts';
import { hintsFor } from '../hints.ts';
import { readWorkloads } from './read-workloads.ts';

const SINCE = '2026-01-31T11:00:00Z';
const HINTS = hintsFor({}, {}, undefined, false);

async function start() {
  const backend = await registryBackend({ namespaces: ['a', 'b'] });
  const put = async (
    ref: ResourceRef,
    kind: string,
    namespace: string,
    name: string,
    reason?: string,
    owner?: string,
  ): Promise<void> => {
    const labels = { app: name };
    const ownerReferences = owner && [
      { apiVersion: 'apps/v1', kind: 'Deployment', name: owner, uid: owner, controller: true },
    ];
    const object = {
      apiVersion: 'apps/v1',
      kind,
      metadata: { name, namespace, ...(ownerReferences && { ownerReferences }) },
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'app', image: 'i' }] } },
      },
    };
    await backend.set(ref, object as KubeObject);
    const condition = {
      type: 'ReplicaFailure',
      status: 'True',
      reason,
      message: 'no\naccount',
      lastTransitionTime: SINCE,
    };
    await backend.setStatus(ref, namespace, name, { replicas: 0, conditions: reason === undefined ? [] : [condition] });
  };
  await put(DEPLOYMENTS, 'Deployment', 'a', 'web', 'FailedCreate');
  await put(DEPLOYMENTS, 'Deployment', 'a', 'well');
  await put(REPLICA_SETS, 'ReplicaSet', 'a', 'web-1', 'FailedCreate', 'web');
  await put(REPLICA_SETS, 'ReplicaSet', 'b', 'alone', 'FailedDelete');
  return { backend, read: (namespace?: string) => readWorkloads(clientOf(backend), namespace, HINTS) };
}

test('workloads that cannot create or delete Pods are troubles, but not those whose owner reports it', async () => {
  const { read } = await start();
  const { troubles, unread } = await read();
  expect(unread).toEqual([]);
  expect(troubles).toEqual([
    {
      kind: 'Deployment',
      namespace: 'a',
      name: 'web',
      uid: expect.any(String),
      reason: 'FailedCreate',
      since: Date.parse(SINCE),
      message: 'web cannot create Pods: no account',
      command: 'lifepod why deployment/web -n a',
    },
    expect.objectContaining({
      kind: 'ReplicaSet',
      namespace: 'b',
      message: 'alone cannot delete Pods: no account',
      command: 'lifepod why replicaset/alone -n b',
    }),
  ]);
  expect((await read('b')).troubles).toHaveLength(1);
});

test('a user who may not read a kind gets a sentence about it', async () => {
  const { backend, read } = await start();
  backend.failNext('list deployments', forbidden(DEPLOYMENTS, '', 'no'));
  const { troubles, unread } = await read('a');
  expect(troubles).toEqual([]);
  expect(unread).toEqual([expect.stringMatching(/^Deployments: deployments\S* is forbidden: no$/)]);
});
