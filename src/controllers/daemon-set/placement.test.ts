import { describe, expect, test } from 'vitest';
import type { Node, PodSpec, Taint, Toleration } from '../../api/generated/types.ts';
import { daemonSet, node, templateWith } from './daemon-set-fixture.ts';
import { nodeOf, placements, podFor } from './placement.ts';

const placementOf = (spec: Partial<PodSpec>, on: Node): [shouldRun: boolean, shouldContinue: boolean] => {
  const { shouldRun, shouldContinue } = placements(daemonSet({ template: templateWith('v1', spec) }))(on);
  return [shouldRun, shouldContinue];
};
const condition = (name: string, effect: string): Taint => ({ key: `node.kubernetes.io/${name}`, effect });
const required = (name: string): Partial<PodSpec> => ({
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }] }],
      },
    },
  },
});

describe('a DaemonSet runs on', () => {
  test.each<[string, Partial<PodSpec>, Node, [boolean, boolean]]>([
    ['a node without restrictions', {}, node('n1'), [true, true]],
    ['the node that its template names', { nodeName: 'n1' }, node('n1'), [true, true]],
    ['no other node than the one that its template names', { nodeName: 'n2' }, node('n1'), [false, false]],
    ['a node with its labels', { nodeSelector: { gpu: 'yes' } }, node('n1', [], { gpu: 'yes' }), [true, true]],
    ['no node without its labels', { nodeSelector: { gpu: 'yes' } }, node('n1'), [false, false]],
    ['the node of its required affinity', required('n1'), node('n1'), [true, true]],
    ['no node outside its required affinity', required('n2'), node('n1'), [false, false]],
    ['no node whose taint forbids new Pods', {}, node('n1', [{ key: 'a', effect: 'NoSchedule' }]), [false, true]],
    ['no node whose taint evicts Pods', {}, node('n1', [{ key: 'a', effect: 'NoExecute' }]), [false, false]],
    [
      'a node whose taint its template tolerates',
      { tolerations: [{ key: 'a', operator: 'Exists' }] },
      node('n1', [{ key: 'a', effect: 'NoExecute' }]),
      [true, true],
    ],
    ['a node that is not ready', {}, node('n1', [condition('not-ready', 'NoExecute')]), [true, true]],
    ['a node that is unreachable', {}, node('n1', [condition('unreachable', 'NoExecute')]), [true, true]],
    ['a node with disk pressure', {}, node('n1', [condition('disk-pressure', 'NoSchedule')]), [true, true]],
    ['a node with memory pressure', {}, node('n1', [condition('memory-pressure', 'NoSchedule')]), [true, true]],
    ['a node with PID pressure', {}, node('n1', [condition('pid-pressure', 'NoSchedule')]), [true, true]],
    ['a node that is cordoned', {}, node('n1', [condition('unschedulable', 'NoSchedule')]), [true, true]],
    ['no node without network', {}, node('n1', [condition('network-unavailable', 'NoSchedule')]), [false, true]],
    [
      'a node without network if its Pods use the network of the node',
      { hostNetwork: true },
      node('n1', [condition('network-unavailable', 'NoSchedule')]),
      [true, true],
    ],
  ])('%s', (_, spec, on, expected) => {
    expect(placementOf(spec, on)).toEqual(expected);
  });
});

describe('a Pod of a DaemonSet', () => {
  const specOf = (spec: Partial<PodSpec>): PodSpec | undefined =>
    podFor(daemonSet({ template: templateWith('v1', spec) }), 'n1').spec;

  test('requires its node instead of the nodes that the template requires, and keeps the preferences', () => {
    const preferred = [{ weight: 1, preference: { matchExpressions: [{ key: 'a', operator: 'Exists' }] } }];
    const { affinity } = required('n2');
    const nodeAffinity = {
      ...affinity?.nodeAffinity,
      preferredDuringSchedulingIgnoredDuringExecution: preferred,
    };
    const pod = podFor(daemonSet({ template: templateWith('v1', { affinity: { nodeAffinity } }) }), 'n1');
    expect(nodeOf(pod)).toBe('n1');
    expect(pod.spec?.affinity).toEqual({
      nodeAffinity: {
        ...required('n1').affinity?.nodeAffinity,
        preferredDuringSchedulingIgnoredDuringExecution: preferred,
      },
    });
  });

  test('has each default toleration once, after those of the template', () => {
    const given: Toleration[] = [
      { key: 'a', operator: 'Exists' },
      { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' },
    ];
    const tolerations = specOf({ tolerations: given })?.tolerations ?? [];
    expect(tolerations.map(({ key }) => key?.replace('node.kubernetes.io/', ''))).toEqual([
      'a',
      'not-ready',
      'unreachable',
      'disk-pressure',
      'memory-pressure',
      'pid-pressure',
      'unschedulable',
    ]);
  });
});

test.each([300, 0])('a toleration of the template for %s seconds is replaced by the one without a limit', (seconds) => {
  const notReady = { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' };
  const tolerations = [{ ...notReady, tolerationSeconds: seconds }];
  const { spec } = podFor(daemonSet({ template: templateWith('v1', { tolerations }) }), 'n1');
  expect(spec?.tolerations?.filter(({ key }) => key === notReady.key)).toEqual([notReady]);
});
