/** Facts that the property tests derive from the lives of Pods with defer containers (entries) and from the results of these lives. */
import type { DeferContainer, PodTermination } from '../api/generated/types.ts';
import { actionKey } from '../lifecycle/types.ts';
import { parseTime } from '../machinery/time.ts';
import type { TraceEntry } from '../runtime/simulated/simulated-runtime.ts';
import { LATENCY_MILLIS, type Life, type LifeResult } from './life.ts';

/** The maximum delay of the effect of a decision. The effect follows one or two runtime calls later; the rest is a margin. */
export const SLACK_MILLIS = 4 * LATENCY_MILLIS;
/** The maximum delay caused by a fault of the runtime: the longest back-off of actions other than pulls (10 s), and the next try. */
export const RETRY_MILLIS = 12_000;
export const slackOf = ({ startMillis = 0 }: Life): number => SLACK_MILLIS + startMillis;

export const entriesOf = (life: Life): DeferContainer[] => life.pod.spec?.deferContainers ?? [];
export const isEntry = (name: string): boolean => name.startsWith('defer-');
/** Whether the container must have ended before a PostExit entry runs. */
export const isApp = (name: string): boolean => name.startsWith('app-') || name.startsWith('init-');
export const isSidecar = (name: string): boolean => name.startsWith('side-');
export const isCompanion = (name: string): boolean => isSidecar(name) || name.startsWith('debug-');
export const isPostExit = (life: Life, name: string): boolean =>
  entriesOf(life).some((entry) => entry.name === name && entry.trigger === 'PostExit');

/** A termination in one status. Times are milliseconds since the epoch; `at` is when the status was written. */
export interface ShownTermination {
  at: number;
  startedAt: number;
  deadline: number;
  preExitDeadline: number;
  extendedSeconds: number;
  outageSeconds: number;
  /** The end of the last outage that was counted; 0 if none was. */
  outagesCountedUntil: number;
  reason: string;
  turn: { entry: string; since: number } | undefined;
}

const shownTermination = (at: number, { turn, ...termination }: PodTermination): ShownTermination => {
  const deadline = parseTime(termination.deadline) ?? Number.NaN;
  return {
    at,
    deadline,
    reason: termination.reason,
    startedAt: parseTime(termination.startedAt) ?? Number.NaN,
    preExitDeadline: parseTime(termination.preExitDeadline) ?? deadline,
    extendedSeconds: termination.extendedSeconds ?? 0,
    outageSeconds: termination.outageSeconds ?? 0,
    outagesCountedUntil: parseTime(termination.outagesCountedUntil) ?? 0,
    turn: turn === undefined ? undefined : { entry: turn.entry, since: parseTime(turn.since) ?? Number.NaN },
  };
};

/** Returns the terminations that the statuses show, in the order in which the statuses were written. */
export const shownTerminations = ({ statuses }: LifeResult): ShownTermination[] =>
  statuses.flatMap(({ at, status: { termination } }) =>
    termination === undefined ? [] : [shownTermination(at, termination)],
  );

/**
 * Returns the deadlines by `now` of the deletions, `nodeEnd` and the forced deletion: the time of each plus its grace period. The status
 * may not contain them yet. `nextNodeEnd` is not counted.
 */
export const newDeadlines = ({ start }: LifeResult, life: Life, now: number): number[] => {
  const ends = [...(life.deletions ?? [])];
  const ownSeconds = life.pod.spec?.terminationGracePeriodSeconds ?? 30;
  if (life.nodeEnd !== undefined)
    ends.push({ at: life.nodeEnd.at, graceSeconds: Math.min(ownSeconds, life.nodeEnd.by.graceSeconds) });
  if (life.forcedAt !== undefined) ends.push({ at: life.forcedAt, graceSeconds: 0 });
  return ends.filter(({ at }) => start + at <= now).map(({ at, graceSeconds }) => start + at + graceSeconds * 1000);
};

/** Returns the maximum number of causes of a termination in a life, in addition to its own completion and its active deadline. */
export const causesOf = ({ deletions = [], nodeEnd, nextNodeEnd, forcedAt }: Life): number =>
  deletions.length + [nodeEnd, nextNodeEnd, forcedAt].filter((cause) => cause !== undefined).length;

