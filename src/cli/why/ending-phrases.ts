/** Composes phrases about the termination of a Pod: when it began, its deadline, and how to shorten it. Pure. */
import { isMirrorPod } from '../../api/core/v1/pod/mirror.ts';
import { isFinalPhase } from '../../api/core/v1/pod/status/final-phase.ts';
import type { Transition } from '../../lifecycle/types.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import { limitedStays } from '../../scheduling/node-taints.ts';
import { terminationReason } from '../timeline/termination-end.ts';
import { taintText } from './node-troubles.ts';
import { type Action, ago, clockIn, eventLine, eventOf, type Living, lastStep, oneLine } from './subject.ts';

export const isDeleted = ({ pod }: Living): boolean => pod.metadata.deletionTimestamp !== undefined;

/**
 * Whether the Pod terminates: it was deleted, or for example its activeDeadlineSeconds have passed. Without a deletion, the status shows
 * the termination only if the Pod has defer containers; the record always shows it.
 */
export function isEnding(subject: Living): boolean {
  const { phase = '', termination } = subject.pod.status ?? {};
  const hasBegun = termination !== undefined || lastStep(subject, ['TerminationBegan']) !== undefined;
  return isDeleted(subject) || phase === 'Terminating' || (hasBegun && !isFinalPhase(phase));
}

/**
 * Returns the beginning of a sentence about a Pod that is ending. Only a deleted Pod will be gone, because the objects of others remain.
 */
export const still = (subject: Living): string =>
  isDeleted(subject) ? `${subject.name} is not gone yet` : `${subject.name} has not ended yet`;

export function deadlineOf(subject: Living): Millis | undefined {
  const { status, metadata } = subject.pod;
  return (
    parseTime(status?.termination?.deadline) ??
    lastStep(subject, ['DeadlineSet', 'TerminationBegan'])?.deadline ??
    parseTime(metadata.deletionTimestamp)
  );
}

/**
 * Returns whether the node may still move the deadline: the time without an engine before a start, such as a restart of the machine, does
 * not count, and the node adds it to the deadline some time after the start. It does not do so for a Pod that it has ended, and that only
 * finalizers keep: the grace period of such a Pod is 0.
 */
export function awaitsDeadline(subject: Living): boolean {
  const { engineStartedAt, pod } = subject;
  if (pod.metadata.deletionGracePeriodSeconds === 0) return false;
  const { startedAt, outagesCountedUntil } = pod.status?.termination ?? {};
  const set = lastStep(subject, ['DeadlineSet', 'TerminationBegan'])?.at;
  const known = Math.max(parseTime(startedAt) ?? 0, parseTime(outagesCountedUntil) ?? 0, set ?? 0);
  return engineStartedAt !== undefined && known < engineStartedAt;
}

/** Returns the deadline of the PreExit stage, which is earlier than deadlineOf() if time is reserved for PostExit entries. */
export const preExitDeadlineOf = (subject: Living): Millis | undefined =>
  parseTime(subject.pod.status?.termination?.preExitDeadline) ?? deadlineOf(subject);

export const untilText = (deadline: Millis | undefined, { now }: Living, what = 'deadline'): string =>
  deadline === undefined ? '' : `; ${what} ${clockIn(deadline, now)}`;

/**
 * Returns when the node kills a container to which it sent the stop signal `stop`. If the deadline of the termination has changed since,
 * for example because the node did not answer, the time of the kill changes by as much.
 */
export function killTimeOf({ transitions }: Living, stop: Transition): Millis | undefined {
  if (stop.deadline === undefined || stop.message !== undefined) return stop.deadline;
  const set = transitions.filter(({ type }) => type === 'DeadlineSet');
  const before = set.findLast(({ at }) => at <= stop.at)?.deadline;
  const last = set.at(-1)?.deadline;
  return before === undefined || last === undefined ? stop.deadline : stop.deadline + last - before;
}

export function begun(subject: Living): string[] {
  const step = lastStep(subject, ['TerminationBegan']);
  const { extendedSeconds, outageSeconds } = subject.pod.status?.termination ?? {};
  return [
    ...(step === undefined ? [] : [`its termination began ${ago(step.at, subject.now)}: ${terminationReason(step)}`]),
    ...(isTainted(subject) ? taintEvidence(subject) : []),
    ...givenUp(subject),
    ...(extendedSeconds ? [`its time was extended by ${extendedSeconds} s`] : []),
    ...(outageSeconds ? [`${Math.round(outageSeconds)} s are not counted: its node did not answer`] : []),
    ...(isDeleted(subject) ? [] : ['it was not deleted: its object stays when it has ended']),
    ...['Evicted', 'FailedKillPod'].flatMap((reason) => eventLine(eventOf(subject, [reason]), subject)),
  ];
}

/**
 * Returns a line for each given-up entry that has not ended. Skips a running entry, because the sentence of the explanation already names
 * it.
 */
const givenUp = (subject: Living): string[] =>
  (subject.pod.status?.termination?.skip ?? []).flatMap((name) => {
    const status = subject.pod.status?.deferContainerStatuses?.find((each) => each.name === name);
    const { running, terminated } = status?.state ?? {};
    if (running !== undefined || terminated !== undefined) return [];
    const again = status?.lastState?.terminated === undefined ? '' : ' again';
    const event = eventOf(subject, ['DeferContainerGivenUp'], name);
    return [
      `defer container ${name}: was given up, so it will not run${again}${event === undefined ? '' : ` (${oneLine(event.message)})`}`,
    ];
  });

const isTainted = ({ pod }: Living): boolean =>
  pod.status?.conditions?.some(({ reason }) => reason === 'DeletionByTaintManager') === true;

function taintEvidence({ pod, node }: Living): string[] {
  const [stay] = limitedStays(pod, node?.spec?.taints ?? []);
  return stay === undefined || node === undefined
    ? ['it is evicted for a NoExecute taint of its node']
    : [`it is evicted: its node ${node.metadata.name} has the taint ${taintText(stay.taint)}`];
}

/** Returns how to shorten the termination. A deletion of a mirror Pod has no effect on its static Pod. */
export function hurry(subject: Living): Action {
  const { name, namespace, pod, hints } = subject;
  if (!isDeleted(subject)) return { description: 'wait: its phase then shows how it ended' };
  if (isMirrorPod(pod))
    return { description: 'wait: the grace period of a static Pod cannot be shortened through the API' };
  return { description: 'wait, or cut it short', command: hints.kubectl(`delete pod ${name} -n ${namespace} --now`) };
}
