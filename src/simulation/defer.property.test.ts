/**
 * Checks properties of the random lives of defer-lives.ts, whose Pods have defer containers (entries): the order in which containers start
 * and stop, how the entries end, and that agent crashes do not change these ends. defer-time.property.test.ts checks the times.
 * LIFEPOD_DEFER_RUNS sets the number of lives (default: 400; with `npm run test:long`: 2,000), LIFEPOD_SEED repeats a run; the seed is
 * printed. Each life is checked for all of `properties`; the test of agent crashes uses a tenth of the number of lives.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TraceEntry } from '../runtime/simulated/simulated-runtime.ts';
import {
  askedAt,
  entriesOf,
  hasReboot,
  isApp,
  isCompanion,
  isEntry,
  isOrphaned,
  isPostExit,
  isSidecar,
  losesSomething,
  newDeadlines,
  outageMillis,
  RETRY_MILLIS,
  SLACK_MILLIS,
  shownTerminations,
  starts,
} from './defer-facts.ts';
import { deferLives } from './defer-lives.ts';
import { type Life, type LifeResult, live } from './pod-life.ts';
import { holdProperties, type Property } from './property-runs.ts';

const numRuns = Number(process.env['LIFEPOD_DEFER_RUNS'] ?? 400);
const seed = Number(process.env['LIFEPOD_SEED']);
console.log(`defer properties: seed ${seed}, ${numRuns} lives (LIFEPOD_SEED and LIFEPOD_DEFER_RUNS set them)`);

/** Returns the maximum duration of a run that stays within its timeoutSeconds in spite of crashes, in milliseconds. */
const decisiveMillis = (timeoutSeconds = Number.POSITIVE_INFINITY): number => timeoutSeconds * 1000 - 2500;

/** Returns when the status first showed the end of the entry; infinite if it never did. */
const endedAt = ({ statuses }: LifeResult, entry: string): number =>
  statuses.find(({ status }) =>
    status.deferContainerStatuses?.some(({ name, state }) => name === entry && state?.terminated !== undefined),
  )?.at ?? Number.POSITIVE_INFINITY;

