/**
 * Checks properties of the random lives of defer-lives.ts, whose Pods have defer containers (entries): deadlines and other times, the
 * number of runtime calls, and whether each entry gets its turn. LIFEPOD_DEFER_RUNS and LIFEPOD_SEED: see defer.property.test.ts.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DeferContainer } from '../api/generated/types.ts';
import {
  causesOf,
  entriesOf,
  graceMillisOf,
  isApp,
  isPostExit,
  lastExitBefore,
  leastReserve,
  losesSomething,
  OWN_ENDS,
  outageMillis,
  RETRY_MILLIS,
  reserveMillis,
  type ShownTermination,
  SLACK_MILLIS,
  shownTerminations,
  slackOf,
} from './defer-facts.ts';
import { deferLives } from './defer-lives.ts';
import { outage } from './misfortunes.ts';
import { type Life, type LifeResult, live } from './pod-life.ts';
import { holdProperties, limitMillisOf, type Property } from './property-runs.ts';
import { forcedSince } from './random-lives.ts';
import { SIGN_OF_LIFE_MILLIS } from './simulated-agent.ts';

const numRuns = Number(process.env['LIFEPOD_DEFER_RUNS'] ?? 400);
const seed = Number(process.env['LIFEPOD_SEED']);
const limitMillis = limitMillisOf(numRuns);
console.log(`defer properties of time: seed ${seed}, ${numRuns} lives (LIFEPOD_SEED and LIFEPOD_DEFER_RUNS set them)`);

/** Returns, for each PostExit entry, the first termination in the statuses that shows the entry's turn. */
const postExitTurns = (result: LifeResult, life: Life): ShownTermination[] => {
  const seen = new Set<string>();
  return shownTerminations(result).filter(({ turn }) => {
    if (turn === undefined || !isPostExit(life, turn.entry) || seen.has(turn.entry)) return false;
    seen.add(turn.entry);
    return true;
  });
};

/** By a part of the message of a Skipped entry: whether the reason in the message holds. */
const EXCUSES: Readonly<Record<string, (skipped: Skipped) => boolean>> = {
  'not due on': ({ entry, reason }) => entry.onReasons?.includes(reason) === false,
  'given up': ({ entry, life }) => life.skips?.some((skip) => skip.entry === entry.name) === true,
  'the grace period had passed': (skipped) => hadPassed(skipped, skipped.shown.deadline),
  'the PreExit stage had ended': (skipped) =>
    !isPostExit(skipped.life, skipped.entry.name) && hadPassed(skipped, skipped.shown.preExitDeadline),
  'the node had no time': ({ life }) => life.nodeEnd?.by.graceSeconds === 0,
  // A start whose record may be lost and that no status showed is ignored: possibly no agent knows of it.
  'no container of the Pod had started': ({ life, result }) =>
    !result.trace.some(isStartOf(isApp)) || (losesSomething(life) && !result.statuses.some(showsAStart)),
  'no app container had started': ({ entry, life, result }) =>
    !isPostExit(life, entry.name) &&
    (losesSomething(life) || !result.trace.some(isStartOf((name) => name.startsWith('app-')))),
  'the sandbox was lost': ({ entry, life }) => !isPostExit(life, entry.name) && losesSomething(life),
  // The last exit of an app container that was to run again does not count, even with exit code 0.
  'the app containers did not succeed': (skipped) =>
    skipped.entry.when === 'Succeeded' && (losesSomething(skipped.life) || !didWell(skipped) || wasToRunAgain(skipped)),
  'the app containers did not fail': (skipped) =>
    skipped.entry.when === 'Failed' && (losesSomething(skipped.life) || didWell(skipped)),
  'the Pod was deleted with a grace period of 0': ({ life }) =>
    life.deletions?.some(({ graceSeconds }) => graceSeconds === 0) === true,
};

interface Skipped {
  entry: DeferContainer;
  reason: string;
  /** The termination in the first status that showed the end of the entry. */
  shown: ShownTermination;
  at: number;
  life: Life;
  result: LifeResult;
}

/**
 * Whether the deadline had passed when the entry was ended: when the status showed the end, or when an agent died that may have written the
 * end to its journal. Subtracts the time by which later outages moved the deadline.
 */
