/**
 * Properties of the lives of Pods with defer containers, over random lists, scripts, deletions, lost sandboxes, runtime faults and
 * agent crashes between any two actions. LIFEPOD_DEFER_RUNS sets the number of lives, each of which is held to every property
 * (`npm run test:long`: 10,000), LIFEPOD_SEED repeats a run; the seed is printed.
 */
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { DeferContainer } from '../api/generated/types.ts';
import { parseTime } from '../machinery/time.ts';
import type { TraceEntry } from '../runtime/simulated/simulated-runtime.ts';
import { deferLives } from './defer-lives.ts';
import { forcedSince } from './lives.ts';
import { LATENCY_MILLIS, type Life, type LifeResult, live } from './pod-life.ts';

const numRuns = Number(process.env['LIFEPOD_DEFER_RUNS'] ?? 1000);
const seed = Number(process.env['LIFEPOD_SEED']);
console.log(`defer properties: seed ${seed}, ${numRuns} lives (LIFEPOD_SEED and LIFEPOD_DEFER_RUNS set them)`);

/** What was decided in time takes effect a call or two later. */
const SLACK_MILLIS = 4 * LATENCY_MILLIS;

const entriesOf = (life: Life): DeferContainer[] => life.pod.spec?.deferContainers ?? [];
const isEntry = (name: string): boolean => name.startsWith('defer-');
/** Of a container that must have ended before a PostExit entry runs. */
const isApp = (name: string): boolean => name.startsWith('app-') || name.startsWith('init-');
const isSidecar = (name: string): boolean => name.startsWith('side-');
const isCompanion = (name: string): boolean => isSidecar(name) || name.startsWith('debug-');

interface Told {
  at: number;
  deadline: number;
  extendedSeconds: number;
}

/** The terminations that the status told of, as they were written. */
const toldBy = ({ statuses }: LifeResult): Told[] =>
  statuses.flatMap(({ at, status: { termination } }) =>
    termination === undefined
      ? []
      : [{ at, deadline: parseTime(termination.deadline) ?? 0, extendedSeconds: termination.extendedSeconds ?? 0 }],
  );

/** What the reasons so far say that the deadline is at the latest, whether or not the status tells it yet. */
const newDeadlines = ({ start }: LifeResult, life: Life, now: number): number[] => {
  const ends = [...(life.deletions ?? [])];
  const ownSeconds = life.pod.spec?.terminationGracePeriodSeconds ?? 30;
  if (life.nodeEnd !== undefined)
    ends.push({ at: life.nodeEnd.at, graceSeconds: Math.min(ownSeconds, life.nodeEnd.by.graceSeconds) });
  if (life.forcedAt !== undefined) ends.push({ at: life.forcedAt, graceSeconds: 0 });
  return ends.filter(({ at }) => start + at <= now).map(({ at, graceSeconds }) => start + at + graceSeconds * 1000);
};

/** Each start with the names of what ran at that time. */
function starts(trace: readonly TraceEntry[]): { entry: TraceEntry; running: string[]; before: TraceEntry[] }[] {
  const running = new Set<string>();
  return trace.flatMap((entry, index) => {
    if (entry.what === 'exit') running.delete(entry.name);
    if (entry.what !== 'start') return [];
    const seen = { entry, running: [...running], before: trace.slice(0, index) };
    running.add(entry.name);
    return [seen];
  });
}

/** How long a run may take at most so that crashes do not make it exceed its time. */
const decisiveMillis = (timeoutSeconds = Number.POSITIVE_INFINITY): number => timeoutSeconds * 1000 - 2500;

type Property = (result: LifeResult, life: Life) => void;

