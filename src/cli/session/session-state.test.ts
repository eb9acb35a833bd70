import { describe, expect, test } from 'vitest';
import type { ContainerStatus, CoreV1Event, Job, Node, Pod } from '../../api/generated/types.ts';
import { hintsFor } from '../hints.ts';
import {
  exitCodeOf,
  firstFailure,
  giveUp,
  isOver,
  OBSTACLE_MILLIS,
  type Obstructed,
  obstacleOf,
  type SessionState,
  withObstacle,
} from './session-state.ts';

const exited = (name: string, exitCode: number, second = 0): ContainerStatus =>
  ({ name, state: { terminated: { exitCode, finishedAt: `2026-01-01T00:00:0${second}Z` } } }) as ContainerStatus;
const waits = (name: string, reason: string, message?: string): ContainerStatus =>
  ({ name, state: { waiting: { reason, message } } }) as ContainerStatus;

interface Statuses {
  init?: ContainerStatus[];
  app?: ContainerStatus[];
  defer?: ContainerStatus[];
}
function pod(name: string, phase: string, { init = [], app = [], defer = [] }: Statuses = {}, job?: string): Pod {
  const named = (statuses: ContainerStatus[]) => statuses.map((status) => ({ name: status.name, image: 'i' }));
  const controller = { apiVersion: 'batch/v1', kind: 'Job', name: 'j', uid: job ?? '', controller: true };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, uid: name, ...(job === undefined ? {} : { ownerReferences: [controller] }) },
    spec: { initContainers: named(init), containers: named(app), deferContainers: named(defer) },
    status: { phase, initContainerStatuses: init, containerStatuses: app, deferContainerStatuses: defer },
  };
}
const job = (uid: string, condition?: string): Job => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: uid, uid },
  status: { conditions: condition === undefined ? [] : [{ type: condition, status: 'True' }] } as Job['status'],
});

/** `gone`: the names of the Pods and Jobs that do not exist any more. */
function state(pods: Pod[], jobs: Job[] = [], more: Partial<SessionState> & { gone?: string[] } = {}): SessionState {
  const { gone = [], ...rest } = more;
  const seen = <T extends Pod | Job>(objects: T[]) =>
    new Map(
      objects.map((object) => [object.metadata.uid ?? '', { object, isGone: gone.includes(object.metadata.name) }]),
    );
  const ending = new Set([...pods, ...jobs].map(({ metadata }) => metadata.uid ?? ''));
  return { isComplete: true, hasEndless: false, ending, pods: seen(pods), jobs: seen(jobs), cut: new Set(), ...rest };
}

describe('a session is over', () => {
  test.each<[string, SessionState, boolean]>([
    ['when all Pods have ended', state([pod('a', 'Succeeded'), pod('b', 'Failed')]), true],
    ['not while a Pod runs', state([pod('a', 'Succeeded'), pod('b', 'Running')]), false],
    ['when the last Pod is gone', state([pod('a', 'Running')], [], { gone: ['a'] }), true],
    ['not while a Pod has not been seen', state([], [], { ending: new Set(['a']) }), false],
    ['not before all objects are created', state([pod('a', 'Failed')], [], { isComplete: false }), false],
    ['not while a Deployment exists', state([pod('a', 'Failed')], [], { hasEndless: true }), false],
    ['not if it runs nothing', state([]), false],
    ['when its Job is complete', state([], [job('j', 'Complete')]), true],
    ['when its Job has failed', state([], [job('j', 'Failed')]), true],
    [
      'not while its Job has only failed Pods',
      state([pod('a', 'Failed', {}, 'j')], [job('j')], { ending: new Set(['j']) }),
      false,
    ],
    ['when its Job is gone', state([], [job('j')], { gone: ['j'] }), true],
  ])('%s', (_, given, over) => {
    expect(isOver(given)).toBe(over);
  });
});

