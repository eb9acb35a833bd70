/**
 * Properties of the lives of Pods without defer containers, over the random lives of random-lives.ts. LIFEPOD_RUNS sets the number of lives
 * for each property (default: 500; the last property uses a fifth of it), LIFEPOD_SEED repeats a run; the seed is printed.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TraceEntry } from '../runtime/simulated/simulated-runtime.ts';
import { LATENCY_MILLIS, type Life, type LifeResult, live } from './pod-life.ts';
import { holdProperties, type Property } from './property-runs.ts';
import { forcedSince, lives, stopping } from './random-lives.ts';

const numRuns = Number(process.env['LIFEPOD_RUNS'] ?? 500);
const seed = Number(process.env['LIFEPOD_SEED']);
console.log(`pod-life properties: seed ${seed}, ${numRuns} cases each (LIFEPOD_SEED and LIFEPOD_RUNS set them)`);

const initNames = (life: Life): string[] =>
  (life.pod.spec?.initContainers ?? []).filter((each) => each.restartPolicy !== 'Always').map(({ name }) => name);
const appNames = (life: Life): string[] => (life.pod.spec?.containers ?? []).map(({ name }) => name);
const endsOf = (trace: TraceEntry[], name: string, sandboxId: string): TraceEntry[] =>
  trace.filter((each) => each.what === 'exit' && each.name === name && each.sandboxId === sandboxId);

/** How long containers, probes and hooks may still start after the cause of a termination: actions take effect late, and agents restart. */
const SLACK_MILLIS = 20 * LATENCY_MILLIS;

const properties: Readonly<Record<string, Property>> = {
  'init container i+1, and every app, starts only after i has succeeded in the same sandbox': ({ trace }, life) => {
    const init = initNames(life);
    for (const [position, entry] of trace.entries()) {
      if (entry.what !== 'start') continue;
      const own = init.indexOf(entry.name);
      const before = own >= 0 ? init.slice(0, own) : appNames(life).includes(entry.name) ? init : [];
      for (const earlier of before) {
        const ends = endsOf(trace.slice(0, position), earlier, entry.sandboxId);
        expect(ends.some(({ exitCode }) => exitCode === 0)).toBe(true);
      }
    }
  },

  'a container that has succeeded in its sandbox as an init container never runs there again': ({ trace }, life) => {
    for (const name of initNames(life))
      for (const [position, entry] of trace.entries())
        if (entry.what === 'start' && entry.name === name)
          expect(endsOf(trace.slice(0, position), name, entry.sandboxId).every(({ exitCode }) => exitCode !== 0)).toBe(
            true,
          );
  },

  'a container never has two live runs, and no attempt runs twice': ({ trace }) => {
    const liveRuns = new Set<string>();
    const seen = new Set<string>();
    for (const { what, name, attempt } of trace) {
      if (what === 'start') {
        expect(liveRuns.has(name)).toBe(false);
        expect(seen.has(`${name}#${attempt}`)).toBe(false);
        liveRuns.add(name);
        seen.add(`${name}#${attempt}`);
      } else if (what === 'exit') liveRuns.delete(name);
    }
  },

  'no container starts once the Pod terminates': ({ trace, start, statuses }, life) => {
    const finished = statuses.find(({ status }) => status.phase === 'Failed' || status.phase === 'Succeeded')?.at;
    const ends = [
      ...(life.deletions ?? []).map(({ at }) => start + at),
      ...(life.forcedAt === undefined ? [] : [start + life.forcedAt]),
      ...(finished === undefined ? [] : [finished]),
    ];
    const last = Math.min(...ends) + SLACK_MILLIS;
    for (const entry of trace) if (entry.what === 'start') expect(entry.at).toBeLessThanOrEqual(last);
  },

  'a deleted Pod is removed soon after its deadline, in spite of crashes and faults': (result, life) => {
    const { goneAt, start } = result;
    const bounds = (life.deletions ?? []).map(({ at, graceSeconds }) => start + at + Math.max(2, graceSeconds) * 1000);
    if (life.forcedAt !== undefined) bounds.push(forcedSince(result, life) + 2000);
    if (bounds.length === 0) return;
    // A crash costs 50 ms and the time since the last sign of life, up to 10 s. A fault costs a retry after up to 10 s. The rounding of
    // times costs up to 2 s.
    const allowance = 3000 + (life.crashes?.length ?? 0) * 12_000 + (life.faults?.length ?? 0) * 11_000;
    expect(goneAt).toBeDefined();
    expect(goneAt).toBeLessThanOrEqual(Math.min(...bounds) + allowance);
  },

  'no probe runs before its container has started, and no liveness or startup probe once the Pod terminates': (
    { probes, trace, start },
    life,
  ) => {
    const ends = [
      ...(life.deletions ?? []).map(({ at }) => at),
      ...(life.forcedAt === undefined ? [] : [life.forcedAt]),
    ];
    for (const { at, container, probe: kind } of probes) {
      expect(trace.some((each) => each.what === 'start' && each.name === container && each.at <= at)).toBe(true);
      if (kind !== 'readiness') expect(at).toBeLessThanOrEqual(start + Math.min(...ends) + SLACK_MILLIS);
    }
  },

  'no action is requested twice at the same time': ({ duplicates }) => {
    expect(duplicates).toEqual([]);
  },
};