const properties: Record<string, Property> = {
  'entries run strictly in order': ({ trace }, life) => {
    const names = entriesOf(life).map(({ name }) => name);
    let furthest = 0;
    for (const { entry, running } of starts(trace)) {
      if (!isEntry(entry.name)) continue;
      expect(names.indexOf(entry.name)).toBeGreaterThanOrEqual(furthest);
      furthest = names.indexOf(entry.name);
      expect(running.filter(isEntry)).toEqual([]);
    }
  },

  'entries run at most once to success': ({ trace, start }, life) => {
    // What is told to stop because its sandbox is lost is to run again, whatever its exit code.
    const lostAt = start + (life.sandboxLostAt ?? Number.POSITIVE_INFINITY);
    for (const { name, livenessProbe, timeoutSeconds } of entriesOf(life)) {
      // What is stopped for its probe or its time has failed, whatever its exit code.
      if (livenessProbe !== undefined || timeoutSeconds !== undefined) continue;
      const succeeded = trace.findIndex(
        (each) => each.name === name && each.what === 'exit' && each.exitCode === 0 && each.at < lostAt,
      );
      if (succeeded < 0) continue;
      expect(trace.slice(succeeded + 1).filter((each) => each.name === name && each.what === 'start')).toEqual([]);
    }
  },

  'nothing of the list starts before the termination is written, nor after its deadline': (result) => {
    const told = toldBy(result);
    for (const { entry } of starts(result.trace)) {
      if (!isEntry(entry.name)) continue;
      const inForce = told.filter(({ at }) => at <= entry.at).at(-1);
      expect(inForce).toBeDefined();
      expect(entry.at).toBeLessThanOrEqual((inForce?.deadline ?? 0) + SLACK_MILLIS);
    }
  },

  'an attempt starts only once the status has announced it': (result) => {
    for (const { entry } of starts(result.trace)) {
      if (!isEntry(entry.name)) continue;
      const announced = result.statuses.some(({ at, status }) => {
        const shown = status.deferContainerStatuses?.find(({ name }) => name === entry.name);
        return at <= entry.at && shown?.state?.waiting !== undefined && shown.restartCount === entry.attempt;
      });
      expect(announced).toBe(true);
    }
  },

  'PostExit never runs while a process of an app container lives': ({ trace }, life) => {
    const postExit = new Set(entriesOf(life).flatMap(({ name, trigger }) => (trigger === 'PostExit' ? [name] : [])));
    for (const { entry, running } of starts(trace))
      if (postExit.has(entry.name)) expect(running.filter(isApp)).toEqual([]);
  },

  'PreExit never starts after the apps were told to stop': (result, life) => {
    // For its probe an app is told to stop whatever the list does.
    if (life.pod.spec?.containers.some(({ livenessProbe, startupProbe }) => livenessProbe ?? startupProbe)) return;
    const begunAt = toldBy(result)[0]?.at ?? Number.POSITIVE_INFINITY;
    const preExit = new Set(entriesOf(life).flatMap(({ name, trigger }) => (trigger === 'PreExit' ? [name] : [])));
    for (const { entry, before } of starts(result.trace)) {
      if (!preExit.has(entry.name)) continue;
      const told = before.filter(({ at, what, name }) => what === 'signal' && at > begunAt && name.startsWith('app-'));
      expect(told).toEqual([]);
    }
  },

  'before the deadline, sidecars stop once the list has ended, in reverse order, and ephemeral containers after them': (
    result,
    life,
  ) => {
    // What runs on in a lost sandbox ends with it, and a sidecar whose postStart hook failed at once.
    const fails = [0, 1].some((attempt) => life.hook?.({ name: 'side-1', attempt, hook: 'postStart' }).failure);
    if (life.sandboxLostAt !== undefined || fails) return;
    const told = toldBy(result);
    const order = (life.pod.spec?.initContainers ?? []).map(({ name }) => name);
    const running = new Set<string>();
    for (const { at, what, name } of result.trace) {
      if (what === 'start') running.add(name);
      if (what === 'exit') running.delete(name);
      if (what !== 'signal' || !isCompanion(name)) continue;
      const inForce = told.filter((each) => each.at <= at).at(-1)?.deadline ?? 0;
      if (at >= Math.min(inForce, ...newDeadlines(result, life, at)) - SLACK_MILLIS) continue;
      const before = [...running].filter(
        (each) => isApp(each) || isEntry(each) || (isSidecar(each) && order.indexOf(each) > order.indexOf(name)),
      );
      expect(before).toEqual([]);
    }
  },

  'the deadline moves earlier by a second reason only, later by an extension only, and no further than the node allows':
    (result, life) => {
      const told = toldBy(result);
      const max = life.maxGracePeriodExtensionSeconds ?? 3600;
      const reasons = (life.deletions?.length ?? 0) + (life.nodeEnd === undefined ? 0 : 1);
      let shortened = 0;
      for (const [index, now] of told.entries()) {
        const before = told[index - 1] ?? now;
        expect(now.extendedSeconds).toBeLessThanOrEqual(max);
        expect(now.extendedSeconds).toBeGreaterThanOrEqual(before.extendedSeconds);
        if (now.deadline > before.deadline) {
          expect(now.extendedSeconds).toBeGreaterThan(before.extendedSeconds);
          expect(now.deadline - before.deadline).toBeLessThanOrEqual(
            (now.extendedSeconds - before.extendedSeconds) * 1000,
          );
        }
        if (now.deadline < before.deadline) shortened++;
      }
      expect(shortened).toBeLessThanOrEqual(reasons);
    },

  'a deleted Pod is gone within deadline + 2 s': (result, life) => {
    const { goneAt, start } = result;
    if ((life.deletions?.length ?? 0) === 0 && life.forcedAt === undefined) return;
    expect(goneAt).toBeDefined();
    const first = Math.min(...(life.deletions ?? []).map(({ at }) => start + at), Number.POSITIVE_INFINITY);
    const deadline = toldBy(result).at(-1)?.deadline ?? first + 2000;
    // Deleted after its end it goes at once. A runtime kills after whole seconds; each crash costs 50 ms, each fault a retry of up to 10 s.
    const allowance =
      500 + 8 * (life.statusMillis ?? 1) + (life.crashes?.length ?? 0) * 400 + (life.faults?.length ?? 0) * 11_000;
    // By force there are 2 s, and 2 s more where a preStop hook took them.
    const forced = forcedSince(result, life) + 4000;
    expect(goneAt).toBeLessThanOrEqual(Math.min(Math.max(deadline, first) + 2000, forced) + allowance);
  },

  'what has ended stays so, and the phase is Terminating only while an entry has not': ({ statuses }) => {
    const ended = new Map<string, string>();
    for (const { status } of statuses) {
      for (const { name, state } of status.deferContainerStatuses ?? []) {
        const end = state?.terminated === undefined ? undefined : JSON.stringify(state.terminated);
        if (ended.has(name)) expect(end).toBe(ended.get(name));
        if (end !== undefined) ended.set(name, end);
      }
      const open = status.deferContainerStatuses?.some(({ state }) => state?.terminated === undefined);
      if (status.phase === 'Terminating') expect(open).toBe(true);
    }
  },

  'an entry of which the status says Completed has run to success, and one that was Skipped has not run': (
    { statuses, trace },
    { sandboxLostAt },
  ) => {
    for (const { name, state } of statuses.at(-1)?.status.deferContainerStatuses ?? []) {
      const runs = trace.filter((each) => each.name === name && each.what === 'exit');
      if (state?.terminated?.reason === 'Completed') expect(runs.some(({ exitCode }) => exitCode === 0)).toBe(true);
      // What is killed with its sandbox is not done, nor what its probe failed for, whatever it exits with; and skipped where
      // there is no app for it any more.
      const isStopped = ({ attempt }: TraceEntry): boolean =>
        trace.some((each) => each.what === 'signal' && each.name === name && each.attempt === attempt);
      const isDone = (run: TraceEntry): boolean => run.exitCode === 0 && !isStopped(run);
      const counted = sandboxLostAt === undefined ? runs : runs.filter(isDone);
      if (state?.terminated?.reason === 'Skipped') expect(counted).toEqual([]);
    }
  },

  'nothing is asked for twice at the same time': ({ duplicates }) => {
    expect(duplicates).toEqual([]);
  },
};

