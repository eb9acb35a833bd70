import { expect, test } from 'vitest';
import { podOf, statusOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Pod } from '../../api/generated/types.ts';
import { silentLog } from '../../client/testing.ts';
import type { ContainerObservation } from '../../runtime/runtime.ts';
import { deadContainers, removeDeadContainers } from './dead-containers.ts';

const run = (name: string, attempt: number, state: ContainerObservation['state']): ContainerObservation =>
  ({ id: `${name}-${attempt}`, name, attempt, state }) as ContainerObservation;
const over = (phase: string, ...ids: string[]): Pod =>
  podOf(
    {},
    {
      phase,
      containerStatuses: ids.map((id) =>
        statusOf(id.split('-')[0] as string, {
          state: { terminated: { exitCode: 0, containerID: `containerd://${id}` } },
        }),
      ),
    },
  );
const deleted = (pod: Pod): Pod => ({
  ...pod,
  metadata: { ...pod.metadata, deletionTimestamp: '2026-01-31T00:00:00Z' },
});

test.each<[string, Pod, ContainerObservation[], string[]]>([
  [
    'of a Pod that has ended all go',
    over('Failed', 'a-1'),
    [run('a', 1, 'exited'), run('a', 0, 'exited')],
    ['a-0', 'a-1'],
  ],
  [
    'but those after one that has not ended',
    over('Failed', 'a-2'),
    [run('a', 2, 'exited'), run('a', 1, 'unknown'), run('a', 0, 'exited')],
    ['a-0'],
  ],
  [
    'but not before its status tells of them',
    over('Succeeded', 'a-0'),
    [run('a', 0, 'exited'), run('b', 0, 'exited')],
    ['a-0'],
  ],
  ['of one that runs the run before goes', over('Running'), [run('a', 0, 'exited'), run('a', 1, 'running')], ['a-0']],
  ['in a back-off the last one stays', over('Running'), [run('a', 1, 'exited')], []],
  ['so does an init container', over('Running'), [run('init', 0, 'exited'), run('a', 0, 'running')], []],
  ['of one that ends all stay', deleted(over('Running')), [run('a', 0, 'exited'), run('a', 1, 'running')], []],
])('%s', (_, pod, containers, ids) => {
  expect(deadContainers({ pod, containers }).flatMap((runs) => runs.map(({ id }) => id))).toEqual(ids);
});

test('one that cannot be removed keeps the newer ones of its container, and no other', async () => {
  const removed: string[] = [];
  const cleared: string[] = [];
  const containers = [run('a', 1, 'exited'), run('a', 0, 'exited'), run('b', 0, 'exited')];
  const runtime = {
    observeAll: async () => new Map([['u1', { sandboxes: [], containers }]]),
    removeContainer: async (id: string) => {
      if (id === 'a-0') throw new Error('busy');
      removed.push(id);
    },
  };
  const removeRunFiles = async (_: Pod, { name, attempt }: { name: string; attempt: number }) =>
    void cleared.push(`${name}-${attempt}`);
  const ports = { runtime, removeRunFiles, log: silentLog };
  await removeDeadContainers([over('Failed', 'a-1', 'b-0')], ports, new AbortController().signal);
  expect([removed, cleared]).toEqual([['b-0'], ['b-0']]);
});
