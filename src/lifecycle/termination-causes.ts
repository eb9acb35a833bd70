/**
 * Determines why a Pod is terminated, and the deadline. The first cause gives the reason. Later causes can only move the deadline earlier.
 * Sources: Pod Lifecycle, "Termination of Pods" (v1.33); the specification of defer containers, "Time".
 */
import { isFinalPhase } from '../api/core/v1/pod/status/final-phase.ts';
import { recordedTermination, type Termination } from '../api/core/v1/pod/status/termination.ts';
import { type TerminationReason, terminationReasons } from '../api/core/v1/pod/status/termination-reasons.ts';
import type { DeferContainer, Pod, PodCondition } from '../api/generated/types.ts';
import { type Millis, parseTime } from '../machinery/time.ts';
import { MINIMUM_GRACE_MILLIS } from './hooks-and-stops.ts';
import type { NodeEnd, Outage } from './types.ts';
import { type ContainerView, isRunning, type PodView } from './view.ts';

interface Cause {
  reason: TerminationReason;
  at: Millis;
  graceMillis: Millis;
  requested?: true;
  /** Stored in the termination, so that the cause counts once. Absent: the cause counts only if it is the first. */
  mark?: Pick<Termination, 'deletionGracePeriodSeconds' | 'nodeGracePeriodSeconds' | 'forced'>;
}

export const DEFAULT_MAX_EXTENSION_SECONDS = 3600;

export const maxMoveMillis = ({ input }: PodView): Millis =>
  (input.node.maxGracePeriodExtensionSeconds ?? DEFAULT_MAX_EXTENSION_SECONDS) * 1000;

/** Counted from the start of the Pod; infinite without spec.activeDeadlineSeconds. */
export const activeDeadline = ({ spec, pod, now }: PodView): Millis =>
  (parseTime(pod.status?.startTime) ?? now) + (spec.activeDeadlineSeconds ?? Number.POSITIVE_INFINITY) * 1000;

/** Returns undefined if the Pod is not terminating. `finished`: its containers have ended on their own. */
export function terminationOf(view: PodView, finished: boolean): Termination | undefined {
  const { memory, pod } = view.input;
  const known = memory.termination ?? (view.defers.length > 0 ? recordedTermination(pod) : undefined);
  const counted = view.observed.outages.reduce((so, outage) => so && withOutage(view, so, outage), known);
  return causesOf(view, known === undefined, finished).reduce<Termination | undefined>(
    (so, cause) => (so === undefined ? begun(view, cause) : shortened(view, so, cause)),
    counted,
  );
}

/** `isNew`: the Pod was not terminating before. */
function causesOf(view: PodView, isNew: boolean, finished: boolean): Cause[] {
  const { now, graceMillis } = view;
  const { pod, nodeEnd, removed } = view.input;
  const { deletionTimestamp, deletionGracePeriodSeconds: seconds } = pod.metadata;
  const causes: Cause[] = [];
  if (isNew && isFinalPhase(pod.status?.phase)) causes.push(completion(view));
  else if (isNew && activeDeadline(view) <= now) causes.push({ reason: 'DeadlineExceeded', at: now, graceMillis });
  if (nodeEnd !== undefined) {
    const { reason, graceSeconds } = nodeEnd;
    const at = nodeEnd.at + outageSince(view, nodeEnd.at);
    const mark = { nodeGracePeriodSeconds: graceSeconds };
    causes.push({ reason, at, graceMillis: Math.min(graceMillis, graceSeconds * 1000), mark });
  }
  if (deletionTimestamp !== undefined) {
    const mark = { deletionGracePeriodSeconds: seconds ?? 0 };
    const grace = seconds === undefined ? graceMillis : seconds * 1000;
    causes.push({ reason: deletionReason(pod), at: now, graceMillis: grace, requested: true, mark });
  }
  if (removed) causes.push({ reason: 'Deleted', at: now, graceMillis: MINIMUM_GRACE_MILLIS, mark: { forced: true } });
  return isNew && finished && causes.length === 0 ? [completion(view)] : causes;
}

/** Returns how long outages have lasted since `at`. During an outage, no agent could terminate the Pod. */
const outageSince = ({ observed }: PodView, at: Millis): Millis =>
  observed.outages.reduce((sum, { from, to }) => sum + Math.max(0, to - Math.max(from, at)), 0);

/** An exit within this time counts as observed immediately, because times in the API are whole seconds. */
const JUST_NOW_MILLIS = 2000;

function completion({ apps, defers, now, graceMillis }: PodView): Cause {
  const ends = defers.length > 0 ? apps.map(({ latest }) => latest?.finishedAt ?? 0) : [];
  const lastExit = Math.round(Math.max(0, ...ends));
  return { reason: 'Completed', at: now - lastExit < JUST_NOW_MILLIS ? lastExit : now, graceMillis };
}

function begun(view: PodView, { reason, at, graceMillis, requested, mark }: Cause): Termination {
  const deadline = at + graceMillis;
  const preExitDeadline = deadline - reserveMillis(view, reason, graceMillis);
  const startedAt = Math.min(at, view.now);
  return { reason, startedAt, deadline, preExitDeadline, ...(requested && { requested }), ...mark };
}

