import { expect, test } from 'vitest';
import type { ContainerState, ContainerStatus, Pod } from '../../api/generated/types.ts';
import { PODS } from '../../api/resources.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { runOf } from '../pod-containers.ts';
import { followPod } from './follow-pod.ts';

const statusOf = (name: string, state: ContainerState, run: string): ContainerStatus => ({
  name,
  image: 'i',
  imageID: '',
  ready: false,
  restartCount: 0,
  containerID: run,
  ...(state.waiting ? { state, lastState: { terminated: { exitCode: 1, containerID: run } } } : { state }),
});
const running = (name: string, run: string) => statusOf(name, { running: {} }, run);
const ended = (name: string, run: string) => statusOf(name, { terminated: { exitCode: 0 } }, run);
const restarting = (name: string, run: string) => statusOf(name, { waiting: { reason: 'CrashLoopBackOff' } }, run);

const podWith = (app: ContainerStatus[], bye: ContainerStatus[] = [], phase = 'Running'): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'a' },
  spec: {
    initContainers: [{ name: 'init', image: 'i' }],
    containers: [{ name: 'app', image: 'i' }],
    deferContainers: [{ name: 'bye', image: 'i' }],
  },
  status: {
    phase,
    initContainerStatuses: [ended('init', 'i1')],
    containerStatuses: app,
    deferContainerStatuses: bye,
  },
});
const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** `printed` contains the runs in the order in which their logs were opened. A `!` marks runs that began before the call. */
async function follow(pod: Pod, only?: string) {
  const backend = await registryBackend();
  const stored = await backend.set(PODS, pod);
  const [printed, waits, open] = [[] as string[], [] as string[], new Map<string, () => void>()];
  const stop = new AbortController();
  const result = followPod(
    stored,
    only,
    {
      pods: clientOf(backend).resource<Pod>(PODS),
      waiting: (containers) => waits.push(...containers.map(({ name }) => name)),
      print({ status }, wasThere) {
        const run = runOf(status) ?? '';
        printed.push(wasThere ? `${run}!` : run);
        if (status?.state?.running === undefined) return Promise.resolve();
        return new Promise((resolve) => void open.set(run, resolve));
      },
    },
    stop.signal,
  );
  const step = async (change: () => unknown): Promise<string[]> => {
    await change();
    for (let i = 0; i < 100; i++) await turn();
    return [...printed];
  };
  await step(() => undefined);
  return { backend, printed, waits, result, stop, open, step };
}

test('logs -f prints ended containers first and follows each later run until the Pod has ended', async () => {
  const { backend, printed, result, open, step, waits } = await follow(podWith([running('app', 'a1')]));
  const change = (...args: Parameters<typeof podWith>) =>
    backend.setStatus(PODS, 'a', 'p', podWith(...args).status ?? {});
  expect(printed).toEqual(['i1!', 'a1!']);
  // The log of the next run is opened only when the log of the previous one has ended.
  expect(await step(() => change([running('app', 'a2')]))).toEqual(['i1!', 'a1!']);
  expect(await step(() => open.get('a1')?.())).toEqual(['i1!', 'a1!', 'a2']);
  await step(() => open.get('a2')?.());
  expect(await step(() => change([ended('app', 'a2')], [running('bye', 'b1')]))).toEqual(['i1!', 'a1!', 'a2', 'b1']);
  await step(() => change([ended('app', 'a2')], [ended('bye', 'b1')], 'Succeeded'));
  open.get('b1')?.();
  expect([await result, waits]).toEqual([true, []]);
});

test('logs -f of an app container ends with its current run', async () => {
  const { backend, result, open, step } = await follow(podWith([running('app', 'a1')]), 'app');
  const change = (...args: Parameters<typeof podWith>) =>
    backend.setStatus(PODS, 'a', 'p', podWith(...args).status ?? {});
  expect(await step(() => change([running('app', 'a2')]))).toEqual(['a1!']);
  open.get('a1')?.();
  expect(await result).toBe(true);
});

test('logs -f of a defer container waits for its first attempt and ends with its last', async () => {
  const { backend, result, open, step, waits } = await follow(podWith([running('app', 'a1')]), 'bye');
  const change = (...bye: ContainerStatus[]) =>
    backend.setStatus(PODS, 'a', 'p', podWith([ended('app', 'a1')], bye).status ?? {});
  expect(await step(() => change(running('bye', 'b1')))).toEqual(['b1']);
  await step(() => change(restarting('bye', 'b1')));
  expect(await step(() => open.get('b1')?.())).toEqual(['b1']);
  expect(await step(() => change(running('bye', 'b2')))).toEqual(['b1', 'b2']);
  await step(() => change(ended('bye', 'b2')));
  open.get('b2')?.();
  expect([await result, waits]).toEqual([true, ['bye']]);
});

test('logs -f returns whether there was a log when the Pod is deleted or the command is interrupted', async () => {
  const deleted = await follow(podWith([]), 'app');
  await deleted.step(() => deleted.backend.remove(PODS, 'a', 'p'));
  expect([await deleted.result, deleted.waits]).toEqual([false, ['app']]);
  const replaced = await follow(podWith([]), 'app');
  await replaced.backend.remove(PODS, 'a', 'p');
  await replaced.backend.set(PODS, podWith([running('app', 'x1')]));
  expect(await replaced.result).toBe(false);
  const interrupted = await follow(podWith([running('app', 'a1')]), 'app');
  await interrupted.step(() => interrupted.stop.abort());
  expect(await interrupted.result).toBe(true);
});
