import { describe, expect, it } from 'vitest';
import { containerOf, defaulted, nodeOf, podOf } from '../api/core/v1/pod/pod-fixtures.ts';
import type { Node, Pod, TopologySpreadConstraint } from '../api/generated/types.ts';
import { podsByNode } from './node-pods.ts';
import { roomFor } from './preemption.ts';
import { schedule } from './schedule.ts';

const UNEVEN = "node(s) didn't match pod topology spread constraints";
const HOST = 'kubernetes.io/hostname';

const node = (name: string, labels: Record<string, string> = {}, spec: object = {}): Node => {
  const made = nodeOf(name, { spec });
  made.metadata.labels = { ...made.metadata.labels, [HOST]: name, ...labels };
  return made;
};
const over = (topologyKey: string, more: Partial<TopologySpreadConstraint> = {}): TopologySpreadConstraint => ({
  maxSkew: 1,
  topologyKey,
  whenUnsatisfiable: 'DoNotSchedule',
  labelSelector: { matchLabels: { app: 'db' } },
  ...more,
});
let made = 0;
const pod = (spec: object = {}, metadata: object = {}): Pod => {
  const object = defaulted(podOf({ containers: [containerOf('app', {})], ...spec }));
  const { namespace = 'default' } = object.metadata;
  return {
    ...object,
    metadata: {
      ...object.metadata,
      namespace,
      name: `p${++made}`,
      uid: `u${made}`,
      labels: { app: 'db' },
      ...metadata,
    },
  };
};
const spreading = (...topologySpreadConstraints: TopologySpreadConstraint[]): Pod => pod({ topologySpreadConstraints });
const on = (counts: Record<string, number>, metadata: object = {}, spec: object = {}): Pod[] =>
  Object.entries(counts).flatMap(([nodeName, count]) =>
    Array.from({ length: count }, () => pod({ nodeName, ...spec }, metadata)),
  );
const three = ['a', 'b', 'c'].map((name) => node(name));
const zoned = [node('a', { zone: 'x' }), node('b', { zone: 'x' }), node('c', { zone: 'y' })];

function fitting(subject: Pod, nodes: readonly Node[], pods: readonly Pod[]): string {
  const podsOn = podsByNode(pods);
  return nodes
    .map(({ metadata }) => metadata.name)
    .filter((name) => 'node' in schedule(bindableTo(subject, name), nodes, podsOn))
    .join(' ');
}
/** Allows only this node; the other nodes still count as domains. */
const bindableTo = (subject: Pod, name: string): Pod => ({
  ...subject,
  spec: { ...subject.spec, containers: subject.spec?.containers ?? [], nodeName: name },
});

