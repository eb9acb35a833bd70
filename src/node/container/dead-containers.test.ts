import { expect, test } from 'vitest';
import { podOf, statusOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Pod } from '../../api/generated/types.ts';
import { silentLog } from '../../platform/silent-log.ts';
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
    'all runs of a Pod that has ended',
    over('Failed', 'a-1'),
    [run('a', 1, 'exited'), run('a', 0, 'exited')],
    ['a-0', 'a-1'],
  ],
  [
    'no runs after one that has not exited',
    over('Failed', 'a-2'),
    [run('a', 2, 'exited'), run('a', 1, 'unknown'), run('a', 0, 'exited')],
    ['a-0'],
  ],
  [
    'no runs that the status does not show yet',
    over('Succeeded', 'a-0'),
    [run('a', 0, 'exited'), run('b', 0, 'exited')],
    ['a-0'],
  ],
  ['the run before a running one', over('Running'), [run('a', 0, 'exited'), run('a', 1, 'running')], ['a-0']],
  ['no runs of an ended Pod whose oldest run has not exited', over('Failed', 'a-0'), [run('a', 0, 'unknown')], []],
  [
    'only the exited runs before a running one, oldest first',
    over('Running'),
    [
      run('a', 4, 'exited'),
      run('a', 3, 'running'),
      run('a', 2, 'exited'),
      run('a', 1, 'unknown'),
      run('a', 0, 'exited'),
    ],
    ['a-0', 'a-2'],
  ],
  ['no last run during back-off', over('Running'), [run('a', 1, 'exited')], []],
  ['no last run of an init container', over('Running'), [run('init', 0, 'exited'), run('a', 0, 'running')], []],
  [
    'no runs of a Pod that is terminating',
    deleted(over('Running')),
    [run('a', 0, 'exited'), run('a', 1, 'running')],
    [],
  ],
])('deadContainers() returns %s', (_, pod, containers, ids) => {
  expect(deadContainers({ pod, containers }).flatMap((runs) => runs.map(({ id }) => id))).toEqual(ids);
});

test('a run that cannot be removed blocks the removal of newer runs of the same container only', async () => {
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

test('only the Pods with removable containers are logged, and the runtime frees the disk space at the end', async () => {
  const calls: string[] = [];
  const containers = [run('a', 0, 'exited')];
  const runtime = {
    observeAll: async () => new Map([['u1', { sandboxes: [], containers }]]),
    removeContainer: async (id: string) => void calls.push(`remove ${id}`),
    collectGarbage: async () => void calls.push('collect'),
  };
  const log = { ...silentLog, info: (_: string, fields?: object) => void calls.push(`log ${JSON.stringify(fields)}`) };
  const ended = over('Failed', 'a-0');
  const empty = { ...ended, metadata: { ...ended.metadata, name: 'empty', uid: 'u2' } };
  await removeDeadContainers(
    [empty, ended],
    { runtime, removeRunFiles: async () => {}, log },
    new AbortController().signal,
  );
  const pod = `${ended.metadata.namespace}/${ended.metadata.name}`;
  expect(calls).toEqual([`log ${JSON.stringify({ pod, count: 1 })}`, 'remove a-0', 'collect']);
});
