/** The Pods of recorded-pods.yaml had these troubles, or none, on a real engine. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Container, ContainerStatus, CoreV1Event, Node, Pod, PodTransition } from '../../api/generated/types.ts';
import type { Transition } from '../../lifecycle/types.ts';
import { formatTime, parseTime } from '../../machinery/time.ts';
import { fromApi } from '../../node/record/step-conversion.ts';
import { hintsFor } from '../hints.ts';
import type { Living } from '../why/subject.ts';
import { type PodTrouble, podTrouble } from './pod-troubles.ts';

interface Recorded {
  pod: Pod;
  events: CoreV1Event[];
  transitions: PodTransition[];
}

const { now, pods } = parse(readFileSync(join(import.meta.dirname, 'recorded-pods.yaml'), 'utf8')) as {
  now: number;
  pods: Record<string, Recorded>;
};

function subjectOf(name: string, change: Partial<Living> = {}): Living {
  const recorded = pods[name];
  if (recorded === undefined) throw new Error(`${name} was not recorded`);
  const { pod, events, transitions } = structuredClone(recorded);
  const living = { name, namespace: 'sick', pod, events, transitions: transitions.map(fromApi), lastLines: {}, now };
  return { ...living, ...{ hints: hintsFor({}, {}) }, ...change };
}

/** The third value is the time in UTC at which the trouble began. */
test.each<[string, string | undefined, string | undefined]>([
  ['bad-name', 'InvalidImageName', '00:19:22'],
  ['crashing', 'CrashLoopBackOff', '00:19:24'],
  ['defer-crashing', 'CrashLoopBackOff', '00:20:20'],
  ['defer-image', 'ErrImageNeverPull', undefined],
  ['defer-image-due', undefined, undefined],
  ['done-beside', undefined, undefined],
  ['evicted', 'Evicted', '00:19:29'],
  ['failed', 'Error', '00:19:23'],
  ['failed-beside', 'Error', '00:20:17'],
  ['foreign', 'NotScheduled', '00:20:18'],
  ['gated', 'SchedulingGated', '00:19:23'],
  ['gates', 'ReadinessGatesNotReady', '00:20:18'],
  ['init-crashing', 'CrashLoopBackOff', '00:19:24'],
  ['init-image', 'ImagePullBackOff', '00:19:22'],
  ['kept', 'PastDeadline', '00:19:36'],
  ['never-image', 'ErrImageNeverPull', '00:19:22'],
  ['no-config', 'CreateContainerConfigError', '00:19:23'],
  ['no-image', 'ImagePullBackOff', '00:19:22'],
  ['no-volume', 'FailedMount', '00:19:21'],
  ['slow-end', undefined, undefined],
  ['slow-start', undefined, undefined],
  ['startup', undefined, undefined],
  ['too-big', 'Unschedulable', '00:19:22'],
  ['unready', 'NotReady', '00:19:21'],
  ['well', undefined, undefined],
])('lifepod status reports for the recorded Pod %s the trouble %s', (name, reason, since) => {
  const trouble = podTrouble(subjectOf(name));
  expect([trouble?.reason, timeOf(trouble)]).toEqual([reason, since]);
});

const timeOf = (trouble: PodTrouble | undefined): string | undefined =>
  trouble?.since === undefined ? undefined : formatTime(trouble.since).slice(11, 19);

test('the table of troubles contains every recorded Pod', () => {
  expect(Object.keys(pods)).toHaveLength(25);
});

/** These cases have no Events and records, as if the user might not read them. */
test.each<[string, string | undefined]>([
  ['crashing', 'CrashLoopBackOff'],
  ['defer-crashing', 'CrashLoopBackOff'],
  ['defer-image', 'ErrImageNeverPull'],
  ['no-image', 'ImagePullBackOff'],
  ['no-volume', undefined],
  ['unready', 'NotReady'],
  ['well', undefined],
])('without Events and records, lifepod status reports for the recorded Pod %s the trouble %s', (name, reason) => {
  expect(podTrouble(subjectOf(name, { events: [], transitions: [] }))?.reason).toBe(reason);
});

const MINUTE = 60_000;
const statusOf = (name: string, change: (pod: Pod) => void): Pod => {
  const { pod } = subjectOf(name);
  change(pod);
  return pod;
};
const set = (status: ContainerStatus | undefined, value: Partial<ContainerStatus>): void =>
  void Object.assign(status ?? {}, value);

