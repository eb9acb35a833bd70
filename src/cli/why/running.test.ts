import {
  type Case,
  condition,
  container,
  explains,
  of,
  running,
  status,
  terminated,
  UNREADY,
  waiting,
} from './explain-fixtures.ts';

const SIDECAR = container('side', {
  restartPolicy: 'Always',
  startupProbe: { exec: { command: ['check'] } },
  lifecycle: { postStart: { sleep: { seconds: 500 } } },
});
const INITIALIZING: Case['status'] = {
  conditions: [condition('Initialized', 'False')],
  containerStatuses: [waiting('app', 'PodInitializing', '', { containerID: '' })],
};
const hookRuns = (name: string): NonNullable<Case['steps']> => [
  [14, 'Started', of(name)],
  [13, 'HookBegan', { ...of(name), reason: 'postStart' }],
];

explains({
  'a probe that has not begun, because of its initial delay': {
    spec: {
      containers: [container('app', { readinessProbe: { exec: { command: ['true'] }, initialDelaySeconds: 300 } })],
    },
    status: { conditions: UNREADY, containerStatuses: [running('app', { ready: false })] },
    sentence:
      'p is not ready: the readiness probe of container app begins only in 4m40s, because of its initialDelaySeconds of 300.',
    evidence: [
      'the probe: exec true, 300 s after the start of the container, then every 10 s within 1 s, failing after 3 in a row',
    ],
    advice: /^wait, or recreate the Pod with smaller initialDelaySeconds\nsee its output/,
  },
  'a probe that has not succeeded after its initial delay': {
    spec: {
      containers: [container('app', { startupProbe: { exec: { command: ['true'] }, initialDelaySeconds: 20 } })],
    },
    status: { conditions: UNREADY, containerStatuses: [running('app', { ready: false, started: false })] },
    sentence: 'p is not ready: the startup probe of container app has not succeeded yet.',
    advice: /^see its output/,
  },
  'a sidecar whose startup probe fails': {
    spec: { initContainers: [container('one'), SIDECAR] },
    status: {
      ...INITIALIZING,
      initContainerStatuses: [
        status('one', { state: terminated(0, 'Completed'), ready: true }),
        running('side', { ready: false, started: false, restartCount: 1 }),
      ],
    },
    events: [['Unhealthy', 'Startup probe failed: no socket', 'side']],
    sentence:
      'p is initializing: the startup probe of sidecar container side fails, no socket; the containers after side wait for it.',
    evidence: [
      'the probe: exec check, every 10 s within 1 s, failing after 3 in a row',
      'Event Unhealthy, 1.00s ago: Startup probe failed: no socket',
      'it was restarted 1×',
      'condition Initialized is False',
    ],
    advice: /^fix what its startup probe checks, or correct the probe\nsee its output: lifepod logs p -n n -c side$/,
  },
  'a sidecar whose startup probe has not succeeded yet': {
    spec: { initContainers: [SIDECAR] },
    status: { ...INITIALIZING, initContainerStatuses: [running('side', { ready: false, started: false })] },
    sentence:
      'p is initializing: the startup probe of sidecar container side has not succeeded yet; the containers after side wait for it.',
  },
  'a sidecar whose postStart hook runs': {
    spec: { initContainers: [SIDECAR] },
    status: { ...INITIALIZING, initContainerStatuses: [waiting('side', 'PodInitializing')] },
    steps: hookRuns('side'),
    sentence:
      'p is initializing: the postStart hook of sidecar container side has been running for 13.0s, and the container counts as started only when the hook has ended; the containers after side wait for it.',
    evidence: ['the hook: sleep for 500 s', 'step HookBegan (postStart), 13.0s ago', 'condition Initialized is False'],
  },
  'a container whose postStart hook runs, after one that is about to run': {
    spec: {
      containers: [
        container('b'),
        container('app', { lifecycle: { postStart: { exec: { command: ['wait', 'it'] } } } }),
      ],
    },
    status: {
      conditions: UNREADY,
      containerStatuses: [
        waiting('b', 'ContainerCreating', '', { containerID: '' }),
        waiting('app', 'ContainerCreating'),
      ],
    },
    steps: hookRuns('app'),
    sentence:
      'p is starting: the postStart hook of container app has been running for 13.0s, and the container counts as started only when the hook has ended.',
    evidence: ['the hook: exec wait it', 'step HookBegan (postStart), 13.0s ago'],
    advice:
      /^wait, or find out why its postStart hook takes so long; to change the hook, recreate the Pod\nsee its output/,
  },
  'a container that is created again after it ended during its postStart hook': {
    spec: { containers: [container('app', { lifecycle: { postStart: { exec: { command: ['wait'] } } } })] },
    status: { conditions: UNREADY, containerStatuses: [waiting('app', 'ContainerCreating')] },
    steps: [...hookRuns('app'), [2, 'Exited', { ...of('app'), exitCode: 1 }]],
    sentence: 'p is starting: container app is about to run.',
  },
});
