import { expect, test } from 'vitest';
import type { Container, ContainerStatus, CoreV1Event, Pod } from '../../api/generated/types.ts';
import type { Transition } from '../../lifecycle/types.ts';
import { explain } from './explain.ts';

const NOW = Date.UTC(2026, 0, 31, 12);
const time = (secondsAgo: number): string => new Date(NOW - secondsAgo * 1000).toISOString();

interface Case {
  /** undefined: the Pod is gone */
  metadata?: Partial<Pod['metadata']>;
  spec?: Partial<NonNullable<Pod['spec']>>;
  status?: Pod['status'];
  events?: [reason: string, message: string, container?: string][];
  steps?: [secondsAgo: number, type: string, more?: Partial<Transition>][];
  lines?: Record<string, string[]>;
  gone?: true;
  sentence: string | RegExp;
  evidence?: string[];
  advice?: RegExp;
}

const container = (name: string, more: Partial<Container> = {}): Container => ({ name, image: 'i', ...more });
const status = (name: string, more: Partial<ContainerStatus>): ContainerStatus => ({
  ...{ name, image: 'i', imageID: 'x', ready: false, restartCount: 0, containerID: 'c://1', state: {}, lastState: {} },
  ...more,
});
const running = (name: string, more: Partial<ContainerStatus> = {}): ContainerStatus =>
  status(name, { state: { running: { startedAt: time(20) } }, ready: true, started: true, ...more });
const waiting = (name: string, reason: string, message = '', more: Partial<ContainerStatus> = {}): ContainerStatus =>
  status(name, { state: { waiting: { reason, message } }, ...more });
const terminated = (exitCode: number, reason: string, message?: string) => ({
  terminated: { exitCode, reason, finishedAt: time(4), ...(message === undefined ? {} : { message }) },
});
const condition = (type: string, value: string, reason = '', message = '') => ({
  ...{ type, status: value, lastTransitionTime: time(30), reason, message },
});
const READY = [condition('Initialized', 'True'), condition('Ready', 'True')];
const UNREADY = [condition('Initialized', 'True'), condition('Ready', 'False', 'ContainersNotReady', 'app is not')];
const of = (name: string): Partial<Transition> => ({ container: name, containerKind: 'app', attempt: 0 });
const until = (secondsAhead: number): Partial<Transition> => ({ deadline: NOW + secondsAhead * 1000 });
const DELETED = { deletionTimestamp: time(-22), deletionGracePeriodSeconds: 30 };
const ENDING: Case['steps'] = [
  [8, 'TerminationBegan', { reason: 'Deleted', ...until(22) }],
  [8, 'DeadlineSet', until(22)],
];
const unbound = { nodeName: undefined } as object;
const tainted = (taint: string, advice: RegExp): Case => ({
  spec: unbound,
  status: {
    conditions: [condition('PodScheduled', 'False', 'Unschedulable', `1 node(s) had untolerated taint {${taint}}`)],
  },
  sentence: /untolerated taint/,
  advice,
});

