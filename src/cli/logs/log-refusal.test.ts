import { expect, test } from 'vitest';
import type { ContainerState, ContainerStatus, Pod } from '../../api/generated/types.ts';
import { type ApiError, badRequest, forbidden, notFound } from '../../machinery/status.ts';
import { hintsFor } from '../hints.ts';
import type { ContainerKind } from '../pod-containers.ts';
import { couldNotStart, logRefusal, noLogs, notScheduled } from './log-refusal.ts';

const PODS = { group: '', resource: 'pods' };
const WAITS = 'container "c" in pod "web" is waiting to start';
const PREVIOUS = 'previous terminated container "c" in pod "web" not found';
const waiting = (reason: string): ContainerState => ({ waiting: { reason } });
const NOT_STARTED: ContainerState = { terminated: { exitCode: 128, reason: 'StartError' } };

test.each<[string, ApiError, ContainerKind, ContainerState | undefined, string]>([
  [
    'a defer container before the termination',
    badRequest(`${WAITS}: PodRunning`),
    'defer',
    waiting('PodRunning'),
    "defer container c in pod web has not run: its turn comes when the Pod terminates; 'lifepod logs web -n a -c c -f' waits for it",
  ],
  [
    'a container that waits for its turn',
    badRequest(`${WAITS}: PodInitializing`),
    'app',
    waiting('PodInitializing'),
    `${WAITS}: PodInitializing; 'lifepod logs web -n a -c c -f' waits for it, and 'lifepod why web -n a' shows what it waits for`,
  ],
  [
    'a container without an image',
    badRequest(`${WAITS}: image can't be pulled`),
    'app',
    waiting('ErrImagePull'),
    `${WAITS}: image can't be pulled; 'lifepod why web -n a' shows what to do`,
  ],
  [
    'a container that has ended without a run',
    badRequest(`${WAITS} - no logs yet`),
    'defer',
    { terminated: { exitCode: 137, reason: 'Skipped' } },
    "container c in pod web has never started: 'lifepod why web -n a' shows why",
  ],
  [
    'a container without an earlier run',
    badRequest(PREVIOUS),
    'app',
    { running: {} },
    `${PREVIOUS}: 'lifepod logs web -n a -c c' prints the log of its latest run`,
  ],
  [
    'an earlier run of a container that has not run',
    badRequest(PREVIOUS),
    'app',
    waiting('ErrImagePull'),
    "container c in pod web has not run yet: 'lifepod why web -n a' shows what it waits for",
  ],
  [
    'an earlier run of a defer container before the termination',
    badRequest(PREVIOUS),
    'defer',
    waiting('PodRunning'),
    "defer container c in pod web has not run: its turn comes when the Pod terminates; 'lifepod logs web -n a -c c -f' waits for it",
  ],
  [
    'an earlier run of a container that has ended without a run',
    badRequest(PREVIOUS),
    'defer',
    { terminated: { exitCode: 137, reason: 'Skipped' } },
    "container c in pod web has never started: 'lifepod why web -n a' shows why",
  ],
  [
    'a user without rights',
    forbidden(PODS, 'web', 'no'),
    'app',
    { running: {} },
    'this user may not read the logs of Pods in namespace a: ask an administrator for the role view there, or for the right to get pods/log',
  ],
  ['another error', notFound(PODS, 'web'), 'app', { running: {} }, 'pods "web" not found'],
])('lifepod logs says what to do about the log of %s', (_, error, kind, state, text) => {
  const pod: Pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace: 'a' } };
  const status = { name: 'c', image: 'i', imageID: '', ready: false, restartCount: 0, state };
  const hints = hintsFor({}, {}, undefined, false);
  expect(logRefusal(error, pod, { kind, name: 'c', status }, hints).message).toBe(text);
});

test('lifepod logs says that a lost container has no log, also after a restore', () => {
  const pod: Pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace: 'a' } };
  const hints = hintsFor({}, {}, undefined, false);
  const unknown = (when: string) => ({
    terminated: {
      exitCode: 137,
      reason: 'ContainerStatusUnknown',
      message: `The container could not be located when the pod was ${when}`,
    },
  });
  const text = (error: ApiError, more: Partial<ContainerStatus>): string => {
    const status = { name: 'c', image: 'i', imageID: '', ready: false, restartCount: 0, ...more };
    return logRefusal(error, pod, { kind: 'app', name: 'c', status }, hints).message;
  };
  const lost =
    "run, because the container runtime has lost the container, as after a restore, because a backup contains neither containers nor logs: 'lifepod timeline web -n a' shows its life";
  const state = unknown('terminated');
  expect(text(badRequest(`${WAITS} - no logs yet`), { state, containerID: 'containerd://1' })).toBe(
    `container c in pod web has no log of its latest ${lost}`,
  );
  const lastState = unknown('deleted.  The container used to be Running');
  for (const now of [waiting('ErrImagePull'), { running: {} }])
    expect(text(badRequest(PREVIOUS), { state: now, lastState })).toBe(
      `container c in pod web has no log of its previous ${lost}`,
    );
  expect(text(badRequest(`${WAITS} - no logs yet`), { state })).toContain('has never started');
  const other = 'pods "web" not found';
  expect(text(badRequest(other), { state, containerID: 'containerd://1' })).toBe(other);
});

