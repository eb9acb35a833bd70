/**
 * Measures the time that lifepod adds to the start and the end of a Pod, compared with the floor: a bare loop of the same CRI calls on the
 * same containerd in the same run. Also measures the engine's load at rest.
 */

import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Pod } from '../src/api/generated/types.ts';
import { PODS } from '../src/api/resources.ts';
import type { Client } from '../src/client/client.ts';
import type { ContainerRuntime } from '../src/runtime/runtime.ts';
import { type BenchEngine, BUSYBOX, cpuMillis, median, residentMebibytes, startEngine } from './engine.ts';
import { APP, BRIEF, connectFloor, exitsOf, floorPod, isReady, watchPod } from './pods.ts';

const ROUNDS = 25;
const INIT_COUNTS = [0, 1, 2, 4];
const IDLE_MILLIS = 20_000;

interface Times {
  readyMillis: number;
  goneMillis: number;
}

export async function startup(): Promise<void> {
  const engine = await startEngine();
  const floorRuntime = await connectFloor(engine);
  const logs = await mkdtemp(join(tmpdir(), 'lifepod-bench-logs-'));
  try {
    console.log('| init containers | floor ready | lifepod ready | ratio | floor gone | lifepod gone | ratio |');
    console.log('|---|---|---|---|---|---|---|');
    await floor(floorRuntime, 1, logs);
    await throughLifepod(engine.client, 1);
    for (const count of INIT_COUNTS) {
      const bare: Times[] = [];
      const own: Times[] = [];
      // The floor and lifepod take turns, so that other load on the machine affects both.
      for (let round = 0; round < ROUNDS; round++) {
        bare.push(await floor(floorRuntime, count, logs));
        own.push(await throughLifepod(engine.client, count));
      }
      const ready = [bare, own].map((times) => median(times.map(({ readyMillis }) => readyMillis))) as [number, number];
      const gone = [bare, own].map((times) => median(times.map(({ goneMillis }) => goneMillis))) as [number, number];
      const cells = (pair: [number, number]): string =>
        `${pair[0].toFixed(0)} ms | ${pair[1].toFixed(0)} ms | ${(pair[1] / pair[0]).toFixed(2)}`;
      console.log(`| ${count} | ${cells(ready)} | ${cells(gone)} |`);
    }
    await atRest(engine);
  } finally {
    await rm(logs, { recursive: true, force: true });
    await engine.stop();
  }
}

async function floor(runtime: ContainerRuntime, initCount: number, logs: string): Promise<Times> {
  const ends = new AbortController();
  const { signal } = ends;
  const { uid, sandbox, container } = floorPod(`floor-${initCount}`, logs);
  const exits = exitsOf(runtime, uid, signal);
  const began = performance.now();
  const sandboxId = await runtime.runSandbox(sandbox, signal);
  for (let i = 0; i < initCount; i++) {
    const id = await runtime.createContainer(sandboxId, sandbox, container(`init-${i}`, BRIEF), signal);
    await runtime.startContainer(id, signal);
    await exits(id);
  }
  const app = await runtime.createContainer(sandboxId, sandbox, container('app', APP), signal);
  await runtime.startContainer(app, signal);
  const readyMillis = performance.now() - began;
  await pause(200);
  const stopped = performance.now();
  await runtime.stopContainer(app, 30, signal);
  await runtime.stopSandbox(sandboxId, signal);
  for (const { id } of (await runtime.observe(uid, signal)).containers) await runtime.removeContainer(id, signal);
  await runtime.removeSandbox(sandboxId, signal);
  const goneMillis = performance.now() - stopped;
  ends.abort();
  return { readyMillis, goneMillis };
}

async function throughLifepod(client: Client, initCount: number): Promise<Times> {
  const pods = client.resource<Pod>(PODS);
  const name = `bench-${initCount}-${randomUUID().slice(0, 8)}`;
  const watch = await watchPod(client, name);
  // The watch occupies the client's only connection. This request opens a second one before the measurement begins.
  await pods.list({ namespace: 'default', limit: 1 });
  const began = performance.now();
  await pods.create(pod(name, initCount));
  await watch.until((event) => event.type === 'MODIFIED' && isReady(event.object));
  const readyMillis = performance.now() - began;
  await pause(200);
  const deleted = performance.now();
  await pods.delete(name, 'default');
  await watch.until((event) => event.type === 'DELETED');
  const goneMillis = performance.now() - deleted;
  watch.stop();
  return { readyMillis, goneMillis };
}

const pod = (name: string, initCount: number): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default' },
  spec: {
    initContainers: Array.from({ length: initCount }, (_, i) => ({
      name: `init-${i}`,
      image: BUSYBOX,
      command: BRIEF,
    })),
    containers: [{ name: 'app', image: BUSYBOX, command: APP }],
  },
});

async function atRest({ client, pid }: BenchEngine): Promise<void> {
  const pods = client.resource<Pod>(PODS);
  const names = Array.from({ length: 10 }, (_, i) => `rest-${i}`);
  await Promise.all(
    names.map(async (name) => {
      const watch = await watchPod(client, name);
      await pods.create(pod(name, 1));
      await watch.until((event) => event.type === 'MODIFIED' && isReady(event.object));
      watch.stop();
    }),
  );
  await pause(2000);
  const before = await cpuMillis(pid);
  await pause(IDLE_MILLIS);
  const share = ((await cpuMillis(pid)) - before) / IDLE_MILLIS;
  console.log(
    `\nAt rest with 10 Pods: ${(await residentMebibytes(pid)).toFixed(0)} MiB resident, ${(share * 100).toFixed(2)}% of a core.`,
  );
}
