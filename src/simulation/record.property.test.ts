/**
 * Properties of the PodRecord, the stored list of the steps of a Pod's life, over the random lives of random-lives.ts and defer-lives.ts,
 * but without their losses of containers and container records. LIFEPOD_RUNS sets the number of lives for each property (default: 300),
 * LIFEPOD_SEED repeats a run; the seed is printed.
 */
import type fc from 'fast-check';
import { describe, expect } from 'vitest';
import type { Transition } from '../lifecycle/types.ts';
import { createRecordedSteps } from '../node/record/recorded-steps.ts';
import { deferLives } from './defer-lives.ts';
import { LATENCY_MILLIS, type Life, type LifeResult } from './pod-life.ts';
import { holdProperties, type Property } from './property-runs.ts';
import { lives } from './random-lives.ts';

const numRuns = Number(process.env['LIFEPOD_RUNS'] ?? 300);
const seed = Number(process.env['LIFEPOD_SEED']);
console.log(`record properties: seed ${seed}, ${numRuns} cases each (LIFEPOD_SEED and LIFEPOD_RUNS set them)`);

/** A decision that an agent made less than this time before its death may be missing in the record. */
const UNWRITTEN_MILLIS = 100;

/** The time that an agent may take to observe a step, except the time of outages. */
const UNSEEN_MILLIS = 15_000;

/**
 * Returns the time until which the record must have every step of a Pod that still exists at the end. Later steps may be missing: the last
 * agent may have died shortly before the end, or an outage may have lasted until the end.
 */
function seenUntil({ now, absences }: LifeResult, { outages = [] }: Life): number {
  const needed = outages.reduce((sum, { millis }) => sum + millis, UNSEEN_MILLIS);
  return absences.reduceRight(
    (until, { from, to }) => (to > until ? Math.min(until, from - UNWRITTEN_MILLIS) : until),
    now - needed,
  );
}

interface Recorded {
  result: LifeResult;
  /** The record as stored: each key once, in chronological order. */
  record: Transition[];
  life: Life;
}

function hold(properties: Readonly<Record<string, (recorded: Recorded) => void>>, arbitrary: fc.Arbitrary<Life>): void {
  const ofRecords = Object.entries(properties).map(([name, property]): [string, Property] => [
    name,
    (result, life) => {
      const record = createRecordedSteps()
        .fresh(result.transitions)
        .sort((a, b) => a.at - b.at);
      property({ result, record, life });
    },
  ]);
  // Runs whose records the runtime loses before an agent has observed them cannot be recorded.
  const observed = arbitrary.map((life) => ({ ...life, initRecordsLostAt: undefined, losses: [] }));
  holdProperties(Object.fromEntries(ofRecords), observed, { numRuns, seed });
}

/** Writes of the record take longer than a runtime call. Steps not written when the agent crashes are lost. */
const written = (arbitrary: fc.Arbitrary<Life>): fc.Arbitrary<Life> =>
  arbitrary.map((life) => ({ ...life, recordMillis: 3 * LATENCY_MILLIS }));

/** Whether the object was removed while no agent ran or just before one died. The record may then not show why the Pod ended. */
const endsUnseen = ({ absences, start }: LifeResult, { forcedAt }: Life): boolean =>
  forcedAt !== undefined &&
  absences.some(({ from, to }) => start + forcedAt <= to && start + forcedAt >= from - UNWRITTEN_MILLIS);

/**
 * Whether, in a life with a forced deletion, an agent died after the last change in the runtime, apart from calls that the agent had sent.
 * The agent may have died before it wrote the last steps. The next agent does not adopt the Pod, but may complete the record
 * (src/node/record/close-records.ts).
 */
const endsUnwritten = ({ absences, trace }: LifeResult, { forcedAt }: Life): boolean =>
  forcedAt !== undefined && absences.some(({ from }) => !trace.some(({ at }) => at > from + LATENCY_MILLIS));

const TYPES = { start: 'Started', exit: 'Exited', sandbox: 'SandboxReady' } as const;

const lineOf = (type: string, name: string, attempt: number | undefined, exitCode: number | undefined, at: number) =>
  `${type} ${name}#${attempt} ${exitCode ?? ''} at ${at}`;

