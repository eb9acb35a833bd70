import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { podSpecs } from '../api/core/v1/pod/pod-arbitrary.ts';
import { containerOf, defaulted, deferOf, nodeOf, podOf } from '../api/core/v1/pod/pod-fixtures.ts';
import type { Node, NodeSelectorRequirement, Pod, PodSpec } from '../api/generated/types.ts';
import { feasible } from './filters.ts';
import { NodePods, podsByNode } from './node-pods.ts';
import { schedule } from './schedule.ts';

const requesting = (requests: Record<string, string>, spec: Partial<PodSpec> = {}): Pod =>
  defaulted(podOf({ containers: [containerOf('app', { resources: { requests } })], ...spec }));
const bound = (pod: Pod, node: string): Pod => ({ ...pod, spec: { ...(pod.spec as PodSpec), nodeName: node } });
const onPort = (hostPort: number, hostIP = ''): Pod =>
  defaulted(podOf({ containers: [containerOf('app', { ports: [{ containerPort: 80, hostPort, hostIP }] })] }));
const affinity = (...terms: NodeSelectorRequirement[][]): Pod =>
  defaulted(
    podOf({
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: terms.map((matchExpressions) => ({ matchExpressions })),
          },
        },
      },
    }),
  );
const labelled = (labels: Record<string, string>): Node => {
  const node = nodeOf('n');
  node.metadata.labels = { ...node.metadata.labels, ...labels };
  return node;
};
const tainted = (effect: string, value?: string): Node =>
  nodeOf('n', { spec: { taints: [{ key: 'a', effect, value }] } });

const deferring = (trigger: string, more: Parameters<typeof deferOf>[1]): Pod =>
  defaulted(
    podOf({
      containers: [containerOf('app', { resources: { requests: { cpu: '1' } } })],
      deferContainers: [deferOf('entry', { trigger, ...more })],
    }),
  );

const noSelection = "node(s) didn't match Pod's node affinity/selector";

describe('filters', () => {
  it.each<[string, Pod, Node, Pod[], ...string[]]>([
    ['fits with its requests', requesting({ cpu: '2', memory: '4Gi' }), nodeOf('n'), []],
    ['does not fit with too much cpu', requesting({ cpu: '2001m' }), nodeOf('n'), [], 'Insufficient cpu'],
    [
      'does not fit if it requests too much of two resources',
      requesting({ cpu: '3', memory: '5Gi' }),
      nodeOf('n'),
      [],
      'Insufficient cpu',
      'Insufficient memory',
    ],
    [
      'does not fit if it requests a resource that the node does not have',
      requesting({ 'example.com/gpu': '1' }),
      nodeOf('n'),
      [],
      'Insufficient example.com/gpu',
    ],
    [
      'fits with a PreExit entry in addition to the apps',
      deferring('PreExit', { resources: { requests: { cpu: '1' } } }),
      nodeOf('n'),
      [],
    ],
    [
      'does not fit with a PreExit entry that is too large in addition to the apps',
      deferring('PreExit', { resources: { requests: { cpu: '1001m' } } }),
      nodeOf('n'),
      [],
      'Insufficient cpu',
    ],
    [
      'fits with a PostExit entry that is as large as the node',
      deferring('PostExit', { resources: { requests: { cpu: '2' } } }),
      nodeOf('n'),
      [],
    ],
    [
      'does not fit with a PostExit entry that is larger than the node',
      deferring('PostExit', { resources: { requests: { cpu: '2001m' } } }),
      nodeOf('n'),
      [],
      'Insufficient cpu',
    ],
    ...['PreExit', 'PostExit'].map((trigger): [string, Pod, Node, Pod[], ...string[]] => [
      `does not fit if another Pod uses the host port of its ${trigger} entry`,
      deferring(trigger, { ports: [{ containerPort: 80, hostPort: 8080 }] }),
      nodeOf('n'),
      [onPort(8080)],
      "node(s) didn't have free ports for the requested pod ports",
    ]),
    [
      'does not fit if other Pods use too much',
      requesting({ cpu: '1' }),
      nodeOf('n'),
      [requesting({ cpu: '1500m' })],
      'Insufficient cpu',
    ],
    [
      'fits if the other Pods have terminated',
      requesting({ cpu: '1' }),
      nodeOf('n'),
      [{ ...requesting({ cpu: '2' }), status: { phase: 'Succeeded' } }],
    ],
    [
      'does not fit with a larger init container',
      requesting({ cpu: '1' }, { initContainers: [containerOf('i', { resources: { requests: { cpu: '3' } } })] }),
      nodeOf('n'),
      [],
      'Insufficient cpu',
    ],
    [
      'does not fit if the node has too many Pods',
      requesting({}),
      nodeOf('n', { allocatable: { cpu: '1', memory: '1Gi', pods: '1' } }),
      [requesting({})],
      'Too many pods',
    ],
    [
      'does not fit on an unschedulable node',
      requesting({}),
      nodeOf('n', { spec: { unschedulable: true } }),
      [],
      'node(s) were unschedulable',
    ],
    [
      'fits on an unschedulable node if it tolerates the unschedulable taint',
      requesting({}, { tolerations: [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }] }),
      nodeOf('n', { spec: { unschedulable: true } }),
      [],
    ],
    [
      'does not fit on a node other than its nodeName',
      requesting({}, { nodeName: 'm' }),
      nodeOf('n'),
      [],
      "node(s) didn't match the requested node name",
    ],
    [
      'does not fit with an untolerated taint',
      requesting({}),
      tainted('NoSchedule', 'v'),
      [],
      'node(s) had untolerated taint {a: v}',
    ],
    [
      'does not fit with an untolerated taint without a value',
      requesting({}),
      tainted('NoExecute'),
      [],
      'node(s) had untolerated taint {a: }',
    ],
    ['fits with a PreferNoSchedule taint', requesting({}), tainted('PreferNoSchedule'), []],
    [
      'fits with a taint that it tolerates',
      requesting({}, { tolerations: [{ key: 'a', value: 'v', effect: 'NoSchedule' }] }),
      tainted('NoSchedule', 'v'),
      [],
    ],
    [
      'does not fit if it tolerates another value of the taint',
      requesting({}, { tolerations: [{ key: 'a', value: 'w' }] }),
      tainted('NoSchedule', 'v'),
      [],
      'node(s) had untolerated taint {a: v}',
    ],
    [
      'does not fit without the label that it selects',
      requesting({}, { nodeSelector: { disk: 'ssd' } }),
      nodeOf('n'),
      [],
      noSelection,
    ],
    [
      'fits with the label that it selects',
      requesting({}, { nodeSelector: { disk: 'ssd' } }),
      labelled({ disk: 'ssd' }),
      [],
    ],
    [
      'fits if one node selector term matches',
      affinity([{ key: 'x', operator: 'Exists' }], [{ key: 'c', operator: 'Gt', values: ['3'] }]),
      labelled({ c: '4' }),
      [],
    ],
    [
      'does not fit if only part of a term matches',
      affinity([
        { key: 'c', operator: 'Exists' },
        { key: 'c', operator: 'Lt', values: ['3'] },
      ]),
      labelled({ c: '4' }),
      [],
      noSelection,
    ],
    ['does not fit with an empty term', affinity([]), nodeOf('n'), [], noSelection],
    [
      'does not fit if its host port is in use',
      onPort(80),
      nodeOf('n'),
      [onPort(80, '10.0.0.1')],
      "node(s) didn't have free ports for the requested pod ports",
    ],
    [
      'fits if its host port is in use at another address',
      onPort(80, '10.0.0.2'),
      nodeOf('n'),
      [onPort(80, '10.0.0.1')],
    ],
    [
      'that several filters reject gets only the reason of the first filter',
      requesting({ cpu: '9' }, { nodeSelector: { disk: 'ssd' } }),
      nodeOf('n', { spec: { unschedulable: true } }),
      [],
      'node(s) were unschedulable',
    ],
  ])('filter: a Pod %s', (_name, pod, node, others, ...reasons) => {
    expect(feasible(pod, node, new NodePods(others))).toEqual(
      reasons.length === 0 ? { fits: true } : { fits: false, reasons },
    );
  });
});