test.each<[string, Living, string | undefined]>([
  ['a missing image of a defer container', subjectOf('defer-image'), 'ErrImageNeverPull'],
  ['a new Pod that no scheduler has handled', subjectOf('foreign', { now: created('foreign') + 1000 }), undefined],
  ['a readiness probe after its first success', subjectOf('slow-start', { now: now + 60 * MINUTE }), 'NotReady'],
  ['a startup probe whose time is over', subjectOf('startup', { now: now + 600 * MINUTE }), 'NotReady'],
  ['a termination within its deadline', subjectOf('slow-end', { now: now + 9 * MINUTE }), undefined],
  [
    'a termination whose deadline passed before the machine had restarted',
    subjectOf('slow-end', { now: now + 10 * MINUTE, rebootedAt: now + 10 * MINUTE - 9000 }),
    undefined,
  ],
  ['a termination past its deadline', subjectOf('slow-end', { now: now + 10 * MINUTE }), 'PastDeadline'],
  [
    'a termination whose deadline passed before the engine started, and whose node has not moved the deadline yet',
    subjectOf('slow-end', { now: now + 10 * MINUTE, engineStartedAt: now + 10 * MINUTE - 30_000 }),
    undefined,
  ],
  [
    'a Pod that its node has ended and finalizers keep, although the engine started after the deadline',
    subjectOf('slow-end', {
      now: now + 10 * MINUTE,
      engineStartedAt: now + 10 * MINUTE - 30_000,
      pod: statusOf('slow-end', ({ metadata }) =>
        Object.assign(metadata, { deletionGracePeriodSeconds: 0, finalizers: ['example.com/f'] }),
      ),
    }),
    'PastDeadline',
  ],
  [
    'a termination past its deadline that began after the start of the engine',
    subjectOf('slow-end', {
      now: now + 10 * MINUTE,
      engineStartedAt: parseTime(pods['slow-end']?.pod.metadata.creationTimestamp),
    }),
    'PastDeadline',
  ],
  [
    'a Pod of a lost node',
    subjectOf('well', { pod: statusOf('well', ({ status }) => Object.assign(status ?? {}, { phase: 'Unknown' })) }),
    'Unknown',
  ],
  [
    'a Pod that was ready when its node answered last',
    subjectOf('well', {
      node: nodeWith('Unknown'),
      pod: statusOf('well', ({ status }) =>
        Object.assign(status?.conditions?.find(({ type }) => type === 'Ready') ?? {}, { status: 'False' }),
      ),
    }),
    'NodeNotReady',
  ],
  [
    'a ready Pod on a node that has just stopped answering',
    subjectOf('well', { node: nodeWith('Unknown') }),
    undefined,
  ],
  [
    'a Pod whose node does not exist',
    subjectOf('no-volume', { nodes: [], pod: statusOf('no-volume', (pod) => void delete pod.status?.startTime) }),
    'NodeNotFound',
  ],
  ['an init container that has been running for an hour', initializing({}), undefined],
  [
    'a sidecar whose readiness probe has not succeeded in its time',
    initializing({ restartPolicy: 'Always', readinessProbe: { tcpSocket: { port: 1 } } }),
    'NotReady',
  ],
  ['a sidecar without probes', initializing({ restartPolicy: 'Always' }), undefined],
  [
    'a container that failed a moment ago',
    subjectOf('crashing', {
      pod: statusOf('crashing', ({ status }) =>
        set(status?.containerStatuses?.[0], { state: { terminated: { exitCode: 3, reason: 'Error' } } }),
      ),
    }),
    'Error',
  ],
  [
    'a Pod whose volumes are mounted by now',
    subjectOf('no-volume', {
      transitions: [{ key: 'x', at: now, type: 'VolumesMounted' }],
    }),
    undefined,
  ],
  [
    'a sandbox that cannot be created',
    subjectOf('no-volume', {
      transitions: [{ key: 'x', at: now, type: 'SandboxFailed', message: 'no network' }],
    }),
    'FailedCreatePodSandBox',
  ],
  [
    'sandboxes that end at their start',
    subjectOf('no-volume', {
      transitions: ['SandboxReady', 'SandboxLost'].map((type) => ({ key: type, at: now, type, attempt: 0 })),
    }),
    'SandboxChanged',
  ],
])('lifepod status judges %s', (_, subject, reason) => {
  expect(podTrouble(subject)?.reason).toBe(reason);
});