const CASES: Record<string, Case> = {
  'no node takes it': {
    spec: unbound,
    status: {
      conditions: [condition('PodScheduled', 'False', 'Unschedulable', '0/1 nodes are available: 1 Insufficient cpu.')],
    },
    events: [['FailedScheduling', '0/1 nodes are available: 1 Insufficient cpu.']],
    sentence: 'p is not scheduled: 0/1 nodes are available: 1 Insufficient cpu.',
    evidence: [
      'condition PodScheduled is False (Unschedulable): 0/1 nodes are available: 1 Insufficient cpu.',
      'Event FailedScheduling, 1.00s ago: 0/1 nodes are available: 1 Insufficient cpu.',
    ],
    advice: /lower the requests/,
  },
  'a taint': tainted('a: b', /toleration/),
  'a node without room on its disk': tainted('node.kubernetes.io/disk-pressure: ', /--eviction-hard/),
  'a cordoned node': tainted('node.kubernetes.io/unschedulable: ', /uncordon/),
  'a node that is not ready': tainted('node.kubernetes.io/not-ready: ', /lifepod status/),
  'scheduling gates': {
    spec: { ...unbound, schedulingGates: [{ name: 'a/b' }, { name: 'c/d' }] },
    sentence: 'p is not scheduled: its scheduling gates a/b and c/d hold it back.',
  },
  'a scheduler that does not exist': {
    spec: { ...unbound, schedulerName: 'mine' },
    sentence: 'p is not scheduled: it asks for the scheduler mine, which has not looked at it.',
    advice: /default-scheduler/,
  },
  'an image that cannot be pulled': {
    status: {
      conditions: UNREADY,
      containerStatuses: [waiting('app', 'ImagePullBackOff', 'not found', { containerID: '' })],
    },
    steps: [
      [30, 'PullFailed', { ...of('app'), ...until(-20) }],
      [5, 'PullFailed', { ...of('app'), ...until(15) }],
    ],
    sentence: 'p waits for the image i of its container app: it cannot be pulled, the next try comes in 15.0s.',
    evidence: ['ImagePullBackOff: not found', '2 tries failed, the last one 5.00s ago'],
    advice: /lifepod image load/,
  },
  'an image that must be pulled each time': {
    spec: { containers: [{ name: 'app', image: 'i', imagePullPolicy: 'Always' }] },
    status: { conditions: UNREADY, containerStatuses: [waiting('app', 'ErrImagePull', 'not found')] },
    sentence: /cannot be pulled/,
    advice: /an image that is loaded does not do/,
  },
  'an image that may not be pulled': {
    status: { containerStatuses: [waiting('app', 'ErrImageNeverPull', 'absent')] },
    sentence: /is not on the node and may not be pulled/,
  },
  'a pull under way': {
    status: { conditions: UNREADY, containerStatuses: [waiting('app', 'ContainerCreating', '', { containerID: '' })] },
    steps: [[3, 'Pulling', { ...of('app'), message: 'reg/i:1' }]],
    sentence: 'p is starting: it pulls the image reg/i:1 of container app, for 3.00s now.',
  },
  'a ConfigMap that is missing': {
    status: { containerStatuses: [waiting('app', 'CreateContainerConfigError', 'configmap "x" not found')] },
    sentence: 'p waits: container app cannot be started, configmap "x" not found.',
    advice: /create the ConfigMap/,
  },
  'a key that is missing': {
    status: { containerStatuses: [waiting('app', 'CreateContainerConfigError', "couldn't find key k in Secret n/s")] },
    sentence: /couldn't find key k/,
    advice: /create the ConfigMap, Secret or key/,
  },
  'an ephemeral container whose target does not run': {
    spec: { ephemeralContainers: [{ ...container('debug'), targetContainerName: 'app' }] },
    status: {
      containerStatuses: [running('app')],
      ephemeralContainerStatuses: [
        waiting('debug', 'CreateContainerConfigError', 'target container app is not running', { containerID: '' }),
      ],
    },
    sentence: 'p waits: ephemeral container debug cannot be started, target container app is not running.',
    advice: /^wait for its target/,
  },
  'a postStart hook that failed': {
    status: { containerStatuses: [waiting('app', 'PostStartHookError', 'HTTP lifecycle hook (/) failed')] },
    sentence: 'p waits: container app cannot be started, HTTP lifecycle hook (/) failed.',
    advice: /^correct its postStart hook/,
  },
  'a user that may not be root': {
    status: {
      containerStatuses: [
        waiting('app', 'CreateContainerConfigError', 'container has runAsNonRoot and image will run as root'),
      ],
    },
    sentence: /runAsNonRoot/,
    advice: /^give it a runAsUser above 0/,
  },
  'a subPath that leads out': {
    status: { containerStatuses: [waiting('app', 'CreateContainerConfigError', 'failed to prepare subPath')] },
    sentence: /subPath/,
    advice: /^correct what is named/,
  },
  'a volume that is missing': {
    status: { containerStatuses: [waiting('app', 'ContainerCreating', '', { containerID: '' })] },
    events: [['FailedMount', 'MountVolume.SetUp failed: secret "s" not found']],
    steps: [[5, 'MountFailed', { message: 'secret "s" not found' }]],
    sentence: 'p waits for its volumes: secret "s" not found.',
  },
  'a sandbox that cannot be made': {
    status: { containerStatuses: [waiting('app', 'ContainerCreating', '', { containerID: '' })] },
    steps: [[5, 'SandboxFailed', { message: 'no address is free' }]],
    sentence: 'p waits: its sandbox cannot be made, no address is free.',
  },
  'a container that crashes': {
    status: {
      conditions: UNREADY,
      containerStatuses: [
        waiting('app', 'CrashLoopBackOff', 'back-off', { restartCount: 2, lastState: terminated(3, 'Error') }),
      ],
    },
    steps: [[4, 'BackOff', { ...of('app'), ...until(16) }]],
    lines: { app: ['cannot open the file', 'good bye'] },
    sentence: 'p keeps restarting: container app exits with code 3; the next start comes in 16.0s.',
    evidence: [
      '3 runs, the last one ended 4.00s ago with code 3 (Error)',
      'its log: cannot open the file',
      'its log: good bye',
    ],
    advice: /lifepod logs p -n n -c app --previous/,
  },
  'a container that needs too much memory, with a message': {
    status: {
      containerStatuses: [
        waiting('app', 'CrashLoopBackOff', '', { lastState: terminated(137, 'OOMKilled', 'last words') }),
      ],
    },
    steps: [[6, 'StopSignal', { ...of('app'), message: 'Container app failed liveness probe, will be restarted' }]],
    sentence: 'p keeps restarting: container app was killed for its memory limit.',
    evidence: [
      '1 run, the last one ended 4.00s ago with code 137 (OOMKilled)',
      'it was told to stop: Container app failed liveness probe, will be restarted',
      'its last message: last words',
    ],
    advice: /raise its memory limit/,
  },
  'an init container that runs': {
    spec: { initContainers: [container('side', { restartPolicy: 'Always' }), container('one'), container('two')] },
    status: {
      conditions: [condition('Initialized', 'False')],
      initContainerStatuses: [
        running('side'),
        status('one', { state: terminated(0, 'Completed'), ready: true }),
        running('two', { ready: false, restartCount: 1 }),
      ],
      containerStatuses: [waiting('app', 'PodInitializing', '', { containerID: '' })],
    },
    sentence:
      'p is initializing: init container two (3 of 3) runs, for 20.0s now, and the containers after it wait for it.',
    evidence: ['it was restarted 1×', 'condition Initialized is False'],
  },
  'a readiness probe that fails': {
    spec: {
      containers: [container('app', { readinessProbe: { httpGet: { port: 80, path: '/ok' }, periodSeconds: 5 } })],
    },
    status: { conditions: UNREADY, containerStatuses: [running('app', { ready: false })] },
    events: [['Unhealthy', 'Readiness probe failed: HTTP probe failed with statuscode: 503', 'app']],
    steps: [[12, 'ProbeFailing', { ...of('app'), reason: 'readiness' }]],
    sentence: 'p is not ready: the readiness probe of container app fails, HTTP probe failed with statuscode: 503.',
    evidence: [
      'the probe: GET /ok on port 80, every 5 s within 1 s, failing after 3 in a row',
      'Event Unhealthy, 1.00s ago: Readiness probe failed: HTTP probe failed with statuscode: 503',
      'it has been failing for 12.0s',
    ],
  },
  'a startup probe that has not succeeded yet': {
    spec: { containers: [container('app', { startupProbe: { exec: { command: ['check', 'it'] } } })] },
    status: { conditions: UNREADY, containerStatuses: [running('app', { ready: false, started: false })] },
    sentence: 'p is not ready: the startup probe of container app has not succeeded yet.',
    evidence: ['the probe: exec check it, every 10 s within 1 s, failing after 3 in a row'],
  },
  'a readiness gate': {
    spec: { readinessGates: [{ conditionType: 'example.com/gate' }] },
    status: {
      conditions: [
        condition('Initialized', 'True'),
        condition('Ready', 'False', 'ReadinessGatesNotReady', 'gate is closed'),
      ],
      containerStatuses: [running('app')],
    },
    sentence: 'p is not ready: its readiness gates wait, gate is closed.',
    advice: /example\.com\/gate/,
  },
  'all is well': {
    status: { phase: 'Running', conditions: READY, containerStatuses: [running('app'), running('b')] },
    sentence: 'p runs well: all 2 containers are ready, for 30.0s.',
    evidence: ['container app: never restarted', 'container b: never restarted'],
  },
  'it runs, but was restarted': {
    status: {
      conditions: READY,
      containerStatuses: [running('app', { restartCount: 4, lastState: terminated(1, 'Error') })],
    },
    sentence:
      'p runs again: container app was restarted 4×, the last time 4.00s ago, when it had ended with code 1 (Error).',
  },
  'it has completed': {
    status: { phase: 'Succeeded', containerStatuses: [status('app', { state: terminated(0, 'Completed') })] },
    sentence: 'p has completed: all its app containers ended with code 0.',
    advice: /its object stays until somebody deletes it: kubectl delete pod p -n n$/,
  },
  'it has completed, a sidecar was told to stop, an entry failed and one was skipped': {
    spec: {
      initContainers: [container('side', { restartPolicy: 'Always' })],
      deferContainers: [container('good'), container('bye'), container('last')],
    },
    status: {
      phase: 'Succeeded',
      initContainerStatuses: [status('side', { state: terminated(143, 'Error') })],
      containerStatuses: [status('app', { state: terminated(0, 'Completed') })],
      deferContainerStatuses: [
        status('good', { state: terminated(0, 'Completed') }),
        status('bye', { state: terminated(1, 'Error') }),
        status('last', { state: terminated(137, 'Skipped', 'the deadline had passed') }),
      ],
    },
    sentence:
      'p has completed: all its app containers ended with code 0; of its defer containers bye failed and last did not run.',
    evidence: [
      'init container side: exit code 143 (Error)',
      'container app: exit code 0 (Completed)',
      'defer container good: exit code 0 (Completed)',
      'defer container bye: exit code 1 (Error)',
      'defer container last: did not run, the deadline had passed',
    ],
  },
  'it has failed, and its sidecar and its entry after it': {
    spec: { initContainers: [container('side', { restartPolicy: 'Always' })], deferContainers: [container('bye')] },
    status: {
      phase: 'Failed',
      initContainerStatuses: [status('side', { state: terminated(143, 'Error') })],
      containerStatuses: [status('app', { state: terminated(5, 'Error') })],
      deferContainerStatuses: [status('bye', { state: terminated(1, 'Error') })],
    },
    sentence: 'p has failed: container app ended with code 5; of its defer containers bye failed.',
    advice: /-c app$/,
  },
  'it has failed': {
    status: { phase: 'Failed', containerStatuses: [status('app', { state: terminated(5, 'Error') })] },
    lines: { app: ['no such host'] },
    sentence: 'p has failed: container app ended with code 5.',
    evidence: ['container app: exit code 5 (Error)', 'its log: no such host'],
  },
  'it took too long': {
    status: {
      phase: 'Failed',
      reason: 'DeadlineExceeded',
      message: 'Pod was active on the node longer than the specified deadline',
    },
    sentence: 'p has failed: DeadlineExceeded, Pod was active on the node longer than the specified deadline.',
  },
  'a defer container runs': {
    metadata: DELETED,
    spec: { deferContainers: [container('quick'), container('slow')] },
    status: {
      phase: 'Terminating',
      containerStatuses: [running('app')],
      deferContainerStatuses: [status('quick', { state: terminated(0, 'Completed') }), running('slow')],
      termination: { reason: 'Deleted', startedAt: time(8), deadline: time(-12) },
    },
    steps: [...(ENDING ?? []), [3, 'Started', { container: 'slow', containerKind: 'defer', attempt: 0 }]],
    sentence:
      'p is not gone yet: its defer container slow (2 of 2) runs, for 3.00s now, at the latest until 12:00:12 UTC (in 12.0s).',
    evidence: ['its end began 8.00s ago: Deleted', 'defer container quick: Completed, exit code 0'],
    advice: /lifepod logs p -n n -c slow -f; wait, or cut it short: kubectl delete pod p -n n --now/,
  },
  'a defer container that cannot run, of a Pod that completed': {
    spec: { deferContainers: [container('bye')] },
    status: { phase: 'Terminating', deferContainerStatuses: [waiting('bye', 'ImagePullBackOff', 'no such image')] },
    steps: [[8, 'TerminationBegan', { reason: 'Completed', ...until(22) }]],
    sentence:
      'p has not ended yet: its defer container bye (1 of 1) cannot run, no such image, at the latest until 12:00:22 UTC (in 22.0s).',
    evidence: [
      'its end began 8.00s ago: Completed',
      'nobody has deleted it: its object stays when it has ended',
      'defer container bye waits: ImagePullBackOff',
    ],
    advice: /^wait: its phase tells then how it ended$/,
  },
  'a sidecar that stops, of a Pod that completed and whose list has ended': {
    spec: { initContainers: [container('side', { restartPolicy: 'Always' })], deferContainers: [container('bye')] },
    status: {
      phase: 'Running',
      termination: { reason: 'Completed', startedAt: '2026-01-31T11:59:50Z', deadline: '2026-01-31T12:00:20Z' },
      initContainerStatuses: [running('side')],
      containerStatuses: [status('app', { state: terminated(0, 'Completed') })],
      deferContainerStatuses: [status('bye', { state: terminated(0, 'Completed') })],
    },
    steps: [...(ENDING ?? []), [1, 'StopSignal', { ...of('side') }]],
    sentence: /^p has not ended yet: PID 1 of init container side /,
  },
  'a defer container that is tried again': {
    metadata: DELETED,
    spec: { deferContainers: [container('bye')] },
    status: {
      phase: 'Terminating',
      deferContainerStatuses: [
        waiting('bye', 'CrashLoopBackOff', 'back-off 2s restarting failed container=bye', {
          restartCount: 1,
          lastState: terminated(1, 'Error', 'no receiver'),
        }),
      ],
    },
    steps: [...(ENDING ?? []), [1, 'BackOff', { container: 'bye', containerKind: 'defer', attempt: 1, ...until(1) }]],
    sentence:
      'p is not gone yet: its defer container bye (1 of 1) failed with exit code 1 and is tried again in 1.00s, at the latest until 12:00:22 UTC (in 22.0s).',
    evidence: ['its end began 8.00s ago: Deleted', '2 attempts, the last one: no receiver'],
    advice: /lifepod logs p -n n -c bye; wait/,
  },
  'a preStop hook': {
    metadata: DELETED,
    status: { containerStatuses: [running('app')] },
    steps: [...(ENDING ?? []), [7, 'HookBegan', { ...of('app'), reason: 'preStop' }]],
    sentence:
      'p is not gone yet: the preStop hook of container app runs, for 7.00s now, at the latest until 12:00:22 UTC (in 22.0s).',
  },
  'PID 1 ignores SIGTERM': {
    metadata: DELETED,
    spec: { containers: [container('app', { command: ['sh', '-c', 'server; true'] })] },
    status: { containerStatuses: [running('app')] },
    steps: [...(ENDING ?? []), [8, 'StopSignal', { ...of('app'), ...until(22) }]],
    sentence:
      'p is not gone yet: PID 1 of container app has ignored its stop signal for 8.00s; it will be killed at 12:00:22 UTC (in 22.0s).',
    evidence: ['its end began 8.00s ago: Deleted', 'stop signal sent 8.00s ago', 'its PID 1: sh -c server; true'],
    advice: /trap TERM/,
  },
  'it was told to stop just now': {
    metadata: DELETED,
    status: { containerStatuses: [running('app')] },
    steps: [...(ENDING ?? []), [0.5, 'StopSignal', of('app')]],
    sentence: 'p is not gone yet: container app has just been told to stop.',
  },
  finalizers: {
    metadata: { ...DELETED, deletionGracePeriodSeconds: 0, finalizers: ['a/b'] },
    status: { containerStatuses: [status('app', { state: terminated(0, 'Completed') })] },
    sentence: 'p is not gone yet: nothing of it runs any more, but the finalizer a/b keeps its object.',
    advice: /kubectl patch pod p -n n/,
  },
  'gone, within its time': {
    gone: true,
    steps: [
      [60, 'Started', of('app')],
      [20, 'TerminationBegan', { reason: 'Deleted', ...until(10) }],
      [18, 'Exited', { ...of('app'), attempt: 2, exitCode: 0, reason: 'Completed' }],
      [17, 'DeferEnded', { container: 'bye', containerKind: 'defer', exitCode: 1, reason: 'Error' }],
      [17, 'DeferSkipped', { container: 'last', containerKind: 'defer', message: 'the grace period had passed' }],
      [16, 'Gone'],
    ],
    sentence:
      'p is gone since 11:59:44 UTC: it was deleted, and took 4.00s of the 30.0s that it had; of its defer containers bye failed and last did not run.',
    evidence: [
      'container app: exit code 0 (Completed), after 3 runs',
      'defer container bye: exit code 1 (Error)',
      'defer container last: did not run, the grace period had passed',
    ],
  },
  'gone, its object long after all that ran': {
    gone: true,
    steps: [
      [900, 'TerminationBegan', { reason: 'Deleted', ...until(-870) }],
      [896, 'Removed'],
      [16, 'Gone'],
    ],
    sentence: 'p is gone since 11:59:44 UTC: it was deleted, and took 4.00s of the 30.0s that it had.',
  },
  'gone, and no node had it': {
    gone: true,
    steps: [
      [60, 'Created'],
      [59, 'NotScheduled', { message: '0/1 nodes are available: 1 Insufficient cpu.' }],
      [16, 'Gone'],
    ],
    sentence:
      'p is gone since 11:59:44 UTC: it was deleted before anything of it ran; it was not scheduled, 0/1 nodes are available: 1 Insufficient cpu.',
    evidence: [],
  },
  'gone, before its node began': {
    gone: true,
    steps: [[16, 'Gone']],
    sentence: 'p is gone since 11:59:44 UTC: it was deleted before anything of it ran.',
  },
  'gone, unseen': {
    gone: true,
    steps: [[60, 'Started', of('app')]],
    sentence: 'p is gone, and its record ends before its end was seen, at 11:59:00 UTC.',
    evidence: ['container app: its end was not seen'],
  },
};

