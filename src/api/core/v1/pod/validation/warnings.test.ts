import { describe, expect, it } from 'vitest';
import type { Container, ContainerPort, EnvVar, Pod, PodSpec } from '../../../../generated/types.ts';
import { containerOf, podOf } from '../pod-fixtures.ts';
import { podWarnings } from './warnings.ts';

const warningsOf = (spec: Partial<PodSpec>, metadata: Partial<Pod['metadata']> = {}): string[] => {
  const pod = podOf(spec);
  return podWarnings({ ...pod, metadata: { ...pod.metadata, ...metadata } });
};
const app = (more: Partial<Container>): Partial<PodSpec> => ({ containers: [containerOf('app', more)] });
const NULL_SELECTOR = 'labelSelector: a null labelSelector results in matching no pod';

it.each<[string, Partial<PodSpec>, Partial<Pod['metadata']>, string[]]>([
  ['no deprecated fields', {}, {}, []],
  [
    'a name that is not a DNS label',
    {},
    { name: 'a.b' },
    [
      "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
    ],
  ],
  [
    'a deprecated node label',
    { nodeSelector: { 'beta.kubernetes.io/arch': 'amd64', 'kubernetes.io/os': 'linux', constructor: 'x' } },
    {},
    ['spec.nodeSelector[beta.kubernetes.io/arch]: deprecated since v1.14; use "kubernetes.io/arch" instead'],
  ],
  [
    'a spread constraint without a selector',
    {
      topologySpreadConstraints: [
        { maxSkew: 1, topologyKey: 'k', whenUnsatisfiable: 'DoNotSchedule', labelSelector: {} },
        { maxSkew: 1, topologyKey: 'k', whenUnsatisfiable: 'DoNotSchedule' },
      ],
    },
    {},
    [`spec.topologySpreadConstraints[1].${NULL_SELECTOR}`],
  ],
  [
    'affinity terms without a selector',
    {
      affinity: {
        podAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { topologyKey: 'k', labelSelector: {} },
            { topologyKey: 'k' },
          ],
        },
        podAntiAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: { topologyKey: 'k' } }],
        },
      },
    },
    {},
    [
      `spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[1].${NULL_SELECTOR}`,
      `spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.${NULL_SELECTOR}`,
    ],
  ],
  [
    'a deprecated annotation',
    {},
    { annotations: { 'scheduler.alpha.kubernetes.io/critical-pod': '', other: '' } },
    [
      'metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the "priorityClassName" field instead',
    ],
  ],
  [
    'deprecated volumes',
    {
      volumes: [
        { name: 'a', emptyDir: {} },
        { name: 'b', gitRepo: { repository: 'r' } },
      ],
    },
    {},
    ['spec.volumes[1].gitRepo: deprecated in v1.11'],
  ],
  [
    'the same IP in two host aliases',
    { hostAliases: [{ ip: '10.0.0.1' }, { ip: '10.0.0.2' }, { ip: '10.0.0.1' }] },
    {},
    ['spec.hostAliases[2].ip: duplicate ip "10.0.0.1"'],
  ],
  [
    'repeated and empty pull secrets',
    { imagePullSecrets: [{ name: 'a' }, { name: 'a' }, {}] },
    {},
    ['spec.imagePullSecrets[1].name: duplicate name "a"', 'spec.imagePullSecrets[2].name: invalid empty name ""'],
  ],
  ['a grace period of 0', { terminationGracePeriodSeconds: 0 }, {}, []],
  [
    'a negative grace period',
    { terminationGracePeriodSeconds: -1 },
    {},
    ['spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1'],
  ],
  [
    'amounts of less than a byte',
    {
      overhead: { memory: '100m', cpu: '100m' },
      ...app({ resources: { limits: { memory: '1500m' }, requests: { 'ephemeral-storage': '1500m', memory: '1' } } }),
      volumes: [
        { name: 'v', ephemeral: { volumeClaimTemplate: { spec: { resources: { requests: { storage: '100m' } } } } } },
      ],
    },
    {},
    [
      'spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: fractional byte value "100m" is invalid, must be an integer',
      'spec.overhead[memory]: fractional byte value "100m" is invalid, must be an integer',
      'spec.containers[0].resources.limits[memory]: fractional byte value "1500m" is invalid, must be an integer',
      'spec.containers[0].resources.requests[ephemeral-storage]: fractional byte value "1500m" is invalid, must be an integer',
    ],
  ],
])('the warnings about a Pod with %s are returned', (_, spec, metadata, expected) => {
  expect(warningsOf(spec, metadata)).toEqual(expected);
});

