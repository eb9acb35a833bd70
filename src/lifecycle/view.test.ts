import { expect, test } from 'vitest';
import { containerOf, podOf } from '../api/core/v1/pod/pod-fixtures.ts';
import type { ContainerStateTerminated } from '../api/generated/types.ts';
import { emptyMemory } from './initial-memory.ts';
import type { ContainerState, Input } from './types.ts';
import { viewOf } from './view.ts';

const AT = Date.UTC(2026, 0, 31);
const run: ContainerState = {
  id: 'c1',
  sandboxId: 's',
  name: 'app',
  kind: 'app',
  attempt: 0,
  state: 'exited',
  createdAt: AT - 5000,
  finishedAt: AT,
  exitCode: 255,
  reason: 'Unknown',
  image: 'i',
  imageId: 'i',
  backoffSeconds: 0,
};
const ended: ContainerStateTerminated = {
  containerID: 'containerd://c1',
  exitCode: 0,
  reason: 'Completed',
  finishedAt: '2026-01-30T23:59:58Z',
};

function seen(observed: ContainerState, states: { state?: object; lastState?: object }): ContainerState | undefined {
  const status = { name: 'app', image: 'i', imageID: 'i', ready: false, restartCount: 0, ...states };
  const pod = podOf({ containers: [containerOf('app')] }, { containerStatuses: [status] });
  const observations = { sandboxes: [], containers: [observed], images: {}, underWay: [], failures: [] };
  const input = { pod, observed: observations, memory: emptyMemory() };
  return viewOf(input as unknown as Input).apps[0]?.latest;
}

test('an end that the runtime has lost is taken from the status', () => {
  const known = { ...run, exitCode: 0, reason: 'Completed', message: '', finishedAt: AT - 2000 };
  expect(seen(run, { state: { terminated: ended } })).toEqual(known);
  expect(seen(run, { state: { waiting: {} }, lastState: { terminated: ended } })).toEqual(known);
});

test('an end that no status shows, or that the runtime knows, is taken from the runtime', () => {
  expect(seen(run, {})).toEqual(run);
  expect(seen(run, { state: { terminated: { ...ended, containerID: 'containerd://c0' } } })).toEqual(run);
  // The status has whole seconds only, so the runtime's time is kept.
  const lost = { ...ended, exitCode: 255, reason: 'Error', finishedAt: '2026-01-31T00:00:00Z' };
  expect(seen({ ...run, finishedAt: AT + 20 }, { state: { terminated: lost } })?.finishedAt).toBe(AT + 20);
  const skipped = { ...ended, exitCode: 137, reason: 'Skipped' };
  expect(seen(run, { state: { terminated: skipped } })).toEqual(run);
  const failed = { ...run, reason: 'Error' };
  expect(seen(failed, { state: { terminated: ended } })).toEqual(failed);
});
