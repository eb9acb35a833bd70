import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { podSpecs } from '../api/core/v1/pod/pod-arbitrary.ts';
import { containerOf, defaulted, deferOf, nodeOf, podOf } from '../api/core/v1/pod/pod-fixtures.ts';
import type { Node, NodeSelectorRequirement, Pod, PodSpec } from '../api/generated/types.ts';
import { feasible } from './filters.ts';
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
  nodeOf('n', { spec: { taints: [{ key: 'a', effect, ...(value === undefined ? {} : { value }) }] } });

const deferring = (trigger: string, more: Parameters<typeof deferOf>[1]): Pod =>
  defaulted(
    podOf({
      containers: [containerOf('app', { resources: { requests: { cpu: '1' } } })],
      deferContainers: [deferOf('entry', { trigger, ...more })],
    }),
  );

const noSelection = "node(s) didn't match Pod's node affinity/selector";

describe('whether a Pod fits a node', () => {
  it.each<[string, Pod, Node, Pod[], ...string[]]>([
    ['by its requests', requesting({ cpu: '2', memory: '4Gi' }), nodeOf('n'), []],
    ['not with more cpu', requesting({ cpu: '2001m' }), nodeOf('n'), [], 'Insufficient cpu'],
    [
      'not with more of two',
      requesting({ cpu: '3', memory: '5Gi' }),
      nodeOf('n'),
      [],
      'Insufficient cpu',
      'Insufficient memory',
    ],
    [
      'not with what the node has not',
      requesting({ 'example.com/gpu': '1' }),
      nodeOf('n'),
      [],
      'Insufficient example.com/gpu',
    ],
    [
      'with a PreExit entry beside the apps',
      deferring('PreExit', { resources: { requests: { cpu: '1' } } }),
      nodeOf('n'),
      [],
    ],
    [
      'not with a PreExit entry that is too much beside the apps',
      deferring('PreExit', { resources: { requests: { cpu: '1001m' } } }),
      nodeOf('n'),
      [],
      'Insufficient cpu',
    ],
    [
      'with a PostExit entry that is alone then',
      deferring('PostExit', { resources: { requests: { cpu: '2' } } }),
      nodeOf('n'),
      [],
    ],
    [
      'not with a PostExit entry that is too much by itself',
      deferring('PostExit', { resources: { requests: { cpu: '2001m' } } }),
      nodeOf('n'),
      [],
      'Insufficient cpu',
    ],
    ...['PreExit', 'PostExit'].map((trigger): [string, Pod, Node, Pod[], ...string[]] => [
      `not beside another that has the port of its ${trigger} entry`,
      deferring(trigger, { ports: [{ containerPort: 80, hostPort: 8080 }] }),
      nodeOf('n'),
      [onPort(8080)],
      "node(s) didn't have free ports for the requested pod ports",
    ]),
    ['not beside others', requesting({ cpu: '1' }), nodeOf('n'), [requesting({ cpu: '1500m' })], 'Insufficient cpu'],
    [
      'beside others that have ended',
      requesting({ cpu: '1' }),
      nodeOf('n'),
      [{ ...requesting({ cpu: '2' }), status: { phase: 'Succeeded' } }],
    ],
    [
      'not with an init container that needs more',
      requesting({ cpu: '1' }, { initContainers: [containerOf('i', { resources: { requests: { cpu: '3' } } })] }),
      nodeOf('n'),
      [],
      'Insufficient cpu',
    ],
    [
      'not with a Pod too many',
      requesting({}),
      nodeOf('n', { allocatable: { cpu: '1', memory: '1Gi', pods: '1' } }),
      [requesting({})],
      'Too many pods',
    ],
    [
      'not on a closed node',
      requesting({}),
      nodeOf('n', { spec: { unschedulable: true } }),
      [],
      'node(s) were unschedulable',
    ],
    [
      'on a closed node that it tolerates',
      requesting({}, { tolerations: [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }] }),
      nodeOf('n', { spec: { unschedulable: true } }),
      [],
    ],
    [
      'not elsewhere',
      requesting({}, { nodeName: 'm' }),
      nodeOf('n'),
      [],
      "node(s) didn't match the requested node name",
    ],
    ['not with a taint', requesting({}), tainted('NoSchedule', 'v'), [], 'node(s) had untolerated taint {a: v}'],
    ['not with a taint without value', requesting({}), tainted('NoExecute'), [], 'node(s) had untolerated taint {a: }'],
    ['with a taint that prefers', requesting({}), tainted('PreferNoSchedule'), []],
    [
      'with a taint that it tolerates',
      requesting({}, { tolerations: [{ key: 'a', value: 'v', effect: 'NoSchedule' }] }),
      tainted('NoSchedule', 'v'),
      [],
    ],
    [
      'not with another value of the taint',
      requesting({}, { tolerations: [{ key: 'a', value: 'w' }] }),
      tainted('NoSchedule', 'v'),
      [],
      'node(s) had untolerated taint {a: v}',
    ],
    ['not without its label', requesting({}, { nodeSelector: { disk: 'ssd' } }), nodeOf('n'), [], noSelection],
    ['with its label', requesting({}, { nodeSelector: { disk: 'ssd' } }), labelled({ disk: 'ssd' }), []],
    [
      'by any term',
      affinity([{ key: 'x', operator: 'Exists' }], [{ key: 'c', operator: 'Gt', values: ['3'] }]),
      labelled({ c: '4' }),
      [],
    ],
    [
      'not by part of a term',
      affinity([
        { key: 'c', operator: 'Exists' },
        { key: 'c', operator: 'Lt', values: ['3'] },
      ]),
      labelled({ c: '4' }),
      [],
      noSelection,
    ],
    ['not by an empty term', affinity([]), nodeOf('n'), [], noSelection],
    [
      'not on a port that is taken',
      onPort(80),
      nodeOf('n'),
      [onPort(80, '10.0.0.1')],
      "node(s) didn't have free ports for the requested pod ports",
    ],
    ['on a port of another address', onPort(80, '10.0.0.2'), nodeOf('n'), [onPort(80, '10.0.0.1')]],
    [
      'for the first reason found',
      requesting({ cpu: '9' }, { nodeSelector: { disk: 'ssd' } }),
      nodeOf('n', { spec: { unschedulable: true } }),
      [],
      'node(s) were unschedulable',
    ],
  ])('%s', (_name, pod, node, others, ...reasons) => {
    expect(feasible(pod, node, others)).toEqual(reasons.length === 0 ? { fits: true } : { fits: false, reasons });
  });
});