it('a seccomp annotation causes a warning only if the field that replaced it is absent', () => {
  const annotations = {
    'seccomp.security.alpha.kubernetes.io/pod': 'runtime/default',
    'container.seccomp.security.alpha.kubernetes.io/app': 'runtime/default',
  };
  const warning = (key: string) =>
    `metadata.annotations[${key}]: non-functional in v1.27+; use the "seccompProfile" field instead`;
  const securityContext = { seccompProfile: { type: 'RuntimeDefault' } };
  expect(warningsOf({}, { annotations })).toEqual(Object.keys(annotations).map(warning));
  expect(warningsOf({ securityContext, ...app({ securityContext }) }, { annotations })).toEqual([]);
});

const HIDES = 'hides previous definition of "A", which may be dropped when using apply';

it.each<[string, EnvVar, boolean]>([
  ['replaces the value', { name: 'A', value: '2' }, true],
  ['extends the value', { name: 'A', value: '$(A)2' }, false],
  ['extends the value at its end', { name: 'A', value: '2$(A)' }, false],
  ['repeats the value', { name: 'A', value: '$(A)' }, true],
  ['refers to another variable', { name: 'A', value: '$(B)2' }, true],
  ['has a source', { name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }, true],
])('a second definition of a variable is reported as hiding the first one, unless it extends it: it %s', (...row) => {
  const [, second, hides] = row;
  expect(warningsOf(app({ env: [{ name: 'A', value: '1' }, second] }))).toEqual(
    hides ? [`spec.containers[0].env[1]: ${HIDES}`] : [],
  );
});

describe('warnings about ports', () => {
  it.each<[string, Partial<ContainerPort>, Partial<ContainerPort>, string | undefined]>([
    ['are equal', {}, {}, 'duplicate'],
    ['have the same host port and IP', { hostPort: 1, hostIP: 'x' }, { hostPort: 1, hostIP: 'x' }, 'duplicate'],
    ['differ in the protocol', {}, { protocol: 'UDP' }, undefined],
    ['differ because only the first has a host port', { hostPort: 1 }, {}, 'overlapping'],
    ['differ because only the second has a host port', {}, { hostPort: 1 }, 'overlapping'],
    ['differ in the host port', { hostPort: 1 }, { hostPort: 2 }, undefined],
    ['differ in the host IP', { hostPort: 1, hostIP: 'x' }, { hostPort: 1, hostIP: 'y' }, undefined],
    [
      'differ because only the first has a host IP',
      { hostPort: 1, hostIP: 'x' },
      { hostPort: 1 },
      'dangerously ambiguous',
    ],
    [
      'differ because only the second has a host IP',
      { hostPort: 1 },
      { hostPort: 1, hostIP: 'x' },
      'dangerously ambiguous',
    ],
    ['differ in the host port, and only one has a host IP', { hostPort: 1, hostIP: 'x' }, { hostPort: 2 }, undefined],
  ])('the relation of two ports that %s is reported', (_, first, second, relation) => {
    const port = (more: Partial<ContainerPort>) => ({ containerPort: 80, protocol: 'TCP', ...more });
    expect(warningsOf(app({ ports: [port(first), port(second)] }))).toEqual(
      relation === undefined
        ? []
        : [`spec.containers[0].ports[1]: ${relation} port definition with spec.containers[0].ports[0]`],
    );
  });
  it('a port is compared with at most 16 earlier ports of its number and protocol', () => {
    const ports = Array.from({ length: 17 }, (_, index) => ({ containerPort: 80, hostPort: index + 1 }));
    expect(warningsOf(app({ ports: [...ports, { containerPort: 80 }] }))).toHaveLength(16);
    expect(warningsOf(app({ ports: [...ports, { containerPort: 80, hostPort: 16 }] }))).toHaveLength(1);
    expect(warningsOf(app({ ports: [...ports, { containerPort: 80, hostPort: 17 }] }))).toEqual([]);
  });
  it('after 100 warnings about ports, the remaining ports are not compared', () => {
    const pairs = (count: number) =>
      Array.from({ length: 2 * count }, (_, index) => ({ containerPort: 1 + Math.floor(index / 2) }));
    expect(warningsOf(app({ ports: pairs(99) }))).toHaveLength(99);
    expect(warningsOf(app({ ports: pairs(101) }))).toHaveLength(100);
  });
});