const endedLate = (name: string, reason: string, change: (pod: Pod) => void = () => {}): Living =>
  subjectOf(name, {
    now: now + MINUTE,
    pod: statusOf(name, (pod) => {
      Object.assign(pod.status ?? {}, { phase: 'Failed', reason });
      change(pod);
    }),
    transitions: [],
  });
const disrupted = ({ status }: Pod): void =>
  void status?.conditions?.push({
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'TerminationByKubelet',
    lastTransitionTime: formatTime(now),
  });
const NODE_TIME = formatTime(now).slice(11, 19);

test.each<[string, Living, string]>([
  ['crashed before its node was shut down', endedLate('crashing', 'Terminated', disrupted), NODE_TIME],
  ['never ran before its node was shut down', endedLate('no-image', 'Terminated', disrupted), NODE_TIME],
  [
    'crashed, by its record',
    { ...endedLate('crashing', 'Terminated'), transitions: [{ key: 'Finished', at: now, type: 'Finished' }] },
    NODE_TIME,
  ],
  [
    'never ran until its deadline',
    endedLate('no-image', 'DeadlineExceeded', ({ spec }) => Object.assign(spec ?? {}, { activeDeadlineSeconds: 30 })),
    '00:19:52',
  ],
  ['was not admitted', endedLate('no-image', 'OutOfcpu'), '00:19:22'],
])('lifepod status reports a failed Pod that %s since its failure', (_, subject, since) => {
  expect(timeOf(podTrouble(subject))).toBe(since);
});

test('lifepod status does not report a Pod that ended with its node if it has a controller', () => {
  const owned = (pod: Pod): void => {
    disrupted(pod);
    pod.metadata.ownerReferences = [
      { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'u', controller: true },
    ];
  };
  expect(podTrouble(endedLate('crashing', 'Terminated', owned))).toBeUndefined();
  expect(podTrouble(endedLate('crashing', 'Terminated', disrupted))?.reason).toBe('Terminated');
});

