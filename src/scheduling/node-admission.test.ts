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
  ['is admitted if it fits', requesting({ cpu: '2', memory: '4Gi' }), {}],
  [
    'is refused if it requests more CPU than the node has',
    requesting({ cpu: '2500m' }),
    {},
    ...outOf('cpu', '2500', '0', '2000'),
  ],
  [
    'is refused if the other Pods leave too little CPU',
    requesting({ cpu: '1' }),
    { others: [requesting({ cpu: '1500m' })] },
    ...outOf('cpu', '1000', '1500', '2000'),
  ],
  [
    'is admitted if only a terminated Pod has the resources',
    requesting({ cpu: '1' }),
    { others: [{ ...requesting({ cpu: '2' }), status: { phase: 'Failed' } }] },
  ],
  [
    'is refused if it requests more memory than the node has',
    requesting({ memory: '5Gi' }),
    {},
    ...outOf('memory', String(5 * 2 ** 30), '0', String(4 * 2 ** 30)),
  ],
  [
    'is refused for CPU if CPU and memory are insufficient',
    requesting({ memory: '5Gi', cpu: '3' }),
    {},
    ...outOf('cpu', '3000', '0', '2000'),
  ],
  [
    'is refused if the node has no huge pages',
    requesting({ 'hugepages-2Mi': '2Mi' }),
    {},
    ...outOf('hugepages-2Mi', '2097152', '0', '0'),
  ],
  ['is admitted with a resource that the node does not manage', requesting({ 'example.com/licence': '1' }), {}],
  [
    'is refused if the node has too many Pods',
    requesting({}),
    { node: nodeOf('n', { allocatable: { cpu: '1', pods: '1' } }), others: [requesting({})] },
    ...outOf('pods', '1', '1', '1'),
  ],
  [
    'is refused if it is static and requests more than the node has',
    requesting({ cpu: '3' }),
    {
      isStatic: (pod) => effectiveRequests(pod).get('cpu')?.nano === 3_000_000_000n,
      others: [requesting({ cpu: '1' })],
    },
    'UnexpectedAdmissionError',
    'Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 1000), ]',
  ],
  ['is admitted if it is critical and fits', requesting({ cpu: '2' }, { priority: 2_000_000_000 }), {}],
  [
    'is refused if another Pod uses its host port',
    onPort(8080),
    { others: [onPort(8080)] },
    'NodePorts',
    "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
  ],
  [
    'is admitted if only a terminated Pod used its host port',
    onPort(8080),
    { others: [{ ...onPort(8080), status: { phase: 'Failed' } }] },
  ],
  [
    'is refused if it selects another node',
    requesting({}, { nodeSelector: { disk: 'ssd' } }),
    {},
    'NodeAffinity',
    "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
  ],
  [
    'is refused if it is static and selects another node',
    requesting({}, { nodeSelector: { disk: 'ssd' } }),
    { isStatic: () => true },
    'NodeAffinity',
    "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
  ],
  [
    'is refused if it does not tolerate a NoExecute taint',
    requesting({}),
    { node: tainted('NoExecute') },
    'TaintToleration',
    "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
  ],
  ['is admitted without tolerating a NoSchedule taint', requesting({}), { node: tainted('NoSchedule') }],
  [
    'is admitted without tolerating a NoExecute taint if it is static',
    requesting({}),
    { node: tainted('NoExecute'), isStatic: () => true },
  ],
  [
    'is refused if it sets an unsafe sysctl',
    requesting({}, sysctl('kernel.msgmax')),
    {},
    'SysctlForbidden',
    'forbidden sysctl: "kernel.msgmax" not allowlisted',
  ],
  [
    'is admitted with an unsafe sysctl that the node allows',
    requesting({}, sysctl('kernel/msgmax')),
    { allowedUnsafeSysctls: ['kernel.msg*'] },
  ],
  ['is admitted with a safe sysctl', requesting({}, sysctl('net/ipv4/tcp_syncookies')), {}],
  [
    'is refused if it is for another operating system',
    requesting({}, { os: { name: 'windows' } }),
    {},
    'PodOSNotSupported',
    "Failed to admit pod as the OS field doesn't match node OS",
  ],
  [
    'is refused if it needs AppArmor and the node does not have it',
    requesting({}, apparmor('RuntimeDefault')),
    {},
    'AppArmor',
    'Cannot enforce AppArmor: AppArmor is not enabled on the host',
  ],
  [
    'is admitted if it needs AppArmor and the node has it',
    requesting({}, apparmor('RuntimeDefault')),
    { appArmorEnabled: true },
  ],
  ['is admitted without AppArmor if its profile is Unconfined', requesting({}, apparmor('Unconfined')), {}],
  [
    'is refused if it needs strict supplemental groups and the runtime does not support them',
    requesting({}, { securityContext: { supplementalGroupsPolicy: 'Strict' } }),
    {},
    'SupplementalGroupsPolicyNotSupported',
    'SupplementalGroupsPolicy=Strict is not supported in this node',
  ],
  [
    'is admitted if it needs strict supplemental groups and the runtime supports them',
    requesting({}, { securityContext: { supplementalGroupsPolicy: 'Strict' } }),
    { strictGroups: true },
  ],
])('node admission: a Pod %s', (_what, pod, more, reason, message) => {
  expect(refusal(pod, side(more))).toEqual(reason === undefined ? undefined : { reason, message });
});

const priority = 2_000_000_000;
const named = (name: string, pod: Pod): Pod => ({ ...pod, metadata: { ...pod.metadata, name } });
const small = named('small', requesting({ cpu: '500m' }));
const large = named('large', requesting({ cpu: '1500m' }));

test('other Pods are evicted for a critical Pod unless it is refused for another reason', () => {
  const critical = requesting({ cpu: '1' }, { priority });
  expect(refusal(critical, side({ others: [small, large] }))).toEqual({ victims: [large] });
  const astray = requesting({ cpu: '1' }, { priority, nodeSelector: { disk: 'ssd' } });
  expect(refusal(astray, side({ others: [small, large] }))).toMatchObject({ reason: 'NodeAffinity' });
});

test('the resources of terminating Pods are counted before other Pods are evicted', () => {
  const isEnding = (pod: Pod): boolean => pod === large;
  const all = { others: [small, large], isEnding };
  expect(refusal(requesting({ cpu: '1' }, { priority }), side(all))).toEqual({ victims: [] });
  expect(refusal(requesting({ cpu: '2' }, { priority }), side(all))).toEqual({ victims: [small] });
});

test('annotations of static Pods neither make a Pod critical nor protect it from eviction', () => {
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
