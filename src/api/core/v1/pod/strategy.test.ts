import { describe, expect, it } from 'vitest';
import type { LabelSelector, ObjectMeta, PodSpec } from '../../../generated/types.ts';
import { podKind } from './index.ts';
import { containerOf, defaulted, podOf } from './pod-fixtures.ts';

const now = Date.parse('2026-01-01T00:00:10Z');
const context = { now };

describe('create and update of a Pod', () => {
  it('a new Pod gets the initial status, whatever the client sends', () => {
    const pod = defaulted(podOf({}, { phase: 'Running', podIP: '1.2.3.4' }));
    podKind.prepareForCreate?.(pod, context);
    expect(pod.status).toEqual({ phase: 'Pending', qosClass: 'BestEffort' });
    expect(pod.metadata.generation).toBe(1);
  });

  it('a new Pod gets its label keys of inter-Pod affinity in the selectors', () => {
    const term = (labelSelector?: LabelSelector) => ({
      topologyKey: 'zone',
      labelSelector,
      matchLabelKeys: ['app', 'none'],
      mismatchLabelKeys: ['tenant'],
    });
    const pod = defaulted(
      podOf({
        affinity: {
          podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term({ matchLabels: { a: 'b' } }), term()] },
          podAntiAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: term({}) }],
          },
        },
      }),
    );
    pod.metadata.labels = { app: 'web', tenant: 't' };
    podKind.prepareForCreate?.(pod, context);
    const { podAffinity, podAntiAffinity } = pod.spec?.affinity ?? {};
    const matchExpressions = [
      { key: 'app', operator: 'In', values: ['web'] },
      { key: 'tenant', operator: 'NotIn', values: ['t'] },
    ];
    expect(
      podAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.map(({ labelSelector }) => labelSelector),
    ).toEqual([{ matchLabels: { a: 'b' }, matchExpressions }, undefined]);
    expect(
      podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution?.[0]?.podAffinityTerm.labelSelector,
    ).toEqual({ matchExpressions });
  });

  const disabled: Partial<PodSpec> = {
    resources: { limits: { cpu: '1', memory: '1Gi' } },
    resourceClaims: [{ name: 'gpu' }],
    containers: [
      containerOf('app', { resources: { claims: [{ name: 'gpu' }] }, lifecycle: { stopSignal: 'SIGINT' } }),
      containerOf('hooked', { lifecycle: { stopSignal: 'SIGINT', preStop: { sleep: { seconds: 1 } } } }),
    ],
  };

  it('fields whose feature gates are off are dropped from a new Pod before its QoS class is determined', () => {
    const pod = defaulted(podOf(disabled));
    podKind.prepareForCreate?.(pod, context);
    expect(pod.spec).not.toHaveProperty('resources');
    expect(pod.spec).not.toHaveProperty('resourceClaims');
    const [app, hooked] = pod.spec?.containers ?? [];
    expect([app?.resources, app?.lifecycle, hooked?.lifecycle]).toEqual([
      {},
      undefined,
      { preStop: { sleep: { seconds: 1 } } },
    ]);
    expect(pod.status?.qosClass).toBe('BestEffort');
  });

  it('an update keeps a field whose feature gate is off if the existing Pod has the field', () => {
    const old = defaulted(podOf(disabled));
    const pod = structuredClone(old);
    podKind.prepareForUpdate?.(pod, old, context);
    expect(pod.spec).toEqual(old.spec);
  });

  it('a new Pod with scheduling gates gets the condition PodScheduled with reason SchedulingGated', () => {
    const pod = defaulted(podOf({ schedulingGates: [{ name: 'a' }] }));
    podKind.prepareForCreate?.(pod, context);
    expect(pod.status?.conditions).toEqual([
      {
        type: 'PodScheduled',
        status: 'False',
        lastTransitionTime: '2026-01-01T00:00:10Z',
        reason: 'SchedulingGated',
        message: 'Scheduling is blocked due to non-empty scheduling gates',
      },
    ]);
  });

  it('an update of a Pod keeps the status and counts changes of the spec in the generation', () => {
    const old = defaulted(podOf({}, { phase: 'Running' }));
    old.metadata.generation = 3;
    const same = structuredClone(old);
    same.status = { phase: 'Failed' };
    podKind.prepareForUpdate?.(same, old, context);
    expect([same.status, same.metadata.generation]).toEqual([{ phase: 'Running' }, 3]);
    const changed = structuredClone(old);
    (changed.spec as PodSpec).activeDeadlineSeconds = 5;
    podKind.prepareForUpdate?.(changed, old, context);
    expect(changed.metadata.generation).toBe(4);
  });
});

