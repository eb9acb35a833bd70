/** The states, messages, Events and steps are those of real Pods with containerd 1.6, apart from names and times. */
import type { Container, Taint } from '../../api/generated/types.ts';
import {
  type Case,
  condition,
  container,
  DELETED,
  DOWN,
  ENDING,
  entry,
  explains,
  node,
  of,
  READY,
  running,
  status,
  terminated,
  time,
  UNREADY,
  until,
  waiting,
} from './explain-fixtures.ts';

const LIVENESS = 'Container app failed liveness probe, will be restarted';
const HOOK =
  'Exec lifecycle hook ([sh -c echo no such queue >&2; exit 3]) for Container "app" in Pod "p_n(3cd71eff)" failed - error: ' +
  `command 'sh -c echo no such queue >&2; exit 3' exited with 3: no such queue\n, message: "no such queue\\n"`;
const LOST = 'The container could not be located when the pod was deleted.  The container used to be Running';
const UNLOCATED = 'The container could not be located when the pod was terminated';
const RUNC =
  'failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start ' +
  'container process: ';
const withLimit = (memory: string): Container => container('app', { resources: { limits: { memory } } });
const crashing = (exitCode: number, reason: string, message?: string): Case['status'] => ({
  conditions: UNREADY,
  containerStatuses: [
    waiting('app', 'CrashLoopBackOff', 'back-off 10s', {
      restartCount: 1,
      lastState: terminated(exitCode, reason, message),
    }),
  ],
});
const failed = (exitCode: number, reason: string, message?: string): Case['status'] => ({
  phase: 'Failed',
  containerStatuses: [status('app', { state: terminated(exitCode, reason, message) })],
});
const rejected = (reason: string, message: string): Case['status'] => ({
  phase: 'Failed',
  reason,
  message: `Pod was rejected: ${message}`,
});
const run = (attempt: number) => ({ ...of('app'), attempt });
const unhealthy = (exitCode: number): Case['steps'] => [
  [10, 'Started', run(1)],
  [6, 'StopSignal', { ...run(1), ...until(-4), message: LIVENESS }],
  [6, 'ProbeFailing', { ...run(1), reason: 'liveness', message: 'the lock is stale\n' }],
  [4, 'Exited', { ...run(1), exitCode, reason: 'Error' }],
  [4, 'BackOff', { ...run(1), ...until(16) }],
];
const hooked: Case['steps'] = [
  [10, 'Started', run(1)],
  [9, 'HookBegan', { ...run(1), reason: 'postStart' }],
  [6, 'StopSignal', { ...run(1), ...until(-4), message: 'FailedPostStartHook' }],
  [6, 'HookFailed', { ...run(1), reason: 'postStart', message: HOOK }],
  [4, 'Exited', { ...run(1), exitCode: 137, reason: 'Error' }],
  [4, 'BackOff', { ...run(1), ...until(16) }],
];