describe('schedule()', () => {
  it('schedule() selects the node with the most free resources, then the first by name', () => {
    const pod = requesting({ cpu: '100m' });
    expect(schedule(pod, [nodeOf('b'), nodeOf('a')], podsByNode([]))).toEqual({ node: 'a' });
    expect(schedule(pod, [nodeOf('b'), nodeOf('a')], podsByNode([bound(requesting({ cpu: '1' }), 'a')]))).toEqual({
      node: 'b',
    });
  });

  it('schedule() counts assumed requests for Pods that request nothing', () => {
    const pod = requesting({});
    expect(schedule(pod, [nodeOf('a'), nodeOf('b')], podsByNode([bound(requesting({}), 'a')]))).toEqual({ node: 'b' });
  });

  it.each<[string, Node[], string]>([
    ['no node', [], 'no nodes available to schedule pods'],
    ['a small node', [nodeOf('a')], '0/1 nodes are available: 1 Insufficient cpu.'],
    [
      'several reasons',
      [nodeOf('a'), nodeOf('b'), nodeOf('c', { spec: { unschedulable: true } }), tainted('NoSchedule', 'v')],
      '0/4 nodes are available: 1 node(s) had untolerated taint {a: v}, 1 node(s) were unschedulable, 2 Insufficient cpu.',
    ],
  ])('schedule() reports why no node fits: %s', (_name, nodes, message) => {
    expect(schedule(requesting({ cpu: '5' }), nodes, podsByNode([]))).toEqual({ message });
  });

  it('schedule() selects a node that fits, independent of the order of the nodes', () => {
    const nodes = fc.uniqueArray(
      fc.record({ name: fc.constantFrom('a', 'b', 'c', 'd'), cpu: fc.nat(8), memory: fc.nat(16) }),
      { selector: ({ name }) => name, maxLength: 4 },
    );
    fc.assert(
      fc.property(podSpecs, fc.array(podSpecs, { maxLength: 5 }), nodes, (spec, others, sizes) => {
        const list = sizes.map(({ name, cpu, memory }) =>
          nodeOf(name, { allocatable: { cpu: `${cpu}`, memory: `${memory}Gi`, pods: '3' } }),
        );
        const pod = defaulted(podOf(spec));
        const pods = others.map((other, index) =>
          bound(defaulted(podOf(other)), list[index % Math.max(1, list.length)]?.metadata.name ?? 'a'),
        );
        const placement = schedule(pod, list, podsByNode(pods));
        expect(schedule(pod, list.toReversed(), podsByNode(pods))).toEqual(placement);
        const fits = (node: Node): boolean =>
          feasible(pod, node, new NodePods(pods.filter((other) => other.spec?.nodeName === node.metadata.name))).fits;
        if ('node' in placement) {
          expect(list.filter(fits).map((node) => node.metadata.name)).toContain(placement.node);
        } else {
          expect(list.filter(fits)).toEqual([]);
        }
      }),
    );
  });
});