const withoutCrashes: Readonly<Record<string, Property>> = {
  'a deadline only moves earlier while one agent lives': ({ actions }) => {
    const deadlines = new Map<string, number>();
    for (const { action } of actions) {
      if (action.kind !== 'stopContainer') continue;
      expect(action.deadline).toBeLessThanOrEqual(deadlines.get(action.id) ?? Number.POSITIVE_INFINITY);
      deadlines.set(action.id, action.deadline);
    }
  },
};

const undisturbed: Readonly<Record<string, Property>> = {
  'a preStop hook begins only while its container runs, and no stop signal comes before it has ended or the deadline': (
    { hooks, trace },
    life,
  ) => {
    for (const { at, container, hook: kind } of hooks) {
      if (kind !== 'preStop') continue;
      const before = trace.filter((each) => each.name === container && each.at <= at);
      expect(before.some(({ what }) => what === 'start')).toBe(true);
      const last = before.findLast(({ what }) => what === 'start' || what === 'exit');
      // The container may have ended just before the hook: the agent had not observed the end yet.
      if (last?.what !== 'start') expect(last?.at).toBeGreaterThan(at - 4 * LATENCY_MILLIS);
      expect(before.at(-1)?.what).not.toBe('signal');
    }
    expect(life.faults).toEqual([]);
  },

  'once the Pod terminates, every preStop hook begins immediately': ({ hooks, start }, life) => {
    const ends = (life.deletions ?? []).map(({ at }) => at);
    const last = start + Math.min(...ends, life.forcedAt ?? Number.POSITIVE_INFINITY) + SLACK_MILLIS;
    for (const { at, hook: kind } of hooks) if (kind === 'preStop') expect(at).toBeLessThanOrEqual(last);
  },
};

describe('properties of every life', () => {
  describe('with crashes and faults', () => holdProperties(properties, lives, { numRuns, seed }));

  describe('without crashes', () => {
    const arbitrary = lives.map((life) => ({ ...life, crashes: [] }));
    holdProperties(withoutCrashes, arbitrary, { numRuns, seed });
  });

  describe('without crashes and faults', () => {
    const arbitrary = lives.map((life) => ({ ...life, faults: [], crashes: [] }));
    holdProperties(undisturbed, arbitrary, { numRuns, seed });
  });

  it('crashes do not change how a Pod that completes on its own ends', () =>
    fc.assert(
      fc.asyncProperty(lives, async (life) => {
        const undisturbedLife: Life = {
          ...life,
          deletions: [],
          forcedAt: undefined,
          sandboxLostAt: undefined,
          faults: [],
          pod: {
            ...life.pod,
            spec: {
              ...life.pod.spec,
              activeDeadlineSeconds: undefined,
              // Hooks and probes are omitted, because their results depend on the time that a crash costs.
              initContainers: (life.pod.spec?.initContainers ?? []).map(({ lifecycle: _hooks, ...each }) => each),
              containers: (life.pod.spec?.containers ?? []).map(({ name, image, imagePullPolicy }) => ({
                name,
                image,
                imagePullPolicy,
              })),
            },
          },
        };
        const [crashed, whole] = await Promise.all([live(undisturbedLife), live({ ...undisturbedLife, crashes: [] })]);
        const outcome = ({ trace, pod }: LifeResult, names: string[]) => ({
          phase: pod.status?.phase,
          exits: trace
            .filter(({ what, name }) => what === 'exit' && names.includes(name))
            .map(({ name, attempt, exitCode }) => `${name}#${attempt}=${exitCode}`)
            .sort(),
        });
        const policy = life.pod.spec?.restartPolicy;
        // The exits of a Pod that restarts its containers depend on the time that crashes cost, so only its phase is compared.
        const names = policy === 'Never' ? [...initNames(life), ...appNames(life)] : [];
        expect(outcome(crashed, names)).toEqual(outcome(whole, names));
      }),
      { numRuns, seed },
    ));

  it('crashes do not change what follows the stop of a container whose Pod continues', () =>
    fc.assert(
      fc.asyncProperty(stopping, async (life) => {
        const [crashed, whole] = await Promise.all([live(life), live({ ...life, crashes: [] })]);
        const outcome = ({ trace, pod }: LifeResult) => ({
          phase: pod.status?.phase,
          exits: trace.flatMap(({ what, name, attempt, exitCode }) =>
            what === 'exit' && name === 'app' ? `#${attempt}=${exitCode}` : [],
          ),
        });
        expect(outcome(crashed)).toEqual(outcome(whole));
      }),
      { numRuns: Math.ceil(numRuns / 5), seed },
    ));
});
