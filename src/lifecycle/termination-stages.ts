/**
 * Determines the stages of a termination: PreExit and PostExit. A later end of a stage takes effect only once the status has it.
 * Source: the specification of defer containers, "Time".
 */
import { recordedTermination, type Stage, type Termination } from '../api/core/v1/pod/status/termination.ts';
import type { DeferContainer } from '../api/generated/types.ts';
import type { Millis } from '../machinery/time.ts';
import { type DeferList, type Entry, endsOf, lastExit, listOf, retries } from './defer.ts';
import { periodMillis, timeoutMillis } from './probes.ts';
import { hasPostExitBegun, isDue, isPostExit, later, maxMoveMillis, terminationOf } from './termination-causes.ts';
import { actionKey, type ProbeMemory, runKey } from './types.ts';
import { isLive, type PodView } from './view.ts';

export interface End {
  termination: Termination;
  list: DeferList | undefined; // Undefined: the Pod has no defer containers, or its object was removed from the API.
  /**
   * While true, endPod() starts and stops no container. Either the status lacks the termination, or a liveness probe may still extend the
   * stage, whose end has passed.
   */
  held: boolean;
}

/** Returns undefined if the Pod is not terminating. `finished`: its containers have ended on their own. */
export function endingOf(view: PodView, finished: boolean): End | undefined {
  const termination = terminationOf(view, finished);
  if (termination === undefined) return undefined;
  if (view.defers.length === 0 || view.input.removed) return { termination, list: undefined, held: false };
  let so = termination;
  let ended = view.input.memory.ended;
  let list = listOf(view, so, ended);
  // An entry that ends immediately passes the turn to the next entry, so repeat until nothing changes. Decided ends stay.
  for (let before: Termination | undefined; so !== before; ended = endsOf(list)) {
    before = so;
    const open = listOf(view, { ...so, deadline: NEVER, preExitDeadline: NEVER }, ended);
    so = extended(view, so, open);
    // The PostExit stage must get its reserve before its deadline is checked.
    list = listOf(view, hasPostExitBegun(view, so) ? so : { ...so, deadline: NEVER }, ended);
    ended = endsOf(list);
    so = extended(view, withTurn(view, so, list.turn), open);
    list = listOf(view, so, ended);
    so = withTurn(view, so, list.turn);
  }
  // If the status cannot be written, the termination waits only until its deadline.
  const mayWait = list.skipped === undefined && view.now < so.deadline;
  const held = (mayWait && !isRecorded(view, so)) || awaitsProbe(view, so, list.turn);
  return { termination: so, list, held };
}

const NEVER = Number.POSITIVE_INFINITY;

/** Whether the status has the deadlines. Later deadlines in the status are also sufficient. */
function isRecorded({ pod }: PodView, so: Termination): boolean {
  const recorded = recordedTermination(pod);
  return recorded !== undefined && recorded.deadline >= so.deadline && recorded.preExitDeadline >= so.preExitDeadline;
}

/** Gives the entry its turn. The PostExit reserve counts from when the PostExit stage could have begun. */
function withTurn(view: PodView, before: Termination, turn: Entry | undefined): Termination {
  if (turn === undefined || before.turn?.entry === turn.spec.name) return before;
  const { spec } = turn;
  const { deadline, preExitDeadline } = before;
  const begins = isPostExit(spec) && !hasPostExitBegun(view, before);
  const couldBegin = Math.max(lastExit(view) || view.now, before.startedAt, before.outagesCountedUntil ?? 0);
  const reserved = begins ? Math.round(couldBegin + deadline - preExitDeadline) : deadline;
  const so = { ...before, deadline: Math.max(deadline, reserved), turn: { entry: spec.name, since: view.now } };
  if (view.spec.deferContainerGracePeriodExtension !== true || so.extendedStage !== stageOf(spec)) return so;
  // In a stage extended by liveness, a further entry has time for its first probe, or 10 s without a probe.
  const { livenessProbe: probe } = spec;
  const firstProbe = (probe?.initialDelaySeconds ?? 0) * 1000 + periodMillis(probe) + timeoutMillis(probe);
  const least = probe === undefined ? 10_000 : firstProbe;
  return moved(view, so, spec, view.now + least);
}

