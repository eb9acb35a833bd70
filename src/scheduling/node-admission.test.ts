import { expect, test } from 'vitest';
import { containerOf, defaulted, nodeOf, podOf } from '../api/core/v1/pod/pod-fixtures.ts';
import { effectiveRequests } from '../api/core/v1/pod/resources.ts';
import type { Node, Pod, PodSpec } from '../api/generated/types.ts';
import { type NodeSide, refusal } from './node-admission.ts';

const requesting = (requests: Record<string, string>, spec: Partial<PodSpec> = {}): Pod =>
  defaulted(podOf({ containers: [containerOf('app', { resources: { requests } })], ...spec }));
const onPort = (hostPort: number): Pod =>
  defaulted(podOf({ containers: [containerOf('app', { ports: [{ containerPort: 80, hostPort }] })] }));
const tainted = (effect: string): Node => nodeOf('n', { spec: { taints: [{ key: 'a', effect }] } });
const side = (more: Partial<NodeSide> = {}): NodeSide => ({
  node: nodeOf('n'),
  others: [],
  isStatic: () => false,
  appArmorEnabled: false,
  strictGroups: false,
  ...more,
});
const outOf = (what: string, requested: string, used: string, capacity: string): [string, string] => [
  `OutOf${what}`,
  `Node didn't have enough resource: ${what}, requested: ${requested}, used: ${used}, capacity: ${capacity}`,
];
const sysctl = (name: string): Partial<PodSpec> => ({ securityContext: { sysctls: [{ name, value: '1' }] } });
const apparmor = (type: string): Partial<PodSpec> => ({ securityContext: { appArmorProfile: { type } } });

test.each<[string, Pod, Partial<NodeSide>, ...string[]]>([
  ['fits', requesting({ cpu: '2', memory: '4Gi' }), {}],
  ['is too much CPU', requesting({ cpu: '2500m' }), {}, ...outOf('cpu', '2500', '0', '2000')],
  [
    'is too much CPU beside others',
    requesting({ cpu: '1' }),
    { others: [requesting({ cpu: '1500m' })] },
    ...outOf('cpu', '1000', '1500', '2000'),
  ],
  [
    'fits beside one that has ended',
    requesting({ cpu: '1' }),
    { others: [{ ...requesting({ cpu: '2' }), status: { phase: 'Failed' } }] },
  ],
  [
    'is too much memory',
    requesting({ memory: '5Gi' }),
    {},
    ...outOf('memory', String(5 * 2 ** 30), '0', String(4 * 2 ** 30)),
  ],
  [
    'is too much of both, of which CPU is told',
    requesting({ memory: '5Gi', cpu: '3' }),
    {},
    ...outOf('cpu', '3000', '0', '2000'),
  ],
  [
    'asks for huge pages that the node has not',
    requesting({ 'hugepages-2Mi': '2Mi' }),
    {},
    ...outOf('hugepages-2Mi', '2097152', '0', '0'),
  ],
  ['asks for what is not of the node', requesting({ 'example.com/licence': '1' }), {}],
  [
    'is one too many',
    requesting({}),
    { node: nodeOf('n', { allocatable: { cpu: '1', pods: '1' } }), others: [requesting({})] },
    ...outOf('pods', '1', '1', '1'),
  ],
  [
    'is static, and more than the whole node has',
    requesting({ cpu: '3' }),
    {
      isStatic: (pod) => effectiveRequests(pod).get('cpu')?.nano === 3_000_000_000n,
      others: [requesting({ cpu: '1' })],
    },
    'UnexpectedAdmissionError',
    'Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 1000), ]',
  ],
  ['is critical, and there is room', requesting({ cpu: '2' }, { priority: 2_000_000_000 }), {}],
  [
    'has a port that another has',
    onPort(8080),
    { others: [onPort(8080)] },
    'NodePorts',
    "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
  ],
  [
    'has a port that one had that has ended',
    onPort(8080),
    { others: [{ ...onPort(8080), status: { phase: 'Failed' } }] },
  ],
  [
    'selects another node',
    requesting({}, { nodeSelector: { disk: 'ssd' } }),
    {},
    'NodeAffinity',
    "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
  ],
  [
    'selects another node though it is static',
    requesting({}, { nodeSelector: { disk: 'ssd' } }),
    { isStatic: () => true },
    'NodeAffinity',
    "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
  ],
  [
    'does not tolerate what drives Pods away',
    requesting({}),
    { node: tainted('NoExecute') },
    'TaintToleration',
    "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
  ],
  ['need not tolerate what keeps the scheduler away', requesting({}), { node: tainted('NoSchedule') }],
  ['is static and need not tolerate', requesting({}), { node: tainted('NoExecute'), isStatic: () => true }],
  [
    'sets a sysctl of the whole node',
    requesting({}, sysctl('kernel.msgmax')),
    {},
    'SysctlForbidden',
    'forbidden sysctl: "kernel.msgmax" not allowlisted',
  ],
  ['sets one that the node allows', requesting({}, sysctl('kernel/msgmax')), { allowedUnsafeSysctls: ['kernel.msg*'] }],
  ['sets a safe sysctl', requesting({}, sysctl('net/ipv4/tcp_syncookies')), {}],
  [
    'is for another system',
    requesting({}, { os: { name: 'windows' } }),
    {},
    'PodOSNotSupported',
    "Failed to admit pod as the OS field doesn't match node OS",
  ],
  [
    'wants AppArmor where there is none',
    requesting({}, apparmor('RuntimeDefault')),
    {},
    'AppArmor',
    'Cannot enforce AppArmor: AppArmor is not enabled on the host',
  ],
  ['wants AppArmor where there is', requesting({}, apparmor('RuntimeDefault')), { appArmorEnabled: true }],
  ['wants no AppArmor', requesting({}, apparmor('Unconfined')), {}],
  [
    'wants its groups alone, which the runtime cannot give',
    requesting({}, { securityContext: { supplementalGroupsPolicy: 'Strict' } }),
    {},
    'SupplementalGroupsPolicyNotSupported',
    'SupplementalGroupsPolicy=Strict is not supported in this node',
  ],
  [
    'wants its groups alone, which the runtime gives',
    requesting({}, { securityContext: { supplementalGroupsPolicy: 'Strict' } }),
    { strictGroups: true },
  ],
])('a Pod that %s', (_what, pod, more, reason, message) => {
  expect(refusal(pod, side(more))).toEqual(reason === undefined ? undefined : { reason, message });
});