explains({
  'a Pod that was deleted by force, so that its destructors were skipped': {
    gone: true,
    steps: [
      [61, 'Created'],
      [60, 'Started', of('app')],
      [8, 'TerminationBegan', { reason: 'Deleted', ...until(-6) }],
      [8, 'StopSignal', { ...of('app'), ...until(-6) }],
      [
        8,
        'DeferSkipped',
        { ...entry('bye'), reason: 'Skipped', message: 'the Pod was deleted with a grace period of 0' },
      ],
      [
        8,
        'DeferSkipped',
        { ...entry('after'), reason: 'Skipped', message: 'the Pod was deleted with a grace period of 0' },
      ],
      [8, 'Gone'],
      [6, 'Exited', { ...of('app'), exitCode: 137, reason: 'Error' }],
      [6, 'Removed'],
    ],
    sentence:
      'p has been gone since 11:59:52 UTC: it was deleted by force, with a grace period of 0, so its defer containers bye and after did not run.',
    evidence: [
      'a grace period of 0 comes from kubectl delete --grace-period=0 --force, or from terminationGracePeriodSeconds: 0',
      'container app: exit code 137 (Error)',
      'defer container bye: did not run, the Pod was deleted with a grace period of 0',
      'defer container after: did not run, the Pod was deleted with a grace period of 0',
    ],
    advice: /^do by hand what bye and after would have done\n.*: kubectl delete pod p -n n --now\n/,
  },
  'a Pod that needs a folder of its node that does not exist': {
    spec: { volumes: [{ name: 'data', hostPath: { path: '/srv/my data', type: 'Directory' } }] },
    status: {},
    steps: [
      [
        3,
        'MountFailed',
        {
          message:
            'MountVolume.SetUp failed for volume "data" : hostPath type check failed: /srv/my data is not a directory',
        },
      ],
    ],
    sentence:
      'p waits for its volumes: the volume data needs the folder /srv/my data on its node, which does not exist or is not a folder.',
    advice: /^if it does not exist, create it on the node, .*: (sudo )?mkdir -p '\/srv\/my data'\nor set the type /,
  },
  'a Pod with a volume of a kind that is not supported': {
    spec: { volumes: [{ name: 'data', nfs: { server: 's', path: '/' } }] },
    status: {},
    steps: [
      [
        3,
        'MountFailed',
        { message: 'MountVolume.SetUp failed for volume "data" : volume kind "nfs" is not supported' },
      ],
    ],
    sentence: 'p waits for its volumes: the volume data is of the kind nfs, which lifepod does not support.',
    advice: /^recreate the Pod with a volume of another kind, such as hostPath or persistentVolumeClaim/,
  },
  'a Pod whose PersistentVolume has no folder': {
    spec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'c' } }] },
    status: {},
    steps: [
      [
        3,
        'MountFailed',
        { message: 'MountVolume.SetUp failed for volume "data" : path "/d/volumes/pvc-1" does not exist' },
      ],
    ],
    sentence:
      'p waits for its volumes: the volume data needs the folder /d/volumes/pvc-1 of its PersistentVolume, which does not exist, as after a restore, because a backup does not contain the files of volumes.',
    advice: /^copy the folder there .*\nor begin with an empty folder, .*: (sudo )?mkdir -p -m 777 \/d\/volumes\/pvc-1/,
  },
  'a Pod without destructors that was deleted by force': {
    gone: true,
    steps: [
      [61, 'Created'],
      [60, 'Started', of('app')],
      [8, 'TerminationBegan', { reason: 'Deleted', ...until(-6) }],
      [8, 'Gone'],
      [6, 'Removed'],
    ],
    sentence: 'p has been gone since 11:59:52 UTC: it was deleted by force, with a grace period of 0.',
  },
  'a Pod that ran during a restore of a backup without it': {
    gone: true,
    steps: [
      [60, 'SandboxReady', { attempt: 0 }],
      [60, 'Started', of('app')],
      [8, 'TerminationBegan', { reason: 'Deleted', ...until(-6) }],
      [8, 'StopSignal', { ...of('app'), ...until(-6) }],
      [8, 'Gone'],
      [7, 'Exited', { ...of('app'), exitCode: 0, reason: 'Completed' }],
      [6, 'Removed'],
    ],
    sentence:
      'p has been gone since 11:59:52 UTC: the engine stopped and removed it, because it still ran but was not in the data of the engine, as after a restore of a backup that does not contain it.',
    evidence: [
      'its record begins when the engine found its containers: the record does not have its creation',
      'container app: exit code 0 (Completed)',
    ],
    advice: /^if it is still needed, create it again\nnext time, end the Pods before the restore: .*: .*lifepod down\n/,
  },
  'a deleted Pod whose PID 1 was killed after its stop signal': {
    gone: true,
    steps: [
      [60, 'Started', of('app')],
      [38, 'TerminationBegan', { reason: 'Deleted', ...until(-8) }],
      [38, 'StopSignal', { ...of('app'), ...until(-8) }],
      [7.9, 'Exited', { ...of('app'), exitCode: 137, reason: 'Error' }],
      [7.5, 'Removed'],
      [7.5, 'Gone'],
    ],
    sentence:
      'p has been gone since 11:59:52 UTC: it was deleted, and its termination took 30.5s, more than the 30.0s allowed, because container app did not end after its stop signal and was killed.',
    advice: /^make PID 1 handle SIGTERM/,
  },
  'a deleted Pod whose preStop hook took the whole grace period': {
    gone: true,
    steps: [
      [60, 'Started', of('app')],
      [38, 'TerminationBegan', { reason: 'Deleted', ...until(-8) }],
      [38, 'HookBegan', { ...of('app'), reason: 'preStop' }],
      [8, 'StopSignal', { ...of('app'), ...until(-6) }],
      [6, 'Exited', { ...of('app'), exitCode: 137, reason: 'Error' }],
      [5.5, 'Removed'],
      [5.5, 'Gone'],
    ],
    sentence:
      'p has been gone since 11:59:54 UTC: it was deleted, and its termination took 32.5s, more than the 30.0s allowed, because the preStop hook of container app had not ended by then.',
  },
  'a deleted Pod with a sidecar whose PostExit entry moved the deadline': {
    gone: true,
    steps: [
      [61, 'Started', { container: 'proxy', containerKind: 'init', attempt: 0 }],
      [62, 'Started', { container: 'first', containerKind: 'init', attempt: 0 }],
      [61.5, 'Exited', { container: 'first', containerKind: 'init', attempt: 0, exitCode: 0, reason: 'Completed' }],
      [60, 'Started', of('app')],
      [38, 'TerminationBegan', { reason: 'Deleted', ...until(-36) }],
      [38, 'DeadlineSet', until(-36)],
      [36, 'Exited', { ...of('app'), exitCode: 0, reason: 'Completed' }],
      [36, 'DeadlineSet', { ...until(-34), message: 'the reserve of the PostExit entries' }],
      [35.5, 'Exited', { container: 'proxy', containerKind: 'init', attempt: 0, exitCode: 0, reason: 'Completed' }],
      [35, 'Removed'],
      [35, 'Gone'],
    ],
    sentence:
      'p has been gone since 11:59:25 UTC: it was deleted, and its termination took 3.00s of the 4.00s allowed (at first 2.00s, moved by the reserve of the PostExit entries).',
    evidence: [
      'init container first: exit code 0 (Completed)',
      'sidecar container proxy: exit code 0 (Completed)',
      'container app: exit code 0 (Completed)',
    ],
  },
  'a deleted Pod whose deadline moved for several reasons': {
    gone: true,
    steps: [
      [60, 'Started', of('app')],
      [38, 'TerminationBegan', { reason: 'Deleted', ...until(-34) }],
      [38, 'DeadlineSet', until(-34)],
      [36, 'DeadlineSet', { ...until(-31), message: 'an extension of the grace period' }],
      [33, 'DeadlineSet', { ...until(-28), message: 'an extension of the grace period' }],
      [30, 'DeadlineSet', { ...until(-27.8), message: 'the reserve of the PostExit entries' }],
      [29, 'DeadlineSet', { ...until(-27.799), message: 'an outage of the node' }],
      [28, 'Removed'],
      [28, 'Gone'],
    ],
    sentence:
      'p has been gone since 11:59:32 UTC: it was deleted, and its termination took 10.0s of the 10.2s allowed (at first 4.00s, moved by an extension of the grace period and the reserve of the PostExit entries).',
  },
  'a failed container with code 255': {
    spec: { restartPolicy: 'Never' },
    status: { phase: 'Failed', containerStatuses: [status('app', { state: terminated(255, 'Error') })] },
    sentence: 'p has failed: container app ended with code 255.',
    evidence: [
      'container app: exit code 255 (Error)',
      'code 255: the program ended with 255 or -1, or the containerd shim of the container was killed: containerd then reports this code',
    ],
  },
  'a container that fails its liveness probe and ends on SIGTERM': {
    status: crashing(0, 'Completed'),
    steps: unhealthy(0),
    sentence:
      'p keeps restarting: the liveness probe of container app failed, the lock is stale; it restarts in 16.0s.',
    evidence: ['2 runs, the last one ended 4.00s ago with code 0 (Completed)', `it was stopped: ${LIVENESS}`],
    advice: /^fix what its liveness probe checks.*\nsee its previous output: lifepod logs p -n n -c app --previous$/,
  },
  'a container whose Pod may not be active until the next restart': {
    spec: { activeDeadlineSeconds: 60 },
    status: { ...crashing(0, 'Completed'), startTime: time(50) },
    steps: unhealthy(0),
    sentence:
      'p keeps restarting: the liveness probe of container app failed, the lock is stale; it does not restart, because the activeDeadlineSeconds of the Pod end at 12:00:10 UTC (in 10.0s), before the next attempt.',
  },
  'a container that fails its liveness probe and has to be killed': {
    status: crashing(137, 'Error'),
    steps: unhealthy(137),
    sentence: /^p keeps restarting: the liveness probe of container app failed, the lock is stale; /,
    evidence: [
      '2 runs, the last one ended 4.00s ago with code 137 (Error)',
      `it was stopped: ${LIVENESS}`,
      'PID 1 did not end after its stop signal and was killed 2s later',
    ],
    advice: /SIGTERM/,
  },
  'a container that failed its liveness probe without a record of the result': {
    status: crashing(0, 'Completed'),
    events: [['Unhealthy', 'Liveness probe failed: HTTP probe failed with statuscode: 500', 'app']],
    steps: [[6, 'StopSignal', { ...run(1), message: LIVENESS }]],
    sentence: /the liveness probe of container app failed, HTTP probe failed with statuscode: 500\.$/,
  },
  'a container that crashes by itself after an earlier run that failed its liveness probe': {
    status: crashing(1, 'Error'),
    steps: [...(unhealthy(0) ?? []), [2, 'Exited', { ...run(2), exitCode: 1, reason: 'Error' }]],
    sentence: /^p keeps restarting: container app ended with code 1; /,
  },
  'a container that is being stopped after its liveness probe failed': {
    spec: { containers: [container('app', { command: ['sleep', '3600'] })] },
    status: { phase: 'Running', conditions: READY, containerStatuses: [running('app', { restartCount: 1 })] },
    steps: [
      [10, 'Started', run(1)],
      [6, 'StopSignal', { ...run(1), ...until(24), message: LIVENESS }],
      [6, 'ProbeFailing', { ...run(1), reason: 'liveness', message: 'the lock is stale\n' }],
    ],
    sentence:
      'p is stopping container app: the liveness probe of container app failed, the lock is stale; it will be killed in 24.0s if it has not ended.',
    evidence: [
      `stop signal sent 6.00s ago: ${LIVENESS}`,
      'its PID 1: sleep 3600',
      'the kernel ignores SIGTERM for a PID 1 that installs no handler for it',
    ],
  },
  'a container whose preStop hook runs because its liveness probe failed': {
    status: { phase: 'Running', conditions: READY, containerStatuses: [running('app', { restartCount: 1 })] },
    steps: [
      [20, 'StopSignal', { ...run(0), message: 'Container app definition changed, will be restarted' }],
      [10, 'Started', run(1)],
      [6, 'HookBegan', { ...run(1), reason: 'preStop' }],
      [6, 'ProbeFailing', { ...run(1), reason: 'liveness', message: 'the lock is stale\n' }],
    ],
    sentence:
      'p is stopping container app: the liveness probe of container app failed, the lock is stale; its preStop hook has been running for 6.00s.',
    evidence: ['step ProbeFailing, 6.00s ago', 'its stop signal has not been sent yet'],
  },
  'a container whose preStop hook runs because its image was changed': {
    status: { phase: 'Running', conditions: READY, containerStatuses: [running('app')] },
    events: [['Killing', 'Container app definition changed, will be restarted', 'app']],
    steps: [
      [10, 'Started', run(0)],
      [6, 'HookBegan', { ...run(0), reason: 'preStop' }],
    ],
    sentence:
      'p is stopping container app: the image of container app was changed; its preStop hook has been running for 6.00s.',
  },
  'a container whose preStop hook runs because its Pod ends': {
    status: { phase: 'Running', conditions: READY, containerStatuses: [running('app')] },
    events: [['Killing', 'Stopping container app', 'app']],
    steps: [
      [10, 'Started', run(0)],
      [6, 'HookBegan', { ...run(0), reason: 'preStop' }],
    ],
    sentence: /^p is running: /,
    advice: /^$/,
  },
  'a container that runs again after its liveness probe failed': {
    status: {
      phase: 'Running',
      conditions: READY,
      containerStatuses: [
        running('app', {
          state: { running: { startedAt: time(1) } },
          restartCount: 2,
          lastState: terminated(0, 'Completed'),
        }),
      ],
    },
    steps: [...(unhealthy(0) ?? []), [2, 'Started', run(2)]],
    sentence:
      'p is running again: the liveness probe of container app failed, the lock is stale; the container was restarted 1.00s ago.',
  },
  'a Pod that has completed because its container ended with code 0 after its liveness probe failed': {
    spec: { restartPolicy: 'Never' },
    status: { phase: 'Succeeded', containerStatuses: [status('app', { state: terminated(0, 'Completed') })] },
    steps: unhealthy(0),
    sentence:
      'p has completed, but not by itself: the liveness probe of container app failed, the lock is stale, and all its app containers ended with code 0.',
  },
  'a postStart hook that failed before the container restarts': {
    status: crashing(137, 'Error'),
    steps: hooked,
    sentence:
      'p keeps restarting: the postStart hook of container app failed with exit code 3, no such queue; it restarts in 16.0s.',
    evidence: [
      '2 runs, the last one ended 4.00s ago with code 137 (Error)',
      'it was stopped: FailedPostStartHook',
      'PID 1 did not end after its stop signal and was killed 2s later',
    ],
    advice: /^fix its postStart hook/,
  },
  'a postStart hook that failed in a Pod that does not restart': {
    spec: { restartPolicy: 'Never' },
    status: failed(137, 'Error'),
    steps: hooked,
    sentence: 'p has failed: the postStart hook of container app failed with exit code 3, no such queue.',
  },
  'a postStart hook that has just failed': {
    status: { conditions: UNREADY, containerStatuses: [waiting('app', 'PostStartHookError', HOOK)] },
    events: [['FailedPostStartHook', 'PostStartHook failed', 'app']],
    sentence: 'p cannot start: the postStart hook of container app failed with exit code 3, no such queue.',
    evidence: [
      'status.state.waiting.reason is PostStartHookError: the node stops the container when its hook has failed',
      'Event FailedPostStartHook, 1.00s ago: PostStartHook failed',
    ],
  },
  'a container that was killed for its memory limit and is not restarted': {
    spec: { restartPolicy: 'Never', containers: [withLimit('16Mi')] },
    status: failed(137, 'OOMKilled'),
    sentence: 'p has failed: container app was killed because it reached its memory limit of 16Mi.',
    advice: /^raise its memory limit of 16Mi/,
  },
  'a container that was killed for the memory limit of its Pod': {
    spec: { resources: { limits: { memory: '32Mi' } } },
    status: crashing(137, 'OOMKilled'),
    sentence: 'p keeps restarting: container app was killed because it reached its memory limit of 32Mi.',
  },
  'a container without a memory limit that was killed for the memory of the machine': {
    status: crashing(137, 'OOMKilled'),
    sentence: 'p keeps restarting: container app was killed because the machine had too little memory.',
  },
  'a container that was killed by another program': {
    spec: { containers: [withLimit('16Mi')] },
    status: crashing(137, 'Error'),
    steps: [[4, 'Exited', { ...run(1), exitCode: 137, reason: 'Error' }]],
    sentence:
      'p keeps restarting: container app ended with code 137, perhaps because it reached its memory limit of 16Mi.',
    evidence: [
      '2 runs, the last one ended 4.00s ago with code 137 (Error)',
      'code 137 usually means that SIGKILL ended it; the node sent no signal',
    ],
  },
  'a container that ended with the code of a signal and has no record': {
    status: crashing(137, 'Error'),
    sentence: 'p keeps restarting: container app ended with code 137.',
    evidence: [
      '2 runs, the last one ended 4.00s ago with code 137 (Error)',
      'code 137 usually means that SIGKILL ended it',
    ],
  },
  'a container that was killed after its stop signal at the shutdown of its node': {
    spec: { containers: [withLimit('16Mi')] },
    status: {
      ...failed(137, 'Error'),
      reason: 'Terminated',
      message: 'Pod was terminated in response to imminent node shutdown.',
      conditions: [condition('DisruptionTarget', 'True', 'TerminationByKubelet')],
    },
    steps: [
      [60, 'Started', of('app')],
      [8, 'TerminationBegan', { reason: 'NodeShutdown', ...until(-4) }],
      [8, 'StopSignal', { ...of('app'), ...until(-4) }],
      [4, 'Exited', { ...of('app'), exitCode: 137, reason: 'Error' }],
    ],
    sentence:
      'p has failed: Terminated, Pod was terminated in response to imminent node shutdown; it has no controller, so it does not start again by itself.',
    evidence: [
      'container app: exit code 137 (Error)',
      'container app did not end after its stop signal and was killed',
    ],
    advice: /^delete it: .*\nthen run it again .*\nfor the next Pod: make the program handle SIGTERM.*\nsee its life: /,
  },
  'a sidecar that was killed after its stop signal': {
    spec: { containers: [container('app')], initContainers: [container('log', { restartPolicy: 'Always' })] },
    status: { ...failed(1, 'Error'), initContainerStatuses: [status('log', { state: terminated(137, 'Error') })] },
    steps: [
      [60, 'Started', { container: 'log', containerKind: 'init', attempt: 0 }],
      [8, 'StopSignal', { container: 'log', containerKind: 'init', attempt: 0, ...until(-4) }],
      [4, 'Exited', { container: 'log', containerKind: 'init', attempt: 0, exitCode: 137, reason: 'Error' }],
    ],
    sentence: /^p has failed: /,
    evidence: [
      'sidecar container log: exit code 137 (Error)',
      'container app: exit code 1 (Error)',
      'sidecar container log did not end after its stop signal and was killed',
    ],
  },
  'entries that were being started when their time was over': {
    spec: { deferContainers: [container('pre'), container('next'), container('post')] },
    status: {
      phase: 'Succeeded',
      containerStatuses: [status('app', { state: terminated(0, 'Completed') })],
      deferContainerStatuses: [
        status('pre', { state: terminated(137, 'DeadlineExceeded', 'the PreExit stage had ended') }),
        status('next', { restartCount: 1, state: terminated(137, 'DeadlineExceeded', 'the PreExit stage had ended') }),
        status('post', { state: terminated(137, 'DeadlineExceeded', 'the grace period had passed') }),
      ],
    },
    steps: [
      [20, 'TerminationBegan', { reason: 'Deleted', ...until(-8) }],
      [12, 'DeferEnded', { ...entry('pre'), exitCode: 137, reason: 'DeadlineExceeded' }],
      [11, 'Started', { ...entry('pre'), attempt: 0 }],
      [9, 'Exited', { ...entry('pre'), attempt: 0, exitCode: 0, reason: 'Completed' }],
      [9, 'DeferEnded', { ...entry('post'), exitCode: 137, reason: 'DeadlineExceeded' }],
      [8, 'Exited', { ...entry('post'), attempt: 0, exitCode: 128, reason: 'StartError' }],
    ],
    sentence:
      'p has completed: all its app containers ended with code 0; its defer containers pre, next and post timed out.',
    evidence: [
      'container app: exit code 0 (Completed)',
      'defer container pre: exit code 0, but only after its time was over (DeadlineExceeded): the PreExit stage had ended',
      'defer container next: timed out before it had started again, the PreExit stage had ended',
      'defer container post: timed out before it had started, the grace period had passed',
      'its object stays until it is deleted',
    ],
    advice:
      /^do by hand what next and post would have done\ncheck whether pre did all its work, and do the rest by hand\n/,
  },
  'a container whose preStop hook took the whole grace period': {
    status: failed(137, 'Error'),
    steps: [
      [32, 'TerminationBegan', { reason: 'Completed', ...until(-4) }],
      [32, 'HookBegan', { ...of('app'), reason: 'preStop' }],
      [6, 'StopSignal', { ...of('app'), ...until(-4) }],
      [4, 'Exited', { ...of('app'), exitCode: 137, reason: 'Error' }],
    ],
    sentence: 'p has failed: container app was killed 2s after its stop signal, because the time of the Pod was over.',
    evidence: ['container app: exit code 137 (Error)'],
  },
  'a container that was killed after its stop signal in a Pod without a reason': {
    status: failed(137, 'Error'),
    steps: [
      [8, 'StopSignal', { ...of('app'), ...until(-4) }],
      [4, 'Exited', { ...of('app'), exitCode: 137, reason: 'Error' }],
    ],
    sentence: 'p has failed: container app did not end after its stop signal and was killed.',
    evidence: ['container app: exit code 137 (Error)'],
    advice: /^for the next Pod: make the program handle SIGTERM/,
  },
  'a Pod that runs again after the container runtime had lost its container': {
    status: {
      phase: 'Running',
      conditions: READY,
      containerStatuses: [
        running('app', {
          state: { running: { startedAt: time(1) } },
          restartCount: 1,
          lastState: terminated(137, 'ContainerStatusUnknown', LOST),
        }),
      ],
    },
    sentence:
      'p is running again: container app was lost, because the container runtime no longer had it, and was restarted 1.00s ago.',
    evidence: [
      'it was restarted 1×, the last time after code 137 (ContainerStatusUnknown)',
      'code 137 (ContainerStatusUnknown): not an exit code, the node reports it for an end that it does not know',
      'the container runtime has no container if its data was deleted, or after a restore, because a backup contains no containers',
    ],
    advice: /^see its life: lifepod timeline p -n n$/,
  },
  'a failed Pod with a container that never ran': {
    status: failed(137, 'ContainerStatusUnknown', UNLOCATED),
    sentence: 'p has failed: its node found no run of container app when the Pod ended.',
    evidence: [
      'container app: exit code 137 (ContainerStatusUnknown)',
      'code 137 (ContainerStatusUnknown): not an exit code, the node reports it for an end that it does not know',
    ],
    advice: /^see its life: lifepod timeline p -n n$/,
  },
  'a Pod without a controller whose init container waited for its image when its node was shut down': {
    spec: { initContainers: [container('i', { image: 'busybox:1.37' })] },
    status: {
      phase: 'Failed',
      reason: 'Terminated',
      message: 'Pod was terminated in response to imminent node shutdown.',
      conditions: [condition('DisruptionTarget', 'True', 'TerminationByKubelet')],
      initContainerStatuses: [
        status('i', { containerID: '', state: terminated(137, 'ContainerStatusUnknown', UNLOCATED) }),
      ],
      containerStatuses: [waiting('app', 'PodInitializing')],
    },
    steps: [[9, 'PullFailed', { ...of('i'), reason: 'ErrImagePull', message: 'lookup r: no such host' }]],
    sentence:
      /^p has failed: Terminated, Pod was terminated in response to imminent node shutdown; init container i had not started: its image busybox:1\.37 cannot be pulled \(.*\); it has no controller, so it does not start again by itself\.$/,
    evidence: ['init container i: not started, its node reports code 137 (ContainerStatusUnknown)'],
    advice: /^make it from this machine's busybox: .*\nload it .*\ndelete it: .*\nthen run it again .*\nsee its life: /,
  },
  'a Pod whose deadline passed while its container lacked an image that may not be pulled': {
    status: {
      ...failed(137, 'ContainerStatusUnknown', UNLOCATED),
      reason: 'DeadlineExceeded',
      message: 'Pod was active on the node longer than the specified deadline',
    },
    steps: [[9, 'StartFailed', { ...of('app'), reason: 'ErrImageNeverPull', message: 'not present' }]],
    sentence: 'p has failed: it was active longer than its activeDeadlineSeconds.',
    evidence: [
      'status.reason is DeadlineExceeded: Pod was active on the node longer than the specified deadline',
      'container app: not started, its node reports code 137 (ContainerStatusUnknown)',
      'container app had not started: its image i is not on the node and may not be pulled',
    ],
    advice: /^load it .*\nor let the node pull it: .*\nraise spec.activeDeadlineSeconds/,
  },
  'a failed Pod with a container that could not be started': {
    status: failed(137, 'ContainerStatusUnknown', UNLOCATED),
    steps: [
      [9, 'StartFailed', { ...of('app'), reason: 'CreateContainerConfigError', message: 'configmap "nope" not found' }],
    ],
    sentence: /^p has failed: container app had not started: it .*nope/,
    evidence: ['container app: not started, its node reports code 137 (ContainerStatusUnknown)'],
    advice: /^see its life: /,
  },
  'requests that no node can satisfy': {
    spec: {
      nodeName: undefined as unknown as string,
      containers: [container('app', { resources: { requests: { cpu: '500', memory: '4Ti', 'nvidia.com/gpu': '1' } } })],
    },
    nodes: [node({ cpu: '2', memory: '24581692Ki' })],
    status: {
      conditions: [condition('PodScheduled', 'False', 'Unschedulable', '0/1 nodes are available: 1 Insufficient cpu.')],
    },
    sentence:
      'p can never be scheduled: it requests 500 cpu, and the node node has only 2 for all Pods together; it requests 4Ti memory, and the node node has only 23.4Gi for all Pods together; it requests 1 nvidia.com/gpu, which no node has.',
    evidence: ['condition PodScheduled is False (Unschedulable): 0/1 nodes are available: 1 Insufficient cpu.'],
    advice: /^lower the requests.*\n.*: kubectl describe node node$/,
  },
  'requests that a node could satisfy if less were reserved': {
    spec: {
      nodeName: undefined as unknown as string,
      containers: [container('app', { resources: { requests: { memory: '10Mi' } } })],
    },
    nodes: [{ ...node({}), status: { allocatable: { memory: '0' }, capacity: { memory: '24Gi' } } }],
    status: {
      conditions: [
        condition('PodScheduled', 'False', 'Unschedulable', '0/1 nodes are available: 1 Insufficient memory.'),
      ],
    },
    sentence:
      'p can never be scheduled: it requests 10Mi memory, and the node node has only 0 for all Pods together (of 24Gi, the rest is reserved).',
    advice: /^lower the requests .*, or reserve less of the machine: start the engine with a lower --kube-reserved, /,
  },
  'requests for which no node has enough, also without what the largest one reserves': {
    spec: {
      nodeName: undefined as unknown as string,
      containers: [container('app', { resources: { requests: { cpu: '5500m' } } })],
    },
    nodes: [
      { ...node({}), status: { allocatable: { cpu: '4' }, capacity: { cpu: '8' } } },
      { ...node({}), status: { allocatable: { cpu: '5' }, capacity: { cpu: '5' } } },
    ],
    status: {
      conditions: [condition('PodScheduled', 'False', 'Unschedulable', '0/2 nodes are available: 2 Insufficient cpu.')],
    },
    sentence: 'p can never be scheduled: it requests 5500m cpu, and the largest node has only 5 for all Pods together.',
    advice: /^lower the requests \(and limits\) of its containers, and recreate the Pod\n/,
  },
  'requests that a node could satisfy without other Pods': {
    spec: {
      nodeName: undefined as unknown as string,
      containers: [container('app', { resources: { requests: { cpu: '1500m' } } })],
    },
    nodes: [node({ cpu: '2' })],
    status: {
      conditions: [condition('PodScheduled', 'False', 'Unschedulable', '0/1 nodes are available: 1 Insufficient cpu.')],
    },
    sentence: 'p is not scheduled: 0/1 nodes are available: 1 Insufficient cpu.',
    evidence: [
      'it requests 1500m cpu; node node has 2 for all Pods together',
      'condition PodScheduled is False (Unschedulable): 0/1 nodes are available: 1 Insufficient cpu.',
    ],
  },
  'a program as PID 1 that ignores SIGTERM': {
    metadata: DELETED,
    spec: { containers: [container('app', { command: ['sleep', '3600'] })] },
    status: { containerStatuses: [running('app')] },
    steps: [...(ENDING ?? []), [8, 'StopSignal', { ...of('app'), ...until(22) }]],
    sentence:
      /^p is not gone yet: PID 1 of container app has ignored its stop signal for 8\.00s; it will be killed at /,
    evidence: [
      'its termination began 8.00s ago: Deleted',
      'stop signal sent 8.00s ago',
      'its PID 1: sleep 3600',
      'the kernel ignores SIGTERM for a PID 1 that installs no handler for it',
    ],
    advice: /shareProcessNamespace: true.*\n.*kubectl delete pod p -n n --now$/,
  },
  'a program that is not PID 1 and has not ended after its stop signal': {
    metadata: DELETED,
    spec: { shareProcessNamespace: true },
    status: { containerStatuses: [running('app')] },
    steps: [...(ENDING ?? []), [8, 'StopSignal', { ...of('app'), ...until(22) }]],
    sentence: /^p is not gone yet: the main process of container app still runs 8\.00s after its stop signal/,
    evidence: ['its termination began 8.00s ago: Deleted', 'stop signal sent 8.00s ago'],
  },
  'an image name that is not valid': {
    spec: { containers: [{ name: 'app', image: 'Busybox:1.28:x' }] },
    status: {
      conditions: UNREADY,
      containerStatuses: [
        waiting('app', 'InvalidImageName', `couldn't parse image name "Busybox:1.28:x"`, {
          image: '',
          containerID: '',
        }),
      ],
    },
    sentence: 'p cannot start: "Busybox:1.28:x", the image of its container app, is not a valid image name.',
    evidence: [`InvalidImageName: couldn't parse image name "Busybox:1.28:x"`],
    advice: /: kubectl set image pod\/p -n n app=IMAGE$/,
  },
  'a command that the image does not have': {
    status: crashing(
      128,
      'StartError',
      `${RUNC}exec: "/opt/srv/start": stat /opt/srv/start: no such file or directory: unknown`,
    ),
    sentence:
      'p keeps restarting: container app cannot execute its command /opt/srv/start: there is no such file in its image.',
    advice: /^fix the command/,
  },
  'a command that is not in the PATH': {
    status: failed(128, 'StartError', `${RUNC}exec: "starte": executable file not found in $PATH: unknown`),
    sentence:
      'p has failed: container app cannot execute its command starte: there is no such file in the PATH of its image.',
  },
  'a command that is not executable, as another runtime reports it': {
    status: failed(128, 'ContainerCannotRun', `${RUNC}exec: "/etc/passwd": permission denied: unknown`),
    sentence: 'p has failed: container app cannot execute its command /etc/passwd: permission denied.',
  },
  'a program for another CPU': {
    status: failed(1, 'Error'),
    lines: { app: ['exec /srv/start: exec format error'] },
    sentence:
      'p has failed: container app cannot execute its command /srv/start: it is a program for another CPU, or a script without an interpreter in its first line.',
    evidence: ['container app: exit code 1 (Error)', 'its log: exec /srv/start: exec format error'],
    advice: /^use an image for the CPU of the node/,
  },
  'a program for another CPU, whose message an older runc writes': {
    status: failed(1, 'Error', 'standard_init_linux.go:228: exec user process caused: exec format error'),
    sentence: /^p has failed: container app cannot execute its command: it is a program for another CPU, /,
  },
  'a command that prints the error of another program': {
    status: failed(1, 'Error'),
    lines: { app: ['starting', 'exec /srv/start: exec format error'] },
    sentence: 'p has failed: container app ended with code 1.',
  },
  'a working directory that is a file': {
    status: failed(
      128,
      'StartError',
      `${RUNC}error during container init: mkdir /etc/passwd: not a directory: unknown`,
    ),
    sentence: 'p has failed: container app cannot use its working directory /etc/passwd: not a directory.',
  },
  'a volume that is mounted over a file': {
    status: failed(
      128,
      'StartError',
      `${RUNC}error during container init: error mounting "/d/volumes/v" to rootfs at "/etc/passwd": mount /d/volumes/v:/etc/passwd ` +
        '(via /proc/self/fd/6), flags: 0x5000: not a directory: unknown',
    ),
    sentence:
      'p has failed: container app cannot mount a volume at /etc/passwd: the volume is a folder and the image has a file there, or vice versa.',
    advice: /^in its volumeMounts, name another mountPath, /,
  },
  'a subPath that is a folder and is mounted over a file': {
    status: failed(
      128,
      'StartError',
      `${RUNC}error during container init: error mounting "/d/pods/u/volume-subpaths/conf/app/0" to rootfs at "/etc/passwd": mount ` +
        '/d/pods/u/volume-subpaths/conf/app/0:/etc/passwd (via /proc/self/fd/6), flags: 0x5001: not a directory: unknown',
    ),
    sentence:
      'p has failed: container app cannot mount a subPath of its volume conf at /etc/passwd: the subPath is a folder and the image has a file there, or vice versa.',
    advice: /^correct the subPath if the volume has no such path \(or the ConfigMap or Secret no such key\), /,
  },
  'an image whose user is a name, without /etc/passwd': {
    status: {
      conditions: UNREADY,
      containerStatuses: [
        waiting(
          'app',
          'CreateContainerError',
          'mount callback failed on /d/tmpmounts/containerd-mount2809725728: open /d/tmpmounts/containerd-mount2809725728/etc/passwd: no such file or directory',
        ),
      ],
    },
    sentence:
      'p cannot start: container app cannot be started: the user of its image is a name that the image does not define: it has no /etc/passwd.',
    advice: /^set runAsUser in its securityContext to the number of the user, /,
  },
  'an image whose user is a name that its /etc/passwd does not contain': {
    status: {
      conditions: UNREADY,
      containerStatuses: [
        waiting('app', 'CreateContainerError', 'failed to create containerd container: no users found'),
      ],
    },
    sentence:
      'p cannot start: container app cannot be started: the user of its image is a name that the image does not define.',
  },
  'an image without a command': {
    status: {
      conditions: UNREADY,
      containerStatuses: [
        waiting(
          'app',
          'CreateContainerError',
          `rpc error: code = Unknown desc = failed to generate container "${'ab'.repeat(32)}" spec: failed to generate spec: no command specified`,
        ),
      ],
    },
    sentence: 'p cannot start: container app cannot be started: its image defines no command.',
    advice: /^set its command to a program of the image, and recreate the Pod/,
  },
  'a defer container whose command does not exist': {
    metadata: DELETED,
    spec: { deferContainers: [{ name: 'bye', image: 'i', trigger: 'PreExit' }] },
    status: {
      containerStatuses: [running('app')],
      deferContainerStatuses: [
        waiting('bye', 'CrashLoopBackOff', '', {
          lastState: terminated(
            128,
            'StartError',
            `${RUNC}exec: "/nope": stat /nope: no such file or directory: unknown`,
          ),
        }),
      ],
    },
    steps: [...(ENDING ?? []), [4, 'BackOff', { ...entry('bye'), ...until(6) }]],
    sentence:
      'p is not gone yet: its defer container bye (1 of 1) cannot execute its command /nope: there is no such file in its image; it will be retried in 6.00s; deadline 12:00:22 UTC (in 22.0s).',
  },
  'several containers with problems': {
    spec: { containers: [container('a'), container('a-b'), container('c')] },
    status: {
      containerStatuses: [
        waiting('a', 'CrashLoopBackOff', 'back-off', { restartCount: 2, lastState: terminated(3, 'Error') }),
        waiting('a-b', 'CreateContainerConfigError', 'configmap "x" not found', { containerID: '' }),
        running('c'),
      ],
    },
    sentence: 'p keeps restarting: container a ended with code 3.',
    evidence: [
      '3 runs, the last one ended 4.00s ago with code 3 (Error)',
      'also container a-b: CreateContainerConfigError, configmap "x" not found',
    ],
  },
  'a command that cannot be started, in the state waiting': {
    status: {
      conditions: UNREADY,
      containerStatuses: [waiting('app', 'RunContainerError', `${RUNC}exec: "/": is a directory: unknown`)],
    },
    sentence: 'p cannot start: container app cannot execute its command /: it is a directory.',
  },
});

