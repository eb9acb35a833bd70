import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonFields } from '../../../facts/facts.ts';
import type { Container, ContainerState, DeferContainer, Pod, PodSpec, PodStatus } from '../../../generated/types.ts';
import { admitServiceAccount } from './admission.ts';
import { podKind } from './index.ts';
import { apiReferences } from './mirror.ts';
import { podSpecsWithoutDefers } from './pod-arbitrary.ts';
import { containerOf, defaulted, deferOf, podOf, statusOf } from './pod-fixtures.ts';
import { validatePodCreate } from './validation/validation.ts';

const CORE = 'io.k8s.api.core.v1';

const context = { now: Date.parse('2026-01-01T00:05:00Z') };
const specOf = (deferContainers: DeferContainer[], more: Partial<PodSpec> = {}): PodSpec =>
  defaulted(podOf({ deferContainers, ...more })).spec as PodSpec;

describe('the fields of defer containers', () => {
  it('a defer container has every other field of a container', () => {
    const own = [...jsonFields(`${CORE}.DeferContainer`).keys()];
    expect(own).toEqual(expect.arrayContaining([...jsonFields(`${CORE}.Container`).keys()]));
    expect(own).toEqual(expect.arrayContaining(['trigger', 'timeoutSeconds']));
  });

  it('the trigger of a defer container is PreExit by default', () => {
    const entries = [deferOf('a'), deferOf('b', { trigger: 'PostExit' })];
    expect(specOf(entries).deferContainers?.map(({ trigger }) => trigger)).toEqual(['PreExit', 'PostExit']);
  });

  it('the restart policy of a defer container is Never by default', () => {
    const entries = [
      deferOf('a'),
      deferOf('b', { restartPolicy: 'OnFailure' }),
      deferOf('c', { restartPolicy: 'Always' }),
    ];
    expect(specOf(entries).deferContainers?.map(({ restartPolicy }) => restartPolicy)).toEqual([
      'Never',
      'OnFailure',
      'Always',
    ]);
  });

  it('the termination message of a defer container falls back to the log by default', () => {
    const entries = [deferOf('a'), deferOf('b', { terminationMessagePolicy: 'File' })];
    const { deferContainers, containers } = specOf(entries);
    expect(deferContainers?.map((entry) => entry.terminationMessagePolicy)).toEqual(['FallbackToLogsOnError', 'File']);
    expect(containers[0]?.terminationMessagePolicy).toBe('File');
  });

  it('images of defer containers are pulled in advance by default', () => {
    expect(specOf([deferOf('a')]).prePullDeferImages).toBe(true);
    expect(specOf([deferOf('a')], { prePullDeferImages: false }).prePullDeferImages).toBe(false);
    expect(specOf([]).prePullDeferImages).toBeUndefined();
    expect(defaulted(podOf()).spec).not.toHaveProperty('prePullDeferImages');
  });

  it('by default, entries run after every outcome, and their failure is ignored', () => {
    const own: Partial<DeferContainer> = { trigger: 'PostExit', when: 'Failed', failurePolicy: 'FailPod' };
    expect(specOf([deferOf('a'), deferOf('b', own)]).deferContainers).toMatchObject([
      { when: 'Always', failurePolicy: 'Ignore' },
      own,
    ]);
  });

  it('preStop hooks start at the same time as the entries by default', () => {
    expect(specOf([deferOf('a')]).preStopPolicy).toBe('Concurrent');
    expect(specOf([deferOf('a')], { preStopPolicy: 'AfterPreExit' }).preStopPolicy).toBe('AfterPreExit');
    expect(specOf([]).preStopPolicy).toBeUndefined();
  });

  it('an empty onReasons is removed', () => {
    expect(specOf([deferOf('a', { onReasons: [] })]).deferContainers?.[0]).not.toHaveProperty('onReasons');
  });

  it('an image taken from another container has the pull policy IfNotPresent by default', () => {
    const [entry] = specOf([{ name: 'a', imageFrom: 'app' }]).deferContainers ?? [];
    expect(entry).toMatchObject({ imageFrom: 'app', imagePullPolicy: 'IfNotPresent' });
    expect(entry).not.toHaveProperty('image');
  });

  it('the other fields of a defer container have the defaults of an app container', () => {
    const more: Partial<Container> = {
      image: 'busybox',
      resources: { limits: { cpu: '1' } },
      ports: [{ containerPort: 80 }],
      env: [{ name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }],
      livenessProbe: { httpGet: { port: 80 } },
      stdin: false,
    };
    const spec = specOf([deferOf('entry', more)], { hostNetwork: true, containers: [containerOf('app', more)] });
    const [entry] = spec.deferContainers ?? [];
    expect(entry).toEqual({
      ...spec.containers[0],
      name: 'entry',
      trigger: 'PreExit',
      when: 'Always',
      failurePolicy: 'Ignore',
      restartPolicy: 'Never',
      terminationMessagePolicy: 'FallbackToLogsOnError',
    });
    expect(entry).toMatchObject({
      imagePullPolicy: 'Always',
      resources: { requests: { cpu: '1' } },
      ports: [{ containerPort: 80, hostPort: 80, protocol: 'TCP' }],
      livenessProbe: { periodSeconds: 10, timeoutSeconds: 1, failureThreshold: 3 },
    });
  });

  it('a Pod without defer containers gets none of their fields', () => {
    fc.assert(
      fc.property(podSpecsWithoutDefers, (spec) => {
        const pod = defaulted(podOf(spec));
        podKind.prepareForCreate?.(pod, context);
        expect(JSON.stringify(pod)).not.toMatch(/defer|termination":|preStopPolicy|failurePolicy/i);
      }),
    );
  });

  it('the token of the ServiceAccount is mounted in defer containers', () => {
    const pod = defaulted(podOf({ deferContainers: [deferOf('a')] }));
    admitServiceAccount(pod, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } }, 'abc12');
    const mount = {
      name: 'kube-api-access-abc12',
      readOnly: true,
      mountPath: '/var/run/secrets/kubernetes.io/serviceaccount',
    };
    expect(pod.spec?.deferContainers?.[0]?.volumeMounts).toEqual([mount]);
    expect(validatePodCreate(pod)).toEqual([]);
  });

  it('references of defer containers count as references of the Pod', () => {
    const pod = podOf({
      deferContainers: [
        deferOf('a', { envFrom: [{ secretRef: { name: 's' } }] }),
        deferOf('b', { env: [{ name: 'A', valueFrom: { configMapKeyRef: { name: 'c', key: 'k' } } }] }),
      ],
    });
    expect(apiReferences(pod)).toEqual(['secrets', 'configmaps']);
  });

  it('clients cannot set the termination and the statuses of defer containers on create', () => {
    const pod = defaulted(podOf({ deferContainers: [deferOf('a')] }, ending(2).status));
    podKind.prepareForCreate?.(pod, context);
    expect(pod.status).toEqual({ phase: 'Pending', qosClass: 'BestEffort' });
  });

  it('the type PodTemplateSpec contains defer containers', () => {
    expect(jsonFields(`${CORE}.PodTemplateSpec`).get('spec')).toMatchObject({ ref: `${CORE}.PodSpec` });
    expect(jsonFields(`${CORE}.PodSpec`).get('deferContainers')).toMatchObject({
      container: 'list',
      ref: `${CORE}.DeferContainer`,
    });
  });
});