describe('a Pod that spreads over nodes', () => {
  it.each<[string, Pod, readonly Node[], Pod[], string]>([
    ['fits everywhere if there are no others', spreading(over(HOST)), three, [], 'a b c'],
    ['fits on the nodes with the fewest', spreading(over(HOST)), three, on({ a: 1 }), 'b c'],
    ['fits on the last empty node', spreading(over(HOST)), three, on({ a: 1, b: 1 }), 'c'],
    ['fits everywhere if the numbers are equal', spreading(over(HOST)), three, on({ a: 1, b: 1, c: 1 }), 'a b c'],
    ['may exceed the minimum by maxSkew', spreading(over(HOST, { maxSkew: 2 })), three, on({ a: 1, b: 2 }), 'a c'],
    [
      'ignores a constraint that need not hold',
      spreading(over(HOST, { whenUnsatisfiable: 'ScheduleAnyway' })),
      three,
      on({ a: 3 }),
      'a b c',
    ],
    ['ignores Pods with other labels', spreading(over(HOST)), three, on({ a: 3 }, { labels: { app: 'web' } }), 'a b c'],
    ['ignores Pods of other namespaces', spreading(over(HOST)), three, on({ a: 3 }, { namespace: 'other' }), 'a b c'],
    [
      'ignores Pods that are being deleted',
      spreading(over(HOST)),
      three,
      on({ a: 3 }, { deletionTimestamp: '2026-01-01T00:00:00Z' }),
      'a b c',
    ],
    [
      'that its own constraint does not select may make no difference',
      spreading(over(HOST, { labelSelector: { matchLabels: { app: 'web' } } })),
      three,
      on({ a: 1 }, { labels: { app: 'web' } }),
      'a b c',
    ],
    [
      'without a selector counts no Pods',
      spreading({ maxSkew: 1, topologyKey: HOST, whenUnsatisfiable: 'DoNotSchedule' }),
      three,
      on({ a: 3 }),
      'a b c',
    ],
    [
      'counts only Pods with its value of a label key',
      spreading(over(HOST, { matchLabelKeys: ['app'], labelSelector: {} })),
      three,
      [...on({ a: 1 }), ...on({ b: 5 }, { labels: { app: 'web' } })],
      'b c',
    ],
    [
      'does not fit on a node without the label',
      spreading(over('zone')),
      [node('a'), node('b', { zone: 'x' })],
      [],
      'b',
    ],
    ['counts the Pods of a zone together', spreading(over('zone')), zoned, on({ a: 1 }), 'c'],
    ['must fulfil all constraints', spreading(over('zone'), over(HOST)), zoned, on({ a: 1, c: 1 }), 'b'],
    [
      'needs as many domains as minDomains for an equal number',
      spreading(over(HOST, { minDomains: 4 })),
      three,
      on({ a: 1, b: 1, c: 1 }),
      '',
    ],
    [
      'counts a node that is cordoned',
      spreading(over(HOST)),
      [...three.slice(0, 2), node('c', {}, { unschedulable: true })],
      on({ a: 1, b: 1 }),
      '',
    ],
    [
      'ignores a tainted node with nodeTaintsPolicy Honor',
      spreading(over(HOST, { nodeTaintsPolicy: 'Honor' })),
      [...three.slice(0, 2), node('c', {}, { taints: [{ key: 'a', effect: 'NoSchedule' }] })],
      on({ a: 1, b: 1 }),
      'a b',
    ],
    [
      'counts a tainted node by default',
      spreading(over(HOST)),
      [...three.slice(0, 2), node('c', {}, { taints: [{ key: 'a', effect: 'NoSchedule' }] })],
      on({ a: 1, b: 1 }),
      '',
    ],
  ])('%s', (_, subject, nodes, pods, expected) => {
    expect(fitting(subject, nodes, pods)).toBe(expected);
  });

  it('ignores nodes that its node selector excludes, unless nodeAffinityPolicy is Ignore', () => {
    const nodes = [node('a', { disk: 'ssd' }), node('b', { disk: 'ssd' }), node('c')];
    const of = (nodeAffinityPolicy: string): Pod =>
      pod({ nodeSelector: { disk: 'ssd' }, topologySpreadConstraints: [over(HOST, { nodeAffinityPolicy })] });
    const others = on({ a: 1, b: 1 });
    expect(fitting(of('Honor'), nodes, others)).toBe('a b');
    expect(fitting(of('Ignore'), nodes, others)).toBe('');
  });

  it('gets one of three ready nodes each, and never a second Pod on one of them', () => {
    const pods: Pod[] = [];
    for (let i = 0; i < 6; i++) {
      const placement = schedule(spreading(over(HOST)), three, podsByNode(pods));
      pods.push(...on({ [(placement as { node: string }).node]: 1 }));
    }
    expect(Object.values(Object.groupBy(pods, ({ spec }) => spec?.nodeName ?? '')).map((all) => all?.length)).toEqual([
      2, 2, 2,
    ]);
  });

  it('reports how many nodes lack the label and how many have too many Pods', () => {
    const nodes = [node('a', { zone: 'x' }), node('b', { zone: 'y' }, { unschedulable: true }), node('c')];
    const placement = schedule(spreading(over('zone')), nodes, podsByNode(on({ a: 1 })));
    expect(placement).toEqual({
      message: `0/3 nodes are available: 1 ${UNEVEN}, 1 ${UNEVEN} (missing required label), 1 node(s) were unschedulable.`,
    });
  });

  it('preempts Pods of its own kind with a lower priority, as few as make the numbers even', () => {
    const important = pod({ priority: 10, topologySpreadConstraints: [over(HOST)] });
    const nodes = [three[0] as Node, node('b', {}, { unschedulable: true })];
    const others = [...on({ a: 2 }), ...on({ a: 1 }, { labels: { app: 'web' } })];
    const room = roomFor(important, nodes, podsByNode(others));
    expect(room?.node).toBe('a');
    expect(room?.victims.map(({ metadata }) => metadata.labels?.['app'])).toEqual(['db', 'db']);
  });

  it('preempts none if Pods of its priority make the numbers uneven', () => {
    const nodes = [three[0] as Node, node('b', {}, { unschedulable: true })];
    const important = pod({ priority: 10, topologySpreadConstraints: [over(HOST)] });
    expect(roomFor(important, nodes, podsByNode(on({ a: 1 }, {}, { priority: 10 })))).toBeUndefined();
  });
});
