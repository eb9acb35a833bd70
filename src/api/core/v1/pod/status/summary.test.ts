import { describe, expect, it } from 'vitest';
import type { ContainerStatus, Pod, PodCondition, PodSpec, PodStatus } from '../../../../generated/types.ts';
import { isTrue, podSummary } from './summary.ts';

type State = NonNullable<ContainerStatus['state']>;
const RUNNING: State = { running: { startedAt: '2026-01-31T00:00:00Z' } };
const waiting = (reason?: string): State => ({ waiting: { ...(reason !== undefined && { reason }) } });
const ended = (exitCode: number, more: object = {}): State => ({ terminated: { exitCode, ...more } });
const COMPLETED = ended(0, { reason: 'Completed' });

const statusOf = (name: string, state: State, more: Partial<ContainerStatus> = {}): ContainerStatus => ({
  name,
  state,
  ready: false,
  restartCount: 0,
  image: 'i',
  imageID: '',
  ...more,
});
const ready = (name: string, more: Partial<ContainerStatus> = {}): ContainerStatus =>
  statusOf(name, RUNNING, { ready: true, started: true, ...more });
const named = (...names: string[]) => names.map((name) => ({ name, image: 'i' }));
const sidecar = (name: string) => ({ name, image: 'i', restartPolicy: 'Always' });
const condition = (type: string, status = 'True', reason?: string): PodCondition =>
  ({ type, status, ...(reason !== undefined && { reason }) }) as PodCondition;

function podOf(status: PodStatus, spec: Partial<PodSpec> = {}, metadata: object = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'ns', ...metadata },
    spec: { containers: named('app'), ...spec },
    status,
  };
}
const summary = (...given: Parameters<typeof podOf>) => podSummary(podOf(...given));
const shown = (...given: Parameters<typeof podOf>): string => {
  const { ready: count, total, status } = summary(...given);
  return `${count}/${total} ${status}`;
};
const DELETED = { deletionTimestamp: '2026-01-31T00:00:00Z' };

describe('the status of a Pod before its containers have a state', () => {
  it.each<[string, PodStatus, string]>([
    ['its phase', { phase: 'Pending' }, '0/1 Pending'],
    ['its reason', { phase: 'Failed', reason: 'Evicted' }, '0/1 Evicted'],
    [
      'its scheduling gates',
      { phase: 'Pending', conditions: [condition('PodScheduled', 'False', 'SchedulingGated')] },
      '0/1 SchedulingGated',
    ],
    ['nothing', {}, '0/1 '],
  ])('a Pod shows %s', (_, status, expected) => {
    expect(shown(status)).toBe(expected);
  });
});

describe('the status of a Pod whose init containers run', () => {
  const spec: Partial<PodSpec> = { initContainers: [...named('a'), sidecar('s'), ...named('b')] };
  it.each<[string, ContainerStatus[], string]>([
    [
      'the number of finished init containers',
      [statusOf('a', RUNNING), statusOf('s', waiting()), statusOf('b', waiting())],
      '0/2 Init:0/3',
    ],
    [
      'that the sidecar has not started',
      [statusOf('a', COMPLETED), statusOf('s', RUNNING, { started: false })],
      '0/2 Init:1/3',
    ],
    ['a ready sidecar', [statusOf('a', COMPLETED), ready('s'), statusOf('b', RUNNING)], '1/2 Init:2/3'],
    [
      'a started sidecar that is not ready',
      [statusOf('a', COMPLETED), ready('s', { ready: false }), statusOf('b', RUNNING)],
      '0/2 Init:2/3',
    ],
    ['why an init container waits', [statusOf('a', waiting('ImagePullBackOff'))], '0/2 Init:ImagePullBackOff'],
    ['no reason while the Pod is initializing', [statusOf('a', waiting('PodInitializing'))], '0/2 Init:0/3'],
    ['why an init container ended', [statusOf('a', ended(1, { reason: 'Error' }))], '0/2 Init:Error'],
    ['the signal that ended an init container', [statusOf('a', ended(137, { signal: 9 }))], '0/2 Init:Signal:9'],
    ['the exit code of an init container', [statusOf('a', ended(3))], '0/2 Init:ExitCode:3'],
  ])('a Pod shows %s', (_, initContainerStatuses, expected) => {
    expect(shown({ phase: 'Pending', initContainerStatuses }, spec)).toBe(expected);
  });

  it('an initialized Pod shows its apps, although an init container runs again', () => {
    const status: PodStatus = {
      phase: 'Running',
      initContainerStatuses: [statusOf('a', RUNNING)],
      containerStatuses: [statusOf('app', waiting('CrashLoopBackOff'))],
    };
    expect(shown(status, spec)).toBe('0/2 Init:0/3');
    expect(shown({ ...status, conditions: [condition('Initialized')] }, spec)).toBe('0/2 CrashLoopBackOff');
  });
});