const hadPassed = ({ at, result: { absences } }: Skipped, deadline: number): boolean => {
  const earlier = absences.filter(({ to }) => to <= at);
  return [at, ...earlier.map(({ from }) => from)].some((decided) => {
    const since = earlier.filter(({ from }) => from >= decided);
    // An outage counts from the previous agent's last sign of life, so it may begin up to SIGN_OF_LIFE_MILLIS before that agent's death.
    const moved = since.reduce((sum, { from, to }) => sum + to - from + SIGN_OF_LIFE_MILLIS, 0);
    return decided >= deadline - moved - SLACK_MILLIS;
  });
};

const isStartOf =
  (is: (name: string) => boolean) =>
  ({ what, name }: { what: string; name: string }): boolean =>
    what === 'start' && is(name);

/** Whether every app container had last exited with 0 when the status showed the end of the entry. */
const didWell = ({ life, result, at }: Skipped): boolean =>
  (life.pod.spec?.containers ?? []).every(({ name }) => lastExitOf(result, name, at)?.exitCode === 0);

/**
 * Whether an agent had requested to start an app container again when the status showed the end of the entry. The start may have failed.
 */
const wasToRunAgain = ({ life, result, at }: Skipped): boolean =>
  (life.pod.spec?.containers ?? []).some(({ name }) => {
    const ended = lastExitOf(result, name, at)?.at ?? 0;
    return result.actions.some(
      ({ action, at: asked }) =>
        action.kind === 'startContainer' && action.container === name && asked >= ended && asked <= at,
    );
  });

const lastExitOf = ({ trace }: LifeResult, name: string, until: number) =>
  trace.findLast((each) => each.what === 'exit' && each.name === name && each.at <= until);

const showsAStart = ({ status }: LifeResult['statuses'][number]): boolean =>
  [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])].some(({ state, lastState }) =>
    [state?.running, state?.terminated, lastState?.terminated].some((shown) => shown?.startedAt !== undefined),
  );

