import { beforeEach, describe, expect, it } from 'vitest';
import type { PersistentVolumeClaim, Pod, Volume } from '../../api/generated/types.ts';
import { NAMESPACES, PERSISTENT_VOLUME_CLAIMS } from '../../api/resources.ts';
import { alreadyExists, conflict, notFound, serviceUnavailable } from '../../machinery/status.ts';
import { deleteOwnClaims, ensureEphemeralClaims } from './ephemeral.ts';
import { type StorageFixture, storageFixture } from './storage-fixture.ts';

let fixture: StorageFixture;
beforeEach(async () => {
  fixture = await storageFixture();
});

const TEMPLATE = {
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, volumeMode: 'Filesystem' },
};
const scratch: Volume = { name: 'scratch', ephemeral: { volumeClaimTemplate: TEMPLATE } };
const pod = (volumes: Volume[] | undefined = [scratch], metadata: Partial<Pod['metadata']> = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'a', uid: 'uid-web', ...metadata },
  spec: { containers: [], volumes },
});
const owner = (uid: string, controller = true) => ({
  metadata: {
    name: '',
    namespace: 'a',
    ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'web', uid, controller }],
  },
});
const CREATE = 'create persistentvolumeclaims a/web-scratch';
async function ensure(of: Pod = pod()): Promise<string[]> {
  fixture.writes();
  await ensureEphemeralClaims(of, fixture.storage);
  return fixture.writes();
}

describe('the claims of a Pod with ephemeral volumes', () => {
  it('an ephemeral volume gets a claim from its template, which the Pod owns', async () => {
    const metadata = { name: '', labels: { app: 'x' }, annotations: { note: 'y' } };
    const volume = { name: 'scratch', ephemeral: { volumeClaimTemplate: { metadata, ...TEMPLATE } } };
    expect(await ensure(pod([{ name: 'other', emptyDir: {} }, volume]))).toEqual([CREATE]);
    expect(fixture.claim('web-scratch')).toMatchObject({
      metadata: {
        ...metadata,
        name: 'web-scratch',
        ownerReferences: [
          { apiVersion: 'v1', kind: 'Pod', name: 'web', uid: 'uid-web', controller: true, blockOwnerDeletion: true },
        ],
      },
      spec: TEMPLATE.spec,
    });
  });
  it('a claim from a template without metadata has no labels and no annotations', async () => {
    await ensure();
    expect(fixture.claim('web-scratch')?.metadata).not.toHaveProperty('labels');
    expect(fixture.claim('web-scratch')?.metadata).not.toHaveProperty('annotations');
  });
  it.each([
    ['that is being deleted', pod([scratch], { deletionTimestamp: '2026-01-31T00:00:00Z' })],
    ['without volumes', { ...pod(), spec: { containers: [] } }],
    ['that uses an existing claim', pod([{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }])],
    ['whose ephemeral volume has no template', pod([{ name: 'scratch', ephemeral: {} }])],
  ])('a Pod %s gets no claim', async (_, of) => {
    expect(await ensure(of)).toEqual([]);
  });
  it.each(['shows', 'does not show yet'])(
    'no claim is created if the informer %s the claim of the Pod',
    async (shown) => {
      await fixture.putClaim('web-scratch', owner('uid-web'));
      if (shown !== 'shows') fixture.unseen.add('web-scratch');
      expect(await ensure()).toEqual([]);
      expect(fixture.reported).toEqual([]);
    },
  );
  it('the API is not read if the informer shows the claim', async () => {
    await fixture.putClaim('web-scratch', owner('uid-web'));
    fixture.backend.calls.length = 0;
    await ensureEphemeralClaims(pod(), fixture.storage);
    expect(fixture.backend.calls).toEqual([]);
  });
  it('a claim of another owner is left alone, which an Event reports, and the other claims are created', async () => {
    await fixture.putClaim('web-scratch', owner('another'));
    const second = { ...scratch, name: 'second' };
    expect(await ensure(pod([scratch, second]))).toEqual(['create persistentvolumeclaims a/web-second']);
    expect(fixture.reported).toEqual([
      'Warning FailedBinding web: ephemeral volume scratch: PVC a/web-scratch was not created for pod a/web (pod is not owner)',
    ]);
  });
  it('a claim that exists by the time of its creation is success', async () => {
    fixture.backend.failNext(CREATE, alreadyExists(PERSISTENT_VOLUME_CLAIMS, 'web-scratch'));
    expect(await ensure()).toEqual([CREATE]);
  });
  it('a claim is neither created nor retried in a namespace that is being deleted', async () => {
    await fixture.backend.remove(NAMESPACES, undefined, 'a');
    expect(await ensure()).toEqual([CREATE]);
    expect(fixture.claim('web-scratch')).toBeUndefined();
    expect(fixture.reported).toEqual([]);
  });
  it('a claim that the API refuses is retried, and an Event reports the error', async () => {
    fixture.backend.failNext(CREATE, serviceUnavailable('not now'));
    await expect(ensure()).rejects.toThrow('not now');
    expect(fixture.reported).toEqual([
      'Warning FailedBinding web: ephemeral volume scratch: create PVC web-scratch: not now',
    ]);
  });
});