describe('the exit code', () => {
  test.each<[string, Statuses, number]>([
    ['is that of the failed container', { app: [exited('a', 0), exited('b', 3)] }, 3],
    ['is that of the container that failed first', { app: [exited('a', 4, 2), exited('b', 3, 1)] }, 3],
    ['is that of an init container', { init: [exited('a', 5)], app: [waits('b', 'PodInitializing')] }, 5],
    ['is 1 without a failed container', { app: [waits('a', 'ContainerCreating')] }, 1],
  ])('%s, for a failed Pod', (_, statuses, code) => {
    expect(exitCodeOf(pod('p', 'Failed', statuses))).toBe(code);
  });

  test('is that of the defer container that fails the Pod if the app has succeeded', () => {
    const object = pod('p', 'Failed', { app: [exited('a', 0)], defer: [exited('b', 6, 1), exited('c', 4, 2)] });
    const [ignored, decisive] = object.spec?.deferContainers ?? [];
    Object.assign(ignored ?? {}, { failurePolicy: 'Ignore' });
    Object.assign(decisive ?? {}, { failurePolicy: 'FailPod' });
    expect(exitCodeOf(object)).toBe(4);
    Object.assign(ignored ?? {}, { failurePolicy: 'FailPod' });
    const message = 'the app containers did not fail';
    const notDue = { exitCode: 137, reason: 'Skipped', message, finishedAt: '2026-01-01T00:00:00Z' };
    Object.assign(object.status?.deferContainerStatuses?.[0]?.state ?? {}, { terminated: notDue });
    expect(exitCodeOf(object)).toBe(4);
  });

  const failed = (name: string, code: number, second: number, job?: string): Pod =>
    pod(name, 'Failed', { app: [exited('a', code, second)] }, job);
  const creating = (controller?: string): Pod =>
    pod('a', 'Pending', { app: [waits('a', 'ContainerCreating')] }, controller);
  const runs = (name: string): ContainerStatus =>
    ({ name, containerID: 'c://1', state: { running: {} } }) as ContainerStatus;
  test.each<[string, SessionState, number | undefined]>([
    ['is that of the Pod that failed first', state([failed('a', 2, 5), failed('b', 3, 1)]), 3],
    ['is absent if no Pod has failed', state([pod('a', 'Succeeded'), pod('b', 'Running')]), undefined],
    ['ignores the failed Pod of a complete Job', state([failed('a', 2, 1, 'j')], [job('j', 'Complete')]), undefined],
    [
      'is that of the first failed Pod of a failed Job',
      state([failed('a', 2, 2, 'j'), failed('b', 9, 1, 'j')], [job('j', 'Failed')]),
      9,
    ],
    ['is 1 for a failed Job without a Pod', state([], [job('j', 'Failed')]), 1],
    ['ignores the failed Pod of another controller', state([failed('a', 2, 1, 'replica-set')]), undefined],
    ['counts a failed Pod that is gone', state([failed('a', 2, 1)], [], { gone: ['a'] }), 2],
    ['is 1 for a Pod that is gone before a container had started', state([creating()], [], { gone: ['a'] }), 1],
    ['is absent while such a Pod exists', state([creating()]), undefined],
    ['is absent for such a Pod of a controller', state([creating('replica-set')], [], { gone: ['a'] }), undefined],
    [
      'is absent for a running Pod that is gone',
      state([pod('a', 'Running', { app: [runs('a')] })], [], { gone: ['a'] }),
      undefined,
    ],
    ['is absent for a completed Pod that is gone', state([pod('a', 'Succeeded')], [], { gone: ['a'] }), undefined],
  ])('%s, for a session', (_, given, code) => {
    expect(firstFailure(given)?.exitCode).toBe(code);
  });
});

