import { describe, expect, it } from 'vitest';
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '../../api/generated/types.ts';
import type { InformerHandlers } from '../../client/local-copy.ts';
import type { WorkQueue } from '../../client/work-queue.ts';
import type { ObjectMeta } from '../../machinery/meta.ts';
import { claimHandlers, podHandlers, storageIndexes, unboundClaimsRetry, volumeHandlers } from './changes.ts';
import type { ClaimProtection } from './protection.ts';

function start() {
  const keys: string[] = [];
  const queue = (name: string) => ({ add: (key: string) => keys.push(`${name} ${key}`) }) as unknown as WorkQueue;
  const queues = {
    claims: queue('claim'),
    volumes: queue('volume'),
    ephemeralClaims: queue('ephemeral'),
    unusedFolders: queue('folder'),
  };
  const indexes = storageIndexes();
  const retry = unboundClaimsRetry(indexes, queues);
  /** The calls of ClaimProtection, as `put NODE` or `remove NODE`. */
  const registered: string[] = [];
  const register = (verb: string) => (each: Pod) => void registered.push(`${verb} ${each.spec?.nodeName ?? ''}`);
  const protection = { put: register('put'), remove: register('remove') } as unknown as ClaimProtection;
  return {
    claims: claimHandlers(indexes, queues) as Required<InformerHandlers<PersistentVolumeClaim>>,
    volumes: volumeHandlers(indexes, queues, retry) as Required<InformerHandlers<PersistentVolume>>,
    pods: podHandlers(indexes, protection, queues) as Required<InformerHandlers<Pod>>,
    registered,
    /** Returns the sorted keys that were queued since the last call, including those that unboundClaimsRetry() queues in a later turn. */
    async queued(): Promise<string[]> {
      await new Promise(setImmediate);
      return keys.splice(0).sort();
    },
  };
}

const claim = (name: string, volumeName?: string, metadata: Partial<ObjectMeta> = {}): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name, namespace: 'a', uid: `uid-${name}`, ...metadata },
  spec: { volumeName },
});
const volume = (name: string, claimRef?: { name: string; uid?: string }): PersistentVolume => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name },
  spec: { claimRef: claimRef && { namespace: 'a', ...claimRef } },
});
const pod = (volumes: NonNullable<Pod['spec']>['volumes']): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'a', uid: 'uid-web' },
  spec: { containers: [], volumes },
});
const OWNED = { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'web', uid: 'uid-web', controller: true }] };

describe('a change of a claim', () => {
  it('a change of a claim queues the claim and the volume that it names', async () => {
    const { claims, queued } = start();
    claims.added(claim('data', 'disk'));
    expect(await queued()).toEqual(['claim a/data', 'volume disk']);
    claims.updated(claim('data', 'disk'), claim('data'));
    expect(await queued()).toEqual(['claim a/data', 'volume disk']);
  });
  it('a change of a claim queues the Pod that owns a new claim, because the Pod may have been deleted', async () => {
    const { claims, queued } = start();
    claims.added(claim('data', undefined, OWNED));
    expect(await queued()).toEqual(['claim a/data', 'ephemeral a/web/uid-web']);
  });
  it('a change of a claim queues the folder of a deleted claim that names no volume, and the volumes that are reserved for it', async () => {
    const { claims, volumes, queued } = start();
    volumes.added(volume('disk', { name: 'data', uid: 'uid-data' }));
    claims.added(claim('data'));
    await queued();
    claims.deleted(claim('data'));
    expect(await queued()).toEqual(['claim a/data', 'folder pvc-uid-data', 'volume disk']);
  });
  it('a change of a claim queues the Pods whose ephemeral volumes need the deleted claim, until they are deleted', async () => {
    const { claims, pods, queued } = start();
    const scratch = { name: 'scratch', ephemeral: { volumeClaimTemplate: { spec: {} } } };
    pods.added(pod([scratch, { name: 'data', persistentVolumeClaim: { claimName: 'web-data' } }]));
    await queued();
    claims.deleted(claim('web-scratch', 'disk'));
    expect(await queued()).toEqual(['claim a/web-scratch', 'ephemeral a/web/uid-web', 'volume disk']);
    claims.deleted(claim('web-data', 'disk'));
    claims.deleted(claim('web-scratch', 'disk', { namespace: 'b' }));
    expect(await queued()).toEqual(['claim a/web-data', 'claim b/web-scratch', 'volume disk', 'volume disk']);
    pods.deleted(pod([scratch]));
    await queued();
    claims.deleted(claim('web-scratch', 'disk'));
    expect(await queued()).toEqual(['claim a/web-scratch', 'volume disk']);
  });
  it('a change of a claim queues no folder for a deleted claim that names a volume', async () => {
    const { claims, queued } = start();
    claims.deleted(claim('data', 'disk'));
    expect(await queued()).toEqual(['claim a/data', 'volume disk']);
  });
});

describe('a change of a volume', () => {
  it('a change of a volume queues the volume and the claim that it refers to', async () => {
    const { volumes, claims, queued } = start();
    claims.added(claim('other'));
    await queued();
    for (const change of [volumes.added, volumes.updated]) {
      change(volume('disk', { name: 'data' }), volume('disk', { name: 'data' }));
      expect(await queued()).toEqual(['claim a/data', 'volume disk']);
    }
  });
  it('a change of a volume queues each claim without a volume once, and the claims that name the volume, if it refers to no claim', async () => {
    const { volumes, claims, queued } = start();
    for (const each of [claim('one'), claim('two'), claim('bound', 'other'), claim('named', 'disk')])
      claims.added(each);
    await queued();
    volumes.added(volume('disk'));
    volumes.added(volume('second'));
    expect(await queued()).toEqual(['claim a/named', 'claim a/one', 'claim a/two', 'volume disk', 'volume second']);
  });
  it('a change of a volume queues the claim of a deleted volume', async () => {
    const { volumes, queued } = start();
    volumes.deleted(volume('disk', { name: 'data' }));
    volumes.deleted(volume('free'));
    expect(await queued()).toEqual(['claim a/data']);
  });
});

describe('a change of a Pod', () => {
  const volumes = [
    { name: 'scratch', ephemeral: { volumeClaimTemplate: { spec: {} } } },
    { name: 'data', persistentVolumeClaim: { claimName: 'data' } },
  ];
  it('a change of a Pod queues a new Pod with ephemeral volumes, and no other Pod', async () => {
    const { pods, queued } = start();
    pods.added(pod(volumes));
    expect(await queued()).toEqual(['ephemeral a/web/uid-web']);
    pods.added(pod(volumes.slice(1)));
    expect(await queued()).toEqual([]);
  });
  it('a Pod is registered again for the protection of its claims only once it is bound to a node', () => {
    const { pods, registered } = start();
    const bound = { ...pod([]), spec: { containers: [], nodeName: 'n' } };
    pods.added(pod([]));
    pods.updated(pod([]), pod([]));
    expect(registered.splice(0)).toEqual(['put ']);
    pods.updated(bound, pod([]));
    expect(registered.splice(0)).toEqual(['remove ', 'put n']);
    pods.updated(bound, bound);
    pods.deleted(bound);
    expect(registered).toEqual(['remove n']);
  });
  it('a change of a Pod queues the claims of a deleted Pod, which may no longer be in use', async () => {
    const { pods, queued } = start();
    pods.deleted(pod(volumes));
    expect(await queued()).toEqual(['claim a/data', 'claim a/web-scratch', 'ephemeral a/web/uid-web']);
  });
});
