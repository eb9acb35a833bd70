import { describe, expect, it } from 'vitest';
import type { ObjectMeta, PodSpec } from '../../../generated/types.ts';
import { podKind } from './index.ts';
import { containerOf, defaulted, podOf } from './pod-fixtures.ts';

const now = Date.parse('2026-01-01T00:00:10Z');
const context = { now };

describe('a write of a Pod', () => {
  it('starts with a status of its own', () => {
    const pod = defaulted(podOf({}, { phase: 'Running', podIP: '1.2.3.4' }));
    podKind.prepareForCreate?.(pod, context);
    expect(pod.status).toEqual({ phase: 'Pending', qosClass: 'BestEffort' });
    expect(pod.metadata.generation).toBe(1);
  });

  const disabled: Partial<PodSpec> = {
    resources: { limits: { cpu: '1', memory: '1Gi' } },
    resourceClaims: [{ name: 'gpu' }],
    containers: [
      containerOf('app', { resources: { claims: [{ name: 'gpu' }] }, lifecycle: { stopSignal: 'SIGINT' } }),
      containerOf('hooked', { lifecycle: { stopSignal: 'SIGINT', preStop: { sleep: { seconds: 1 } } } }),
    ],
  };

  it('drops fields whose feature gates are off, before the class of the Pod is known', () => {
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

  it('leaves such fields to a Pod that has them', () => {
    const old = defaulted(podOf(disabled));
    const pod = structuredClone(old);
    podKind.prepareForUpdate?.(pod, old, context);
    expect(pod.spec).toEqual(old.spec);
  });

  it('says that a gated Pod waits', () => {
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

  it('keeps the status and counts changes of the spec', () => {
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

describe('the delete of a Pod', () => {
  const terminating: Partial<ObjectMeta> = {
    deletionTimestamp: '2026-01-01T00:01:00Z',
    deletionGracePeriodSeconds: 20,
  };
  it.each<[string, Partial<PodSpec>, string, Partial<ObjectMeta>, number | undefined, number]>([
    ['takes the time that the Pod asks for', { terminationGracePeriodSeconds: 40 }, 'Running', {}, undefined, 40],
    ['takes the time that the client asks for', {}, 'Running', {}, 90, 90],
    ['takes a second where less than none is asked for', {}, 'Running', {}, -1, 1],
    [
      'takes a second where the Pod asks for less than none',
      { terminationGracePeriodSeconds: -5 },
      'Running',
      {},
      undefined,
      1,
    ],
    ['is at once where nothing is asked for', {}, 'Running', {}, 0, 0],
    ['is at once where the Pod asks for nothing', { terminationGracePeriodSeconds: 0 }, 'Running', {}, undefined, 0],
    ['is at once where it has no node', { nodeName: '' }, 'Pending', {}, 90, 0],
    ['is at once where it succeeded', {}, 'Succeeded', {}, undefined, 0],
    ['is at once where it failed', {}, 'Failed', {}, 90, 0],
    ['keeps its time', {}, 'Running', terminating, undefined, 20],
    ['never gets more time', {}, 'Running', terminating, 90, 20],
    ['gets less time', {}, 'Running', terminating, 5, 5],
    ['can be forced later', {}, 'Running', terminating, 0, 0],
  ])('%s', (_name, spec, phase, meta, gracePeriodSeconds, expected) => {
    const pod = defaulted(podOf({ nodeName: 'node-1', ...spec }, { phase }));
    Object.assign(pod.metadata, meta);
    expect(podKind.deletion?.(pod, { gracePeriodSeconds }, context)).toEqual(
      expected === 0 ? { now: true } : { now: false, graceSeconds: expected },
    );
  });
});

describe('selectable fields of a Pod', () => {
  it('are those of v1.33', () => {
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

describe('warnings', () => {
  it.each<[string, Partial<PodSpec>, string[]]>([
    ['none', {}, []],
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
      'part of a byte',
      { initContainers: [containerOf('init', { resources: { limits: { memory: '100m' } } })] },
      ['limits', 'requests'].map(
        (list) =>
          `spec.initContainers[0].resources.${list}[memory]: fractional byte value "100m" is invalid, must be an integer`,
      ),
    ],
    [
      'ports twice',
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
      'a grace period below zero',
      { terminationGracePeriodSeconds: -1 },
      ['spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1'],
    ],
    [
      'old volumes and labels',
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
      'pull secrets',
      { imagePullSecrets: [{ name: 'a' }, { name: 'a' }, {}] },
      ['spec.imagePullSecrets[1].name: duplicate name "a"', 'spec.imagePullSecrets[2].name: invalid empty name ""'],
    ],
  ])('%s', (_name, spec, expected) => {
    expect(podKind.warnings?.(defaulted(podOf(spec)))).toEqual(expected);
  });

  it('tells of annotations that say nothing any more', () => {
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

  it('recommends a name that can be a host name', () => {
    const pod = defaulted(podOf());
    pod.metadata.name = 'a.b';
    expect(podKind.warnings?.(pod)).toEqual([
      "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
    ]);
  });
});