const eventOf = ([reason, message, name]: [string, string, string?]): CoreV1Event =>
  ({
    metadata: { name: reason },
    involvedObject: name === undefined ? {} : { fieldPath: `spec.containers{${name}}` },
    ...{ reason, message, lastTimestamp: time(1) },
  }) as CoreV1Event;

test.each(Object.entries(CASES))(
  '%s',
  (_, { metadata, spec, status: own, events = [], steps = [], lines = {}, ...given }) => {
    const pod = {
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'n', ...metadata } },
      spec: { nodeName: 'node', containers: [container('app')], restartPolicy: 'Always', ...spec },
      status: own ?? {},
    } as Pod;
    if (own?.containerStatuses?.some(({ name }) => name === 'b')) pod.spec?.containers.push(container('b'));
    const { sentence, evidence, advice } = explain({
      ...{
        name: 'p',
        namespace: 'n',
        pod: given.gone ? undefined : pod,
        events: events.map(eventOf),
        lastLines: lines,
        now: NOW,
      },
      transitions: steps.map(([secondsAgo, type, more], i) => ({
        key: String(i),
        at: NOW - secondsAgo * 1000,
        type,
        ...more,
      })),
    });
    if (typeof given.sentence === 'string') expect(sentence).toBe(given.sentence);
    else expect(sentence).toMatch(given.sentence);
    expect(sentence).toMatch(/^[^\n]+\.$/);
    if (given.evidence !== undefined) expect(evidence).toEqual(given.evidence);
    expect(advice).toMatch(given.advice ?? /./);
  },
);
