/** The engine is killed at each step of the list and started again. LIFEPOD_KILLS=50 adds 50 kills at random times. */

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Pod } from '../../src/api/generated/types.ts';
import { mountsOf, processesNaming } from '../../src/engine/leftovers.ts';
import { parseTime } from '../../src/machinery/time.ts';
import { systemTimers } from '../../src/platform/node-js.ts';
import { haveEnded } from '../../src/platform/processes.ts';
import {
  ENTRIES,
  GRACE_SECONDS,
  killedPod,
  logged,
  type MortalEngine,
  mortalEngine,
  open,
  removeEnded,
} from '../support/killed-pods.ts';
import { lifepod, useOwnEngine } from '../support/own-engine.ts';
import { condition, ended, isReady, runs, statusOf, waitsFor } from '../support/pods.ts';

let engine: MortalEngine;
useOwnEngine();
beforeAll(async () => {
  engine = await mortalEngine(lifepod);
});
afterAll(() => engine?.end());

const GATES = ['hook', 'one', 'fail', 'two', 'app', 'three', 'four'] as const;
type Gate = (typeof GATES)[number];

interface Step {
  at: string | ((pod: Pod) => boolean);
  /** The Pod reaches this step once these gates are open. */
  open?: Gate[];
}

const announced =
  (container: string, after?: number) =>
  (pod: Pod): boolean =>
    waitsFor(container, 'ContainerCreating')(pod) && statusOf(pod, container).lastState?.terminated?.exitCode === after;

/** The gates to open for each step of at(). The steps are entry one, entry two, the retry of entry two, entry three and entry four. */
const OPENED: Gate[][] = [[], ['hook', 'one'], ['fail'], ['two', 'app'], ['three'], ['four']];
const at = (...steps: Step['at'][]): Step[] => steps.map((step, index) => ({ at: step, open: OPENED[index] ?? [] }));

const steps: Record<string, Step[]> = {
  'announced but not started': at(
    announced('one'),
    announced('two'),
    announced('two', 1),
    announced('three'),
    announced('four'),
  ),
  'being started': at('begin one', 'begin two', 'begin two', 'begin three', 'begin four'),
  running: at(
    runs('one'),
    runs('two'),
    (pod) => runs('two')(pod) && statusOf(pod, 'two').lastState?.terminated?.exitCode === 1,
    runs('three'),
    runs('four'),
  ),
  ending: [
    { at: 'end one', open: ['hook', 'one'] },
    { at: 'fail two', open: ['fail'] },
    { at: 'end two', open: ['two'] },
    { at: 'end three', open: ['app', 'three'] },
    { at: 'end four', open: ['four'] },
  ],
};

const names = (batch: string, count: number): string[] => Array.from({ length: count }, (_, i) => `${batch}-${i + 1}`);

async function startPods(pods: string[], work?: (step: string) => string): Promise<void> {
  await lifepod.apply({ apiVersion: 'v1', kind: 'List', items: pods.map((name) => killedPod(lifepod, name, work)) });
  await Promise.all(pods.map((name) => engine.record().until(name, isReady)));
}

/** May be called repeatedly, because the engine may be killed before it has accepted the request. */
const deletePods = (pods: string[]) => lifepod.kubectl('delete', 'pod', ...pods, '--wait=false', '--ignore-not-found');

const reached = (name: string, step: Step['at'], count: number): Promise<unknown> =>
  typeof step === 'string' ? engine.untilLogged(name, step, count) : engine.record().until(name, step);

/**
 * Opens all gates but the last, and waits until the entry behind the last gate runs. The test opens the last gate just before the kill, so
 * that the engine does not die during the start of the entry. containerd would cancel the start.
 */
async function letOn(name: string, gates: Gate[]): Promise<void> {
  for (const [index, gate] of gates.entries()) {
    const behind = ENTRIES.find((entry) => entry === (gate === 'fail' ? 'two' : gate));
    if (behind !== undefined) await engine.record().until(name, runs(behind));
    if (index < gates.length - 1) open(lifepod, name, gate);
  }
}

async function killAtEach(pods: string[], batch: Step[]): Promise<void> {
  /** The log of each Pod when the engine last died. Each step waits for a line of its Pod that is not in this log yet. */
  let before = new Map<string, string[]>();
  for (const [index, step] of batch.entries()) {
    const name = pods[index % pods.length] ?? '';
    const gates = step.open ?? [];
    const count = (before.get(name) ?? []).filter((line) => line === step.at).length + 1;
    if (index === 0 && gates.length > 0) await deletePods(pods);
    await Promise.all(pods.map((each) => letOn(each, gates)));
    const letGo = async (): Promise<void> => {
      for (const each of pods) open(lifepod, each, ...gates);
      if (index === 0) await deletePods(pods);
    };
    await engine.killAt(reached(name, step.at, count), letGo, () => {
      before = new Map(pods.map((each) => [each, logged(lifepod, each)]));
    });
    if (index === 0) await deletePods(pods);
  }
  for (const each of pods) open(lifepod, each, ...GATES);
  await Promise.all(pods.map((name) => removeEnded(lifepod, engine, name)));
}

