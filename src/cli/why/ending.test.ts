import {
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
  until,
  waiting,
} from './explain-fixtures.ts';

const failing = (name: string) =>
  waiting(name, 'CrashLoopBackOff', `back-off 4s restarting failed container=${name}`, {
    restartCount: 1,
    lastState: terminated(1, 'Error', 'no receiver'),
  });

explains({
  'a defer container that runs': {
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
      'p is not gone yet: its defer container slow (2 of 2) has been running for 3.00s; deadline 12:00:12 UTC (in 12.0s).',
    evidence: ['its termination began 8.00s ago: Deleted', 'defer container quick: exit code 0 (Completed)'],
    advice:
      /lifepod logs p -n n -c slow -f\nwait, or cut it short: kubectl delete pod p -n n --now\ngive this entry up: lifepod skip p slow -n n$/,
  },
  'a defer container that cannot run in a completed Pod': {
    spec: { deferContainers: [container('bye')] },
    status: { phase: 'Terminating', deferContainerStatuses: [waiting('bye', 'ImagePullBackOff', 'no such image')] },
    steps: [[8, 'TerminationBegan', { reason: 'Completed', ...until(22) }]],
    sentence:
      'p has not ended yet: its defer container bye (1 of 1) cannot run, because its image i cannot be pulled (no such image); deadline 12:00:22 UTC (in 22.0s).',
    evidence: [
      'its termination began 8.00s ago: Completed',
      'it was not deleted: its object stays when it has ended',
      'defer container bye waits: ImagePullBackOff: no such image',
    ],
    advice:
      /: lifepod image load FILE\nwait: its phase then shows how it ended\ngive this entry up: lifepod skip p bye -n n$/,
  },
  'a defer container that waits for a ConfigMap': {
    spec: { deferContainers: [container('bye')] },
    status: {
      phase: 'Terminating',
      deferContainerStatuses: [waiting('bye', 'CreateContainerConfigError', 'configmap "late" not found')],
    },
    steps: ENDING,
    sentence:
      'p has not ended yet: its defer container bye (1 of 1) cannot run, because it needs the ConfigMap late, which does not exist in namespace n; deadline 12:00:22 UTC (in 22.0s).',
    evidence: [
      'its termination began 8.00s ago: Deleted',
      'it was not deleted: its object stays when it has ended',
      'defer container bye waits: CreateContainerConfigError: configmap "late" not found',
    ],
    advice:
      /^create the ConfigMap, [^\n]+: kubectl create configmap late -n n [^\n]+\nwait: [^\n]+\ngive this entry up: /,
  },
  'a container that stops after its preStop hook has failed': {
    metadata: DELETED,
    status: { phase: 'Running', containerStatuses: [running('app')] },
    steps: [
      ...(ENDING ?? []),
      [3, 'HookFailed', { ...of('app'), reason: 'preStop', message: 'exec exited with code 2' }],
      [0.5, 'StopSignal', { ...of('app'), ...until(22) }],
    ],
    sentence: /^p is not gone yet: container app was just sent its stop signal; /,
    evidence: [
      'its termination began 8.00s ago: Deleted',
      'stop signal sent 0.50s ago',
      'the preStop hook of container app failed 3.00s ago: exec exited with code 2',
    ],
  },
  'a stopping sidecar of a completed Pod whose defer containers have ended': {
    spec: { initContainers: [container('side', { restartPolicy: 'Always' })], deferContainers: [container('bye')] },
    status: {
      phase: 'Running',
      termination: { reason: 'Completed', startedAt: '2026-01-31T11:59:50Z', deadline: '2026-01-31T12:00:20Z' },
      initContainerStatuses: [running('side')],
      containerStatuses: [status('app', { state: terminated(0, 'Completed') })],
      deferContainerStatuses: [status('bye', { state: terminated(0, 'Completed') })],
    },
    steps: [...(ENDING ?? []), [1, 'StopSignal', { ...of('side') }]],
    sentence: /^p has not ended yet: PID 1 of sidecar container side /,
  },
  'a Pod without defer containers that has been active for too long': {
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'False' }], containerStatuses: [running('app')] },
    steps: [
      [8, 'TerminationBegan', { reason: 'DeadlineExceeded', ...until(22) }],
      [8, 'StopSignal', { ...of('app'), ...until(22) }],
    ],
    sentence: /^p has not ended yet: PID 1 of container app still runs 8\.00s after its stop signal; /,
  },
  'a defer container that is retried': {
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
      'p is not gone yet: its defer container bye (1 of 1) failed with exit code 1 and will be retried in 1.00s; deadline 12:00:22 UTC (in 22.0s).',
    evidence: ['its termination began 8.00s ago: Deleted', '2 attempts, the last one: no receiver'],
    advice: /lifepod logs p -n n -c bye\nwait/,
  },
  'a defer container whose timeoutSeconds end before its next attempt': {
    metadata: DELETED,
    spec: { deferContainers: [{ ...container('bye'), timeoutSeconds: 5 }] },
    status: {
      phase: 'Terminating',
      deferContainerStatuses: [failing('bye')],
      termination: {
        reason: 'Deleted',
        startedAt: time(8),
        deadline: time(-22),
        turn: { entry: 'bye', since: time(4) },
      },
    },
    steps: [...(ENDING ?? []), [1, 'BackOff', { ...entry('bye'), attempt: 1, ...until(3) }]],
    sentence:
      'p is not gone yet: its defer container bye (1 of 1) failed with exit code 1 and is not tried again, because its timeoutSeconds end at 12:00:01 UTC (in 1.00s), before the next attempt.',
  },
  'a defer container whose stage ends with its next attempt': {
    metadata: DELETED,
    spec: { deferContainers: [container('bye'), { ...container('log'), trigger: 'PostExit' }] },
    status: {
      phase: 'Terminating',
      deferContainerStatuses: [failing('bye'), waiting('log', 'PendingDefer')],
      termination: { reason: 'Deleted', startedAt: time(8), deadline: time(-22), preExitDeadline: time(-3) },
    },
    steps: [...(ENDING ?? []), [1, 'BackOff', { ...entry('bye'), attempt: 1, ...until(3) }]],
    sentence:
      'p is not gone yet: its defer container bye (1 of 2) failed with exit code 1 and is not tried again, because its time ends at 12:00:03 UTC (in 3.00s), before the next attempt.',
  },
  'a defer container whose next attempt is due after the deadline of the termination': {
    metadata: DELETED,
    spec: { deferContainers: [{ ...container('bye'), trigger: 'PostExit' }] },
    status: { phase: 'Terminating', deferContainerStatuses: [failing('bye')] },
    steps: [...(ENDING ?? []), [1, 'BackOff', { ...entry('bye'), attempt: 1, ...until(23) }]],
    sentence:
      'p is not gone yet: its defer container bye (1 of 1) failed with exit code 1 and is not tried again, because its time ends at 12:00:22 UTC (in 22.0s), before the next attempt.',
  },
  'a preStop hook that runs': {
    metadata: DELETED,
    status: { containerStatuses: [running('app')] },
    steps: [...(ENDING ?? []), [7, 'HookBegan', { ...of('app'), reason: 'preStop' }]],
    sentence:
      'p is not gone yet: the preStop hook of container app has been running for 7.00s; deadline 12:00:22 UTC (in 22.0s).',
  },
  'a terminating Pod whose node has not reported since the start of its engine': {
    metadata: DELETED,
    nodes: [node({})],
    unreported: [90, 12],
    status: { phase: 'Running', conditions: READY, containerStatuses: [running('app')] },
    steps: [
      [80, 'TerminationBegan', { reason: 'Deleted', ...until(22) }],
      [80, 'StopSignal', { ...of('app'), ...until(-1) }],
    ],
    sentence:
      'p was Terminating as of 11:58:40 UTC, 1m20s ago: its node node has not reported its state since lifepod started 12.0s ago.',
    evidence: ['container app was running', 'the time until its node reports does not count towards its grace period'],
    advice: /^wait until its node reports\nsee whether its node is starting: lifepod status$/,
  },
  'a running Pod whose node has not reported since the start of its engine': {
    nodes: [node({})],
    unreported: [90, 12],
    status: { phase: 'Running', conditions: READY, containerStatuses: [running('app')] },
    sentence:
      'p was Running as of 11:58:30 UTC, 1m30s ago: its node node has not reported its state since lifepod started 12.0s ago.',
    evidence: ['container app was running'],
  },
  'a completed Pod whose node has not reported since the start of its engine': {
    nodes: [node({})],
    unreported: [90, 12],
    status: { phase: 'Succeeded', containerStatuses: [status('app', { state: terminated(0, 'Completed') })] },
    sentence: 'p has completed: all its app containers ended with code 0.',
    advice: /^$/,
  },
  'a process that still runs after its stop signal, after an outage of its node that moved the deadline': {
    metadata: DELETED,
    status: { containerStatuses: [running('app')] },
    steps: [...(ENDING ?? []), [8, 'StopSignal', { ...of('app'), ...until(22) }], [1, 'DeadlineSet', { ...until(55) }]],
    sentence:
      'p is not gone yet: PID 1 of container app still runs 8.00s after its stop signal; it will be killed at 12:00:55 UTC (in 55.0s).',
  },
  'a process that its node should have killed two minutes ago': {
    metadata: DELETED,
    status: { containerStatuses: [running('app')] },
    steps: [[150, 'StopSignal', { ...of('app'), ...until(-120) }]],
    sentence:
      'p is not gone yet: PID 1 of container app still runs 2m30s after its stop signal; it will be killed at 11:58:00 UTC (overdue for 2m00s).',
  },
  'a stop signal from before a restart of the machine': {
    metadata: DELETED,
    status: { containerStatuses: [status('app', { state: { running: { startedAt: time(600) } } })] },
    steps: [[150, 'StopSignal', { ...of('app'), ...until(-120) }]],
    rebooted: 2,
    sentence:
      'p is not gone yet: its containers ended when its machine was restarted, and its node continues its termination.',
  },
  'a preStop hook from before a restart of the machine': {
    metadata: DELETED,
    status: { containerStatuses: [status('app', { state: { running: { startedAt: time(600) } } })] },
    steps: [[150, 'HookBegan', { ...of('app'), reason: 'preStop' }]],
    rebooted: 2,
    sentence: /^p is not gone yet: its containers ended when its machine was restarted/,
  },
  'a stop signal after a restart of the machine': {
    metadata: DELETED,
    status: { containerStatuses: [status('app', { state: { running: { startedAt: time(500) } } })] },
    steps: [[8, 'StopSignal', { ...of('app'), ...until(22) }]],
    rebooted: 600,
    sentence: /^p is not gone yet: PID 1 of container app still runs 8\.00s after its stop signal; /,
  },
  'a process with PID 1 that ignores SIGTERM': {
    metadata: DELETED,
    spec: { containers: [container('app', { command: ['sh', '-c', 'server; true'] })] },
    status: { containerStatuses: [running('app')] },
    steps: [...(ENDING ?? []), [8, 'StopSignal', { ...of('app'), ...until(22) }]],
    sentence:
      'p is not gone yet: PID 1 of container app has ignored its stop signal for 8.00s; it will be killed at 12:00:22 UTC (in 22.0s).',
    evidence: [
      'its termination began 8.00s ago: Deleted',
      'stop signal sent 8.00s ago',
      'its PID 1: sh -c server; true',
      'the kernel ignores SIGTERM for a PID 1 that installs no handler for it',
      'a shell forwards no signal to the program that it waits for',
    ],
    advice: /trap TERM/,
  },
  'a shell with a trap that has not ended yet': {
    metadata: DELETED,
    spec: { containers: [container('app', { command: ['sh', '-c', "trap 'sleep 9; exit' TERM; sleep 99 & wait"] })] },
    status: { containerStatuses: [running('app')] },
    steps: [...(ENDING ?? []), [8, 'StopSignal', { ...of('app'), ...until(22) }]],
    sentence:
      'p is not gone yet: PID 1 of container app still runs 8.00s after its stop signal; it will be killed at 12:00:22 UTC (in 22.0s).',
    evidence: [
      'its termination began 8.00s ago: Deleted',
      'stop signal sent 8.00s ago',
      "its PID 1: sh -c trap 'sleep 9; exit' TERM; sleep 99 & wait",
      'it traps TERM, and its trap may still run',
    ],
    advice: /^see its output: .*lifepod logs p -n n -c app\nwait, or cut it short: [^\n]+$/,
  },
  'a program that may handle its stop signal': {
    metadata: DELETED,
    spec: { containers: [container('app', { command: ['server'] })] },
    status: { containerStatuses: [running('app')] },
    steps: [...(ENDING ?? []), [8, 'StopSignal', { ...of('app'), ...until(22) }]],
    sentence: /^p is not gone yet: PID 1 of container app still runs 8\.00s after its stop signal; /,
    advice: /^see its output: [^\n]+\nfor the next Pod: make the program handle SIGTERM[^\n]+\nwait/,
  },
  'a container that ignores its stop signal after an entry has failed': {
    metadata: DELETED,
    spec: { deferContainers: [container('bye'), { ...container('late'), trigger: 'PostExit' }] },
    status: {
      phase: 'Terminating',
      containerStatuses: [running('app')],
      deferContainerStatuses: [
        status('bye', { state: terminated(1, 'Error', 'no such host') }),
        waiting('late', 'PendingDefer', '', { containerID: '' }),
      ],
    },
    steps: [...(ENDING ?? []), [0.5, 'StopSignal', of('app')]],
    sentence: 'p is not gone yet: container app was just sent its stop signal.',
    evidence: [
      'its termination began 8.00s ago: Deleted',
      'defer container bye: exit code 1 (Error): no such host',
      'stop signal sent 0.50s ago',
    ],
  },
  'a container that was just sent its stop signal': {
    metadata: DELETED,
    status: { containerStatuses: [running('app')] },
    steps: [...(ENDING ?? []), [0.5, 'StopSignal', of('app')]],
    sentence: 'p is not gone yet: container app was just sent its stop signal.',
  },
  'a finalizer that keeps the object of a Pod': {
    metadata: { ...DELETED, deletionGracePeriodSeconds: 0, finalizers: ['a/b'] },
    status: { containerStatuses: [status('app', { state: terminated(0, 'Completed') })] },
    sentence: 'p is not gone yet: none of its containers run any more, but the finalizer a/b keeps its object.',
    advice: /kubectl patch pod p -n n/,
  },
  'a PreExit entry bounded by the time reserved for PostExit entries': {
    metadata: DELETED,
    spec: { deferContainers: [container('bye'), { ...container('late'), trigger: 'PostExit' }] },
    status: {
      phase: 'Terminating',
      deferContainerStatuses: [running('bye'), waiting('late', 'PendingDefer', '', { containerID: '' })],
      termination: {
        reason: 'Deleted',
        startedAt: time(8),
        preExitDeadline: time(-7),
        deadline: time(-22),
        extendedSeconds: 10,
        outageSeconds: 46.6,
      },
    },
    steps: ENDING,
    sentence:
      'p is not gone yet: its defer container bye (1 of 2) has been running for 20.0s; deadline 12:00:07 UTC (in 7.00s).',
    evidence: [
      'its termination began 8.00s ago: Deleted',
      'its time was extended by 10 s',
      '47 s are not counted: its node did not answer',
      'the time from 12:00:07 UTC on is reserved for PostExit entries',
    ],
  },
  'an entry bounded by its timeoutSeconds, after others that did not run or hung': {
    metadata: DELETED,
    spec: {
      deferContainers: [container('undue'), container('hang'), { ...container('bye'), timeoutSeconds: 10 }],
    },
    status: {
      phase: 'Terminating',
      deferContainerStatuses: [
        status('undue', { containerID: '', state: terminated(137, 'Skipped', 'not due on Deleted') }),
        status('hang', { state: terminated(143, 'GivenUp') }),
        running('bye'),
      ],
      termination: {
        reason: 'Deleted',
        startedAt: time(8),
        preExitDeadline: time(-22),
        deadline: time(-22),
        turn: { entry: 'bye', since: time(5) },
      },
    },
    steps: ENDING,
    sentence:
      'p is not gone yet: its defer container bye (3 of 3) has been running for 20.0s; its timeoutSeconds end at 12:00:05 UTC (in 5.00s).',
    evidence: [
      'its termination began 8.00s ago: Deleted',
      'defer container undue: did not run, not due on Deleted',
      'defer container hang: exit code 143 (GivenUp)',
      'its timeoutSeconds is 10',
    ],
  },
  'an entry that was given up and is stopping': {
    metadata: DELETED,
    spec: { deferContainers: [container('bye')] },
    status: {
      phase: 'Terminating',
      deferContainerStatuses: [running('bye')],
      termination: { reason: 'Deleted', startedAt: time(8), deadline: time(-22), skip: ['bye'] },
    },
    steps: [...(ENDING ?? []), [0.5, 'StopSignal', { ...entry('bye'), ...until(1.5) }]],
    sentence:
      'p is not gone yet: its defer container bye (1 of 1) was given up and was sent its stop signal 0.50s ago; it will be killed at 12:00:01 UTC (in 1.50s).',
  },
  'an entry that was given up a moment ago': {
    metadata: DELETED,
    spec: { deferContainers: [container('bye')] },
    status: {
      phase: 'Terminating',
      deferContainerStatuses: [running('bye')],
      termination: { reason: 'Deleted', startedAt: time(8), deadline: time(-22), skip: ['bye'] },
    },
    events: [['DeferContainerGivenUp', 'User "ada" gave up defer container "bye"', 'bye']],
    sentence:
      'p is not gone yet: its defer container bye (1 of 1) was given up and is about to be sent its stop signal.',
    evidence: ['Event DeferContainerGivenUp, 1.00s ago: User "ada" gave up defer container "bye"'],
  },
  'an entry that was given up before its turn': {
    metadata: DELETED,
    spec: { deferContainers: [container('bye'), container('later')] },
    status: {
      phase: 'Terminating',
      deferContainerStatuses: [running('bye'), waiting('later', 'PendingDefer', '', { containerID: '' })],
      termination: { reason: 'Deleted', startedAt: time(8), deadline: time(-22), skip: ['later'] },
    },
    steps: [...(ENDING ?? []), [7, 'Started', entry('bye')]],
    events: [['DeferContainerGivenUp', 'User "ada" gave up defer container "later"', 'later']],
    sentence:
      'p is not gone yet: its defer container bye (1 of 2) has been running for 7.00s; deadline 12:00:22 UTC (in 22.0s).',
    evidence: [
      'its termination began 8.00s ago: Deleted',
      'defer container later: was given up, so it will not run (User "ada" gave up defer container "later")',
    ],
  },
  'an entry whose deadline has passed': {
    metadata: DELETED,
    spec: { deferContainers: [container('bye')] },
    status: { phase: 'Terminating', deferContainerStatuses: [running('bye')] },
    steps: [
      [9, 'Started', entry('bye')],
      [1, 'StopSignal', { ...entry('bye'), ...until(1), message: 'its timeoutSeconds had passed' }],
    ],
    sentence:
      'p is not gone yet: its defer container bye (1 of 1) was sent its stop signal 1.00s ago; it will be killed at 12:00:01 UTC (in 1.00s).',
    evidence: ['it was stopped: its timeoutSeconds had passed'],
  },
  'an entry whose image is being pulled': {
    metadata: DELETED,
    spec: { deferContainers: [container('bye')] },
    status: { deferContainerStatuses: [waiting('bye', 'ContainerCreating', '', { containerID: '' })] },
    steps: [[3, 'Pulling', { ...entry('bye'), message: 'reg/i:1' }]],
    sentence:
      /its defer container bye \(1 of 1\) waits for its image reg\/i:1, which has been pulled for 3.00s; deadline /,
  },
  'an entry of a static Pod, which cannot be given up or cut short': {
    metadata: { ...DELETED, annotations: { 'kubernetes.io/config.mirror': 'uid' } },
    spec: { deferContainers: [container('bye')] },
    status: { deferContainerStatuses: [running('bye')] },
    sentence: /its defer container bye \(1 of 1\) has been running for /,
    advice: /^see its output: [^\n]+\nwait: the grace period of a static Pod cannot be shortened through the API$/,
  },
  'an entry that is about to start': {
    metadata: DELETED,
    spec: { deferContainers: [container('bye')] },
    status: { deferContainerStatuses: [waiting('bye', 'ContainerCreating', '', { containerID: '' })] },
    sentence: /its defer container bye \(1 of 1\) is about to start; deadline /,
  },
  'a preStop hook of a sidecar, bounded by the grace period': {
    metadata: DELETED,
    spec: { initContainers: [{ ...container('proxy'), restartPolicy: 'Always' }] },
    status: {
      initContainerStatuses: [running('proxy')],
      termination: { reason: 'Deleted', startedAt: time(8), preExitDeadline: time(-7), deadline: time(-22) },
    },
    steps: [...(ENDING ?? []), [7, 'HookBegan', { ...of('proxy'), reason: 'preStop' }]],
    sentence:
      /the preStop hook of sidecar container proxy has been running for 7.00s; deadline 12:00:22 UTC \(in 22.0s\)\.$/,
  },
  'a preStop hook bounded by the time reserved for PostExit entries': {
    metadata: DELETED,
    status: {
      containerStatuses: [running('app')],
      termination: { reason: 'Deleted', startedAt: time(8), preExitDeadline: time(-7), deadline: time(-22) },
    },
    steps: [...(ENDING ?? []), [7, 'HookBegan', { ...of('app'), reason: 'preStop' }]],
    sentence: /the preStop hook of container app has been running for 7.00s; deadline 12:00:07 UTC \(in 7.00s\)\.$/,
  },
  'a container runtime that does not answer': {
    metadata: DELETED,
    spec: { deferContainers: [container('bye')] },
    status: { phase: 'Terminating', deferContainerStatuses: [running('bye')] },
    steps: ENDING,
    notReady: 'container runtime is down: it has not answered for 30 s',
    sentence: 'p is not gone yet: the container runtime of its node node has not answered for 12.0s.',
    evidence: [
      'its termination began 8.00s ago: Deleted',
      'the node is not ready: container runtime is down: it has not answered for 30 s',
      'its termination continues when the runtime answers; until then its grace period does not count',
    ],
    advice: /^see what runs: lifepod status/,
  },
  'a containerd of the machine that has stopped': {
    metadata: DELETED,
    status: { containerStatuses: [running('app')] },
    steps: ENDING,
    notReady: DOWN,
    sentence: 'p is not gone yet: the container runtime of its node node has not answered for 12.0s.',
    evidence: [
      'its termination began 8.00s ago: Deleted',
      'the node is not ready: container runtime is down: connect ENOENT /run/containerd/containerd.sock',
      'its termination continues when the runtime answers; until then its grace period does not count',
    ],
    advice:
      /^start the container runtime of the node node: systemctl start containerd\nread its log: journalctl -u containerd\nsee what runs: lifepod status$/,
  },
  'a node that is not ready for another reason': {
    metadata: DELETED,
    status: { containerStatuses: [running('app')] },
    steps: [...(ENDING ?? []), [0.5, 'StopSignal', of('app')]],
    notReady: 'network is not ready',
    sentence: 'p is not gone yet: container app was just sent its stop signal.',
  },
  'a terminating action without effect, from an Event': {
    metadata: DELETED,
    status: { containerStatuses: [status('app', { state: terminated(0, 'Completed') })] },
    events: [['FailedKillPod', 'error killing pod: removing sandbox 0123 had no effect']],
    steps: ENDING,
    sentence:
      'p is not gone yet: its node is trying to terminate it, so far without effect: removing sandbox 0123 had no effect.',
    evidence: [
      'its termination began 8.00s ago: Deleted',
      'Event FailedKillPod, 1.00s ago: error killing pod: removing sandbox 0123 had no effect',
    ],
    advice: /ctr or crictl/,
  },
  'a terminating action without effect, from the record': {
    metadata: DELETED,
    status: { containerStatuses: [status('app', { state: terminated(0, 'Completed') })] },
    steps: [...(ENDING ?? []), [2, 'ActionFailed', { message: 'removing sandbox 0123 had no effect' }]],
    sentence:
      'p is not gone yet: its node is trying to terminate it, so far without effect: removing sandbox 0123 had no effect.',
    evidence: ['its termination began 8.00s ago: Deleted', 'step ActionFailed, 2.00s ago'],
  },
  'a terminating action that had no effect at first': {
    metadata: DELETED,
    status: { containerStatuses: [running('app')] },
    events: [['FailedKillPod', 'error killing pod: stopping container app had no effect']],
    steps: [...(ENDING ?? []), [-0.5, 'StopSignal', of('app')]],
    sentence: 'p is not gone yet: container app was just sent its stop signal.',
  },
});
