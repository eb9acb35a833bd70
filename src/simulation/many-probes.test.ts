/** Tests, with many Pods on one node in virtual time, that probes run at most 50 ms from the times at which they are due. */

import { expect, it } from 'vitest';
import type { Pod } from '../api/generated/types.ts';
import { pullAlone } from '../node/images/puller.ts';
import { createExecutor } from '../node/pod/executor.ts';
import { runtimeView } from '../node/pod/observed-pod.ts';
import { type PodWorker, startWorker } from '../node/pod/worker/worker.ts';
import { pause } from '../platform/pause.ts';
import { silentLog } from '../platform/silent-log.ts';
import { createVirtualTimers } from '../platform/virtual-timers.ts';
import { createSteadyStamps } from '../runtime/clock-conversion.ts';
import { createSimulatedRuntime } from '../runtime/simulated/simulated-runtime.ts';
import { simulatedEnvironment } from './simulated-environment.ts';
import { simulatedPod } from './simulated-pod.ts';

const START = 1_700_000_000_000;
const PODS = 100;
const SECONDS = 20;
const ANSWER_MILLIS = 300;
it('a probe runs within 50 ms of its due time on a node with 100 Pods with two probes each', async () => {
  const timers = createVirtualTimers(START);
  const wait = (millis: number) => pause(timers, millis);
  const runtime = createSimulatedRuntime({
    timers,
    script: () => ({ stopMillis: 1 }),
    latencyMillis: () => 5,
    images: ['busybox:1.28'],
  });
  const asked = new Map<string, number[]>();
  const execute = createExecutor({
    timers,
    runtime,
    finalize: async () => ({}),
    volumes: {
      mount: async () => undefined,
      rewrite: async () => undefined,
      unmount: async () => undefined,
      remove: async () => undefined,
    },
    environment: async () => simulatedEnvironment,
    pullImage: (_pod, reference, _progress, signal) => pullAlone(runtime, timers, reference, signal),
    prepareContainer: async () => undefined,
    prepareSandbox: () => undefined,
    warn: () => undefined,
    removeRunFiles: async () => undefined,
    runProbe: async ({ metadata: { uid } }, { probe }) => {
      const key = `${uid} ${probe}`;
      asked.set(key, [...(asked.get(key) ?? []), timers.now()]);
      await wait(ANSWER_MILLIS);
      return { result: 'Success', message: '' };
    },
    runHook: async () => ({}),
  });
  const stamps = createSteadyStamps(timers, timers);
  const workers = new Map<string, PodWorker>();
  const begin = (uid: string, periodSeconds: number): void => {
    const probe = { exec: { command: ['check'] }, periodSeconds };
    const { metadata, ...rest } = simulatedPod({
      apps: ['app'],
      each: { livenessProbe: probe, readinessProbe: probe },
    });
    let pod: Pod = { ...rest, metadata: { ...metadata, name: uid, uid } };
    const worker = startWorker(
      { pod, removed: false },
      {
        timers,
        log: silentLog,
        node: { ips: ['192.0.2.1'], runtimeName: 'simulated' },
        execute,
        observe: async (_pod, signal) => runtimeView(stamps.read(uid, await runtime.observe(uid, signal)), new Map()),
        writeStatus: async (_pod, status) => {
          await wait(1);
          pod = { ...pod, status };
          workers.get(uid)?.update(pod, false);
        },
        event: () => undefined,
        record: () => undefined,
        recorded: () => undefined,
        keep: () => undefined,
        done: () => undefined,
      },
    );
    workers.set(uid, worker);
  };
  const ending = new AbortController();
  void runtime.events((event) => event.type === 'changed' && workers.get(event.podUid)?.changed(), ending.signal);
  for (let i = 0; i < PODS; i++) begin(`uid-${i}`, 1 + (i % 2));
  await timers.run(() => false, START + SECONDS * 1000);
  for (const worker of workers.values()) worker.stop();
  ending.abort();

  expect(asked.size).toBe(2 * PODS);
  for (const [key, times] of asked) {
    const [uid = ''] = key.split(' ');
    const period = 1000 * (1 + (Number(uid.slice(4)) % 2));
    const startedAt = runtime.trace.find(({ what, podUid }) => what === 'start' && podUid === uid)?.at ?? Number.NaN;
    const due = times.map((_, n) => startedAt + n * period);
    expect(Math.max(...times.map((at, n) => Math.abs(at - (due[n] ?? 0))))).toBeLessThanOrEqual(50);
    expect(times.length).toBeGreaterThanOrEqual(((SECONDS - 1) * 1000) / period);
  }
});
