import { beforeEach, describe, expect, it } from 'vitest';
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/generated/types.ts';
import { NODES, PERSISTENT_VOLUME_CLAIMS } from '../../api/resources.ts';
import { serviceUnavailable } from '../../machinery/status.ts';
import { BIND_COMPLETED, SELECTED_NODE } from '../../scheduling/volume-claims.ts';
import { reconcileClaim } from './claims.ts';
import { BOUND_BY_CONTROLLER } from './local-path.ts';
import { type StorageFixture, storageFixture } from './storage-fixture.ts';

let fixture: StorageFixture;
beforeEach(async () => {
  fixture = await storageFixture();
});

const BOUND = { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' } };
const COMPLETED = { [BIND_COMPLETED]: 'yes' };
const annotated = (annotations: Record<string, string>) => ({ metadata: { name: '', annotations } });
async function reconcile(change: Partial<PersistentVolumeClaim> = {}): Promise<string[]> {
  const claim = await fixture.putClaim('data', change);
  fixture.writes();
  await reconcileClaim(fixture.storage, claim);
  return fixture.writes();
}
const NO_WRITES: string[] = [];
const BINDING = [
  'update persistentvolumes /disk',
  'update persistentvolumes/status /disk',
  'update persistentvolumeclaims a/data',
  'update persistentvolumeclaims/status a/data',
];

describe('a claim that names a volume', () => {
  const naming = { spec: { volumeName: 'disk' } };
  it('a claim that names a free volume is bound to it, and only the volume was chosen by the controller', async () => {
    await fixture.putVolume('disk', annotated({ kept: 'x' }));
    expect(await reconcile(naming)).toEqual(BINDING);
    const uid = fixture.claim('data')?.metadata.uid;
    expect(fixture.volume('disk')).toMatchObject({
      metadata: { annotations: { kept: 'x', [BOUND_BY_CONTROLLER]: 'yes' } },
      spec: { claimRef: { namespace: 'a', name: 'data', uid } },
      status: { phase: 'Bound' },
    });
    expect(fixture.claim('data')?.metadata.annotations).toEqual(COMPLETED);
    expect(fixture.claim('data')?.status).toEqual(BOUND);
    expect(fixture.reported).toEqual([]);
  });
  it('a claim that names a missing volume waits for the volume', async () => {
    await fixture.putVolume('other');
    expect(await reconcile(naming)).toEqual(NO_WRITES);
    expect(fixture.reported).toEqual([]);
  });
  it.each([
    ['the same name in another namespace', { namespace: 'b', name: 'data' }],
    ['another name', { namespace: 'a', name: 'other' }],
    ['another UID', { namespace: 'a', name: 'data', uid: 'former' }],
  ])('a claim is not bound to a volume that is reserved for a claim with %s', async (_, claimRef) => {
    await fixture.putVolume('disk', { spec: { claimRef } });
    expect(await reconcile(naming)).toEqual(NO_WRITES);
    expect(fixture.reported).toEqual([]);
  });
  it('a claim is bound to a volume that is reserved for its name, even if the volume is too small', async () => {
    const claimRef = { namespace: 'a', name: 'data' };
    await fixture.putVolume('disk', { spec: { capacity: { storage: '1Mi' }, claimRef } });
    expect(await reconcile(naming)).toEqual(BINDING);
    expect(fixture.volume('disk')?.metadata.annotations).toBeUndefined();
    expect(fixture.claim('data')?.status?.capacity).toEqual({ storage: '1Mi' });
  });
  it('a claim is not bound to a free volume that is too small, which an Event reports', async () => {
    await fixture.putVolume('disk', { spec: { capacity: { storage: '1Mi' } } });
    expect(await reconcile(naming)).toEqual(NO_WRITES);
    expect(fixture.reported).toEqual([
      'Warning VolumeMismatch data: Cannot bind to requested volume "disk": requested PV is too small',
    ]);
  });
});

describe('a claim without a volume', () => {
  it('a claim that is being deleted is not bound', async () => {
    await fixture.putVolume('disk');
    await fixture.putClaim('data');
    await fixture.backend.remove(PERSISTENT_VOLUME_CLAIMS, 'a', 'data');
    await reconcileClaim(fixture.storage, fixture.claim('data') as PersistentVolumeClaim);
    expect(fixture.writes()).toEqual(NO_WRITES);
  });
  it('a claim is bound to the volume that the search finds, and both were chosen by the controller', async () => {
    await fixture.putVolume('disk');
    expect(await reconcile(annotated({ kept: 'x' }))).toEqual(BINDING);
    const { metadata, spec } = fixture.claim('data') as PersistentVolumeClaim;
    expect(metadata.annotations).toEqual({ kept: 'x', ...COMPLETED, [BOUND_BY_CONTROLLER]: 'yes' });
    expect(spec?.volumeName).toBe('disk');
    expect(fixture.volume('disk')?.metadata.annotations).toEqual({ [BOUND_BY_CONTROLLER]: 'yes' });
  });
  it('a binding that another engine began is completed without repeated writes', async () => {
    const { metadata } = await fixture.putClaim('data');
    const claimRef = { namespace: 'a', name: 'data', uid: metadata.uid ?? '' };
    await fixture.putVolume('disk', { spec: { claimRef }, status: { phase: 'Bound' } });
    expect(await reconcile()).toEqual(BINDING.slice(2));
  });
  it.each([
    ['waits for its first consumer', 'WaitForFirstConsumer', {}, NO_WRITES],
    ['is bound once a node is selected', 'WaitForFirstConsumer', { [SELECTED_NODE]: 'n' }, BINDING],
    ['is bound immediately if its class binds immediately', 'Immediate', {}, BINDING],
  ])('a claim of a class %s', async (_, volumeBindingMode, annotations, writes) => {
    await fixture.putClass('slow', { volumeBindingMode });
    await fixture.putVolume('disk', { spec: { storageClassName: 'slow' } });
    expect(await reconcile({ ...annotated(annotations), spec: { storageClassName: 'slow' } })).toEqual(writes);
    expect(fixture.reported).toEqual(
      writes === NO_WRITES
        ? ['Normal WaitForFirstConsumer data: waiting for first consumer to be created before binding']
        : [],
    );
  });
  it('a claim whose node is selected is bound to a volume that this node can use', async () => {
    const on = (node: string) => ({
      required: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node] }] }],
      },
    });
    for (const name of ['n', 'm'])
      await fixture.backend.set(NODES, {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name, labels: { 'kubernetes.io/hostname': name } },
      });
    await fixture.putVolume('elsewhere', { spec: { nodeAffinity: on('m') } });
    await fixture.putVolume('here', { spec: { nodeAffinity: on('n') } });
    await reconcile(annotated({ [SELECTED_NODE]: 'n' }));
    expect(fixture.claim('data')?.spec?.volumeName).toBe('here');
  });
});

