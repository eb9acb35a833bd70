import { expect, test } from 'vitest';
import type { KubeObject } from '../../machinery/meta.ts';
import { hintsFor } from '../hints.ts';
import { idlenessOf } from './idle-workloads.ts';

const HINTS = hintsFor({}, { KUBECONFIG: '/var/lib/lifepod/kubeconfig' }, undefined, false);
const objectOf = (kind: string, more: object): KubeObject => ({
  apiVersion: 'v1',
  kind,
  metadata: { name: 'x', namespace: 'n', generation: 2 },
  ...more,
});
const template = { spec: { nodeSelector: { disk: 'fast' }, containers: [] } };
const counted = { observedGeneration: 2, desiredNumberScheduled: 0 };

test.each([
  ['a suspended Job', 'Job', { spec: { suspend: true } }, 'it is suspended'],
  ['a suspended CronJob', 'CronJob', { spec: { suspend: true } }, 'it is suspended'],
  ['a paused Deployment', 'Deployment', { spec: { paused: true } }, 'it is paused'],
  ['a paused Deployment with Pods', 'Deployment', { spec: { paused: true }, status: { replicas: 1 } }, undefined],
  ['a paused Deployment that wants no Pods', 'Deployment', { spec: { paused: true, replicas: 0 } }, undefined],
  ['a Job that runs', 'Job', { spec: {} }, undefined],
  [
    'a DaemonSet without a node',
    'DaemonSet',
    { spec: { template }, status: counted },
    'no node fits it; its nodeSelector is disk=fast',
  ],
  ['a DaemonSet whose taints fit no node', 'DaemonSet', { status: counted }, 'no node fits it'],
  ['a DaemonSet with a node', 'DaemonSet', { status: { ...counted, desiredNumberScheduled: 1 } }, undefined],
  ['a changed DaemonSet', 'DaemonSet', { status: { ...counted, observedGeneration: 1 } }, undefined],
  ['a new DaemonSet', 'DaemonSet', { status: { desiredNumberScheduled: 0 } }, undefined],
])('%s creates no Pods because: %s', (_, kind, more, cause) => {
  expect(idlenessOf(kind, objectOf(kind, more), HINTS)?.cause).toBe(cause);
});

test('a workload without Pods names the command that lets it create them', () => {
  expect(idlenessOf('Job', objectOf('Job', { spec: { suspend: true } }), HINTS)?.action).toEqual({
    description: 'resume it',
    command: `kubectl patch job x -n n -p '{"spec":{"suspend":false}}'`,
  });
  expect(
    idlenessOf('DaemonSet', objectOf('DaemonSet', { spec: { template }, status: counted }), HINTS)?.action,
  ).toEqual({
    description: 'label a node as it requires, or change its nodeSelector, affinity or tolerations',
    command: 'kubectl label node NODE disk=fast',
  });
});
