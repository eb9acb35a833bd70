import { describe, expect, it } from 'vitest';
import { containerOf, defaulted, nodeOf, podOf } from '../api/core/v1/pod/pod-fixtures.ts';
import type { Node, Pod, PodAffinityTerm } from '../api/generated/types.ts';
import { cpuMillisOf } from '../machinery/testing.ts';
import { NodePods, podsByNode } from './node-pods.ts';
import { roomFor } from './preemption.ts';
import { schedule } from './schedule.ts';

const HOST = 'kubernetes.io/hostname';
const AFFINITY = "node(s) didn't match pod affinity rules";
const ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules";
const OF_OTHERS = "node(s) didn't satisfy existing pods anti-affinity rules";
const NAMESPACES: Record<string, Record<string, string>> = { default: {}, other: { team: 'red' }, third: {} };
const namespaceLabels = (name: string) => NAMESPACES[name];

const node = (name: string, labels: Record<string, string> = {}): Node => {
  const made = nodeOf(name);
  made.metadata.labels = { ...made.metadata.labels, [HOST]: name, ...labels };
  return made;
};
const NODES = [node('a', { zone: 'x' }), node('b', { zone: 'x' }), node('c', { zone: 'y' }), node('d')];

const db = (more: Partial<PodAffinityTerm> = {}): PodAffinityTerm => ({
  topologyKey: 'zone',
  labelSelector: { matchLabels: { app: 'db' } },
  ...more,
});
const required = (...terms: PodAffinityTerm[]) => ({ requiredDuringSchedulingIgnoredDuringExecution: terms });
const attracted = (...terms: PodAffinityTerm[]): object => ({ affinity: { podAffinity: required(...terms) } });
const repelled = (...terms: PodAffinityTerm[]): object => ({ affinity: { podAntiAffinity: required(...terms) } });

let made = 0;
function pod(spec: object = {}, metadata: object = {}): Pod {
  const object = defaulted(podOf({ containers: [containerOf('app', {})], ...spec }));
  made++;
  const own = { namespace: 'default', name: `p${made}`, uid: `u${made}`, labels: { app: 'web' }, ...metadata };
  return { ...object, metadata: { ...object.metadata, ...own } };
}
const on = (nodeName: string, metadata: object = { labels: { app: 'db' } }, spec: object = {}): Pod =>
  pod({ nodeName, ...spec }, metadata);

/** Returns the nodes on which the Pod fits, separated by spaces. */
const fitting = (subject: Pod, pods: readonly Pod[]): string =>
  NODES.map(({ metadata }) => metadata.name)
    .filter((nodeName) => {
      const only = { ...subject, spec: { containers: [], ...subject.spec, nodeName } };
      return 'node' in schedule(only, NODES, podsByNode(pods), { namespaceLabels });
    })
    .join(' ');

const RED = { namespaceSelector: { matchLabels: { team: 'red' } } };
const inOther = { namespace: 'other', labels: { app: 'db' } };

describe('affinity', () => {
  it.each<[string, Pod, Pod[], string]>([
    ['fits in the domain of a selected Pod', pod(attracted(db())), [on('a')], 'a b'],
    ['fits on the node of a selected Pod', pod(attracted(db({ topologyKey: HOST }))), [on('a')], 'a'],
    ['fits nowhere without a selected Pod', pod(attracted(db())), [on('a', {})], ''],
    ['needs one Pod that all terms select', pod(attracted(db(), db({ topologyKey: HOST }))), [on('a')], 'a'],
    [
      'is not satisfied by a Pod for each term',
      pod(attracted(db(), db({ labelSelector: { matchLabels: { app: 'x' } } }))),
      [on('a'), on('a', { labels: { app: 'x' } })],
      '',
    ],
    ['ignores selected Pods on nodes without the label', pod(attracted(db())), [on('d')], ''],
    ['ignores other namespaces', pod(attracted(db())), [on('a', inOther)], ''],
    ['may name namespaces', pod(attracted(db({ namespaces: ['other'] }))), [on('a', inOther), on('c')], 'a b'],
    ['may select namespaces', pod(attracted(db(RED))), [on('a', inOther), on('c')], 'a b'],
    ['may select all namespaces', pod(attracted(db({ namespaceSelector: {} }))), [on('a', inOther), on('c')], 'a b c'],
    ['selects no Pod without a selector', pod(attracted({ topologyKey: 'zone' })), [on('a')], ''],
    [
      'lets the first of Pods that select themselves start',
      pod(attracted(db()), { labels: { app: 'db' } }),
      [],
      'a b c',
    ],
    ['keeps later ones beside the first', pod(attracted(db()), { labels: { app: 'db' } }), [on('c')], 'c'],
  ])('a Pod with affinity %s', (_, subject, pods, expected) => {
    expect(fitting(subject, pods)).toBe(expected);
  });
});

