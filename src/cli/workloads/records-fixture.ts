import type { Pod, PodRecord } from '../../api/generated/types.ts';
import { POD_RECORDS } from '../../api/lifepod.io/v1/pod-record/index.ts';
import { PODS } from '../../api/resources.ts';
import { registryBackend } from '../../client/registry-fixture.ts';

export const GONE = '0123abcd-0000-4000-8000-000000000000';

/** Starts a registry with the Pod `web` and the record of the deleted Pod `gone`, whose UID is GONE, both in the namespace a. */
export async function webAndGone() {
  const backend = await registryBackend({ namespaces: ['a', 'b'] });
  await backend.set<Pod>(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'a' },
    spec: { containers: [{ name: 'app', image: 'i' }] },
  });
  await backend.set<PodRecord>(POD_RECORDS, {
    apiVersion: 'lifepod.io/v1',
    kind: 'PodRecord',
    metadata: { name: `${GONE}.0`, namespace: 'a' },
    podName: 'gone',
    podUID: GONE,
    transitions: [{ key: 'Gone', type: 'Gone', at: '2026-01-31T12:00:00.000000Z' }],
  });
  return backend;
}