const over = (name: string, reason: string, exitCode: number) =>
  statusOf(name, { state: { terminated: { exitCode, reason } } });
const inState = (name: string, state: ContainerState) => statusOf(name, { state });
const termination = {
  reason: 'Deleted',
  startedAt: '2026-01-01T00:04:00.000000Z',
  deadline: '2026-01-01T00:04:30.000000Z',
};
const entries = [
  deferOf('a'),
  deferOf('b'),
  deferOf('c', { trigger: 'PostExit' }),
  deferOf('d', { trigger: 'PostExit' }),
];

/** A terminating Pod: its first `count` entries have ended with the first reasons in `reasons`, and the next entry runs. */
function ending(
  count: number,
  more: Partial<PodStatus> = {},
  reasons = ['Completed', 'Error', 'DeadlineExceeded', 'Skipped'],
): Pod {
  const exitCodes: Record<string, number> = { Completed: 0, Error: 1 };
  return podOf(
    { deferContainers: entries },
    {
      phase: 'Terminating',
      termination,
      containerStatuses: [statusOf('app', { ready: false, state: { running: {} } })],
      deferContainerStatuses: entries.map(({ name }, index) => {
        const reason = reasons[index] ?? '';
        if (index < count) return over(name, reason, exitCodes[reason] ?? 137);
        return inState(name, index === count ? { running: {} } : { waiting: { reason: 'PendingDefer' } });
      }),
      ...more,
    },
  );
}