const priority = 2_000_000_000;
const named = (name: string, pod: Pod): Pod => ({ ...pod, metadata: { ...pod.metadata, name } });
const small = named('small', requesting({ cpu: '500m' }));
const large = named('large', requesting({ cpu: '1500m' }));

test('for a critical Pod others are to end, but not where it is refused anyway', () => {
  const critical = requesting({ cpu: '1' }, { priority });
  expect(refusal(critical, side({ others: [small, large] }))).toEqual({ victims: [large] });
  const astray = requesting({ cpu: '1' }, { priority, nodeSelector: { disk: 'ssd' } });
  expect(refusal(astray, side({ others: [small, large] }))).toMatchObject({ reason: 'NodeAffinity' });
});

test('those that end already count first', () => {
  const isEnding = (pod: Pod): boolean => pod === large;
  const all = { others: [small, large], isEnding };
  expect(refusal(requesting({ cpu: '1' }, { priority }), side(all))).toEqual({ victims: [] });
  expect(refusal(requesting({ cpu: '2' }, { priority }), side(all))).toEqual({ victims: [small] });
});

test('nobody makes way for what a Pod says of itself, and no Pod is spared for it', () => {
  const pretends = (pod: Pod): Pod => {
    const annotations = { 'kubernetes.io/config.source': 'file', 'kubernetes.io/config.mirror': 'x' };
    return { ...pod, metadata: { ...pod.metadata, annotations } };
  };
  const ofFile = named('of-file', requesting({ cpu: '1500m' }));
  const isStatic = (pod: Pod): boolean => pod === ofFile;
  const request = requesting({ cpu: '1' });
  expect(refusal(pretends(request), side({ others: [large] }))).toMatchObject({ reason: 'OutOfcpu' });
  const critical = requesting({ cpu: '1' }, { priority });
  const spared = pretends(large);
  expect(refusal(critical, side({ others: [spared] }))).toEqual({ victims: [spared] });
  expect(refusal(critical, side({ others: [ofFile], isStatic }))).toMatchObject({ reason: 'UnexpectedAdmissionError' });
  const needed = requesting({ cpu: '1500m' }, { priority });
  expect(refusal(critical, side({ others: [needed] }))).toMatchObject({ reason: 'UnexpectedAdmissionError' });
});