/** Returns R, the time reserved for PostExit entries that are due. A short grace period reduces R, but not below min(R, 2 s). */
function reserveMillis({ defers, spec, graceMillis: own }: PodView, reason: string, graceMillis: Millis): Millis {
  const entries = defers.map((each) => each.spec as DeferContainer);
  const due = entries.filter((each) => isPostExit(each) && isDue(each, reason));
  if (due.length === 0 || own === 0) return 0;
  const timeouts = due.map(({ timeoutSeconds: t }) => (t === undefined ? own : t * 1000 + MINIMUM_GRACE_MILLIS));
  const most = timeouts.reduce((sum, each) => sum + each, 0);
  const whole = (spec.postExitGracePeriodSeconds ?? Math.min(own / 2, most) / 1000) * 1000;
  return Math.round(Math.max(whole * Math.min(1, graceMillis / own), Math.min(whole, MINIMUM_GRACE_MILLIS)));
}

export const isPostExit = (spec: ContainerView['spec']): boolean => (spec as DeferContainer).trigger === 'PostExit';

export const isDue = ({ onReasons = [] }: DeferContainer, reason: string): boolean =>
  onReasons.length === 0 || onReasons.includes(reason);

/** The deadline of an ended Pod is fixed. The final deletion, for example, has a grace period of 0. */
const isOver = (view: PodView) => isFinalPhase(view.pod.status?.phase) && !view.observed.containers.some(isRunning);

/** Applies a later cause. An earlier deadline reduces the PostExit reserve R, but not below min(R, 2 s). */
function shortened(view: PodView, so: Termination, { at, graceMillis, mark = {} }: Cause): Termination {
  if (Object.entries(mark).every(([key, value]) => so[key as keyof Termination] === value)) return so;
  const { deadline, preExitDeadline } = so;
  const earlier = at + graceMillis;
  if (earlier >= deadline || isOver(view)) return { ...so, ...mark };
  const ends = { ...so, ...mark, deadline: earlier };
  if (hasPostExitBegun(view, so)) return { ...ends, preExitDeadline: Math.min(earlier, preExitDeadline) };
  const reserve = deadline - preExitDeadline;
  const share = view.now < earlier ? (reserve * (earlier - view.now)) / (deadline - view.now) : 0;
  return { ...ends, preExitDeadline: earlier - Math.round(Math.max(share, Math.min(reserve, MINIMUM_GRACE_MILLIS))) };
}

export const hasPostExitBegun = ({ defers }: PodView, { turn }: Termination): boolean =>
  defers.some(({ name, spec }) => name === turn?.entry && isPostExit(spec));

/** Moves the deadlines by the length of an outage. The node limits the sum of all outages. */
function withOutage(view: PodView, so: Termination, { from, to }: Outage): Termination {
  const begin = Math.max(from, so.outagesCountedUntil ?? 0, so.startedAt);
  if (to <= begin || isOver(view)) return so;
  const had = Math.round((so.outageSeconds ?? 0) * 1000);
  const moved = Math.max(0, Math.min(to - begin, maxMoveMillis(view) - had));
  const entry = view.defers.find(({ name }) => name === so.turn?.entry);
  const { timeoutSeconds = Number.POSITIVE_INFINITY } = (entry?.spec ?? {}) as Partial<DeferContainer>;
  const { since = to } = so.turn ?? {};
  const run = entry?.latest;
  // An outage counts toward the timeoutSeconds of an entry while it ran, unless the machine failed while the entry ran.
  const ran = view.sandbox?.ready === true ? (run?.finishedAt ?? 0) : 0;
  const hasEnded = run?.exitCode === 0 || ran >= since + timeoutSeconds * 1000;
  const waited = hasEnded || isRunning(run) ? 0 : Math.max(0, Math.min(moved, to - Math.max(begin, ran, since)));
  return {
    ...later(view, so, moved),
    outageSeconds: (had + moved) / 1000,
    outagesCountedUntil: to,
    ...(so.turn && { turn: { ...so.turn, since: so.turn.since + waited } }),
  };
}

/** Returns the termination with both deadlines moved by `millis`. In the PostExit stage, only `deadline` moves. */
export const later = (view: PodView, so: Termination, millis: Millis): Termination => ({
  ...so,
  deadline: so.deadline + millis,
  preExitDeadline: so.preExitDeadline + (hasPostExitBegun(view, so) ? 0 : millis),
});

export const isCompletion = ({ reason, requested }: Termination): boolean => reason === 'Completed' && !requested;

/** Combines a termination by the node with the earlier one: the first reason stays, and the shorter grace period applies. */
export function nodeEndAfter(before: NodeEnd | undefined, by: Omit<NodeEnd, 'at'>, now: Millis): NodeEnd {
  const { graceSeconds, reason } = by;
  if (before !== undefined && graceSeconds >= before.graceSeconds) return before;
  return { ...(before ?? by), at: now, graceSeconds, ...(reason === 'NodePressure' ? { evicted: true } : {}) };
}

/** By reason of the DisruptionTarget condition. Source: Disruptions, "Pod disruption conditions" (v1.33). */
const DISRUPTIONS: Readonly<Record<string, TerminationReason>> = {
  EvictionByEvictionAPI: 'Evicted',
  DeletionByTaintManager: 'Evicted',
  PreemptionByScheduler: 'Preempted',
};

/** Returns the reason in the later of the conditions DeletionReason and DisruptionTarget. DisruptionTarget wins a tie. */
function deletionReason({ status }: Pod): TerminationReason {
  const given = (status?.conditions ?? []).filter((condition) => condition.status === 'True');
  const [own, disruption] = ['DeletionReason', 'DisruptionTarget'].map((of) => given.find(({ type }) => type === of));
  const at = (condition: PodCondition | undefined): Millis => parseTime(condition?.lastTransitionTime) ?? 0;
  if (disruption !== undefined && at(own) <= at(disruption)) return DISRUPTIONS[disruption.reason ?? ''] ?? 'Deleted';
  return terminationReasons.find((reason) => reason === own?.reason) ?? 'Deleted';
}