describe('anti-affinity', () => {
  it.each<[string, Pod, Pod[], string]>([
    ['fits outside of the domains of selected Pods', pod(repelled(db())), [on('a')], 'c d'],
    ['fits beside other Pods', pod(repelled(db())), [on('a', {})], 'a b c d'],
    ['must not match any term', pod(repelled(db({ topologyKey: HOST }), db())), [on('c')], 'a b d'],
    ['ignores other namespaces', pod(repelled(db())), [on('a', inOther)], 'a b c d'],
    ['may select namespaces', pod(repelled(db(RED))), [on('a', inOther)], 'c d'],
    [
      'is kept away from itself',
      pod(repelled(db()), { labels: { app: 'db' } }),
      [on('a', undefined, repelled(db()))],
      'c d',
    ],
  ])('a Pod with anti-affinity %s', (_, subject, pods, expected) => {
    expect(fitting(subject, pods)).toBe(expected);
  });

  it('a Pod without rules keeps away from Pods whose anti-affinity selects it', () => {
    const web = db({ labelSelector: { matchLabels: { app: 'web' } } });
    expect(fitting(pod(), [on('a', undefined, repelled(web))])).toBe('c d');
    expect(fitting(pod({}, { labels: { app: 'x' } }), [on('a', undefined, repelled(web))])).toBe('a b c d');
    const guard = on('a', { namespace: 'third', labels: {} }, repelled({ ...web, ...RED }));
    expect(fitting(pod(), [guard])).toBe('a b c d');
    expect(fitting(pod({}, { namespace: 'other' }), [guard])).toBe('c d');
  });
});

it('label keys that an older lifepod has not added to the selectors count', () => {
  const own = db({ labelSelector: { matchLabels: { app: 'db' } }, matchLabelKeys: ['hash'] });
  const old = on('a', { labels: { app: 'db', hash: '1' } }, repelled(own));
  expect(fitting(pod({}, { labels: { app: 'db', hash: '1' } }), [old])).toBe('c d');
  expect(fitting(pod({}, { labels: { app: 'db', hash: '2' } }), [old])).toBe('a b c d');
  // The API server has added the label that the Pod had at its creation.
  const added = { matchLabels: { app: 'db' }, matchExpressions: [{ key: 'hash', operator: 'In', values: ['1'] }] };
  const relabeled = on('a', { labels: { app: 'db', hash: '2' } }, repelled({ ...own, labelSelector: added }));
  expect(fitting(pod({}, { labels: { app: 'db', hash: '1' } }), [relabeled])).toBe('c d');
});

it('a nominated Pod attracts no other, but keeps others away', () => {
  const nominee = on('a', undefined, repelled(db({ labelSelector: {} })));
  const podsOn = (name: string) => new NodePods([], name === 'a' ? [nominee] : []);
  expect(schedule(pod(attracted(db())), NODES.slice(0, 1), podsOn)).toHaveProperty('message');
  expect(schedule(pod(), NODES.slice(0, 1), podsOn)).toHaveProperty('message');
  expect(schedule(pod(), NODES.slice(2, 3), podsOn)).toEqual({ node: 'c' });
});

it('a topologyKey with the name of a property of objects is no label', () => {
  const rule = db({ topologyKey: 'constructor' });
  expect(fitting(pod(attracted(rule), { labels: { app: 'db' } }), [])).toBe('');
});

it.each<[string, Pod, Pod[], string]>([
  ['affinity', pod(attracted(db())), [], AFFINITY],
  ['anti-affinity', pod(repelled(db({ topologyKey: HOST }))), [on('a'), on('b')], ANTI_AFFINITY],
  ['the anti-affinity of other Pods', pod(), [on('a', undefined, repelled(db({ labelSelector: {} })))], OF_OTHERS],
])('the message names %s', (_, subject, pods, reason) => {
  const nodes = NODES.slice(0, 2);
  expect(schedule(subject, nodes, podsByNode(pods))).toEqual({ message: `0/2 nodes are available: 2 ${reason}.` });
});

describe('preemption', () => {
  const important = (spec: object): Pod => pod({ priority: 100, ...spec });

  it('a Pod preempts the Pods from which its anti-affinity keeps it away', () => {
    const [here, beside] = [on('a'), on('a', {})];
    const subject = important(repelled(db({ topologyKey: HOST })));
    expect(roomFor(subject, [NODES[0] as Node], podsByNode([here, beside]))).toEqual({ node: 'a', victims: [here] });
  });

  it('a Pod preempts the Pods whose anti-affinity selects it', () => {
    const guard = on('a', undefined, repelled(db({ topologyKey: HOST, labelSelector: {} })));
    expect(roomFor(important({}), [NODES[0] as Node], podsByNode([guard]))).toEqual({ node: 'a', victims: [guard] });
  });

  it('a Pod does not preempt Pods of other nodes in its domain', () => {
    const nodes = NODES.slice(0, 2);
    const pods = [on('a'), on('b', undefined, { priority: 200 })];
    expect(roomFor(important(repelled(db())), nodes, podsByNode(pods))).toBeUndefined();
  });

  it('a Pod does not preempt the Pod that its affinity needs', () => {
    const [here, beside] = [on('a'), on('a', {})];
    const full = { ...node('a', { zone: 'x' }), status: { allocatable: { pods: '2' } } } as unknown as Node;
    const room = roomFor(important(attracted(db())), [full], podsByNode([here, beside]));
    expect(room).toBeUndefined();
    expect(roomFor(important({}), [full], podsByNode([here, beside]))?.victims).toHaveLength(1);
  });
});

it('the longest rules that a Pod may have are compared with many Pods without a stall', () => {
  const selector = (index: number) => ({
    matchExpressions: [{ key: 'app', operator: 'NotIn', values: [`x${index}`] }],
  });
  const terms = Array.from({ length: 500 }, (_, index) =>
    db({ namespaces: ['other'], labelSelector: selector(index) }),
  );
  const pods = Array.from({ length: 110 }, () => on('a', inOther, repelled(...terms)));
  const podsOn = podsByNode(pods);
  const important = pod({ priority: 100, ...repelled(...terms) });
  expect(cpuMillisOf(() => schedule(important, NODES, podsOn))).toBeLessThan(1000);
  expect(cpuMillisOf(() => roomFor(important, NODES, podsOn))).toBeLessThan(1000);
});