describe('properties of the lives of Pods with defer containers', () => {
  let lived = 0;
  /** Which life was the first in which a property does not hold. */
  const broken = new Map<string, number>();
  const check = (name: string, ...args: Parameters<Property>): void => {
    try {
      properties[name]?.(...args);
    } catch {
      if (!broken.has(name)) broken.set(name, lived);
    }
  };
  beforeAll(async () => {
    const all = fc.asyncProperty(deferLives, async (life) => {
      const result = await live(life);
      for (const name of Object.keys(properties)) check(name, result, life);
      lived++;
    });
    await fc.assert(all, { numRuns, seed });
  }, 600_000);

  it.each(Object.entries(properties))('%s', async (name, property) => {
    expect(lived).toBe(numRuns);
    const first = broken.get(name);
    if (first === undefined) return;
    // Once more, with this property alone, to tell of the smallest life that breaks it.
    await fc.assert(
      fc.asyncProperty(deferLives, async (life) => property(await live(life), life)),
      { numRuns, seed, path: String(first) },
    );
  });

  it('a crash of the agent changes nothing in how the list ends', async () => {
    const undisturbed = deferLives.map((life): Life => {
      // Whether an app has started by the active deadline may hang on the time that a crash costs.
      const { deferContainers = [], activeDeadlineSeconds: _, ...spec } = life.pod.spec ?? { containers: [] };
      const scripts = { ...life.scripts };
      for (const { name, restartPolicy, timeoutSeconds } of deferContainers) {
        // Which attempt the crash fell into must make no difference: with Never all go alike, else the last one succeeds.
        const [first = { runMillis: 500 }, ...rest] = (scripts[name] ?? []).map((script) => ({
          runMillis: 500,
          ...script,
          // It hides that it was told to stop.
          ...{ stopMillis: 100, stopExitCode: 0 },
        }));
        // Nor what the crashes cost: it ends well before its time has passed, or well after, whatever it exits with.
        if (first.runMillis > decisiveMillis(timeoutSeconds)) first.runMillis += 10_000;
        scripts[name] = restartPolicy === 'Never' ? [first] : [first, ...rest, { runMillis: 10 }];
      }
      return {
        ...life,
        scripts,
        pod: {
          ...life.pod,
          spec: {
            ...spec,
            initContainers: (spec.initContainers ?? []).map(({ lifecycle: _hooks, ...each }) => each),
            containers: spec.containers.map(({ name, image = '', imagePullPolicy = '' }) => ({
              ...{ name, image, imagePullPolicy },
            })),
            terminationGracePeriodSeconds: 3000,
            deferContainers: deferContainers.map(({ timeoutSeconds, livenessProbe: _probe, image = '', ...entry }) => ({
              ...entry,
              // What retries cost depends on the crashes.
              ...(timeoutSeconds === undefined || entry.restartPolicy !== 'Never' ? {} : { timeoutSeconds }),
              // With OnFailure an image that cannot be had is asked for until the deadline.
              image: entry.restartPolicy === 'Never' ? image : 'busybox:1.28',
            })),
          },
        },
        ...{ faults: [], sandboxLostAt: undefined, forcedAt: undefined, nodeEnd: undefined, statusMillis: 1 },
        deletions: [{ at: 200_000, graceSeconds: 3000 }],
        cutOffStartsMillis: (life.crashes ?? []).length % 2 === 0 ? 10 : 200,
      } as Life;
    });
    const outcome = ({ statuses }: LifeResult) => {
      const { phase, conditions = [], deferContainerStatuses = [] } = statuses.at(-1)?.status ?? {};
      return {
        phase,
        deferred: conditions.find(({ type }) => type === 'Deferred')?.reason,
        entries: deferContainerStatuses.map(
          ({ state }) => `${state?.terminated?.reason} ${state?.terminated?.exitCode}`,
        ),
      };
    };
    await fc.assert(
      fc.asyncProperty(undisturbed, async (life) => {
        const [crashed, whole] = [await live(life), await live({ ...life, crashes: [] })];
        expect(outcome(crashed)).toEqual(outcome(whole));
      }),
      { numRuns: Math.ceil(numRuns / 10), seed },
    );
  });
});
