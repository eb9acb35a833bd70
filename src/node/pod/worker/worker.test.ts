import { expect, test } from 'vitest';
import { containerOf, defaulted, podOf } from '../../../api/core/v1/pod/pod-fixtures.ts';
import type { Pod, PodStatus } from '../../../api/generated/types.ts';
import type { Action, ContainerState } from '../../../lifecycle/types.ts';
import { silentLog } from '../../../platform/silent-log.ts';
import { createVirtualTimers } from '../../../platform/virtual-timers.ts';
import type { Outcome, RuntimeView } from './ports.ts';
import { startWorker } from './worker.ts';

const NOW = Date.UTC(2026, 0, 31);
const running: ContainerState = {
  id: 'c',
  sandboxId: 's',
  name: 'app',
  kind: 'app',
  attempt: 0,
  state: 'running',
  createdAt: NOW - 2000,
  startedAt: NOW - 1000,
  image: 'busybox:1.28',
  imageId: 'i',
  backoffSeconds: 0,
};
const exited: ContainerState = { ...running, state: 'exited', exitCode: 0, finishedAt: NOW };
const viewOf = (container: ContainerState): RuntimeView => ({
  sandboxes: [{ id: 's', attempt: 0, ready: true, createdAt: NOW - 3000, ips: ['10.0.0.1'] }],
  containers: [container],
});
const stoppedView: RuntimeView = {
  ...viewOf(exited),
  sandboxes: viewOf(exited).sandboxes.map((sandbox) => ({ ...sandbox, ready: false })),
};

const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** The app container runs. The first observation and the first action, mountVolumes, are resolved. */
async function workerOfRunningPod() {
  const looks: PromiseWithResolvers<RuntimeView>[] = [];
  const asked = new Map<Action['kind'], PromiseWithResolvers<Outcome>>();
  const recording: string[] = [];
  const statuses: PodStatus[] = [];
  const made = defaulted(podOf({ containers: [containerOf('app')] }));
  const metadata = { ...made.metadata, generation: 1 };
  const pod: Pod = {
    ...made,
    metadata,
    status: { ...made.status, phase: 'Running', startTime: '2026-01-30T00:00:00Z' },
  };
  const worker = startWorker(
    { pod, removed: false },
    {
      timers: createVirtualTimers(NOW),
      log: silentLog,
      node: { ips: ['192.0.2.1'], runtimeName: 'test' },
      observe: () => {
        const look = Promise.withResolvers<RuntimeView>();
        looks.push(look);
        return look.promise;
      },
      execute: ({ kind }) => {
        const answer = Promise.withResolvers<Outcome>();
        asked.set(kind, answer);
        return answer.promise;
      },
      writeStatus: async (_, status) => void statuses.push(status),
      event: () => undefined,
      record: (_, steps) => void recording.push(...steps.map(({ type }) => type)),
      recorded: () => void recording.push('wait'),
      keep: () => undefined,
      done: () => undefined,
    },
  );
  const see = async (view: RuntimeView): Promise<void> => {
    looks.at(-1)?.resolve(view);
    await settled();
  };
  const remove = (): void => {
    const metadata = { deletionTimestamp: '2026-01-31T00:00:30Z', deletionGracePeriodSeconds: 30 };
    worker.update({ ...pod, metadata: { ...pod.metadata, ...metadata } }, false);
  };
  /** Returns the generations of the written statuses. */
  const observeGeneration = (generation: number): (number | undefined)[] => {
    worker.update({ ...pod, metadata: { ...pod.metadata, generation } }, false);
    return statuses.map(({ observedGeneration }) => observedGeneration);
  };
  await see(viewOf(running));
  asked.get('mountVolumes')?.resolve({ volumes: 'mounted' });
  await settled();
  expect([...asked.keys()]).toEqual(['mountVolumes']);
  return { worker, looks, asked, recording, statuses, observeGeneration, see, remove };
}

test('a worker acts on a change of the Pod that arrives during an observation without waiting for it', async () => {
  const { worker, looks, asked, remove } = await workerOfRunningPod();
  worker.changed();
  expect(looks).toHaveLength(2);
  remove();
  expect([...asked.keys()]).toContain('stopContainer');
  worker.stop();
});

test('a worker does not observe again after an action whose effect was already observed', async () => {
  const { worker, looks, asked, see, remove } = await workerOfRunningPod();
  remove();
  worker.changed();
  await see(viewOf(exited));
  expect([...asked.keys()]).toContain('stopSandbox');
  asked.get('stopContainer')?.resolve({});
  await settled();
  expect(looks).toHaveLength(2);
  worker.stop();
});

test('a worker observes after an action whose effect was not yet observed', async () => {
  const { worker, looks, asked, see, remove } = await workerOfRunningPod();
  remove();
  asked.get('stopContainer')?.resolve({});
  await settled();
  expect(looks).toHaveLength(2);
  expect([...asked.keys()]).not.toContain('stopSandbox');
  await see(viewOf(exited));
  expect([...asked.keys()]).toContain('stopSandbox');
  worker.stop();
});

test('a worker does not observe again if an observation under way shows the effect of an action', async () => {
  const { worker, looks, asked, see, remove } = await workerOfRunningPod();
  remove();
  worker.changed();
  asked.get('stopContainer')?.resolve({});
  await settled();
  await see(viewOf(exited));
  expect(looks).toHaveLength(2);
  expect([...asked.keys()]).toContain('stopSandbox');
  worker.stop();
});

test('a worker waits for the record of all earlier steps before it deletes evidence, but not for that of the last steps', async () => {
  const { worker, asked, recording, see, remove } = await workerOfRunningPod();
  remove();
  asked.get('stopContainer')?.resolve({});
  await settled();
  await see(viewOf(exited));
  expect(recording.slice(-2)).toEqual(['StopSignal', 'Exited']);
  asked.get('stopSandbox')?.resolve({});
  await settled();
  await see(stoppedView);
  expect([...asked.keys()]).toContain('removeSandbox');
  expect(recording.slice(-3)).toEqual(['Exited', 'wait', 'SandboxStopped']);
  worker.stop();
});

test('a worker writes a status that waits for further changes before it stops', async () => {
  const { worker, statuses, observeGeneration } = await workerOfRunningPod();
  expect(observeGeneration(2)).toEqual([1]);
  worker.stop();
  expect(statuses.map(({ observedGeneration }) => observedGeneration)).toEqual([1, 2]);
});

test('a worker writes a status that waits for further changes when it deletes the record of a run', async () => {
  const { worker, looks, asked, statuses, observeGeneration, see } = await workerOfRunningPod();
  const runs = [1, 2].map((attempt) => ({ ...exited, id: `old-${attempt}`, attempt }));
  const view = viewOf({ ...running, attempt: 3 });
  worker.changed();
  await see({ ...view, containers: [...view.containers, ...runs.slice(1)] });
  observeGeneration(2);
  expect(statuses.at(-1)?.observedGeneration).toBe(1);
  worker.changed();
  await see({ ...view, containers: [...view.containers, ...runs] });
  expect([...asked.keys()]).toContain('removeContainer');
  expect(statuses.at(-1)?.observedGeneration).toBe(2);
  expect(looks).toHaveLength(3);
  worker.stop();
});