const goesOn = ({ now, stops }: PodView, { reason }: Termination, entry: Entry): boolean => {
  const { end, givenUp, timeoutAt, spec } = entry;
  const stop = isLive(entry.container.current) ? stops[entry.container.current.id] : undefined;
  const isLastRun = stop !== undefined && (stop.entry !== undefined || !retries(entry));
  return end === undefined && !givenUp && now < timeoutAt && isDue(spec, reason) && !isLastRun;
};

/** Extends the current stage if its end has passed. `entries` and `turn` are computed as if the stages had no end. */
function extended(view: PodView, so: Termination, { entries, turn }: DeferList): Termination {
  const { spec, now } = view;
  const open = entries.filter((each) => goesOn(view, so, each));
  const stage = (turn ?? open[0])?.spec;
  // A PostExit stage that has not begun has no end.
  if (stage === undefined || now < stageEnd(so, stage)) return so;
  if (isPostExit(stage) && !hasPostExitBegun(view, so)) return so;
  if (spec.deferContainerGracePeriodExtension === true)
    return turn === undefined || !open.includes(turn) ? so : moved(view, so, stage, aliveUntil(view, turn));
  const millis = (spec.deferContainerGracePeriodExtensionInterval ?? 0) * 1000;
  if (millis === 0 || !open.some((each) => isPostExit(each.spec) === isPostExit(stage))) return so;
  const left = (spec.deferContainerGracePeriodExtensionCount ?? 0) - ((so.extendedSeconds ?? 0) * 1000) / millis;
  const needed = Math.floor((now - stageEnd(so, stage)) / millis) + 1;
  return moved(view, so, stage, stageEnd(so, stage) + Math.min(left, needed) * millis);
}

const stageOf = (spec: DeferContainer): Stage => (isPostExit(spec) ? 'PostExit' : 'PreExit');
const stageEnd = (so: Termination, spec: DeferContainer): Millis =>
  isPostExit(spec) ? so.deadline : so.preExitDeadline;

/** Returns undefined if the entry does not run, or if its liveness probe has failed or is absent. */
function liveness({ probes }: PodView, { container: { current: run } }: Entry): ProbeMemory | undefined {
  const probe = run?.state === 'running' ? probes[runKey(run.id, 'liveness')] : undefined;
  return probe?.passing === false ? undefined : probe;
}

/** Returns the end of the extension that the liveness probe's last success causes; 0 without a success. */
function aliveUntil(view: PodView, entry: Entry): Millis {
  const { livenessProbe: probe } = entry.spec;
  const { succeededAt } = liveness(view, entry) ?? {};
  return succeededAt === undefined ? 0 : succeededAt + periodMillis(probe) + timeoutMillis(probe);
}

/** Moves the end of the stage to `until`, up to the node's limit. Returns `so` if `until` has passed or no extension is allowed. */
function moved(view: PodView, so: Termination, spec: DeferContainer, until: Millis): Termination {
  const had = Math.round((so.extendedSeconds ?? 0) * 1000);
  const millis = Math.round(Math.min(until - stageEnd(so, spec), maxMoveMillis(view) - had));
  if (millis <= 0 || until <= view.now || isFixed(view, so)) return so;
  return { ...later(view, so, millis), extendedSeconds: (had + millis) / 1000, extendedStage: stageOf(spec) };
}

/** Terminations by the node and grace periods of at most 1 s are not extended. */
const isFixed = ({ input, pod, graceMillis }: PodView, { reason, nodeGracePeriodSeconds }: Termination): boolean =>
  ['NodePressure', 'NodeShutdown'].includes(reason) ||
  (input.nodeEnd ?? nodeGracePeriodSeconds) !== undefined ||
  (pod.metadata.deletionGracePeriodSeconds ?? graceMillis / 1000) <= 1;

function awaitsProbe(view: PodView, so: Termination, entry: Entry | undefined): boolean {
  const run = entry?.container.current;
  if (entry === undefined || run === undefined || view.now < entry.stageEnd || isFixed(view, so)) return false;
  if (view.spec.deferContainerGracePeriodExtension !== true || !goesOn(view, so, entry)) return false;
  const probe = liveness(view, entry);
  const action = { kind: 'runProbe', container: run.name, id: run.id, probe: 'liveness' } as const;
  return probe !== undefined && (probe.dueAt <= view.now || view.isUnderWay(actionKey(action)));
}