describe('the claims of a deleted Pod', () => {
  const put = async (name: string, change: Partial<PersistentVolumeClaim>): Promise<void> => {
    fixture.storage.claimsByOwner.put(await fixture.putClaim(name, change));
  };
  async function remove(): Promise<string[]> {
    fixture.writes();
    await deleteOwnClaims('a', 'uid-web', fixture.storage);
    return fixture.writes();
  }
  const elsewhere = () => {
    const { metadata } = owner('uid-web');
    return { metadata: { ...metadata, namespace: 'b' } };
  };

  it('the claims that the deleted Pod owns as controller, in its namespace, are deleted', async () => {
    await put('data', owner('uid-web'));
    await put('others', owner('another'));
    await put('not-controller', owner('uid-web', false));
    await put('elsewhere', elsewhere());
    expect(await remove()).toEqual(['delete persistentvolumeclaims a/data']);
    expect(fixture.claim('data')?.metadata.deletionTimestamp).toBeDefined();
    expect(await remove()).toEqual([]);
  });
  it('a claim that the informer no longer shows needs no deletion', async () => {
    await put('data', owner('uid-web'));
    fixture.unseen.add('data');
    expect(await remove()).toEqual([]);
  });
  it('a claim that replaced the claim of the Pod is not deleted', async () => {
    await put('data', owner('uid-web'));
    const get = fixture.storage.claims.get;
    fixture.storage.claims.get = (namespace, name) => {
      const claim = get(namespace, name);
      return claim && { ...claim, metadata: { ...claim.metadata, uid: 'replaced' } };
    };
    expect(await remove()).toHaveLength(1);
    expect(fixture.claim('data')?.metadata.deletionTimestamp).toBeUndefined();
  });
  it.each([
    ['has been deleted', notFound(PERSISTENT_VOLUME_CLAIMS, 'data')],
    ['has been replaced', conflict(PERSISTENT_VOLUME_CLAIMS, 'data', 'another UID')],
  ])('the deletion of a claim that %s in the meantime succeeds, and the next claim is deleted', async (_, error) => {
    await put('data', owner('uid-web'));
    await put('more', owner('uid-web'));
    fixture.backend.failNext('delete persistentvolumeclaims a/data', error);
    expect(await remove()).toHaveLength(2);
  });
  it('the deletion of a claim that the API cannot delete is retried', async () => {
    await put('data', owner('uid-web'));
    fixture.backend.failNext('delete persistentvolumeclaims a/data', serviceUnavailable('not now'));
    await expect(remove()).rejects.toThrow('not now');
  });
});
