import { expect, test } from 'vitest';
import type { ContainerState, ContainerStatus, Pod } from '../api/generated/types.ts';
import { ApiError, conflict, invalidObject, notFound, pathNotFound } from '../machinery/status.ts';
import { hintsFor } from './hints.ts';
import { outcome, refusal } from './skip.ts';

const podWith = (status: Pod['status'], names = ['bye', 'clean']): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'db', namespace: 'data' },
  spec: { containers: [], deferContainers: names.map((name) => ({ name, image: 'i' })) },
  status,
});
const termination = { reason: 'Deleted', startedAt: '', deadline: '' };
const entryStatus = (state: ContainerState, more: Partial<ContainerStatus> = {}): ContainerStatus => ({
  name: 'bye',
  image: 'i',
  imageID: '',
  ready: false,
  restartCount: 0,
  state,
  ...more,
});

test.each<[string, ContainerStatus | undefined, string]>([
  ['that waits for its turn', entryStatus({ waiting: { reason: 'PendingDefer' } }), 'is given up: it will not run'],
  [
    'that may be starting',
    entryStatus({ waiting: { reason: 'ContainerCreating' } }),
    'is given up: it is stopped if it starts',
  ],
  ['without a status', undefined, 'is given up: it will not run'],
  ['that runs', entryStatus({ running: {} }), 'is given up: its stop signal is sent now'],
  [
    'that waits between two attempts',
    entryStatus({ waiting: { reason: 'CrashLoopBackOff' } }, { lastState: { terminated: { exitCode: 1 } } }),
    'is given up: it will not run again',
  ],
  [
    'that has ended',
    entryStatus({ terminated: { exitCode: 0, reason: 'Completed' } }),
    'had already ended (Completed): nothing changes',
  ],
])('lifepod skip reports the outcome for an entry %s', (_, status, said) => {
  const pod = podWith({ termination, deferContainerStatuses: status === undefined ? [] : [status] });
  expect(outcome(pod, 'bye')).toBe(`defer container bye of Pod db ${said}`);
});

test.each<[string, ContainerStatus, string]>([
  ['that runs', entryStatus({ running: {} }), 'its stop signal was sent, and it is killed if it does not end'],
  ['that waits for its turn', entryStatus({ waiting: { reason: 'PendingDefer' } }), 'it will not run'],
  ['that is being started', entryStatus({ waiting: { reason: 'ContainerCreating' } }), 'it is stopped if it starts'],
  ['that has ended', entryStatus({ terminated: { exitCode: 143, reason: 'GivenUp' } }), ''],
])('lifepod skip says of an entry %s that it was given up before', (_, status, effect) => {
  const pod = podWith({ termination: { ...termination, skip: ['bye'] }, deferContainerStatuses: [status] });
  expect(outcome(pod, 'bye')).toBe(
    `defer container bye of Pod db ${effect === '' ? 'had already ended (GivenUp): nothing changes' : `was given up before: ${effect}`}`,
  );
});

const PODS = { group: '', resource: 'pods' };
const CONFLICT = conflict(PODS, 'db', 'the Pod is not terminating');
const INVALID = invalidObject({ group: 'lifepod.io', kind: 'DeferControl' }, 'db', []);
const WRITTEN = conflict(PODS, 'db', 'the object has been modified');
const FORBIDDEN = new ApiError({ ...CONFLICT.status, code: 403, message: 'pods is forbidden' });

const mirror: Pod = {
  ...podWith({}),
  metadata: {
    ...podWith({}).metadata,
    annotations: { 'kubernetes.io/config.mirror': 'hash' },
    ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'u' }],
  },
};

test.each<[string, ApiError, Pod, string, string]>([
  [
    'a Pod that is not terminating',
    CONFLICT,
    podWith({}),
    'bye',
    'Pod db is not terminating, so there is nothing to skip: its defer containers run when it is deleted or completes',
  ],
  [
    'a Pod that was deleted a moment ago',
    CONFLICT,
    { ...podWith({}), metadata: { ...podWith({}).metadata, deletionTimestamp: '2026-01-31T12:00:00Z' } },
    'bye',
    'Pod db was deleted, but its node has not begun to terminate it: try again in a few seconds',
  ],
  ['a mirror Pod', CONFLICT, mirror, 'bye', CONFLICT.message],
  ['an unknown entry', INVALID, podWith({ termination }), 'by', 'Pod db has no defer container by: it has bye, clean'],
  ['a Pod without defer containers', INVALID, podWith({}, []), 'bye', 'Pod db has no defer container bye: it has none'],
  [
    'an API server without defer containers',
    pathNotFound(),
    podWith({}),
    'bye',
    'this API server does not support defer containers: give the kubeconfig of a lifepod server with --kubeconfig',
  ],
  [
    'a Pod that no longer exists',
    notFound(PODS, 'db'),
    podWith({ termination }),
    'bye',
    `Pod db has ended in the meantime: 'lifepod why db -n data --data-dir /d' shows how`,
  ],
  ['a concurrent write', WRITTEN, podWith({ termination }), 'bye', WRITTEN.message],
  ['another validation error for a known entry', INVALID, podWith({ termination }), 'bye', INVALID.message],
  [
    'a user without permission',
    FORBIDDEN,
    podWith({ termination }),
    'bye',
    'this user may not give up defer containers in namespace data: ask an administrator for the role edit there, or for the right to update pods/defer',
  ],
])('lifepod skip explains in one sentence the refusal for %s', (_, error, pod, entry, said) => {
  expect(refusal(error, pod, entry, hintsFor({ dataDir: '/d' }, {})).message).toBe(said);
});