describe('deletion of a Pod', () => {
  const terminating: Partial<ObjectMeta> = {
    deletionTimestamp: '2026-01-01T00:01:00Z',
    deletionGracePeriodSeconds: 20,
  };
  it.each<[string, Partial<PodSpec>, string, Partial<ObjectMeta>, number | undefined, number]>([
    ['uses the grace period of the Pod', { terminationGracePeriodSeconds: 40 }, 'Running', {}, undefined, 40],
    ['uses the grace period of the request', {}, 'Running', {}, 90, 90],
    ['uses 1 s if the request contains a negative grace period', {}, 'Running', {}, -1, 1],
    [
      'uses 1 s if the Pod has a negative grace period',
      { terminationGracePeriodSeconds: -5 },
      'Running',
      {},
      undefined,
      1,
    ],
    ['is immediate if the request contains a grace period of 0', {}, 'Running', {}, 0, 0],
    [
      'is immediate if the Pod has a grace period of 0',
      { terminationGracePeriodSeconds: 0 },
      'Running',
      {},
      undefined,
      0,
    ],
    ['is immediate if the Pod has no node', { nodeName: '' }, 'Pending', {}, 90, 0],
    ['is immediate if the Pod has succeeded', {}, 'Succeeded', {}, undefined, 0],
    ['is immediate if the Pod has failed', {}, 'Failed', {}, 90, 0],
    ['keeps the grace period of the first delete if the second has none', {}, 'Running', terminating, undefined, 20],
    ['never extends the grace period of the first delete', {}, 'Running', terminating, 90, 20],
    ['shortens the grace period of the first delete', {}, 'Running', terminating, 5, 5],
    ['is immediate if the second request contains a grace period of 0', {}, 'Running', terminating, 0, 0],
  ])('the deletion of a Pod %s', (_name, spec, phase, meta, gracePeriodSeconds, expected) => {
    const pod = defaulted(podOf({ nodeName: 'node-1', ...spec }, { phase }));
    Object.assign(pod.metadata, meta);
    expect(podKind.deletion?.(pod, { gracePeriodSeconds }, context)).toEqual(
      expected === 0 ? { now: true } : { now: false, graceSeconds: expected },
    );
  });
});

describe('selectable fields of a Pod', () => {
  it('the selectable fields of a Pod are those of v1.33', () => {
    const pod = defaulted(
      podOf({ nodeName: 'node-1', serviceAccountName: 's' }, { phase: 'Running', podIP: '10.0.0.1' }),
    );
    expect(podKind.selectableFields?.(pod)).toEqual({
      'spec.nodeName': 'node-1',
      'spec.restartPolicy': 'Always',
      'spec.schedulerName': 'default-scheduler',
      'spec.serviceAccountName': 's',
      'spec.hostNetwork': 'false',
      'status.phase': 'Running',
      'status.podIP': '10.0.0.1',
      'status.nominatedNodeName': '',
    });
  });
});

describe('warnings about a Pod', () => {
  it.each<[string, Partial<PodSpec>, string[]]>([
    ['nothing', {}, []],
    [
      'a variable that hides another',
      {
        containers: [
          containerOf('app', {
            env: [
              { name: 'A', value: '1' },
              { name: 'A', value: '$(A)2' },
              { name: 'A', value: '3' },
            ],
          }),
        ],
      },
      ['spec.containers[0].env[2]: hides previous definition of "A", which may be dropped when using apply'],
    ],
    [
      'fractions of a byte',
      { initContainers: [containerOf('init', { resources: { limits: { memory: '100m' } } })] },
      ['limits', 'requests'].map(
        (list) =>
          `spec.initContainers[0].resources.${list}[memory]: fractional byte value "100m" is invalid, must be an integer`,
      ),
    ],
    [
      'duplicate and overlapping ports',
      {
        containers: [
          containerOf('a', { ports: [{ containerPort: 80 }] }),
          containerOf('b', { ports: [{ containerPort: 80 }, { containerPort: 80, hostPort: 9 }] }),
        ],
      },
      [
        'spec.containers[1].ports[0]: duplicate port definition with spec.containers[0].ports[0]',
        'spec.containers[1].ports[1]: overlapping port definition with spec.containers[0].ports[0]',
        'spec.containers[1].ports[1]: overlapping port definition with spec.containers[1].ports[0]',
      ],
    ],
    [
      'a negative grace period',
      { terminationGracePeriodSeconds: -1 },
      ['spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1'],
    ],
    [
      'deprecated volumes and node labels',
      {
        volumes: [{ name: 'a', gitRepo: { repository: 'r' } }],
        nodeSelector: { 'beta.kubernetes.io/os': 'linux' },
      },
      [
        'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead',
        'spec.volumes[0].gitRepo: deprecated in v1.11',
      ],
    ],
    [
      'duplicate and empty names of pull secrets',
      { imagePullSecrets: [{ name: 'a' }, { name: 'a' }, {}] },
      ['spec.imagePullSecrets[1].name: duplicate name "a"', 'spec.imagePullSecrets[2].name: invalid empty name ""'],
    ],
  ])('warnings about %s', (_name, spec, expected) => {
    expect(podKind.warnings?.(defaulted(podOf(spec)))).toEqual(expected);
  });

  it('annotations without effect cause warnings', () => {
    const seccomp = 'seccomp.security.alpha.kubernetes.io/pod';
    const keys = ['security.alpha.kubernetes.io/sysctls', seccomp];
    const ofContainer = (name: string) => `container.seccomp.security.alpha.kubernetes.io/${name}`;
    const seccompProfile = { type: 'RuntimeDefault' };
    const pod = defaulted(
      podOf({ containers: [containerOf('bare'), containerOf('fine', { securityContext: { seccompProfile } })] }),
    );
    const all = [...keys, ofContainer('bare'), ofContainer('fine')];
    pod.metadata.annotations = Object.fromEntries(all.map((key) => [key, 'runtime/default']));
    const unread = 'non-functional in v1.27+; use the "seccompProfile" field instead';
    expect(podKind.warnings?.(pod)).toEqual([
      `metadata.annotations[${keys[0]}]: non-functional in v1.11+; use the "sysctls" field instead`,
      `metadata.annotations[${seccomp}]: ${unread}`,
      `metadata.annotations[${ofContainer('bare')}]: ${unread}`,
    ]);
  });

  it('a name that is not a DNS label causes a warning', () => {
    const pod = defaulted(podOf());
    pod.metadata.name = 'a.b';
    expect(podKind.warnings?.(pod)).toEqual([
      "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
    ]);
  });
});
