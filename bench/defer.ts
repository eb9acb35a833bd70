/**
 * Measures the time that lifepod adds to the end of a Pod whose defer containers exit immediately. It is compared with the floor: a bare
 * loop of the same CRI calls on the same containerd in the same run.
 *
 * The floor makes only the CRI calls without which the Pod cannot end, one after the other, and removes the containers concurrently.
 * lifepod's time is from the DELETE over HTTPS to the watch event of the Pod's deletion.
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
import { BUSYBOX, median, startEngine } from './engine.ts';
import { APP, BRIEF, connectFloor, exitsOf, floorPod, isReady, watchPod } from './pods.ts';

type Trigger = 'PreExit' | 'PostExit';

interface Case {
  count: number;
  trigger: Trigger;
  bare: number[];
  own: number[];
}

const ROUNDS = 25;
const COUNTS = [0, 1, 2, 4];
const MOST_RATIO = 1.25;
/** Without this pause, remaining work of the start would affect the measurement. */
const SETTLE_MILLIS = 200;

export async function defer(): Promise<void> {
  const engine = await startEngine();
  const floorRuntime = await connectFloor(engine);
  const logs = await mkdtemp(join(tmpdir(), 'lifepod-bench-logs-'));
  const cases = (['PostExit', 'PreExit'] as const).flatMap((trigger) =>
    COUNTS.filter((count) => count > 0 || trigger === 'PostExit').map(
      (count): Case => ({ count, trigger, bare: [], own: [] }),
    ),
  );
  try {
    // The floor and lifepod take turns, and alternately go first, so that other load affects both. The first round is a warm-up.
    for (let round = -1; round < ROUNDS; round++) {
      for (const each of cases) {
        const runs = [
          async () => each.bare.push(await floor(floorRuntime, each, logs)),
          async () => each.own.push(await throughLifepod(engine.client, each)),
        ];
        for (const run of round % 2 === 0 ? runs : runs.reverse()) await run();
        if (round < 0) each.bare = [];
        if (round < 0) each.own = [];
      }
    }
    print(cases);
  } finally {
    await rm(logs, { recursive: true, force: true });
    await engine.stop();
  }
}

function print(cases: readonly Case[]): void {
  console.log('| defer containers | trigger | floor gone | lifepod gone | added | ratio |');
  console.log('|---|---|---|---|---|---|');
  for (const { count, trigger, bare, own } of cases) {
    const [floorMillis, ownMillis] = [median(bare), median(own)];
    const cells = [
      count,
      count === 0 ? '' : trigger,
      `${floorMillis.toFixed(0)} ms`,
      `${ownMillis.toFixed(0)} ms`,
      `${(ownMillis - floorMillis).toFixed(0)} ms`,
      (ownMillis / floorMillis).toFixed(2),
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
  console.log(`\nTarget: at most ${MOST_RATIO} each.`);
}

/** Resolves with milliseconds. */
async function floor(runtime: ContainerRuntime, { count, trigger }: Case, logs: string): Promise<number> {
  const ends = new AbortController();
  const { signal } = ends;
  const { uid, sandbox, container } = floorPod(`floor-${count}`, logs);
  const exits = exitsOf(runtime, uid, signal);
  const sandboxId = await runtime.runSandbox(sandbox, signal);
  const start = async (name: string, command: string[]): Promise<string> => {
    const id = await runtime.createContainer(sandboxId, sandbox, container(name, command), signal);
    await runtime.startContainer(id, signal);
    return id;
  };
  const app = await start('app', APP);
  await pause(SETTLE_MILLIS);

  const began = performance.now();
  const made = [app];
  if (trigger === 'PostExit') await runtime.stopContainer(app, 30, signal);
  for (let i = 0; i < count; i++) {
    const entry = await start(`defer-${i}`, BRIEF);
    made.push(entry);
    await exits(entry);
  }
  if (trigger === 'PreExit') await runtime.stopContainer(app, 30, signal);
  await runtime.stopSandbox(sandboxId, signal);
  await Promise.all(made.map((id) => runtime.removeContainer(id, signal)));
  await runtime.removeSandbox(sandboxId, signal);
  const millis = performance.now() - began;
  ends.abort();
  return millis;
}

/** Resolves with milliseconds. */
async function throughLifepod(client: Client, { count, trigger }: Case): Promise<number> {
  const pods = client.resource<Pod>(PODS);
  const name = `bench-${count}-${randomUUID().slice(0, 8)}`;
  const watch = await watchPod(client, name);
  await pods.create({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: {
      containers: [{ name: 'app', image: BUSYBOX, command: APP }],
      deferContainers: Array.from({ length: count }, (_, i) => ({
        name: `defer-${i}`,
        image: BUSYBOX,
        command: BRIEF,
        trigger,
      })),
    },
  });
  await watch.until((event) => event.type === 'MODIFIED' && isReady(event.object));
  await pause(SETTLE_MILLIS);
  let last: Pod | undefined;
  const began = performance.now();
  await pods.delete(name, 'default');
  await watch.until((event) => {
    if (event.type === 'DELETED') last = event.object;
    return event.type === 'DELETED';
  });
  const millis = performance.now() - began;
  watch.stop();
  requireCompleted(last, count);
  return millis;
}

/** Skipped entries would make the measurement too short. */
function requireCompleted(pod: Pod | undefined, count: number): void {
  const reasons = (pod?.status?.deferContainerStatuses ?? []).map(({ state }) => state?.terminated?.reason);
  if (reasons.length === count && reasons.every((reason) => reason === 'Completed')) return;
  throw new Error(`${count} defer containers should have completed: ${JSON.stringify(pod?.status)}`);
}