function nodeWith(ready: string): Node {
  const condition = {
    type: 'Ready',
    status: ready,
    reason: 'NodeStatusUnknown',
    message: 'Kubelet stopped posting node status.',
  };
  return { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1' }, status: { conditions: [condition] } };
}

function initializing(change: Partial<Container>): Living {
  const pod = statusOf('init-crashing', ({ spec, status }) => {
    Object.assign(spec?.initContainers?.[0] ?? {}, change);
    const startedAt = formatTime(now - 60 * MINUTE);
    set(status?.initContainerStatuses?.[0], { started: true, restartCount: 0, state: { running: { startedAt } } });
  });
  return subjectOf('init-crashing', { pod, events: [], transitions: [] });
}

function created(name: string): number {
  return parseTime(pods[name]?.pod.metadata.creationTimestamp) ?? 0;
}

function restarted(millis: number, stop = 'Container app failed liveness probe, will be restarted'): Living {
  const pod = statusOf('well', ({ spec, status }) => {
    Object.assign(spec?.containers[0] ?? {}, { livenessProbe: { exec: { command: ['false'] }, periodSeconds: 5 } });
    set(status?.containerStatuses?.[0], {
      restartCount: 1,
      state: { running: { startedAt: formatTime(now - millis) } },
      lastState: { terminated: { exitCode: 137, reason: 'Error' } },
    });
  });
  const of = { container: pod.spec?.containers[0]?.name, containerKind: 'app', attempt: 0 } as const;
  const step = (type: string, message?: string) => ({ key: type, type, at: now - millis - 1000, message, ...of });
  return subjectOf('well', { pod, transitions: [step('Started'), step('StopSignal', stop), step('Exited')] });
}

test('a container that was restarted for a failed probe is a trouble until it has run for longer than that takes', () => {
  expect(podTrouble(restarted(10_000))).toEqual({ reason: 'Unhealthy', since: now - 11_000 });
  expect(podTrouble(restarted(20_000))).toBeUndefined();
  expect(podTrouble(restarted(5000, 'PreemptContainer'))).toBeUndefined();
});

const STOPPED_FOR: Record<string, string> = {
  Unhealthy: 'Container app failed liveness probe, will be restarted',
  PostStartHookError: 'FailedPostStartHook',
  PastDeadline: 'Container app definition changed, will be restarted',
};
const stopping = (step: Pick<Transition, 'type'> & Partial<Transition>): Living =>
  subjectOf('well', { transitions: [{ key: 'x', at: now - 5000, container: 'app', attempt: 0, ...step }] });

test('a container that the node is stopping for a failed probe or hook is a trouble, and for a new image only past its deadline', () => {
  for (const [reason, message] of Object.entries(STOPPED_FOR)) {
    const inTime = podTrouble(stopping({ type: 'StopSignal', message, deadline: now }));
    const isLate = reason === 'PastDeadline';
    expect(inTime).toEqual(isLate ? undefined : { reason, since: now - 5000 });
  }
  const late = { deadline: now - 11_000, message: STOPPED_FOR['PastDeadline'] };
  expect(podTrouble(stopping({ type: 'StopSignal', ...late }))).toEqual({
    reason: 'PastDeadline',
    since: now - 11_000,
  });
  expect(podTrouble(stopping({ type: 'ProbeFailing', reason: 'liveness' }))?.reason).toBe('Unhealthy');
  expect(podTrouble(stopping({ type: 'ProbeFailing', reason: 'readiness' }))).toBeUndefined();
});

/**
 * Returns a Pod whose app has failed its readiness probe. `transitions`: the steps with which the node began to stop the app or the Pod.
 */
function unready(transitions: Pick<Transition, 'type' | 'message' | 'reason' | 'deadline'>[]): Living {
  const { pod } = subjectOf('well');
  const [app] = pod.spec?.containers ?? [];
  const [status] = pod.status?.containerStatuses ?? [];
  const ready = pod.status?.conditions?.find(({ type }) => type === 'Ready');
  Object.assign(app ?? {}, { readinessProbe: { exec: { command: ['check'] } } });
  Object.assign(status ?? {}, { ready: false, started: true });
  Object.assign(ready ?? {}, { status: 'False', reason: 'ContainersNotReady' });
  const failure: CoreV1Event = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'e' },
    involvedObject: { fieldPath: `spec.containers{${app?.name}}` },
    reason: 'Unhealthy',
    message: 'Readiness probe failed: it ends',
    lastTimestamp: new Date(now).toISOString(),
  };
  const step = { key: 'x', at: now - 5000, attempt: 0, container: app?.name ?? '' };
  return subjectOf('well', { pod, events: [failure], transitions: transitions.map((each) => ({ ...step, ...each })) });
}

test('a Pod that is no longer ready because it or its container is stopped is on its way until the deadline', () => {
  const stop = { type: 'StopSignal', message: STOPPED_FOR['PastDeadline'] ?? '' } as const;
  const end = { type: 'TerminationBegan', reason: 'DeadlineExceeded' } as const;
  expect(podTrouble(unready([]))?.reason).toBe('NotReady');
  expect(podTrouble(unready([{ type: 'HookBegan', reason: 'preStop' }]))).toBeUndefined();
  for (const step of [stop, end]) {
    expect(podTrouble(unready([{ ...step, deadline: now + 1000 }]))).toBeUndefined();
    expect(podTrouble(unready([{ ...step, deadline: now - 11_000 }]))?.reason).toBe('PastDeadline');
  }
});

test('lifepod status reports no trouble of a Pod while its node has not reported since the start of the engine', () => {
  const node: Node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } };
  const unreported = { reportedAt: now - 60_000, startedAt: now - 1000 };
  expect(podTrouble(subjectOf('kept', { node, unreported }))).toBeUndefined();
  expect(podTrouble(subjectOf('failed', { node, unreported }))?.reason).toBe('Error');
});

test('a missing image is a trouble since the first failed pull after the last start of the container', () => {
  const step = (type: Transition['type'], secondsAgo: number): Transition => ({
    key: `${secondsAgo}`,
    at: now - secondsAgo * 1000,
    type,
    container: subjectOf('no-image').pod.spec?.containers[0]?.name ?? '',
    attempt: 0,
  });
  const failed = [step('PullFailed', 9), step('PullFailed', 5)];
  const transitions = [step('PullFailed', 90), step('Started', 80), ...failed];
  expect(podTrouble(subjectOf('no-image', { transitions }))?.since).toBe(now - 9000);
  expect(podTrouble(subjectOf('no-image', { transitions: [step('PullFailed', 90), ...failed] }))?.since).toBe(
    now - 90_000,
  );
});