/** Outages do not count in the grace period. If `isGated` is true, each entry must have run to its end once. */
function expectOutcome(name: string, isGated: boolean): void {
  const versions = engine.seen(name);
  const last = versions.at(-1) as Pod;
  for (const entry of ENTRIES)
    expect(statusOf(last, entry).state?.terminated).toMatchObject({ exitCode: 0, reason: 'Completed' });
  expect(condition(last, 'Deferred')).toMatchObject({ status: 'True', reason: 'DeferContainersSucceeded' });
  expect(statusOf(last, 'app').state?.terminated?.exitCode).toBe(0);
  const terminations = versions.flatMap(({ status }) => status?.termination ?? []);
  for (const { deadline, startedAt, outageSeconds = 0 } of terminations)
    expect((parseTime(deadline) ?? 0) - (parseTime(startedAt) ?? 0)).toBeCloseTo(
      1000 * (GRACE_SECONDS + outageSeconds),
      0,
    );
  expect(parseTime(terminations.at(-1)?.deadline)).toBeGreaterThan(Date.now());
  const log = logged(lifepod, name);
  const ends = log.filter((line) => line.startsWith('end '));
  // Without gates, an entry may end before its start has returned. If the engine dies then, the start counts as failed and is repeated.
  expect(isGated ? ends : [...new Set(ends)]).toEqual(ENTRIES.map((entry) => `end ${entry}`));
  // An entry whose start the death of the engine canceled runs again, but still in its turn.
  const order = log.filter((line) => line !== 'hook').map((line) => line.replace(/^(begin|fail|end) /, ''));
  expect(order.filter((step, index) => step !== order[index - 1])).toEqual(['one', 'two', 'stop', 'three', 'four']);
}

/** Shims get up to 10 s, because a shim ends after its sandbox. */
async function expectNothingLeft(): Promise<void> {
  const shims = processesNaming(lifepod.dataDir).filter(({ commandLine }) =>
    /containerd-shim/.test(commandLine[0] ?? ''),
  );
  const pids = shims.map(({ pid }) => pid);
  expect(await haveEnded(pids, 10_000, systemTimers()), JSON.stringify(shims)).toBe(true);
  expect(readdirSync(join(lifepod.dataDir, 'pods'))).toEqual([]);
  expect(mountsOf(lifepod.dataDir).filter((point) => /\/(rootfs|netns\/.*)$/.test(point))).toEqual([]);
}

test.each(Object.entries(steps))(
  'each entry succeeds once although the engine is killed when the entry is %s',
  async (what, batch) => {
    const pods = names(what.replaceAll(/[^a-z]+/g, '-'), 2);
    await startPods(pods);
    await killAtEach(pods, batch);
    for (const name of pods) expectOutcome(name, true);
    await expectNothingLeft();
  },
);

test('each entry succeeds once although the engine is killed between steps of the list', async () => {
  const pods = names('around', 2);
  await startPods(pods);
  await killAtEach(pods, [
    { at: ({ status }) => status?.termination !== undefined },
    { at: 'hook' },
    { at: waitsFor('two', 'CrashLoopBackOff'), open: ['hook', 'one', 'fail'] },
    { at: 'stop', open: ['two'] },
    { at: ended('app'), open: ['app'] },
    { at: (pod) => condition(pod, 'Deferred')?.status === 'True', open: ['three', 'four'] },
  ]);
  for (const name of pods) expectOutcome(name, true);
  await expectNothingLeft();
});

const KILLS = Number(process.env['LIFEPOD_KILLS'] ?? 0);
test.runIf(KILLS > 0)(
  `each entry succeeds although the engine is killed at ${KILLS} random times`,
  async () => {
    const seed = Number(process.env['LIFEPOD_SEED']);
    const random = randomOf(seed);
    const timers = systemTimers();
    const problems: string[] = [];
    for (let round = 0, kills = 0; kills < KILLS; round++) {
      const pods = names(`random-${round}`, 3);
      const delays = Array.from({ length: 4 }, () => Math.floor(random() * 700));
      await startPods(pods, () => `usleep ${Math.floor(random() * 100_000)}`);
      expect((await deletePods(pods)).code).toBe(0);
      for (const delay of delays) {
        await engine.killAt(new Promise<void>((resolve) => void timers.at(timers.now() + delay, resolve)));
        kills++;
      }
      await Promise.all(pods.map((name) => removeEnded(lifepod, engine, name)));
      for (const name of pods) {
        try {
          expectOutcome(name, false);
        } catch (error) {
          const status = JSON.stringify(engine.seen(name).at(-1)?.status?.deferContainerStatuses);
          problems.push(`${name}, kills after ${delays} ms: ${error}\n${logged(lifepod, name).join(', ')}\n${status}`);
        }
      }
      console.log(`${kills} kills, the last of them after ${delays.join(', ')} ms; problems: ${problems.length}`);
      await expectNothingLeft();
    }
    expect(problems, `LIFEPOD_SEED=${seed}`).toEqual([]);
  },
  KILLS * 10_000,
);

/** The numbers are in [0, 1) (mulberry32). The same seed produces the same numbers. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