const properties: Record<string, Property> = {
  'every entry of a terminated Pod that was not deleted by force gets its turn, or is Skipped for a reason that holds':
    (result, life) => {
      if (life.forcedAt !== undefined) return;
      const terminations = shownTerminations(result);
      const end = result.statuses.at(-1)?.status;
      // The property does not apply if no termination began, or if the simulation ended before the Pod did.
      if (end?.termination === undefined || (result.goneAt === undefined && !/Succeeded|Failed/.test(end.phase ?? '')))
        return;
      for (const entry of entriesOf(life)) {
        const ended = end.deferContainerStatuses?.find(({ name }) => name === entry.name)?.state?.terminated;
        // After a deletion with a grace period of 0, the object may be removed before an agent writes the end.
        if (ended === undefined && life.deletions?.some(({ graceSeconds }) => graceSeconds === 0)) continue;
        expect(ended, entry.name).toBeDefined();
        if (ended?.reason !== 'Skipped') continue;
        const first = result.statuses.find(({ status }) =>
          status.deferContainerStatuses?.some(
            ({ name, state }) => name === entry.name && state?.terminated !== undefined,
          ),
        );
        const shown = terminations.find(({ at }) => at === first?.at) as ShownTermination;
        const skipped = { entry, reason: shown.reason, shown, at: shown.at, life, result };
        const excuse = Object.keys(EXCUSES).find((text) => ended.message?.includes(text));
        expect(excuse, `${entry.name} was Skipped: ${ended.message}`).toBeDefined();
        expect(EXCUSES[excuse as string]?.(skipped), `${entry.name} was Skipped: ${ended.message}`).toBe(true);
      }
    },

  'only PostExit entries use the reserve': (result, life) => {
    const [first] = shownTerminations(result);
    const [turn] = postExitTurns(result, life);
    // The property does not apply without a PostExit entry's turn, nor to a forced deletion, after which no entry runs.
    if (first === undefined || turn?.turn === undefined || life.forcedAt !== undefined) return;
    // The property does not apply if outages reach the node's limit: the part of an outage beyond the limit does not move the deadline of a
    // stage that had begun, so it shortens the reserve.
    if (turn.outageSeconds >= (life.maxGracePeriodExtensionSeconds ?? 3600)) return;
    const whole = reserveMillis(life, first.reason, graceMillisOf(life, first.reason));
    // A later cause of the termination may shorten the reserve in proportion to the remaining time, down to its minimum.
    const laterCauses = causesOf(life) - (OWN_ENDS.has(first.reason) ? 0 : 1);
    const reserve = laterCauses > 0 ? leastReserve(whole) : whole;
    // The end of the apps is observed, and written to the status, before the turn begins. Each fault may delay this by RETRY_MILLIS.
    const slack =
      (5 + entriesOf(life).length) * SLACK_MILLIS +
      4 * (life.statusMillis ?? 1) +
      (life.faults?.length ?? 0) * RETRY_MILLIS;
    // The reserve counts from the time at which the stage could begin. A PreExit entry in back-off does not delay that time.
    const { since } = turn.turn;
    const couldBegin = Math.max(lastExitBefore(result, life, turn.at) ?? since, first.startedAt);
    if (reserve > 0) expect(turn.deadline - Math.min(since, couldBegin)).toBeGreaterThanOrEqual(reserve - slack);
  },

  'every container has 2 s between its stop signal and its kill': ({ trace }) => {
    for (const exit of trace) {
      if (exit.what !== 'exit' || exit.cause !== 'kill') continue;
      const signal = trace.find(
        (each) => each.what === 'signal' && each.name === exit.name && each.attempt === exit.attempt,
      );
      expect(signal, `${exit.name} was killed without a signal`).toBeDefined();
      expect(exit.at - (signal?.at ?? 0), `${exit.name} between signal and kill`).toBeGreaterThanOrEqual(1990);
    }
  },

  'only an extension, an outage or the start of the PostExit stage moves a deadline later, only a later cause earlier':
    (result, life) => {
      const terminations = shownTerminations(result);
      const max = life.maxGracePeriodExtensionSeconds ?? 3600;
      const [first] = terminations;
      let shortened = 0;
      let begun = 0;
      for (const [index, now] of terminations.entries()) {
        const before = terminations[index - 1] ?? now;
        const [extended, moved] = [
          now.extendedSeconds - before.extendedSeconds,
          now.outageSeconds - before.outageSeconds,
        ];
        expect(now.extendedSeconds).toBeLessThanOrEqual(max);
        expect(now.outageSeconds).toBeLessThanOrEqual(max);
        expect(Math.min(extended, moved)).toBeGreaterThanOrEqual(0);
        const allowed = (extended + moved) * 1000 + 1;
        // A preExitDeadline that has passed may still change, so only the times after this write are compared.
        const [ends, ended] = [now, before].map((each) => Math.max(each.preExitDeadline, now.at)) as [number, number];
        expect(ends - ended).toBeLessThanOrEqual(allowed);
        if (now.deadline - before.deadline > allowed) {
          begun++;
          const reserve = reserveMillis(life, now.reason, (first?.deadline ?? 0) - (first?.startedAt ?? 0));
          // The reserve counts from the last exit or, if nothing exited or something may be lost, from this write. It does not count from
          // before the start of the termination or the end of an outage.
          const exitedAt = losesSomething(life) ? now.at : (lastExitBefore(result, life, now.at) ?? now.at);
          const from = Math.max(exitedAt, now.startedAt, now.outagesCountedUntil);
          expect(now.deadline).toBeLessThanOrEqual(from + reserve + allowed + SLACK_MILLIS);
        }
        if (now.deadline < before.deadline - 1) shortened++;
      }
      expect(begun).toBeLessThanOrEqual(1 + (losesSomething(life) ? 1 : 0));
      expect(shortened).toBeLessThanOrEqual(causesOf(life));
    },

  'a deleted Pod is removed within 4 s of its deadline': (result, life) => {
    const { goneAt, start } = result;
    if ((life.deletions?.length ?? 0) === 0 && life.forcedAt === undefined) return;
    expect(goneAt).toBeDefined();
    const first = Math.min(...(life.deletions ?? []).map(({ at }) => start + at), Number.POSITIVE_INFINITY);
    const deadline = shownTerminations(result).at(-1)?.deadline ?? first + 2000;
    // Each crash may delay the removal by 10 s, because the outage counts from the agent's last sign of life, and by 2 s more, because the
    // next agent gives signaled containers at least 2 s. Each other disturbance may delay it by one retry.
    const disturbances = (life.faults?.length ?? 0) + (life.outages?.length ?? 0) + (life.losses?.length ?? 0);
    const allowance =
      500 +
      8 * (life.statusMillis ?? 1) +
      slackOf(life) +
      (life.crashes?.length ?? 0) * 12_500 +
      disturbances * RETRY_MILLIS +
      outageMillis(life, result);
    // A forced deletion leaves the containers 2 s, and 2 s more if a preStop hook used these.
    const forced = forcedSince(result, life) + 4000;
    expect(goneAt).toBeLessThanOrEqual(Math.min(Math.max(deadline, first) + 4000, forced) + allowance);
  },

  'the number of runtime calls per minute is bounded by the changes': (
    { calls, trace, statuses, probes, hooks, start, now },
    life,
  ) => {
    const MINUTE = 60_000;
    const during = (from: number, all: readonly { at: number }[]): number =>
      all.filter(({ at }) => at >= from && at < from + MINUTE).length;
    for (let from = start; from < now; from += MINUTE) {
      const changes = [trace, statuses, probes, hooks].reduce((sum, all) => sum + during(from, all), 0);
      const causes = (life.edits?.length ?? 0) + causesOf(life) + (life.crashes?.length ?? 0);
      // If nothing changes, an agent calls the runtime only to repeat failed observations, at most once a second, and failed actions.
      expect(during(from, calls), `calls from ${from - start} ms on`).toBeLessThanOrEqual(150 + 8 * (changes + causes));
    }
  },
};