const stepsOfTrace = (result: LifeResult, life: Life): string[] => {
  const until = result.goneAt === undefined ? seenUntil(result, life) : Number.POSITIVE_INFINITY;
  return result.trace.flatMap(({ what, name, attempt, exitCode, at }) =>
    (what === 'start' || what === 'exit' || what === 'sandbox') && at < until
      ? [lineOf(TYPES[what], name, attempt, exitCode, at)]
      : [],
  );
};

const stepsOfRecord = (record: Transition[]): string[] =>
  record
    .filter(({ type }) => (Object.values(TYPES) as string[]).includes(type))
    .map(({ type, container = '', attempt, exitCode, at }) => lineOf(type, container, attempt, exitCode, at));

/** Properties of the records of lives without defer containers. */
const ofEveryLife: Readonly<Record<string, (recorded: Recorded) => void>> = {
  'the record has each sandbox, start and exit of the runtime once, at its time, with its exit code': ({
    result,
    record,
    life,
  }) => {
    const recorded = stepsOfRecord(record);
    expect(new Set(recorded).size).toBe(recorded.length);
    expect(recorded).toEqual(expect.arrayContaining(stepsOfTrace(result, life)));
    const happened = new Set(result.trace.map(({ at }) => at));
    for (const { type, at } of record) if (type === 'Started' || type === 'Exited') expect(happened).toContain(at);
  },

  'the record has the order of the runtime': ({ result, record, life }) => {
    const order = stepsOfTrace(result, life);
    const recorded = stepsOfRecord(record).filter((line) => order.includes(line));
    const timeOf = (line: string): number => Number(line.split(' at ')[1]);
    // Steps with the same time may be in any order.
    expect(recorded.map(timeOf)).toEqual(order.map(timeOf));
    expect([...recorded].sort()).toEqual([...order].sort());
  },

  'the record has each termination once: its beginning, its deadlines and its end': ({ result, record, life }) => {
    const count = (type: string): number => record.filter((each) => each.type === type).length;
    expect(count('TerminationBegan')).toBeLessThanOrEqual(1);
    if (result.goneAt === undefined) return;
    if (record.length === 0) return expect(endsUnseen(result, life)).toBe(true);
    expect(count('Removed')).toBe(1);
    expect(count('Gone')).toBe(result.removedAt === undefined ? 0 : 1);
    const began = record.find(({ type }) => type === 'TerminationBegan');
    if (!endsUnseen(result, life)) expect(began).toBeDefined();
    // Lives with crashes are exempt, because the outage after a crash moves the deadline later.
    if (life.crashes?.length === 0) {
      const deadlines = record.filter(({ type }) => type === 'DeadlineSet').map(({ deadline }) => deadline ?? 0);
      expect(deadlines).toEqual([...deadlines].sort((a, b) => b - a));
      if (deadlines.length > 0) expect(deadlines[0]).toBe(began?.deadline);
    }
    for (const { type, container, attempt, at } of record)
      if (type === 'StopSignal')
        expect(
          record.some((e) => e.type === 'Started' && e.container === container && e.attempt === attempt && e.at <= at),
        ).toBe(true);
  },

  'the record has only changes of probe results, and the beginning of each hook before its end': ({
    result,
    record,
  }) => {
    const state = new Map<string, string>();
    const begun = new Set<string>();
    for (const { type, reason, container, attempt } of record) {
      const about = `${container}#${attempt}/${reason}`;
      if (type === 'ProbePassing' || type === 'ProbeFailing') {
        expect(state.get(about)).not.toBe(type);
        state.set(about, type);
        expect(result.probes.some((each) => each.container === container && each.probe === reason)).toBe(true);
      }
      if (type === 'HookBegan') begun.add(about);
      if (type === 'HookDone' || type === 'HookFailed') expect(begun).toContain(about);
    }
    for (const { container, hook } of result.hooks)
      expect([...begun].some((about) => about.startsWith(`${container}#`) && about.endsWith(`/${hook}`))).toBe(true);
  },
};

const withoutCrashes: Readonly<Record<string, (recorded: Recorded) => void>> = {
  'one agent reports no step of the record twice': ({ result }) => {
    const keys = result.transitions.map(({ key }) => key);
    expect(new Set(keys).size).toBe(keys.length);
  },
};

