import { expect, test } from 'vitest';
import { DELETION_COST } from '../../api/core/v1/pod/deletion-cost.ts';
import type { Pod } from '../../api/generated/types.ts';
import { podsToDelete } from './deletion-order.ts';
import { NOW, type PodState, podInState } from './replicas-fixture.ts';

function order(states: readonly PodState[], related: Pod[] = []): string {
  const pods = states.map((state, index) => podInState(`p${index}`, state));
  const spare = podInState('spare', { readySeconds: 3000, annotations: { [DELETION_COST]: '2147483647' } });
  return podsToDelete([...pods, spare], related, pods.length, NOW)
    .map(({ metadata }) => metadata.name)
    .join(' ');
}

const cost = (text: string): PodState => ({ readySeconds: 60, annotations: { [DELETION_COST]: text } });

test.each<[title: string, earlier: PodState, later: PodState]>([
  ['a Pod without a node is deleted before one with a node', { node: '', readySeconds: 60 }, { phase: 'Pending' }],
  ['a Pending Pod is deleted before an Unknown one', { phase: 'Pending' }, { phase: 'Unknown' }],
  ['an Unknown Pod is deleted before a Running one', { phase: 'Unknown', readySeconds: 60 }, {}],
  ['a Pod that is not ready is deleted before a ready one', { annotations: { [DELETION_COST]: '9' } }, cost('1')],
  ['a Pod with a lower cost is deleted first', cost('-1'), { ...cost('0'), readySeconds: 1 }],
  ['an invalid cost counts as 0', cost('-1'), cost('-1e3')],
  ['a cost with a plus sign counts as 0', cost('+5'), cost('1')],
  ['a cost with a leading zero counts as 0', cost('05'), cost('1')],
  ['a cost of more than 32 bits counts as 0', cost('2147483648'), cost('1')],
  [
    'a Pod that has been ready for less time is deleted first',
    { readySeconds: 10, ageSeconds: 7000 },
    { readySeconds: 100 },
  ],
  [
    'Pods that have been ready for about the same time are ordered by UID',
    { readySeconds: 100, uid: 'a', restarts: 0 },
    { readySeconds: 90, uid: 'b', restarts: 5 },
  ],
  ['a Pod with more restarts is deleted first', { restarts: 2, ageSeconds: 7000 }, { restarts: 1 }],
  ['a younger Pod is deleted first', { ageSeconds: 10 }, { ageSeconds: 100 }],
  ['Pods of about the same age are ordered by UID', { ageSeconds: 100, uid: 'a' }, { ageSeconds: 90, uid: 'b' }],
])('%s', (_, earlier, later) => {
  expect([order([earlier, later]), order([later, earlier])]).toEqual(['p0 p1', 'p1 p0']);
});

test('a Pod on a node with more related Pods is deleted before one that became ready later', () => {
  const related = ['a', 'b'].map((name) => podInState(name, { node: 'n2' }));
  const deleting = podInState('c', { node: 'n1' });
  deleting.metadata.deletionTimestamp = '2026-01-31T11:00:00Z';
  const inactive = [podInState('d', { node: 'n1', phase: 'Succeeded' }), deleting, deleting];
  const states = [
    { node: 'n1', readySeconds: 1 },
    { node: 'n2', readySeconds: 100 },
  ];
  expect(order(states, [...related, ...inactive])).toBe('p1 p0');
  expect(order(states)).toBe('p0 p1');
});

test('restarts of sidecars count after those of app containers, and other init containers do not count', () => {
  const pods = [1, 2, 3].map((number) => podInState(`p${number}`));
  const status = (restartCount: number) => ({ name: 'init', image: 'x', imageID: '', ready: true, restartCount });
  for (const [index, pod] of pods.entries()) {
    const restartPolicy = index === 0 ? undefined : 'Always';
    Object.assign(pod.spec ?? {}, { initContainers: [{ name: 'init', image: 'x', restartPolicy }] });
    Object.assign(pod.status ?? {}, { initContainerStatuses: [status(9 - index)] });
  }
  expect(podsToDelete(pods, [], 2, NOW).map(({ metadata }) => metadata.name)).toEqual(['p2', 'p3']);
});

test('if all Pods are deleted, their order does not matter', () => {
  const pods = [podInState('p0'), podInState('p1', { node: '' })];
  expect(podsToDelete(pods, [], 2, NOW)).toEqual(pods);
});
