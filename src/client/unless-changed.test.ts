import { expect, test } from 'vitest';
import type { Pod } from '../api/generated/types.ts';
import { PODS } from '../api/resources.ts';
import { notFound, objectModified, serviceUnavailable } from '../machinery/status.ts';
import { registryBackend } from './registry-fixture.ts';
import { clientOf } from './typed-client.ts';
import { deleteWithStatus, unlessChanged } from './unless-changed.ts';

test.each([
  ['NotFound', notFound(PODS, 'p')],
  ['Conflict', objectModified(PODS, 'p')],
])('a write that fails with %s resolves with undefined', async (_, error) => {
  expect(await unlessChanged(Promise.reject(error))).toBeUndefined();
});

test('a write that fails for another reason rejects, and a write that succeeds returns its result', async () => {
  const error = serviceUnavailable('not now');
  await expect(unlessChanged(Promise.reject(error))).rejects.toBe(error);
  expect(await unlessChanged(Promise.resolve(1))).toBe(1);
});

const pod: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'a', finalizers: ['example.com/keep'] },
  spec: { nodeName: 'n', containers: [{ name: 'app', image: 'x' }] },
};

test('a Pod is deleted after its status is written; a Pod that has replaced it remains unchanged', async () => {
  const backend = await registryBackend();
  const pods = clientOf(backend).resource<Pod>(PODS);
  const created = await backend.set(PODS, pod);
  const other = { ...created, metadata: { ...created.metadata, uid: 'other' } };
  const current = (): Pod => backend.objects(PODS)[0] as Pod;
  expect(await deleteWithStatus(pods, other, { phase: 'Failed' })).toBe(false);
  expect(await deleteWithStatus(pods, other, undefined)).toBe(false);
  expect([current().status?.phase, current().metadata.deletionTimestamp]).toEqual(['Pending', undefined]);
  backend.calls.length = 0;
  expect(await deleteWithStatus(pods, created, { phase: 'Failed' }, { gracePeriodSeconds: 0 })).toBe(true);
  expect(backend.calls).toEqual(['patch pods/status a/p', 'delete pods a/p']);
  expect(current().status?.phase).toBe('Failed');
  expect(current().metadata.deletionGracePeriodSeconds).toBe(0);
});