describe('the status of a Pod whose apps have a state', () => {
  const spec: Partial<PodSpec> = { containers: named('a', 'b') };
  it.each<[string, ContainerStatus[], string]>([
    ['Running', [ready('a'), ready('b')], '2/2 Running'],
    ['the number of ready containers', [ready('a'), statusOf('b', RUNNING)], '1/2 Running'],
    ['no waiting container as ready', [ready('a'), statusOf('b', waiting(), { ready: true })], '1/2 Running'],
    [
      'the first reason',
      [statusOf('a', waiting('ErrImagePull')), statusOf('b', ended(1, { reason: 'Error' }))],
      '0/2 ErrImagePull',
    ],
    ['why a container ended', [ready('a'), statusOf('b', ended(1, { reason: 'Error' }))], '1/2 Error'],
    ['Completed if nothing is ready', [statusOf('a', COMPLETED), statusOf('b', COMPLETED)], '0/2 Completed'],
    [
      'NotReady instead of Completed while another container is ready',
      [ready('a'), statusOf('b', COMPLETED)],
      '1/2 NotReady',
    ],
  ])('a Pod shows %s', (_, containerStatuses, expected) => {
    expect(shown({ phase: 'Running', containerStatuses }, spec)).toBe(expected);
  });

  it('a ready Pod with a completed container shows Running', () => {
    const containerStatuses = [ready('a'), statusOf('b', COMPLETED)];
    expect(shown({ phase: 'Running', containerStatuses, conditions: [condition('Ready')] }, spec)).toBe('1/2 Running');
  });
});

describe('the status of a terminating Pod', () => {
  const containerStatuses = [ready('app')];
  it('a deleted Pod shows Terminating until it has ended', () => {
    expect(shown({ phase: 'Running', containerStatuses }, {}, DELETED)).toBe('1/1 Terminating');
    expect(shown({ phase: 'Succeeded', containerStatuses: [statusOf('app', COMPLETED)] }, {}, DELETED)).toBe(
      '0/1 Completed',
    );
  });
  it('a deleted Pod on a lost node shows Unknown', () => {
    expect(shown({ phase: 'Running', reason: 'NodeLost', containerStatuses }, {}, DELETED)).toBe('1/1 Unknown');
    expect(shown({ phase: 'Running', reason: 'NodeLost' })).toBe('0/1 NodeLost');
  });
  it('a Pod shows how many of its defer containers have ended', () => {
    const spec: Partial<PodSpec> = { deferContainers: named('one', 'two') };
    const termination = { reason: 'Deleted' } as NonNullable<PodStatus['termination']>;
    const status = (...names: string[]): PodStatus => ({
      phase: 'Running',
      termination,
      containerStatuses,
      deferContainerStatuses: [...names.map((name) => statusOf(name, COMPLETED)), statusOf('two', RUNNING)],
    });
    expect(shown(status(), spec, DELETED)).toBe('1/1 Defer:0/2');
    expect(shown(status('one'), spec)).toBe('1/1 Defer:1/2');
    expect(shown(status('one', 'another'), spec)).toBe('1/1 Defer:1/2');
    expect(shown(status('one', 'two'), spec, DELETED)).toBe('1/1 Terminating');
    expect(shown({ ...status('one'), phase: 'Failed' }, spec)).toBe('1/1 Failed');
    const { termination: _, ...before } = status('one');
    expect(shown(before, spec)).toBe('1/1 Running');
  });
});

describe('the restarts of a Pod', () => {
  const lastState = (second: number): State => ended(1, { finishedAt: `2026-01-31T00:00:0${second}Z` });
  const spec: Partial<PodSpec> = { containers: named('a', 'b'), initContainers: [...named('i'), sidecar('s')] };
  it('the restarts of apps and sidecars are added, and the last one is the latest', () => {
    const { restarts, lastRestart } = summary(
      {
        phase: 'Running',
        initContainerStatuses: [
          statusOf('i', COMPLETED, { restartCount: 100, lastState: lastState(9) }),
          ready('s', { restartCount: 1, lastState: lastState(4) }),
        ],
        containerStatuses: [
          ready('a', { restartCount: 10, lastState: lastState(5) }),
          ready('b', { restartCount: 20, lastState: lastState(3) }),
        ],
      },
      spec,
    );
    expect([restarts, lastRestart]).toEqual([31, Date.parse('2026-01-31T00:00:05Z')]);
  });
  it('while the Pod is initialized, only the restarts of the init containers so far count', () => {
    const { restarts, lastRestart } = summary(
      {
        phase: 'Pending',
        initContainerStatuses: [statusOf('i', RUNNING, { restartCount: 2 }), ready('s', { restartCount: 5 })],
      },
      spec,
    );
    expect([restarts, lastRestart]).toEqual([2, undefined]);
  });
});

it('isTrue() returns whether a Pod has the condition with the status True', () => {
  const pod = podOf({ conditions: [condition('Ready'), condition('Initialized', 'False')] });
  expect(['Ready', 'Initialized', 'Other'].map((type) => isTrue(pod, type))).toEqual([true, false, false]);
});