const taint: Taint = { key: 'repair', value: 'disk', effect: 'NoExecute' };

explains({
  'a sysctl that the node forbids': {
    status: rejected('SysctlForbidden', 'forbidden sysctl: "net.core.somaxconn" not allowlisted'),
    events: [['SysctlForbidden', 'forbidden sysctl: "net.core.somaxconn" not allowlisted']],
    sentence: 'p has failed: its node node forbids the sysctl net.core.somaxconn.',
    evidence: [
      'status.reason is SysctlForbidden: Pod was rejected: forbidden sysctl: "net.core.somaxconn" not allowlisted',
      'Event SysctlForbidden, 1.00s ago: forbidden sysctl: "net.core.somaxconn" not allowlisted',
    ],
    advice:
      /^to allow the sysctl, .*: lifepod status\n.*: kill PID\n.*: lifepod up --detach --allowed-unsafe-sysctls net\.core\.somaxconn\n/,
  },
  'a sysctl that the node of a service forbids': {
    service: true,
    status: rejected('SysctlForbidden', 'forbidden sysctl: "net.core.somaxconn" not allowlisted'),
    sentence: 'p has failed: its node node forbids the sysctl net.core.somaxconn.',
    advice:
      /^to allow the sysctl, restart the service .*: lifepod up --install-service --allowed-unsafe-sysctls net\.core\.somaxconn\n/,
  },
  'a node without the labels that the Pod requires': {
    spec: { nodeSelector: { disk: 'ssd' } },
    status: rejected(
      'NodeAffinity',
      "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
    ),
    sentence:
      'p has failed: its node node does not have the labels that its nodeSelector or affinity requires (disk=ssd).',
    advice: /^label the node: kubectl label node node disk=ssd\n/,
  },
  'a request for more than the node of the Pod has': {
    spec: { containers: [container('app', { resources: { requests: { cpu: '500' } } })] },
    nodes: [node({ cpu: '2' })],
    status: rejected('OutOfcpu', "Node didn't have enough resource: cpu, requested: 500000, used: 0, capacity: 2000"),
    sentence: 'p has failed: it requests 500 cpu, and its node has only 2 for all Pods together.',
  },
  'a request for more than the other Pods of the node leave': {
    spec: { containers: [container('app', { resources: { requests: { cpu: '1' } } })] },
    nodes: [node({ cpu: '2' })],
    status: rejected('OutOfcpu', "Node didn't have enough resource: cpu, requested: 1000, used: 1500, capacity: 2000"),
    sentence: 'p has failed: it requests 1 cpu, and the other Pods leave less of the 2 of its node.',
  },
  'a NoExecute taint that a Pod with a nodeName does not tolerate': {
    nodes: [node({}, [taint])],
    status: rejected(
      'TaintToleration',
      "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
    ),
    sentence: 'p has failed: its node node has the taint repair=disk:NoExecute, which it does not tolerate.',
    advice: /^remove the taint from the node: kubectl taint node node repair=disk:NoExecute-\n/,
  },
  'a Pod that its node evicted': {
    status: {
      phase: 'Failed',
      reason: 'Evicted',
      message: 'The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. ',
    },
    sentence: 'p has failed: its node evicted it, because the node was low on memory.',
    advice: /kubectl describe node node$/m,
  },
  'a Pod whose volume exceeded its sizeLimit': {
    status: rejected('Evicted', 'Usage of EmptyDir volume "v" exceeds the limit "1Mi". '),
    sentence: 'p has failed: its node evicted it, because its volume v exceeded its sizeLimit of 1Mi.',
    advice: /^raise the sizeLimit of the volume v, or write less to it, and recreate the Pod: [^\n]+$/,
  },
  'a Pod that exceeded the limit for the disk of its container': {
    spec: { containers: [container('app', { resources: { limits: { 'ephemeral-storage': '2Mi' } } }), container('b')] },
    status: rejected('Evicted', 'Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. '),
    sentence:
      'p has failed: its node evicted it, because it wrote more to the disk than the ephemeral-storage limit of its container app, 2Mi.',
    advice: /^raise the ephemeral-storage limit of its container app, or write less, and recreate the Pod: [^\n]+$/,
  },
  'a Pod that exceeded the limits for the disk of its containers': {
    spec: {
      containers: ['app', 'b'].map((name) =>
        container(name, { resources: { limits: { 'ephemeral-storage': '2Mi' } } }),
      ),
    },
    status: rejected('Evicted', 'Pod ephemeral local storage usage exceeds the total limit of containers 4Mi. '),
    sentence: /than the ephemeral-storage limits of its containers app and b, 4Mi in total\.$/,
    advice: /^raise the ephemeral-storage limits of its containers app and b, or write less, /,
    evidence: [
      'status.reason is Evicted: Pod was rejected: Pod ephemeral local storage usage exceeds the total limit of containers 4Mi.',
      'the limits count the files that the containers write, their logs, and the emptyDir volumes on the disk',
    ],
  },
  'a Pod whose container exceeded its own limit for the disk': {
    status: rejected('Evicted', 'Container app exceeded its local ephemeral storage limit "2Mi". '),
    sentence: /than the ephemeral-storage limit of its container app, 2Mi\.$/,
    advice: /^raise the ephemeral-storage limit of its container app, or write less, /,
    evidence: [
      'status.reason is Evicted: Pod was rejected: Container app exceeded its local ephemeral storage limit "2Mi".',
      'the limit counts the files that the container writes, and its logs',
    ],
  },
  'a critical Pod for which no other Pod can be evicted': {
    status: rejected('UnexpectedAdmissionError', 'Unexpected error while attempting to recover from admission failure'),
    sentence: /^p has failed: its node rejected it, .*Unexpected error/,
  },
  'a static Pod that requests more than its node has': {
    spec: { containers: [container('app', { resources: { requests: { cpu: '1', memory: '999Gi' } } })] },
    nodes: [node({ cpu: '2', memory: '8Gi' })],
    status: rejected(
      'UnexpectedAdmissionError',
      'Pod was rejected: Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: ' +
        'no set of running pods found to reclaim resources: [(res: cpu, q: 500), (res: memory, q: 1047496880128), ]',
    ),
    sentence: 'p has failed: it requests 999Gi memory, and its node has only 8Gi for all Pods together.',
    advice: /^lower its requests, and recreate the Pod: [^\n]*$/,
  },
  'a Pod whose node does not exist': {
    nodes: [],
    sentence: 'p cannot start: its node node does not exist.',
    advice: /kubectl get nodes$/,
  },
  'a running Pod whose node is not ready': {
    notReady: 'container runtime is down',
    status: {
      phase: 'Running',
      startTime: time(60),
      conditions: [condition('Initialized', 'True'), condition('Ready', 'False')],
      containerStatuses: [running('app')],
    },
    sentence: 'p is not ready: its node node is not ready, container runtime is down.',
    evidence: [
      'condition Ready of the node is False (KubeletNotReady)',
      'its containers were ready when the node reported them last',
    ],
    advice: /^see why the node is not ready: lifepod status/,
  },
  'a Pod that waits for an image while the runtime of its node is down': {
    notReady: DOWN,
    status: {
      phase: 'Pending',
      startTime: time(60),
      conditions: UNREADY,
      containerStatuses: [waiting('app', 'ImagePullBackOff', 'Back-off pulling image "i": ErrImagePull: no such host')],
    },
    sentence:
      'p waits: its node node has not been ready for 12.0s, container runtime is down: connect ENOENT /run/containerd/containerd.sock.',
    evidence: [
      'condition Ready of the node is False (KubeletNotReady)',
      'also container app: ImagePullBackOff, Back-off pulling image "i": ErrImagePull: no such host',
    ],
    advice: /^start the container runtime of the node node: systemctl start containerd\n/,
  },
  'a healthy Pod whose node is not ready': {
    notReady: DOWN,
    status: { phase: 'Running', startTime: time(60), conditions: READY, containerStatuses: [running('app')] },
    sentence:
      'p is running: its container is ready, for 30.0s, but its node node is not ready, container runtime is down: connect ENOENT /run/containerd/containerd.sock.',
    evidence: ['container app: never restarted', 'condition Ready of the node is False (KubeletNotReady)'],
    advice: /^start the container runtime .*\nread its log: .*\nsee why the node is not ready: lifepod status$/,
  },
  'a running Pod that tolerates a NoExecute taint for a limited time': {
    spec: { tolerations: [{ key: 'repair', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 1000 }] },
    nodes: [node({}, [{ ...taint, timeAdded: time(10) }])],
    status: { phase: 'Running', startTime: time(60), conditions: READY, containerStatuses: [running('app')] },
    sentence:
      'p will be evicted at about 12:16:30 UTC (in 16m30s): its node node has the taint repair=disk:NoExecute, which it tolerates for 16m40s only.',
    advice: /kubectl taint node node repair=disk:NoExecute-\n/,
  },
  'a terminating Pod that is evicted for a NoExecute taint': {
    metadata: DELETED,
    nodes: [node({}, [taint])],
    status: {
      conditions: [
        condition(
          'DisruptionTarget',
          'True',
          'DeletionByTaintManager',
          'Taint manager: deleting due to NoExecute taint',
        ),
      ],
      containerStatuses: [running('app')],
    },
    steps: [
      [8, 'TerminationBegan', { reason: 'Evicted', ...until(22) }],
      [0.5, 'StopSignal', { ...of('app'), ...until(22) }],
    ],
    sentence: /^p is not gone yet: container app was just sent its stop signal/,
    evidence: [
      'its termination began 8.00s ago: Evicted',
      'it is evicted: its node node has the taint repair=disk:NoExecute',
      'stop signal sent 0.50s ago',
    ],
  },
  'a Pod that was evicted for a NoExecute taint': {
    gone: true,
    nodes: [node({}, [taint])],
    events: [['TaintManagerEviction', 'Marking for deletion Pod n/p']],
    steps: [
      [20, 'TerminationBegan', { reason: 'Evicted', ...until(10) }],
      [16, 'Gone'],
    ],
    sentence:
      'p has been gone since 11:59:44 UTC: it was evicted because its node node has the taint repair=disk:NoExecute, and its termination took 4.00s of the 30.0s allowed.',
    evidence: ['Event TaintManagerEviction, 1.00s ago: Marking for deletion Pod n/p'],
  },
});
