import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Namespace, Pod, PodStatus } from '../../api/generated/types.ts';
import { NAMESPACES, PODS } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { createMetrics, type Metrics, metricsText } from '../../platform/metrics.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import { startPodMetrics } from './pod-metrics.ts';

const READY: PodStatus = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };

let backend: RegistryBackend;
let timers: VirtualTimers;
let metrics: Metrics;
let stop: AbortController;
beforeEach(async () => {
  timers = createVirtualTimers();
  backend = await registryBackend({ timers });
  metrics = createMetrics();
  stop = new AbortController();
});
afterEach(() => stop.abort());

const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
};
const set = async (name: string, nodeName: string, status: PodStatus): Promise<void> => {
  const isNew = !backend.objects(PODS).some(({ metadata }) => metadata.name === name);
  const spec = { nodeName, containers: [{ name: 'app', image: 'i' }] };
  const pod: Pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'a' }, spec };
  if (isNew) await backend.set(PODS, pod);
  await backend.setStatus(PODS, 'a', name, status);
  await settled();
};
const start = async (): Promise<void> => {
  startPodMetrics(
    withInformers({
      client: clientOf(backend),
      nodeName: 'n',
      metrics,
      timers,
      log: silentLog,
      signal: stop.signal,
    }),
  );
  await settled();
};
const text = async (): Promise<string> => metricsText(await metrics.families());

test('the start duration of a Pod is observed once, only on its node, and not if the Pod started before the engine', async () => {
  await set('before', 'n', { startTime: '2026-01-30T00:00:00Z' });
  await start();
  await set('mine', 'n', {});
  await set('other', 'elsewhere', {});
  timers.advance(400);
  for (const [name, node] of [
    ['before', 'n'],
    ['mine', 'n'],
    ['other', 'elsewhere'],
  ] as const) {
    await set(name, node, { ...READY, startTime: '2026-01-31T00:00:00Z' });
  }
  timers.advance(5000);
  await set('mine', 'n', { phase: 'Running' });
  await set('mine', 'n', READY);
  const shown = await text();
  expect(shown).toContain('lifepod_pod_start_duration_seconds_count 1\n');
  expect(shown).toContain('lifepod_pod_start_duration_seconds_sum 0.4\n');
});

test('Pods are counted by phase, and a Pod without a phase as Pending', async () => {
  await start();
  await set('a', 'n', {});
  await set('b', 'n', READY);
  await set('c', 'n', READY);
  await set('d', 'elsewhere', READY);
  const counts = (await text()).split('\n').filter((line) => line.startsWith('lifepod_pods{'));
  expect(counts).toEqual([
    'lifepod_pods{phase="Pending"} 1',
    'lifepod_pods{phase="Running"} 2',
    'lifepod_pods{phase="Succeeded"} 0',
    'lifepod_pods{phase="Failed"} 0',
    'lifepod_pods{phase="Unknown"} 0',
  ]);
});

test('restarts are counted by namespace until the namespace is deleted', async () => {
  const container = (restartCount: number) => ({
    name: 'app',
    image: 'i',
    imageID: '',
    ready: true,
    restartCount,
  });
  await set('a', 'n', { ...READY, containerStatuses: [container(3)] });
  await start();
  await set('a', 'n', { ...READY, containerStatuses: [container(4)] });
  await set('a', 'n', { ...READY, containerStatuses: [container(4)], initContainerStatuses: [container(1)] });
  expect(await text()).toContain('lifepod_container_restarts_total{namespace="a"} 2\n');
  await backend.remove(NAMESPACES, undefined, 'a');
  const namespace = await backend.get(NAMESPACES, undefined, 'a');
  await backend.update(NAMESPACES, { ...namespace, spec: { finalizers: [] } } as Namespace, {
    subresource: 'finalize',
  });
  await set('a', 'n', { ...READY, containerStatuses: [container(5)] });
  expect(await text()).not.toContain('lifepod_container_restarts_total');
});

test('a list of defer containers is counted once when it has ended, with its outcomes and its duration', async () => {
  const ending = (reason: string, ...outcomes: (string | undefined)[]): PodStatus => ({
    phase: 'Terminating',
    conditions: [{ type: 'Deferred', status: 'False', reason }],
    termination: {
      reason: 'Deleted',
      startedAt: '2026-01-31T00:00:00.500000Z',
      deadline: '2026-01-31T00:00:30.000000Z',
    },
    deferContainerStatuses: outcomes.map((outcome, index) => ({
      name: `e${index}`,
      image: 'i',
      imageID: '',
      ready: false,
      restartCount: 0,
      state: outcome === undefined ? { waiting: {} } : { terminated: { exitCode: 0, reason: outcome } },
    })),
  });
  await set('before', 'n', ending('DeferContainersFailed', 'Error'));
  await start();
  await set('before', 'n', ending('DeferContainersFailed', 'Error'));
  await set('a', 'n', READY);
  await set('skipped', 'n', READY);
  await set('a', 'n', ending('DeferContainersRunning', 'Completed', undefined, undefined));
  timers.advance(4500);
  for (let write = 0; write < 2; write++) {
    await set('a', 'n', ending('DeferContainersFailed', 'Completed', 'DeadlineExceeded', 'Skipped'));
    await set('skipped', 'n', ending('DeferContainersSkipped', 'Skipped'));
  }
  const counts = (await text()).split('\n').filter((line) => /^lifepod_defer_.*(total|sum|count)/.test(line));
  expect(counts.sort()).toEqual([
    'lifepod_defer_entries_total{outcome="Completed"} 1',
    'lifepod_defer_entries_total{outcome="DeadlineExceeded"} 1',
    'lifepod_defer_entries_total{outcome="Skipped"} 2',
    'lifepod_defer_list_duration_seconds_count 1',
    'lifepod_defer_list_duration_seconds_sum 4',
    'lifepod_defer_lists_total 1',
  ]);
});