test.each<[string, Pod['status'], ContainerKind, string]>([
  [
    'waits for a node',
    { phase: 'Pending' },
    'app',
    `${WAITS}: the Pod is not scheduled; 'lifepod logs web -n a -c c -f' waits for it, and 'lifepod why web -n a' shows what it waits for`,
  ],
  [
    'has failed without one',
    { phase: 'Failed' },
    'app',
    "container c in pod web has never started: 'lifepod why web -n a' shows why",
  ],
])('lifepod logs reports that there is no log of a Pod that %s', (_, status, kind, text) => {
  const pod: Pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace: 'a' }, status };
  expect(notScheduled(pod, { kind, name: 'c' }, hintsFor({}, {}, undefined, false)).message).toBe(text);
});

test.each<[string, Pod['status'], boolean, string]>([
  [
    'while the Pod is starting',
    { phase: 'Pending' },
    false,
    "no container in pod web has started: 'lifepod logs web -n a --all-containers -f' waits for them, and 'lifepod why web -n a' shows what they wait for",
  ],
  [
    'if the Pod has ended without a run',
    { phase: 'Failed' },
    false,
    "no container in pod web has ever started: 'lifepod why web -n a' shows why",
  ],
  [
    'before the last restart if the only run could not start',
    {
      phase: 'Failed',
      containerStatuses: [
        {
          name: 'c',
          image: 'i',
          imageID: '',
          ready: false,
          restartCount: 0,
          state: { terminated: { ...NOT_STARTED.terminated, exitCode: 128 } },
          containerID: 'containerd://1',
        },
      ],
    },
    true,
    "no container in pod web has ever started: 'lifepod why web -n a' shows why",
  ],
  [
    'before its first run',
    { phase: 'Pending' },
    true,
    "no container in pod web has started: 'lifepod logs web -n a --all-containers -f' waits for them, and 'lifepod why web -n a' shows what they wait for",
  ],
  [
    'before the last restart',
    {
      phase: 'Running',
      containerStatuses: [
        { name: 'c', image: 'i', imageID: '', ready: true, restartCount: 0, state: { running: {} }, lastState: {} },
      ],
    },
    true,
    "no container in pod web has restarted: 'lifepod logs web -n a --all-containers' prints the latest logs",
  ],
])('lifepod logs --all-containers reports that there is no log %s', (_, status, previous, text) => {
  const metadata = { name: 'web', namespace: 'a' };
  const pod: Pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [{ name: 'c' }] }, status };
  expect(noLogs(pod, { previous }, hintsFor({}, {}, undefined, false)).message).toBe(text);
});

test.each<[string, ContainerState, ContainerState, boolean, string | undefined]>([
  ['waits for the next attempt', waiting('CrashLoopBackOff'), NOT_STARTED, false, 'latest'],
  ['has ended', NOT_STARTED, {}, false, 'latest'],
  ['could not start before', { running: {} }, NOT_STARTED, true, 'previous'],
  ['runs now', { running: {} }, NOT_STARTED, false, undefined],
  [
    'waits after a run',
    waiting('CrashLoopBackOff'),
    { terminated: { exitCode: 1, reason: 'Error' } },
    false,
    undefined,
  ],
  ['has not been created', waiting('ContainerCreating'), {}, false, undefined],
])('the log of a container without a command that exists, which %s', (_, state, lastState, previous, run) => {
  const pod: Pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace: 'a' } };
  const status = { name: 'c', image: 'i', imageID: '', ready: false, restartCount: 1, state, lastState };
  const found = couldNotStart(pod, { kind: 'app', name: 'c', status }, previous, hintsFor({}, {}, undefined, false));
  expect(found?.message).toBe(
    run &&
      `container c in pod web has no log, because its ${run} run could not start: 'lifepod why web -n a' shows why`,
  );
});
