import { expect, test } from 'vitest';
import { statusOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { ContainerStatus, PodStatus } from '../../api/generated/types.ts';
import { GENERATION_MILLIS, mayWaitMillis, PASSING_MILLIS } from './status-changes.ts';

const ended = (id: string, exitCode = 0) => ({ terminated: { containerID: `test://${id}`, exitCode } });
const waits = (reason: string) => ({ waiting: { reason } });
const runs = { running: { startedAt: '2026-01-01T00:00:00Z' } };

const running: PodStatus = {
  phase: 'Running',
  startTime: '2026-01-01T00:00:00Z',
  observedGeneration: 1,
  conditions: [
    { type: 'PodReadyToStartContainers', status: 'True', observedGeneration: 1 },
    { type: 'Ready', status: 'False', reason: 'ContainersNotReady', observedGeneration: 1 },
  ],
  containerStatuses: [statusOf('app', { state: runs, ready: false, started: false })],
};
const pending: PodStatus = {
  ...running,
  phase: 'Pending',
  initContainerStatuses: [statusOf('init', { state: waits('PodInitializing'), ready: false })],
  containerStatuses: [statusOf('app', { state: waits('PodInitializing'), ready: false })],
};
const app = (more: Partial<ContainerStatus>): PodStatus => ({
  ...running,
  containerStatuses: [statusOf('app', { ready: false, started: false, ...more })],
});
const init = (more: Partial<ContainerStatus>): PodStatus => ({
  ...pending,
  initContainerStatuses: [statusOf('init', { ready: false, ...more })],
});
const conditions = (type: string, status: string, observedGeneration = 1): PodStatus => ({
  ...running,
  conditions: [
    ...(running.conditions ?? []).filter((each) => each.type !== type),
    { type, status, reason: 'ContainersNotReady', observedGeneration },
  ],
});

test.each<[string, PodStatus, PodStatus]>([
  ['the address of the Pod', pending, { ...pending, podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.1' }] }],
  ['PodReadyToStartContainers', running, conditions('PodReadyToStartContainers', 'False')],
  ['a started probe', running, app({ state: runs, started: true })],
  [
    'a container about to start again',
    app({ state: ended('1', 1) }),
    app({ state: waits('ContainerCreating'), lastState: ended('1', 1) }),
  ],
  [
    'a run that is not ready',
    app({ state: ended('1', 1) }),
    app({ state: runs, lastState: ended('1', 1), restartCount: 1 }),
  ],
  ['the start of an init container', pending, init({ state: runs, started: true })],
])('a change of %s may wait for the change that follows', (_, written, next) => {
  expect(mayWaitMillis(written, next)).toBe(PASSING_MILLIS);
});

test.each<[string, PodStatus, PodStatus]>([
  ['the first status', { phase: 'Pending' }, pending],
  ['the phase', pending, { ...pending, phase: 'Running' }],
  ['a message', running, { ...running, message: 'why' }],
  ['readiness', running, conditions('Ready', 'True')],
  [
    'the reason of a condition',
    running,
    { ...running, conditions: [{ type: 'Ready', status: 'False', reason: 'Other' }] },
  ],
  ['the readiness of one container', running, app({ state: runs, ready: true })],
  ['the end of an app container', running, app({ state: ended('1') })],
  ['Initialized', running, conditions('Initialized', 'True')],
  ['the success of an init container', init({ state: runs }), init({ state: ended('1'), ready: true })],
  ['the failure of an init container', init({ state: runs }), init({ state: ended('1', 1) })],
  ['an end that only lastState shows', running, app({ state: waits('ContainerCreating'), lastState: ended('1') })],
  ['another end', app({ state: runs, lastState: ended('1') }), app({ state: runs, lastState: ended('2') })],
  ['a back-off', app({ state: ended('1') }), app({ state: waits('CrashLoopBackOff'), lastState: ended('1') })],
  ['a failed pull', pending, init({ state: waits('ErrImagePull') })],
  ['a new container', pending, { ...pending, containerStatuses: [statusOf('app'), statusOf('other')] }],
  ['an ephemeral container', running, { ...running, ephemeralContainerStatuses: [statusOf('debug')] }],
  ['a defer container', running, { ...running, deferContainerStatuses: [statusOf('defer')] }],
  ['a termination', running, { ...running, termination: { reason: 'Deleted' } as PodStatus['termination'] & object }],
  [
    'anything in a final phase',
    { ...running, phase: 'Failed' },
    { ...conditions('PodReadyToStartContainers', 'False'), phase: 'Failed' },
  ],
])('a change of %s is written at once', (_, written, next) => {
  expect(mayWaitMillis(written, next)).toBe(0);
});

test('a new observedGeneration alone waits longer, whatever the order of the fields', () => {
  const { phase, ...others } = running;
  const next = (running.conditions ?? []).map((each) => ({ ...each, observedGeneration: 2 }));
  expect(mayWaitMillis(running, { ...others, conditions: next, observedGeneration: 2, phase: 'Running' })).toBe(
    GENERATION_MILLIS,
  );
});