/** Returns when, up to `until`, the last app container, init container or PreExit entry ended; undefined if none had ended. */
export const lastExitBefore = ({ trace }: LifeResult, life: Life, until: number): number | undefined =>
  trace.findLast(
    ({ at, what, name }) => what === 'exit' && !isPostExit(life, name) && !isCompanion(name) && at <= until,
  )?.at;

/** The reasons of terminations that neither a client nor the node caused. */
export const OWN_ENDS: ReadonlySet<string> = new Set(['Completed', 'DeadlineExceeded']);

/**
 * Returns the grace period, in milliseconds, of a termination with this reason. If a client or the node caused the termination, the result
 * is exact only if the life has no second cause.
 */
export const graceMillisOf = ({ pod, deletions: [deletion] = [], nodeEnd }: Life, reason: string): number => {
  const own = pod.spec?.terminationGracePeriodSeconds ?? 30;
  if (OWN_ENDS.has(reason)) return own * 1000;
  return 1000 * (deletion?.graceSeconds ?? Math.min(own, nodeEnd?.by.graceSeconds ?? own));
};

/** Returns each start, with the containers that were running at that time and the trace before. */
export function starts(trace: readonly TraceEntry[]): { entry: TraceEntry; running: string[]; before: TraceEntry[] }[] {
  const running = new Set<string>();
  return trace.flatMap((entry, index) => {
    if (entry.what === 'exit') running.delete(entry.name);
    if (entry.what !== 'start') return [];
    const seen = { entry, running: [...running], before: trace.slice(0, index) };
    running.add(entry.name);
    return [seen];
  });
}

/** Returns when the start was last requested before it took effect. If no request is known, returns the time of the start. */
export const askedAt = ({ actions }: LifeResult, { name, attempt, at }: TraceEntry): number =>
  actions.findLast((each) => each.at <= at && actionKey(each.action) === `startContainer/${name}/${attempt}`)?.at ?? at;

/**
 * Whether the start was requested before an agent died, and took effect after the next agent had started. The next agent may not know of
 * the start.
 */
export const isOrphaned = (result: LifeResult, entry: TraceEntry): boolean => {
  const asked = askedAt(result, entry);
  return result.absences.some(({ from, to }) => asked <= from && to <= entry.at);
};

export const hasReboot = ({ crashes = [], absences = [] }: Life): boolean =>
  [...crashes, ...absences].some(({ reboot }) => reboot === true);

/** Whether a cause other than the agent and the processes, such as a reboot, may end processes or lose or damage records. */
export const losesSomething = (life: Life): boolean =>
  life.sandboxLostAt !== undefined ||
  life.initRecordsLostAt !== undefined ||
  hasReboot(life) ||
  (life.losses ?? []).length > 0;

/**
 * Returns the total time in which no agent ran, the runtime did not respond, or a damaged container record prevented the removal of the
 * sandbox. Overlapping times are counted more than once.
 */
export const outageMillis = (life: Life, { absences }: Pick<LifeResult, 'absences'>): number => {
  const sum = (all: readonly number[]): number => all.reduce((one, other) => one + other, 0);
  return (
    sum(absences.map(({ from, to }) => to - from)) +
    sum((life.outages ?? []).map(({ millis }) => millis)) +
    sum((life.losses ?? []).map(({ what, millis = 0 }) => (what === 'damage' ? millis : 0)))
  );
};

const MINIMUM_MILLIS = 2000;

/** Returns the reserve of the PostExit stage, in milliseconds, as specified; 0 if no PostExit entry is due. */
export function reserveMillis(life: Life, reason: string, graceMillis: number): number {
  const { terminationGracePeriodSeconds: own = 30, postExitGracePeriodSeconds: given } = life.pod.spec ?? {};
  const due = entriesOf(life).filter(
    ({ trigger, onReasons }) => trigger === 'PostExit' && (onReasons === undefined || onReasons.includes(reason)),
  );
  if (due.length === 0) return 0;
  const timeouts = due.map(({ timeoutSeconds = Number.POSITIVE_INFINITY }) => timeoutSeconds + 2);
  const whole =
    1000 *
    (given ??
      Math.min(
        own / 2,
        timeouts.reduce((one, other) => one + other, 0),
      ));
  const share = own === 0 ? 1 : Math.min(1, graceMillis / (own * 1000));
  return Math.max(whole * share, leastReserve(whole));
}

export const leastReserve = (wholeMillis: number): number => Math.min(wholeMillis, MINIMUM_MILLIS);
