import { expect, test } from 'vitest';
import { containerOf, nodeOf, podOf } from '../api/core/v1/pod/pod-fixtures.ts';
import type {
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  PodDisruptionBudget,
  PodSpec,
} from '../api/generated/types.ts';
import { podsByNode } from './node-pods.ts';
import { roomFor } from './preemption.ts';
import { BIND_COMPLETED, type VolumeFacts } from './volume-claims.ts';
import { volumeIndex } from './volume-search.ts';

let created = 0;
const podWith = (name: string, cpu: string, priority: number, spec: Partial<PodSpec> = {}): Pod => {
  const pod = podOf({
    containers: [containerOf('app', { resources: { requests: { cpu } } })],
    nodeName: 'n',
    priority,
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

/** The title, the Pod, the other Pods, and the chosen node with its victims; undefined if none is chosen. Each node has two CPUs. */
test.each<[string, Pod, Pod[], string | undefined]>([
  ['a Pod of lower priority is preempted', high('1'), [podWith('a', '2', 0)], 'n: a'],
  ['a Pod of equal priority is not preempted', high('1'), [podWith('a', '2', 10)], undefined],
  [
    'only the less important of two Pods is preempted if that is sufficient',
    high('1'),
    [podWith('a', '1', 0), podWith('b', '1', 5)],
    'n: a',
  ],
  [
    'the older of two Pods of equal priority is not preempted',
    high('1'),
    [podWith('a', '1', 0), podWith('b', '1', 0)],
    'n: b',
  ],
  [
    'a small Pod that still fits is not preempted',
    high('1500m'),
    [podWith('a', '1', 5), podWith('b', '500m', 0)],
    'n: a',
  ],
  ['no Pod is preempted if preempting all Pods is not sufficient', high('3'), [podWith('a', '2', 0)], undefined],
  [
    'no Pod is preempted for a Pod with preemptionPolicy Never',
    high('1', { preemptionPolicy: 'Never' }),
    [podWith('a', '2', 0)],
    undefined,
  ],
  [
    'no Pod is preempted on a node that the Pod does not select',
    high('1', { nodeSelector: { disk: 'ssd' } }),
    [podWith('a', '2', 0)],
    undefined,
  ],
  [
    'no Pod is preempted if a terminating one leaves enough room',
    high('1'),
    [podWith('a', '1', 0), ending(podWith('b', '1', 5))],
    'n: ',
  ],
  [
    'a terminated Pod does not use resources',
    high('2'),
    [{ ...podWith('a', '2', 0), status: { phase: 'Failed' } }],
    'n: ',
  ],
  [
    'only the Pod with the same host port is preempted',
    high('500m', { containers: [containerOf('app', { ports: [{ containerPort: 1, hostPort: 80 }] })] }),
    [80, 81].map((hostPort) =>
      podWith(`port-${hostPort}`, '0', 0, {
        containers: [containerOf('app', { ports: [{ containerPort: 1, hostPort }] })],
      }),
    ),
    'n: port-80',
  ],
  ['a mirror Pod is not preempted', high('1'), [mirror(podWith('a', '2', 0))], undefined],
])('preemption: %s', (_, pod, pods, expected) => {
  const room = roomFor(pod, [nodeOf('n')], podsByNode(pods));
  expect(room && `${room.node}: ${room.victims.map(({ metadata }) => metadata.name)}`).toBe(expected);
});

test('preemption selects the node whose victims are less important, then the node with fewer victims', () => {
  const nodes = [nodeOf('m'), nodeOf('n')];
  const on = (nodeName: string) => ({ nodeName });
  const room = (...pods: Pod[]) => roomFor(high('2'), nodes, podsByNode(pods))?.node;
  expect(room(podWith('a', '2', 5, on('m')), podWith('b', '2', 1, on('n')))).toBe('n');
  expect(room(podWith('a', '1', 0, on('m')), podWith('b', '1', 0, on('m')), podWith('c', '2', 0, on('n')))).toBe('n');
});

test('preemption: only the Pod that uses the same ReadWriteOncePod claim is preempted', () => {
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
  const { victims } = roomFor(high('1', { volumes }), [nodeOf('n')], podsByNode(pods), { volumes: facts }) ?? {};
  expect(victims?.map(({ metadata }) => metadata.name)).toEqual(['with']);
});

const labeled = (pod: Pod, app: string): Pod => ({ ...pod, metadata: { ...pod.metadata, labels: { app } } });
const budget = (app: string, disruptionsAllowed: number, more: object = {}): PodDisruptionBudget => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: app, namespace: podOf({ containers: [] }).metadata.namespace },
  spec: { selector: { matchLabels: { app } } },
  status: { disruptionsAllowed, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0, ...more },
});

test.each<[string, PodDisruptionBudget[], Pod[], string]>([
  [
    'keeps the Pod whose budget allows no disruption, although it is less important',
    [budget('guarded', 0)],
    [labeled(podWith('guarded', '1', 0), 'guarded'), podWith('free', '1', 5)],
    'free',
  ],
  [
    'preempts a Pod whose budget allows it',
    [budget('guarded', 1)],
    [labeled(podWith('guarded', '1', 0), 'guarded'), podWith('free', '1', 5)],
    'guarded',
  ],
  [
    'preempts an evicted Pod, which the budget counts already',
    [budget('guarded', 0, { disruptedPods: { guarded: '2026-01-01T00:00:00Z' } })],
    [labeled(podWith('guarded', '1', 0), 'guarded'), podWith('free', '1', 5)],
    'guarded',
  ],
  [
    'violates a budget if nothing else makes room',
    [budget('guarded', 0)],
    [labeled(podWith('guarded', '2', 0), 'guarded')],
    'guarded',
  ],
])('preemption %s', (_, budgets, pods, expected) => {
  const { victims } = roomFor(high('1'), [nodeOf('n')], podsByNode(pods), { budgets }) ?? {};
  expect(victims?.map(({ metadata }) => metadata.name).join()).toBe(expected);
});

test('preemption selects the node with the fewest victims that violate a budget, then that with less important ones', () => {
  const nodes = [nodeOf('m'), nodeOf('n')];
  const on = (nodeName: string, name: string, priority: number) => podWith(name, '1', priority, { nodeName });
  const pods = [
    labeled(on('m', 'a', 0), 'guarded'),
    labeled(on('m', 'b', 0), 'guarded'),
    labeled(on('n', 'c', 5), 'guarded'),
    labeled(on('n', 'd', 5), 'other'),
  ];
  const node = (...budgets: PodDisruptionBudget[]) => roomFor(high('2'), nodes, podsByNode(pods), { budgets })?.node;
  expect(node()).toBe('m');
  expect(node(budget('guarded', 0))).toBe('n');
  expect(node(budget('guarded', 1))).toBe('n');
  expect(node(budget('guarded', 2))).toBe('m');
  expect(node(budget('guarded', 0), budget('other', 0))).toBe('m');
});
