import { expect, test } from 'vitest';
import { silentLog } from '../../platform/silent-log.ts';
import type { ContainerRuntime } from '../../runtime/runtime.ts';
import { followRuntime } from './runtime-follower.ts';
import type { PodWorker } from './worker/worker.ts';

const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

test('a change wakes the worker of its Pod, and a full observation all workers and reports Pods without one', async () => {
  const calls: string[] = [];
  const workerOf = (name: string) =>
    ({ changed: () => void calls.push(`changed ${name}`) }) as Partial<PodWorker> as PodWorker;
  const ended = Promise.withResolvers<void>();
  let listener: Parameters<ContainerRuntime['events']>[0] = () => undefined;
  let failure: Error | undefined;
  const listed = followRuntime({
    runtime: {
      events(onEvent) {
        listener = onEvent;
        return ended.promise;
      },
      async observeAll() {
        if (failure !== undefined) throw failure;
        return new Map(['a', 'lost'].map((uid) => [uid, { sandboxes: [], containers: [] }]));
      },
    },
    workers: new Map(['a', 'b'].map((name) => [name, workerOf(name)])),
    found: (uid) => void calls.push(`found ${uid}`),
    log: {
      ...silentLog,
      warn: (message) => void calls.push(message),
      error: (message) => void calls.push(message),
    },
    signal: new AbortController().signal,
  });
  listener({ type: 'changed', podUid: 'b' });
  listener({ type: 'changed', podUid: 'lost' });
  listener({ type: 'resync' });
  await settled();
  expect(calls).toEqual(['changed b']);
  await listed();
  await settled();
  const all = ['found lost', 'changed a', 'changed b'];
  expect(calls.slice(1)).toEqual([...all, ...all]);
  calls.length = 0;
  failure = new Error('down');
  listener({ type: 'resync' });
  await settled();
  await expect(listed()).rejects.toThrow('down');
  ended.reject(new Error('closed'));
  await settled();
  expect(calls).toEqual(['resync failed', 'runtime events ended']);
});