describe('kubectl get pods, of Pods with defer containers', () => {
  const rowOf = (pod: Pod, deleted: boolean): string => {
    const meta = deleted ? { deletionTimestamp: '2026-01-01T00:04:30Z' } : {};
    return podKind
      .row({ ...pod, metadata: { ...pod.metadata, ...meta } }, context)
      .slice(1, 4)
      .join(' ');
  };
  const done = statusOf('app', { state: { terminated: { exitCode: 0, reason: 'Completed' } } });

  it.each([
    [0, '0/1 Defer:0/4 0'],
    [1, '0/1 Defer:1/4 0'],
    [2, '0/1 Defer:2/4 0'],
    [3, '0/1 Defer:3/4 0'],
  ])('while defer containers run, STATUS counts the entries that have terminated in any way: %i', (count, expected) => {
    expect(rowOf(ending(count), true)).toBe(expected);
    expect(rowOf(ending(count), false)).toBe(expected);
  });

  it('STATUS counts terminated entries also if the phase is not Terminating', () => {
    expect(rowOf(ending(1, { phase: 'Running' }), true)).toBe('0/1 Defer:1/4 0');
    expect(rowOf(ending(1, { phase: 'Pending' }), true)).toBe('0/1 Defer:1/4 0');
  });

  it('STATUS does not count the entries of a Pod that has terminated before all of them have run', () => {
    expect(rowOf(ending(1, { phase: 'Failed', reason: 'Evicted' }), false)).toBe('0/1 Evicted 0');
  });

  it('STATUS does not count an entry that waits for a retry', () => {
    const pod = ending(1);
    const [first, second, ...others] = pod.status?.deferContainerStatuses ?? [];
    const backOff = statusOf('b', {
      restartCount: 1,
      state: { waiting: { reason: 'CrashLoopBackOff' } },
      lastState: { terminated: { exitCode: 1 } },
    });
    expect(second).toBeDefined();
    pod.status = { ...pod.status, deferContainerStatuses: first === undefined ? [] : [first, backOff, ...others] };
    expect(rowOf(pod, true)).toBe('0/1 Defer:1/4 0');
  });

  it.each<[string, Pod, boolean, string]>([
    [
      'before the node has observed the delete',
      ending(0, { phase: 'Running', termination: undefined }),
      true,
      'Terminating',
    ],
    ['once all entries have terminated', ending(4, { phase: 'Running' }), true, 'Terminating'],
    ['when the last entry has just terminated', ending(4), true, 'Terminating'],
    ['when all entries were skipped', ending(4, {}, Array(4).fill('Skipped')), true, 'Terminating'],
  ])('STATUS of a deleted Pod is Terminating while no entry runs: %s', (_, pod, deleted, status) => {
    expect(rowOf(pod, deleted)).toBe(`0/1 ${status} 0`);
  });

  it.each<[string, Pod, boolean, string]>([
    ['a Pod that is not terminating', ending(0, { phase: 'Running', termination: undefined }), false, '0/1 Running 0'],
    [
      'a Pod that completed, with all entries terminated',
      ending(4, { phase: 'Succeeded', containerStatuses: [done] }),
      false,
      '0/1 Completed 0',
    ],
    [
      'a Pod that completed and was then deleted',
      ending(4, { phase: 'Succeeded', containerStatuses: [done] }),
      true,
      '0/1 Completed 0',
    ],
    ['a deleted Pod on a lost node', ending(1, { reason: 'NodeLost' }), true, '0/1 Unknown 0'],
    ['a Pod on a lost node', ending(1, { reason: 'NodeLost' }), false, '0/1 Defer:1/4 0'],
  ])('the row of a Pod with defer containers: %s', (_, pod, deleted, expected) => {
    expect(rowOf(pod, deleted)).toBe(expected);
  });

  it('READY counts only app containers', () => {
    const running = statusOf('app', { ready: true, state: { running: {} }, restartCount: 2 });
    expect(rowOf(ending(1, { containerStatuses: [running] }), true)).toBe('1/1 Defer:1/4 2');
  });

  it('STATUS of a Pod deleted during initialization counts entries, not init containers', () => {
    const pod = ending(2, { initContainerStatuses: [over('init', 'Error', 1)], containerStatuses: [] });
    pod.spec = { ...(pod.spec as PodSpec), initContainers: [containerOf('init')] };
    expect(rowOf(pod, true)).toBe('0/1 Defer:2/4 0');
  });

  it('STATUS shows the phase Terminating of a Pod without a termination', () => {
    expect(rowOf(podOf({}, { phase: 'Terminating' }), false)).toBe('0/1 Terminating 0');
  });
});