describe('a bound claim', () => {
  const bound = (phase?: string): Partial<PersistentVolumeClaim> => ({
    ...annotated(COMPLETED),
    spec: { volumeName: 'disk' },
    status: phase === undefined ? undefined : { phase },
  });
  async function withVolume(phase: string, change: (uid: string) => Partial<PersistentVolume>): Promise<void> {
    const { metadata } = await fixture.putClaim('data', bound(phase));
    await fixture.putVolume('disk', change(metadata.uid ?? ''));
  }
  const reserved = (uid: string): Partial<PersistentVolume> => ({
    spec: { claimRef: { namespace: 'a', name: 'data', uid } },
    status: { phase: 'Bound' },
  });
  it('a bound claim with its reserved volume needs no write', async () => {
    await withVolume('Bound', reserved);
    expect(await reconcile(bound('Bound'))).toEqual(NO_WRITES);
  });
  it.each(['Pending', 'Lost'])('a bound claim in the phase %s gets the phase Bound', async (phase) => {
    await withVolume(phase, reserved);
    expect(await reconcile(bound(phase))).toEqual(['update persistentvolumeclaims/status a/data']);
    expect(fixture.claim('data')?.status).toEqual(BOUND);
  });
  it('a bound claim whose volume only the API has is not lost', async () => {
    await withVolume('Bound', reserved);
    fixture.unseen.add('disk');
    expect(await reconcile(bound('Bound'))).toEqual(NO_WRITES);
    expect(fixture.reported).toEqual([]);
  });
  it('a bound claim is not lost if the API cannot be read', async () => {
    fixture.backend.failNext('get persistentvolumes', serviceUnavailable('not now'));
    await expect(reconcile(bound('Bound'))).rejects.toThrow('not now');
    expect(fixture.claim('data')?.status?.phase).toBe('Bound');
  });
  it.each([
    [
      'whose volume is missing',
      undefined,
      'Warning ClaimLost data: Bound claim has lost its PersistentVolume. Data on the volume is lost!',
    ],
    [
      'whose volume is reserved for another claim',
      { namespace: 'a', name: 'other' },
      'Warning ClaimMisbound data: Two claims are bound to the same volume, this one is bound incorrectly',
    ],
  ])('a bound claim %s is lost, which one Event reports', async (_, claimRef, event) => {
    if (claimRef !== undefined) await fixture.putVolume('disk', { spec: { claimRef } });
    expect(await reconcile(bound('Bound'))).toEqual(['update persistentvolumeclaims/status a/data']);
    expect(fixture.claim('data')?.status).toEqual({ phase: 'Lost' });
    expect(fixture.reported).toEqual([event]);
    expect(await reconcile(bound('Lost'))).toEqual(NO_WRITES);
    expect(fixture.reported).toHaveLength(1);
  });
  it('a volume that is not reserved yet is bound to the claim that its creator marked as bound', async () => {
    await fixture.putVolume('disk');
    expect(await reconcile(bound('Pending'))).toEqual(BINDING);
    expect(fixture.claim('data')?.metadata.annotations).toEqual(COMPLETED);
  });
  it('a volume that is too small is not bound to the claim that its creator marked as bound', async () => {
    await fixture.putVolume('disk', { spec: { capacity: { storage: '1Mi' } } });
    expect(await reconcile(bound('Pending'))).toEqual(NO_WRITES);
    expect(fixture.reported).toEqual([expect.stringMatching(/^Warning VolumeMismatch data: /)]);
  });
});