const properties: Record<string, Property> = {
  'entries run strictly in order': (result, life) => {
    const names = entriesOf(life).map(({ name }) => name);
    /**
     * Whether a status had shown the end of the entry at the time `when`. Such an entry is exempt: a start that was requested before this
     * end may take effect afterwards, and an agent then stops the container.
     */
    const isGivenUp = (name: string, when: number): boolean => endedAt(result, name) <= when;
    let furthest = 0;
    for (const { entry, running } of starts(result.trace)) {
      if (!isEntry(entry.name) || isGivenUp(entry.name, entry.at)) continue;
      expect(names.indexOf(entry.name)).toBeGreaterThanOrEqual(furthest);
      furthest = names.indexOf(entry.name);
      expect(running.filter((name) => isEntry(name) && !isGivenUp(name, entry.at))).toEqual([]);
    }
  },

  'entries run at most once to success': ({ trace, start }, life) => {
    // Exits after the loss of the sandbox, and entries with a loss, are exempt. An entry that is stopped with its lost sandbox has not
    // succeeded, and an agent may not know of a success whose record was lost. Both may run again, even after an exit with 0.
    const lostAt = start + (life.sandboxLostAt ?? Number.POSITIVE_INFINITY);
    const lost = new Set((life.losses ?? []).flatMap(({ names }) => names));
    for (const { name, livenessProbe, timeoutSeconds } of entriesOf(life)) {
      // An entry that is stopped because its liveness probe failed or its timeoutSeconds elapsed counts as failed, even if it exited with
      // 0, so it may run again.
      if (livenessProbe !== undefined || timeoutSeconds !== undefined || lost.has(name)) continue;
      const succeeded = trace.findIndex(
        (each) => each.name === name && each.what === 'exit' && each.exitCode === 0 && each.at < lostAt,
      );
      if (succeeded < 0) continue;
      expect(trace.slice(succeeded + 1).filter((each) => each.name === name && each.what === 'start')).toEqual([]);
    }
  },

  'no entry starts before the termination is written, nor after the deadline of its stage': (result, life) => {
    const terminations = shownTerminations(result);
    for (const { entry } of starts(result.trace)) {
      if (!isEntry(entry.name)) continue;
      // The end of the stage at the time of the request counts: a later cause may move it while the entry is being started.
      const asked = askedAt(result, entry);
      const inForce = terminations.findLast(({ at }) => at <= asked);
      expect(inForce).toBeDefined();
      const until = isPostExit(life, entry.name) ? inForce?.deadline : inForce?.preExitDeadline;
      expect(asked).toBeLessThanOrEqual((until ?? 0) + SLACK_MILLIS);
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

  'no PostExit entry starts while a process of an app container is alive': (result, life) => {
    // An app or init container is exempt if an agent that died requested its start, and the start took effect when the next agent was
    // running: that agent may not know of the run.
    const orphans = result.trace.filter((each) => each.what === 'start' && isOrphaned(result, each));
    const isKnown = (app: string): boolean => !orphans.some(({ name }) => name === app);
    for (const { entry, running } of starts(result.trace))
      if (isPostExit(life, entry.name)) expect(running.filter((name) => isApp(name) && isKnown(name))).toEqual([]);
  },

  'no PreExit entry starts after the apps got their stop signal': (result, life) => {
    // The property does not apply if an app has a liveness or startup probe: a probe that failed before the termination stops the app, and
    // the stop signal may follow while PreExit entries are due.
    if (life.pod.spec?.containers.some(({ livenessProbe, startupProbe }) => livenessProbe ?? startupProbe)) return;
    const terminations = shownTerminations(result);
    const begunAt = terminations[0]?.at ?? Number.POSITIVE_INFINITY;
    // A new agent writes the outage to the status before it acts.
    const unseenMillis =
      SLACK_MILLIS +
      (life.faults?.length ?? 0) * RETRY_MILLIS +
      outageMillis(life, result) +
      result.absences.length * (life.statusMillis ?? 0);
    for (const { entry, before } of starts(result.trace)) {
      if (!isEntry(entry.name) || isPostExit(life, entry.name)) continue;
      // A start may take effect after the end of the stage or of the entry, or after a forced deletion, and so also after the apps' signal.
      // The container must then be stopped, or end, as soon as an agent can observe it.
      const inForce = terminations.findLast(({ at }) => at <= entry.at);
      const forcedAt = result.start + (life.forcedAt ?? Number.POSITIVE_INFINITY);
      const givenUpAt = Math.min(inForce?.preExitDeadline ?? 0, forcedAt, endedAt(result, entry.name));
      if (life.startMillis !== undefined && entry.at > givenUpAt) {
        const ends = ({ at, what, name }: typeof entry) => what !== 'start' && name === entry.name && at >= entry.at;
        expect(result.trace.find(ends)?.at).toBeLessThanOrEqual(entry.at + unseenMillis);
        continue;
      }
      // A signal is allowed if the PreExit stage had ended by then, according to the status, and an agent died later: counting the outage
      // may move the end of the stage past the signal, so that PreExit entries may start again.
      const wasInTime = (at: number): boolean =>
        at >= (terminations.findLast((each) => each.at <= at)?.preExitDeadline ?? 0) &&
        result.absences.some(({ from }) => from >= at);
      const isSignaled = ({ at, what, name }: typeof entry) =>
        what === 'signal' && at > begunAt && name.startsWith('app-') && !wasInTime(at);
      expect(before.filter(isSignaled)).toEqual([]);
    }
  },

  'before the deadline, sidecars stop once the list has ended, in reverse order, and ephemeral containers after them': (
    result,
    life,
  ) => {
    // The property does not apply if the sandbox is lost or the machine reboots, because containers in a lost sandbox are stopped even if
    // the list has not ended. It does not apply if postStart hooks fail, because a sidecar whose hook failed is stopped immediately.
    const fails = [0, 1].some((attempt) => life.hook?.({ name: 'side-1', attempt, hook: 'postStart' }).failure);
    if (life.sandboxLostAt !== undefined || hasReboot(life) || fails) return;
    const terminations = shownTerminations(result);
    const order = (life.pod.spec?.initContainers ?? []).map(({ name }) => name);
    const running = new Set<string>();
    for (const { at, what, name } of result.trace) {
      // The list may end while the start of an entry takes effect: the entry is given up, and the agent stops its container. Such a
      // container is exempt.
      if (what === 'start' && !(isEntry(name) && endedAt(result, name) <= at)) running.add(name);
      if (what === 'exit') running.delete(name);
      if (what !== 'signal' || !isCompanion(name)) continue;
      const inForce = terminations.filter((each) => each.at <= at).at(-1)?.deadline ?? 0;
      // Signals from the deadline on are exempt. The deadline may be earlier than shown, because of a cause that no status shows yet.
      if (at >= Math.min(inForce, ...newDeadlines(result, life, at)) - SLACK_MILLIS) continue;
      const before = [...running].filter(
        (each) => isApp(each) || isEntry(each) || (isSidecar(each) && order.indexOf(each) > order.indexOf(name)),
      );
      expect(before).toEqual([]);
    }
  },

  'the end of an entry never changes, and the phase is Terminating only while an entry has not ended': ({
    statuses,
  }) => {
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

  'an entry that the status shows as Completed has succeeded, and one that it shows as Skipped has not run': (
    result,
    life,
  ) => {
    const { statuses, trace } = result;
    const isStopped = ({ name, attempt }: TraceEntry): boolean =>
      trace.some((each) => each.what === 'signal' && each.name === name && each.attempt === attempt);
    // An entry may be Skipped in the middle of its run if the node or a client grants a grace period of 0. It may also be Skipped if
    // something else, such as a reboot, may end its process or lose its record before an agent observes the run.
    const hasNoTime =
      life.nodeEnd?.by.graceSeconds === 0 || (life.deletions ?? []).some(({ graceSeconds }) => graceSeconds === 0);
    const isCutShort = losesSomething(life) || hasNoTime;
    for (const { name, state } of statuses.at(-1)?.status.deferContainerStatuses ?? []) {
      const runs = trace.filter((each) => each.name === name && each.what === 'exit');
      if (state?.terminated?.reason === 'Completed') expect(runs.some(({ exitCode }) => exitCode === 0)).toBe(true);
      // After a crash, the next agent may not know whether the previous one was about to stop the run, so it may treat an exit with 0 as a
      // failure. Such exits do not count if a grace period of 0 was granted or a later attempt followed.
      const isUnclear = ({ attempt }: TraceEntry): boolean =>
        (life.crashes ?? []).length > 0 && (hasNoTime || runs.some((run) => run.attempt > attempt));
      const isSuccess = (run: TraceEntry): boolean => run.exitCode === 0 && !isStopped(run) && !isUnclear(run);
      // A run does not count if an agent that died requested its start, and the start took effect when the next agent was already running:
      // that agent may not know of the run.
      const isKnown = ({ attempt }: TraceEntry): boolean =>
        !trace.some(
          (each) => each.name === name && each.what === 'start' && each.attempt === attempt && isOrphaned(result, each),
        );
      const counted = runs.filter((run) => isKnown(run) && (!isCutShort || isSuccess(run)));
      if (state?.terminated?.reason === 'Skipped') expect(counted).toEqual([]);
    }
  },

  'no action is requested twice at the same time': ({ duplicates }) => {
    expect(duplicates).toEqual([]);
  },
};

describe('properties of the lives of Pods with defer containers', () => {
  holdProperties(properties, deferLives, { numRuns, seed });

  it('a crash of the agent does not change how the list ends', async () => {
    const undisturbed = deferLives.map((life): Life => {
      // The active deadline is omitted: whether an app has started by then may depend on the time that a crash costs.
      const { deferContainers = [], activeDeadlineSeconds: _, ...spec } = life.pod.spec ?? { containers: [] };
      const scripts = { ...life.scripts };
      // The phase must not depend on whether an app runs at the deletion or waits for its restart: all its runs end with the same code.
      for (const { name } of spec.containers)
        scripts[name] = (scripts[name] ?? [{}]).map((script, _, [first]) => {
          const { exitCode = 0 } = { ...first };
          return { ...script, exitCode, stopExitCode: exitCode };
        });
      for (const { name, restartPolicy, timeoutSeconds } of deferContainers) {
        // The result must not depend on the attempt in which the crash occurs: all attempts are equal, or the last one succeeds.
        const [first = { runMillis: 500 }, ...rest] = (scripts[name] ?? []).map((script) => ({
          runMillis: 500,
          ...script,
          // A stopped container exits with 0, so the agent cannot conclude from the exit code that it stopped the container.
          stopMillis: 100,
          stopExitCode: 0,
        }));
        // The result must not depend on the time that crashes cost: a run ends well before or well after the timeoutSeconds.
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
              name,
              image,
              imagePullPolicy,
            })),
            terminationGracePeriodSeconds: 3000,
            deferContainers: deferContainers.map(({ timeoutSeconds, livenessProbe: _probe, image = '', ...entry }) => ({
              ...entry,
              // Entries that are retried have no timeoutSeconds: the time that retries cost depends on the crashes.
              ...(timeoutSeconds === undefined || entry.restartPolicy !== 'Never' ? {} : { timeoutSeconds }),
              // Entries that are retried have an image that can be pulled: a failed pull is retried until the deadline.
              image: entry.restartPolicy === 'Never' ? image : 'busybox:1.28',
            })),
          },
        },
        crashes: (life.crashes ?? []).map(({ action, asked }) => ({ action, asked })),
        faults: [],
        sandboxLostAt: undefined,
        forcedAt: undefined,
        nodeEnd: undefined,
        statusMillis: 1,
        outages: [],
        losses: [],
        skips: [],
        startMillis: undefined,
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
