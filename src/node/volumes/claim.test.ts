import { existsSync, mkdtempSync, readlinkSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { Pod, Volume } from '../../api/generated/types.ts';
import { NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '../../api/resources.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { setUpClaim } from './claim.ts';

const folder = mkdtempSync(join(tmpdir(), 'lifepod-claim-'));
afterAll(() => rmSync(folder, { recursive: true }));

const { signal } = new AbortController();
const POD: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'pod', namespace: 'a', uid: 'pod-uid' },
  spec: { containers: [] },
};
const OF_CLAIM: Volume = { name: 'data', persistentVolumeClaim: { claimName: 'c' } };
const EPHEMERAL: Volume = { name: 'data', ephemeral: { volumeClaimTemplate: { spec: {} } } };

const claim = (spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'c', namespace: 'a' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, volumeName: 'v', ...spec },
  status: { phase: 'Bound' },
});

const persistentVolume = (spec: object) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: 'v' },
  spec: { accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' }, hostPath: { path: '/tmp' }, ...spec },
});

const claimRef = (uid?: string) => ({ claimRef: { kind: 'PersistentVolumeClaim', namespace: 'a', name: 'c', uid } });

interface Case {
  claim?: object;
  /** Returns fields for the spec of the PersistentVolume. Absent if the PersistentVolume does not exist. */
  volume?: (uid: string) => object;
  source?: Volume;
  message: RegExp;
}

const CASES: Record<string, Case> = {
  'whose claim does not exist': { message: /: failed to fetch PVC from API server: .*"c" not found$/ },
  'whose claim is not bound': { claim: { ...claim(), status: { phase: 'Pending' } }, message: /: PVC is not bound$/ },
  'whose claim names no volume': { claim: claim({ volumeName: undefined }), message: /: PVC is not bound$/ },
  'whose claim was not created for the ephemeral volume of the Pod': {
    claim: { ...claim(), metadata: { name: 'pod-data', namespace: 'a' } },
    source: EPHEMERAL,
    message: /: PVC a\/pod-data was not created for the Pod \(pod is not owner\)$/,
  },
  'whose volume does not exist': {
    claim: claim(),
    message: /: failed to fetch PV v from API server: .*"v" not found$/,
  },
  'whose volume is bound to no claim': {
    claim: claim(),
    volume: () => ({}),
    message: /: found PV object v but it has a nil pvc\.Spec\.ClaimRef$/,
  },
  'whose volume is bound to another claim': {
    claim: claim(),
    volume: () => claimRef('other'),
    message: /: found PV object v but its pv\.Spec\.ClaimRef\.UID other does not point to claim\.UID /,
  },
  'that is a block device': {
    claim: claim({ volumeMode: 'Block' }),
    volume: (uid) => ({ ...claimRef(uid), volumeMode: 'Block' }),
    message: /: block volumes are not supported$/,
  },
};

async function setUpBound(spec: object, at: string): Promise<void> {
  const backend = await registryBackend();
  const stored = await backend.set(PERSISTENT_VOLUME_CLAIMS, claim() as KubeObject);
  await backend.set(PERSISTENT_VOLUMES, persistentVolume({ ...claimRef(stored.metadata.uid), ...spec }));
  await backend.set(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n', labels: { zone: 'a' } } });
  const options = { client: clientOf(backend), pod: POD, nodeName: 'n', warn: () => undefined };
  await setUpClaim({ ...options, alone: (_name, operation) => operation() }, OF_CLAIM, at, signal);
}

test('a hostPath volume is set up as a link to its path, which is created if it is missing', async () => {
  const path = join(folder, 'missing/host');
  await setUpBound({ hostPath: { path } }, join(folder, 'pod/host'));
  expect(readlinkSync(join(folder, 'pod/host'))).toBe(path);
  expect(statSync(path).mode & 0o7777).toBe(0o755);
});

test('a hostPath volume with a type that its path does not have is not set up', async () => {
  const path = join(folder, 'none');
  const setUp = setUpBound({ hostPath: { path, type: 'Directory' } }, join(folder, 'pod/none'));
  await expect(setUp).rejects.toThrow('hostPath type check failed');
  expect(existsSync(path)).toBe(false);
});

test('the missing path of a local volume is not created', async () => {
  const path = join(folder, 'missing/local');
  const matchExpressions = [{ key: 'zone', operator: 'In', values: ['a'] }];
  const nodeAffinity = { required: { nodeSelectorTerms: [{ matchExpressions }] } };
  const setUp = setUpBound({ hostPath: undefined, local: { path }, nodeAffinity }, join(folder, 'pod/local'));
  await expect(setUp).rejects.toThrow(`path "${path}" does not exist`);
  expect(existsSync(path)).toBe(false);
});

test.each(Object.entries(CASES))('a volume %s is not mounted', async (_, { claim, volume, source, message }) => {
  const backend = await registryBackend();
  const stored = claim && (await backend.set(PERSISTENT_VOLUME_CLAIMS, claim as ReturnType<typeof persistentVolume>));
  const uid = (stored as { metadata: { uid?: string } } | undefined)?.metadata.uid ?? '';
  if (volume !== undefined) await backend.set(PERSISTENT_VOLUMES, persistentVolume(volume(uid)));
  const options = { client: clientOf(backend), pod: POD, nodeName: 'n', warn: () => undefined };
  const setUp = setUpClaim(
    { ...options, alone: (_name, operation) => operation() },
    source ?? OF_CLAIM,
    join(folder, 'data'),
    signal,
  );
  await expect(setUp).rejects.toThrow(/^error processing PVC a\/(c|pod-data)/);
  await expect(setUp).rejects.toThrow(message);
});