describe('the node of a Pod', () => {
  it('is the emptiest, then the first by name', () => {
    const pod = requesting({ cpu: '100m' });
    expect(schedule(pod, [nodeOf('b'), nodeOf('a')], [])).toEqual({ node: 'a' });
    expect(schedule(pod, [nodeOf('b'), nodeOf('a')], [bound(requesting({ cpu: '1' }), 'a')])).toEqual({ node: 'b' });
  });

  it('takes Pods that request nothing to use something', () => {
    const pod = requesting({});
    expect(schedule(pod, [nodeOf('a'), nodeOf('b')], [bound(requesting({}), 'a')])).toEqual({ node: 'b' });
  });

  it.each<[string, Node[], string]>([
    ['no node', [], 'no nodes available to schedule pods'],
    ['a small node', [nodeOf('a')], '0/1 nodes are available: 1 Insufficient cpu.'],
    [
      'several reasons',
      [nodeOf('a'), nodeOf('b'), nodeOf('c', { spec: { unschedulable: true } }), tainted('NoSchedule', 'v')],
      '0/4 nodes are available: 1 node(s) had untolerated taint {a: v}, 1 node(s) were unschedulable, 2 Insufficient cpu.',
    ],
  ])('is none, and why: %s', (_name, nodes, message) => {
    expect(schedule(requesting({ cpu: '5' }), nodes, [])).toEqual({ message });
  });

  it('always has room for the Pod, and does not depend on the order of the nodes', () => {
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
        const placement = schedule(pod, list, pods);
        expect(schedule(pod, list.toReversed(), pods)).toEqual(placement);
        const fits = (node: Node): boolean =>
          feasible(
            pod,
            node,
            pods.filter((other) => other.spec?.nodeName === node.metadata.name),
          ).fits;
        if ('node' in placement) {
          expect(list.filter(fits).map((node) => node.metadata.name)).toContain(placement.node);
        } else {
          expect(list.filter(fits)).toEqual([]);
        }
      }),
    );
  });
});
