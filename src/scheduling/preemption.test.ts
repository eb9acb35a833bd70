import { expect, test } from 'vitest';
import { containerOf, nodeOf, podOf } from '../api/core/v1/pod/pod-fixtures.ts';
import type { PersistentVolume, PersistentVolumeClaim, Pod, PodSpec } from '../api/generated/types.ts';
import { roomFor } from './preemption.ts';
import { BIND_COMPLETED, type VolumeFacts } from './volume-claims.ts';
import { volumeIndex } from './volume-search.ts';

let created = 0;
const podWith = (name: string, cpu: string, priority: number, spec: Partial<PodSpec> = {}): Pod => {
  const pod = podOf({
    ...{ containers: [containerOf('app', { resources: { requests: { cpu } } })], nodeName: 'n', priority },
    ...spec,
  });
  const creationTimestamp = `2026-01-01T00:00:${String(created++).padStart(2, '0')}Z`;
  return { ...pod, metadata: { ...pod.metadata, name, uid: name, creationTimestamp } };
};
const ending = (pod: Pod): Pod => ({
  ...pod,
  metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
});
const mirror = (pod: Pod): Pod => ({
  ...pod,
  metadata: { ...pod.metadata, annotations: { 'kubernetes.io/config.mirror': 'x' } },
});
const high = (cpu: string, spec: Partial<PodSpec> = {}): Pod => {
  const pod = podWith('high', cpu, 10, spec);
  delete pod.spec?.nodeName;
  return pod;
};

/** On nodes of two CPUs. */
test.each<[string, Pod, Pod[], string | undefined]>([
  ['one of lower priority goes', high('1'), [podWith('a', '2', 0)], 'n: a'],
  ['one of equal priority stays', high('1'), [podWith('a', '2', 10)], undefined],
  [
    'what fits beside it stays, the more important first',
    high('1'),
    [podWith('a', '1', 0), podWith('b', '1', 5)],
    'n: a',
  ],
  ['of equal ones the older stays', high('1'), [podWith('a', '1', 0), podWith('b', '1', 0)], 'n: b'],
  ['a small one that fits beside it stays', high('1500m'), [podWith('a', '1', 5), podWith('b', '500m', 0)], 'n: a'],
  ['nobody goes for nothing', high('3'), [podWith('a', '2', 0)], undefined],
  [
    'nobody goes for a Pod that preempts nobody',
    high('1', { preemptionPolicy: 'Never' }),
    [podWith('a', '2', 0)],
    undefined,
  ],
  [
    'nobody goes where the node is none for it',
    high('1', { nodeSelector: { disk: 'ssd' } }),
    [podWith('a', '2', 0)],
    undefined,
  ],
  ['who ends already makes room first', high('1'), [podWith('a', '1', 0), ending(podWith('b', '1', 5))], 'n: '],
  ['what has ended counts not', high('2'), [{ ...podWith('a', '2', 0), status: { phase: 'Failed' } }], 'n: '],
  [
    'one with the same port of the node goes, others stay',
    high('500m', { containers: [containerOf('app', { ports: [{ containerPort: 1, hostPort: 80 }] })] }),
    [80, 81].map((hostPort) =>
      podWith(`port-${hostPort}`, '0', 0, {
        containers: [containerOf('app', { ports: [{ containerPort: 1, hostPort }] })],
      }),
    ),
    'n: port-80',
  ],
  ['a mirror stays', high('1'), [mirror(podWith('a', '2', 0))], undefined],
])('%s', (_, pod, pods, expected) => {
  const room = roomFor(pod, [nodeOf('n')], pods);
  expect(room && `${room.node}: ${room.victims.map(({ metadata }) => metadata.name)}`).toBe(expected);
});

test('of two nodes the one whose victims are less important, then fewer', () => {
  const nodes = [nodeOf('m'), nodeOf('n')];
  const on = (nodeName: string) => ({ nodeName });
  const room = (...pods: Pod[]) => roomFor(high('2'), nodes, pods)?.node;
  expect(room(podWith('a', '2', 5, on('m')), podWith('b', '2', 1, on('n')))).toBe('n');
  expect(room(podWith('a', '1', 0, on('m')), podWith('b', '1', 0, on('m')), podWith('c', '2', 0, on('n')))).toBe('n');
});

test('the Pod with the claim that one Pod only may use goes, others stay', () => {
  const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }];
  const claim = (namespace: string, name: string): PersistentVolumeClaim => ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { namespace, name, annotations: { [BIND_COMPLETED]: 'yes' } },
    spec: { accessModes: ['ReadWriteOncePod'], volumeName: 'v' },
  });
  const volume = (name: string): PersistentVolume => ({
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name },
  });
  const facts: VolumeFacts = { claim, volume, search: () => volumeIndex(), storageClass: () => undefined };
  const pods = [podWith('with', '100m', 0, { volumes }), podWith('without', '100m', 0)];
  const { victims } = roomFor(high('1', { volumes }), [nodeOf('n')], pods, facts) ?? {};
  expect(victims?.map(({ metadata }) => metadata.name)).toEqual(['with']);
});