describe('the cause of a failure', () => {
  const ended = (reason?: string, message?: string): ContainerStatus =>
    ({ name: 'a', state: { terminated: { exitCode: 128, reason, message } } }) as ContainerStatus;
  const failed = (status: object, ...app: ContainerStatus[]): Pod => {
    const given = pod('p', 'Failed', { app });
    return { ...given, status: { ...given.status, ...status } as Pod['status'] };
  };
  const deletedPod = (more: Partial<ContainerStatus> = {}, podStatus: object = {}): Pod => {
    const given = failed(podStatus, { ...ended('ContainerStatusUnknown', 'not located'), ...more });
    return { ...given, metadata: { ...given.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
  };
  test.each<[string, Pod, string | undefined]>([
    ['the program failed', failed({}, ended('Error')), undefined],
    ['the program failed with a message', failed({}, ended('Error', 'log')), undefined],
    ['the program could not start', failed({}, ended('StartError', 'not found')), 'StartError: not found'],
    [
      'there is no such program',
      failed(
        {},
        ended(
          'StartError',
          'failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: "nosuch": executable file not found in $PATH: unknown',
        ),
      ),
      'container a cannot execute its command nosuch: there is no such file in the PATH of its image',
    ],
    ['the program used too much memory', failed({}, ended('OOMKilled')), 'OOMKilled'],
    ['the Pod was deleted before its container started', deletedPod(), 'it was deleted before a container had started'],
    [
      'the Pod was deleted, and its container had run',
      deletedPod({ containerID: 'c://1' }),
      'ContainerStatusUnknown: not located',
    ],
    ['the Pod was evicted', failed({ reason: 'Evicted', message: 'no memory' }), 'Evicted: no memory'],
    [
      'the Pod was evicted and deleted before its container started',
      deletedPod({}, { reason: 'Evicted', message: 'no memory' }),
      'Evicted: no memory',
    ],
  ])('%s', (_, given, cause) => {
    expect(firstFailure(state([given]))?.cause).toBe(cause);
  });
  test('a Pod that no longer exists was deleted before its container started', () => {
    const unbound = pod('a', 'Pending');
    for (const given of [unbound, pod('a', 'Pending', { app: [waits('a', 'ContainerCreating')] })])
      expect(firstFailure(state([given], [], { gone: ['a'] }))).toEqual({
        uid: 'a',
        title: 'pod/a',
        exitCode: 1,
        cause: 'it was deleted before a container had started',
      });
  });
});

describe('an obstacle', () => {
  const HINTS = hintsFor({ dataDir: '/d' }, {});
  const LOAD =
    "load it from an archive, without a registry, such as 'docker save i > FILE' writes on another machine: lifepod image load FILE --data-dir /d";
  const withVolume = (given: Pod): Pod => {
    const volumes = [{ name: 'v', image: { reference: 'data:1' } }];
    return { ...given, spec: { containers: [], ...given.spec, volumes } };
  };
  const unschedulable: Pod = {
    ...pod('p', 'Pending'),
    status: {
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/1 nodes' }],
    },
  };
  test.each<[string, Pod, ReturnType<typeof obstacleOf>]>([
    ['none: the containers are created', pod('p', 'Pending', { app: [waits('a', 'ContainerCreating')] }), undefined],
    ['none: a container restarts', pod('p', 'Running', { app: [waits('a', 'CrashLoopBackOff')] }), undefined],
    [
      'none: the image of a defer container may be loaded later',
      pod('p', 'Running', { defer: [waits('a', 'ErrImagePull')] }),
      undefined,
    ],
    ['none: the Pod has ended', pod('p', 'Failed', { app: [waits('a', 'ErrImagePull')] }), undefined],
    [
      'an image',
      pod('p', 'Pending', { app: [waits('a', 'ImagePullBackOff', 'no')] }),
      {
        text: 'container a: the image i cannot be pulled (no)',
        cause: 'container a: image',
        hint: LOAD,
        isFinal: false,
      },
    ],
    [
      'the image of a volume',
      withVolume(pod('p', 'Pending', { app: [waits('a', 'ImagePullBackOff', 'Back-off pulling image "data:1"')] })),
      {
        text: 'volume v: the image data:1 cannot be pulled',
        cause: 'volume v: image',
        hint: LOAD.replace('save i', 'save data:1'),
        isFinal: false,
      },
    ],
    [
      'an image that is never pulled',
      pod('p', 'Pending', { app: [waits('a', 'ErrImageNeverPull')] }),
      {
        text: 'container a: the image i is not on the node and may not be pulled',
        cause: 'container a: image',
        hint: `${LOAD}; or let the node pull it: set imagePullPolicy: IfNotPresent, and recreate the Pod`,
        isFinal: true,
      },
    ],
    [
      'an image whose name the runtime refuses',
      pod('p', 'Pending', { app: [waits('a', 'ErrImagePull', 'invalid reference format: must be lowercase')] }),
      {
        text: '"i", the image of its container a, is not a valid image name',
        cause: '"i", the image of its container a, is not a valid image name',
        hint: expect.stringContaining('with a PATH in lower case'),
        isFinal: true,
      },
    ],
    [
      'the final one of two',
      pod('p', 'Pending', { app: [waits('a', 'ErrImagePull'), waits('b', 'InvalidImageName')] }),
      {
        text: '"i", the image of its container b, is not a valid image name',
        cause: '"i", the image of its container b, is not a valid image name',
        hint: expect.stringContaining('with a PATH in lower case'),
        isFinal: true,
      },
    ],
    [
      'a missing ConfigMap',
      pod('p', 'Pending', { app: [waits('a', 'CreateContainerConfigError', 'configmap "c" not found')] }),
      {
        text: expect.stringMatching(/^container a needs the ConfigMap c, which does not exist in namespace /),
        cause: expect.stringContaining('container a needs the ConfigMap c'),
        hint: expect.stringMatching(/^create the ConfigMap, .*: kubectl create configmap c /),
        isFinal: false,
      },
    ],
    [
      'no node',
      unschedulable,
      {
        text: 'no node can run it: 0/1 nodes',
        cause: 'no node can run it: 0/1 nodes',
        hint: expect.stringMatching(/^see the resources, labels and taints of the nodes: kubectl describe node NODE/),
        isFinal: false,
      },
    ],
  ])('is %s', (_, given, obstacle) => {
    expect(obstacleOf(given, { hints: HINTS })).toEqual(obstacle);
  });

  test.each([
    [
      '64Gi',
      'it requests 64Gi memory, and the node n has only 8Gi for all Pods together',
      'lower the requests (and limits)',
    ],
    [
      '6Gi',
      '0/1 nodes are available: 1 Insufficient memory; it requests 6Gi memory; node n has 8Gi for all Pods together',
      'lower the requests of its containers, or delete other Pods',
    ],
  ])('is that no node can run a Pod that requests %s, with the amounts', (memory, cause, hint) => {
    const message = '0/1 nodes are available: 1 Insufficient memory.';
    const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }];
    const given = {
      ...unschedulable,
      spec: { containers: [{ name: 'a', resources: { requests: { memory } } }] },
      status: { phase: 'Pending', conditions },
    } as Pod;
    const nodes = [{ metadata: { name: 'n' }, status: { allocatable: { memory: '8Gi' } } }] as unknown as Node[];
    expect(obstacleOf(given, { hints: HINTS, nodes })).toMatchObject({
      text: `no node can run it: ${cause}`,
      hint: expect.stringContaining(hint),
    });
  });

  test('is that its nominated node has no room yet, with the advice to wait', () => {
    const status = { ...unschedulable.status, nominatedNodeName: 'n' };
    expect(obstacleOf({ ...unschedulable, status } as Pod, { hints: HINTS })).toMatchObject({
      text: 'no node can run it: it waits for room on node n, which the scheduler has chosen for it',
      hint: 'wait: it is then scheduled automatically',
    });
  });

  test('names the image that its node has, and what keeps the Pod from using it', () => {
    const waiting = pod('p', 'Pending', { app: [waits('a', 'ErrImagePull', 'no such host')] });
    const [container] = waiting.spec?.containers ?? [];
    Object.assign(container ?? {}, { image: 'busybox', imagePullPolicy: 'Always' });
    const node = { status: { images: [{ names: ['docker.io/library/busybox:latest'] }] } } as Node;
    expect(obstacleOf(waiting, { hints: HINTS, node })?.hint).toBe(
      'it is on this node: set imagePullPolicy: IfNotPresent (or use a tag other than latest), and recreate the Pod',
    );
    expect(obstacleOf(waiting, { hints: HINTS })?.hint).toContain('lifepod image make busybox --data-dir /d');
  });

  test('an obstacle first names what the registry needs, if it answered', () => {
    const message = 'pulling from host localhost:5101 failed with status code [manifests 1]: 401 Unauthorized';
    const waiting = pod('p', 'Pending', { app: [waits('a', 'ErrImagePull', message)] });
    Object.assign(waiting.spec?.containers[0] ?? {}, { image: 'localhost:5101/x:1' });
    expect(obstacleOf(waiting, { hints: HINTS })).toMatchObject({
      text: expect.stringContaining('its registry localhost:5101 answers 401 Unauthorized: it needs valid credentials'),
      hint: expect.stringMatching(/^it needs credentials: create a Secret .*; load it from an archive/),
    });
  });

  const HAS_STARTED = { exitCode: 0, startedAt: '2026-01-01T00:00:00Z' };
  const preparing = pod('p', 'Pending', { app: [waits('a', 'ContainerCreating')] });
  const prepared: Pod = {
    ...preparing,
    status: { ...preparing.status, conditions: [{ type: 'PodReadyToStartContainers', status: 'True' }] },
  };
  test.each<[string, string, string, Pod, object | undefined]>([
    [
      'the sandbox',
      'FailedCreatePodSandBox',
      'Failed to create pod sandbox: rpc error: code = Unknown desc = no\naddress is free',
      preparing,
      { text: 'its sandbox cannot be created: no address is free', cause: 'sandbox', hint: '' },
    ],
    [
      'a sandbox for which the memory limit is too low',
      'FailedCreatePodSandBox',
      'Failed to create pod sandbox: container init was OOM-killed (memory limit too low?): unknown',
      { ...preparing, spec: { containers: [{ name: 'a', resources: { limits: { memory: '64k' } } }] } },
      {
        text: 'its sandbox cannot be created: its memory limit of 64k is too low for the container runtime to start a process',
        cause: 'sandbox',
        hint: 'raise its memory limit of 64k, and recreate the Pod',
      },
    ],
    [
      'a sandbox with a user namespace, which is final',
      'FailedCreatePodSandBox',
      'Failed to create pod sandbox: RuntimeClass handler "" does not support user namespaces',
      preparing,
      {
        text: 'its sandbox cannot be created: it has hostUsers: false, and lifepod does not support user namespaces',
        hint: 'recreate the Pod without hostUsers: false',
        isFinal: true,
      },
    ],
    ['no sandbox: there is one now', 'FailedCreatePodSandBox', 'Failed to create pod sandbox: no', prepared, undefined],
    [
      'a sandbox that ended at its start, even if the next one is ready',
      'SandboxChanged',
      'Pod sandbox changed, it will be killed and re-created.',
      prepared,
      {
        text: 'its sandbox ends right after its start',
        cause: 'sandbox',
        hint: expect.stringMatching(/^make sure that the sandbox image /),
      },
    ],
    [
      'no sandbox: a container has started',
      'SandboxChanged',
      'Pod sandbox changed, it will be killed and re-created.',
      pod('p', 'Pending', { app: [{ ...waits('a', 'ContainerCreating'), lastState: { terminated: HAS_STARTED } }] }),
      undefined,
    ],
    [
      'the volumes',
      'FailedMount',
      'MountVolume.SetUp failed for volume "v" : no space',
      preparing,
      { text: 'its volumes cannot be mounted: MountVolume.SetUp failed for volume "v" : no space' },
    ],
    [
      'an object of a volume',
      'FailedMount',
      'MountVolume.SetUp failed for volume "v" : configmap "c" not found',
      preparing,
      {
        text: expect.stringMatching(/^its volume v needs the ConfigMap c, which does not exist in namespace /),
        hint: expect.stringMatching(
          /^create the ConfigMap, and the node retries automatically: kubectl create configmap c /,
        ),
      },
    ],
  ])('is %s, from an Event', (_, reason, message, given, obstacle) => {
    const event = { reason, message, involvedObject: {} } as CoreV1Event;
    if (obstacle === undefined) expect(obstacleOf(given, { hints: HINTS, event })).toBeUndefined();
    else expect(obstacleOf(given, { hints: HINTS, event })).toMatchObject({ isFinal: false, ...obstacle });
  });

  const changed = (before: Obstructed, reason: string, now: number): Obstructed =>
    withObstacle(before, pod('p', 'Pending', { app: [waits('a', reason)] }), false, now, { hints: HINTS });
  test('that may pass ends the session after two minutes in which the Pod always had one', () => {
    const pulling = changed(changed(new Map(), 'ErrImagePull', 1000), 'ImagePullBackOff', 60_000);
    expect(giveUp(pulling, 60_000)).toEqual({ askAt: 1000 + OBSTACLE_MILLIS });
    expect(giveUp(pulling, 1000 + OBSTACLE_MILLIS)).toEqual({
      because: `pod/p cannot start for 120 s: container a: the image i cannot be pulled; ${LOAD}`,
    });
    const started = changed(pulling, 'ContainerCreating', 90_000);
    expect(giveUp(started, 300_000)).toBeUndefined();
    expect(giveUp(changed(started, 'ErrImagePull', 100_000), 130_000)).toEqual({ askAt: 100_000 + OBSTACLE_MILLIS });
  });
  test('that is final ends the session at once', () => {
    expect(giveUp(changed(new Map(), 'InvalidImageName', 5), 5)).toEqual({
      because: expect.stringMatching(
        /^pod\/p cannot start: "i", the image of its container a, is not a valid image name; an image name is /,
      ),
    });
  });
  test('ends with its Pod', () => {
    const gone = withObstacle(changed(new Map(), 'ErrImagePull', 0), pod('p', 'Pending'), true, 10, { hints: HINTS });
    expect(giveUp(gone, 300_000)).toBeUndefined();
  });
});