const withDeferContainers: Readonly<Record<string, (recorded: Recorded) => void>> = {
  'the record of a Pod with defer containers has each sandbox, start and exit once, at its time': ({
    result,
    record,
    life,
  }) => {
    const recorded = stepsOfRecord(record);
    expect(new Set(recorded).size).toBe(recorded.length);
    const order = stepsOfTrace(result, life);
    expect([...recorded].filter((line) => order.includes(line)).sort()).toEqual([...order].sort());
  },

  'the record has the beginning of each entry before its end or skip, and each once': ({ result, record, life }) => {
    for (const { name } of life.pod.spec?.deferContainers ?? []) {
      const own = record.filter(({ container }) => container === name);
      const of = (type: string): number[] => own.flatMap((step, index) => (step.type === type ? [index] : []));
      expect(own.every(({ containerKind }) => containerKind === 'defer')).toBe(true);
      const ends = [...of('DeferEnded'), ...of('DeferSkipped')];
      expect(ends.length).toBeLessThanOrEqual(1);
      expect(of('DeferBegan').length).toBeLessThanOrEqual(1);
      if (of('Started').length > 0) expect(of('DeferBegan')[0]).toBeLessThan(of('Started')[0] ?? 0);
      const began = record.findIndex(({ type }) => type === 'TerminationBegan');
      for (const end of of('DeferEnded')) {
        expect(of('DeferBegan')[0] ?? -1).toBeLessThan(end);
        expect(began).toBeLessThan(record.indexOf(own[end] as Transition));
      }
      // Lives with crashes, faults or slow starts are exempt: their starts may take effect after the entry's end.
      if (life.crashes?.length === 0 && life.faults?.length === 0 && (life.startMillis ?? 0) <= LATENCY_MILLIS)
        for (const end of of('DeferEnded')) expect(Math.max(...of('Exited'), -1)).toBeLessThan(end);
      const status = result.pod.status?.deferContainerStatuses?.find((each) => each.name === name);
      if (status?.state?.terminated !== undefined && result.removedAt === undefined) expect(ends).toHaveLength(1);
    }
  },

  'the record has each deadline that the status showed': ({ result, record, life }) => {
    const deadlines = record.filter(({ type }) => type === 'DeadlineSet').map(({ deadline }) => deadline);
    const until = seenUntil({ ...result, now: result.removedAt ?? result.now }, life);
    for (const { at, status } of result.statuses)
      if (status.termination !== undefined && status.phase === 'Terminating' && at < until)
        expect(deadlines).toContain(Date.parse(status.termination.deadline));
  },
};

const isComplete = ({ result, record, life }: Recorded) => {
  const recorded = stepsOfRecord(record);
  expect(new Set(recorded).size).toBe(recorded.length);
  expect(recorded).toEqual(expect.arrayContaining(stepsOfTrace(result, life)));
  // After a delete with a grace period of 0, the record may lack the last steps: the agent does not request the final deletion, which would
  // wait until the record is written.
  const isForced = life.deletions?.some(({ graceSeconds }) => graceSeconds === 0);
  if (result.goneAt === undefined || isForced) return;
  // The record may be empty only if the Pod ended unseen: an agent that starts after the removal finds the Pod only through containers or
  // steps that are left of it.
  if (record.length === 0) return expect(endsUnseen(result, life)).toBe(true);
  const began = record.filter((step) => step.type === 'TerminationBegan');
  if (!endsUnseen(result, life)) expect(began).toHaveLength(1);
  const removals = record.filter((step) => step.type === 'Removed');
  if (removals.length > 0 || !endsUnwritten(result, life)) expect(removals).toHaveLength(1);
  for (const { name, state } of result.pod.status?.deferContainerStatuses ?? [])
    if (state?.terminated !== undefined && result.removedAt === undefined)
      expect(record.filter((step) => step.container === name && /^Defer(Ended|Skipped)$/.test(step.type))).toHaveLength(
        1,
      );
};

describe('the record of every life', () => {
  describe('with any misfortunes', () => hold(ofEveryLife, lives));

  describe('without crashes', () => {
    hold(
      withoutCrashes,
      lives.map((life) => ({ ...life, crashes: [] })),
    );
  });

  describe('with slow writes', () => {
    hold(
      { 'the record is complete even if its writes take time, for lives without defer containers': isComplete },
      written(lives),
    );
  });

  describe('with defer containers and slow writes', () => {
    hold(
      { 'the record is complete even if its writes take time, for lives with defer containers': isComplete },
      written(deferLives),
    );
  });

  describe('with defer containers', () => hold(withDeferContainers, deferLives));
});
