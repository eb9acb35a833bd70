import { describe, expect, it } from 'vitest';
import type { ContainerStatus } from '../api/generated/types.ts';
import {
  at,
  container,
  decided,
  endedEntry,
  ending,
  entry,
  entryState,
  exited,
  type Given,
  running,
  sandbox,
  stamp,
} from './fixtures.ts';

const recorded = (name: string, exitCode: number): ContainerStatus => ({
  name,
  image: 'i',
  imageID: '',
  ready: false,
  restartCount: 3,
  lastState: {},
  state: { terminated: { exitCode, reason: 'Recorded', finishedAt: stamp(-5), containerID: `containerd://${name}-0` } },
});
const LIST = { spec: { deferContainers: [entry('clean')] }, deleted: 30, now: 3, ending: ending(30) };

describe('ends that the status has', () => {
  const status = { containerStatuses: [recorded('app', 4)] };
  const stopped = { sandboxes: [sandbox(0, { ready: false, stopped: true })] };
  it.each<[string, Given]>([
    ['runs in a new sandbox', {}],
    ['is terminating', { deleted: 30, ending: ending(30) }],
    ['has stopped', { deleted: 30, ending: ending(30), observed: stopped }],
  ])('the end of a container that the runtime has forgotten is kept in a Pod that %s', (_, given) => {
    expect(decided({ ...given, status }).status?.containerStatuses).toEqual(status.containerStatuses);
  });
  it('the last init container that ran in a Pod that has stopped is shown as failed if its end is not known', () => {
    const initContainers = ['first', 'second', 'third'].map((name) => container(name));
    const { state, lastState, ...second } = recorded('second', 1);
    const waiting = { ...second, lastState: state ?? {}, state: { waiting: { reason: 'PodInitializing' } } };
    const decision = decided({
      spec: { initContainers },
      runs: [exited('first', 0, -9)],
      deleted: 30,
      ending: ending(30),
      status: { initContainerStatuses: [waiting] },
      observed: stopped,
    });
    const states = decision.status?.initContainerStatuses?.map((each) => Object.values(each.state ?? {})[0]?.reason);
    expect(states).toEqual(['Completed', 'ContainerStatusUnknown', 'PodInitializing']);
  });
  it('the run of a container that the runtime knows is shown instead of an end in the status', () => {
    const [shown] = decided({ runs: [running('app', { attempt: 4 })], status }).status?.containerStatuses ?? [];
    expect(shown).toMatchObject({ restartCount: 4, state: { running: {} } });
  });
  it('the end of an entry in the status is final, whatever the runtime reports', () => {
    const deferContainerStatuses = [endedEntry('clean', 'Error', 3)];
    const decision = decided({
      ...LIST,
      runs: [running('app'), exited('clean', 0, 2)],
      status: { deferContainerStatuses },
    });
    expect(entryState(decision, 'clean')).toEqual(deferContainerStatuses[0]?.state);
  });
});

it('a container has started only while it runs', () => {
  const started = (given: Given) => {
    const { containerStatuses = [], deferContainerStatuses = [] } = decided({ ...LIST, ...given }).status ?? {};
    return [...containerStatuses, ...deferContainerStatuses].map((each) => each.started);
  };
  const turn = { turn: { entry: 'clean', since: at(0) } };
  expect(started({ runs: [running('app')] })).toEqual([true, false]);
  expect(
    started({ runs: [running('app', { state: 'unknown' }), running('clean')], ending: ending(30, 30, turn) }),
  ).toEqual([false, true]);
  expect(started({ runs: [exited('app', 0, 1)] })).toEqual([false, false]);
});

it.each([
  [0, undefined],
  [128, undefined],
  [129, 1],
  [192, 64],
  [193, undefined],
])('a container that ended with exit code %d was ended by signal %s', (exitCode, signal) => {
  const { status } = decided({ ...LIST, runs: [exited('app', exitCode, 1)] });
  expect(status?.termination?.containers?.[0]?.signal).toBe(signal);
});

it('the last state of a container is the run before the one that its state shows', () => {
  const runs = [exited('app', 1, -9, { attempt: 1, backoffSeconds: 20 }), exited('app', 2, -30)];
  const shown = (spec: Given['spec']) => {
    const { state, lastState } = decided({ ...(spec && { spec }), runs }).status?.containerStatuses?.[0] ?? {};
    return [state?.terminated?.exitCode, state?.waiting?.reason, lastState?.terminated?.exitCode];
  };
  expect(shown({ restartPolicy: 'Never' })).toEqual([1, undefined, 2]);
  expect(shown({ restartPolicy: 'Always' })).toEqual([undefined, 'CrashLoopBackOff', 1]);
});