/** Lives without disturbances, whose outcome does not depend on the time that disturbances cost. The test adds the disturbances. */
const steady = deferLives.map((life): Life => {
  const { deferContainers = [], activeDeadlineSeconds: _, ...spec } = life.pod.spec ?? { containers: [] };
  const plain = <T extends { name: string; image?: string; imagePullPolicy?: string }>({
    name,
    image,
    imagePullPolicy,
  }: T) => ({ name, image: image ?? '', imagePullPolicy: imagePullPolicy ?? '' });
  return {
    ...life,
    scripts: {
      ...life.scripts,
      ...Object.fromEntries(spec.containers.map(({ name }) => [name, [{ stopMillis: 100 }]])),
      ...Object.fromEntries(deferContainers.map(({ name }) => [name, [{ runMillis: 500 }]])),
    },
    pod: {
      ...life.pod,
      spec: {
        ...spec,
        terminationGracePeriodSeconds: 60,
        postExitGracePeriodSeconds: 30,
        initContainers: (spec.initContainers ?? []).map(({ lifecycle: _hooks, ...each }) => each),
        containers: spec.containers.map(plain),
        deferContainers: deferContainers.map(
          ({ livenessProbe: _probe, timeoutSeconds: _seconds, imageFrom: _from, ...entry }) => ({
            ...entry,
            image: 'busybox:1.28',
          }),
        ),
      },
    },
    crashes: [],
    outages: [],
    losses: [],
    skips: [],
    faults: [],
    startMillis: undefined,
    sandboxLostAt: undefined,
    initRecordsLostAt: undefined,
    forcedAt: undefined,
    nodeEnd: undefined,
    statusMillis: 1,
    maxGracePeriodExtensionSeconds: 3600,
    deletions: [{ at: 200_000, graceSeconds: 60 }],
    limitMillis: 1_200_000,
  } as Life;
});

const disturbance = fc.record({
  agent: fc.boolean(),
  runtime: fc.boolean(),
  /** The index of the disturbed action among the actions from the deletion on, modulo their number. */
  position: fc.nat({ max: 30 }),
  asked: fc.boolean(),
  agentMillis: fc.constantFrom(50, 5_000, 120_000),
  outage,
});

describe('properties of the times of Pods with defer containers', () => {
  holdProperties(properties, deferLives, { numRuns, seed });

  it('an outage of the agent, of the runtime, or of both between any two actions costs no entry its turn', {
    timeout: limitMillis,
  }, async () => {
    const outcome = ({ statuses }: LifeResult) =>
      statuses
        .at(-1)
        ?.status.deferContainerStatuses?.map(({ name, state }) =>
          `${name} ${state?.terminated?.reason} ${state?.terminated?.message ?? ''}`.trim(),
        );
    await fc.assert(
      fc.asyncProperty(
        steady,
        disturbance,
        async (life, { agent, runtime, position, asked, agentMillis, outage: given }) => {
          const whole = await live(life);
          const first = whole.actions.findIndex(({ at }) => at >= whole.start + 200_000);
          if (first < 0) return;
          const action = first + 1 + (position % (whole.actions.length - first));
          const { afterMillis = 1, millis, takesEffect = false } = given;
          const disturbed = await live({
            ...life,
            crashes: agent ? [{ action, asked, millis: agentMillis }] : [],
            outages: runtime ? [{ action, afterMillis, millis, takesEffect }] : [],
          });
          expect(outcome(disturbed)).toEqual(outcome(whole));
        },
      ),
      { numRuns: Math.ceil(numRuns / 2), seed },
    );
  });
});
