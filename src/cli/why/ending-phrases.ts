/** What is said of the end of any Pod: since when, until when, how to cut it short. Pure. */
import { type Millis, parseTime } from '../../machinery/time.ts';
import { ago, clock, eventLine, eventOf, inTime, type Living, lastStep } from './subject.ts';

export const isDeleted = ({ pod }: Living): boolean => pod.metadata.deletionTimestamp !== undefined;

/** A Pod that was not deleted ends, and its object stays. */
export const still = (subject: Living): string =>
  isDeleted(subject) ? `${subject.name} is not gone yet` : `${subject.name} has not ended yet`;

/** When its end is over at the latest: by its status, else its record, else its object. */
export function deadlineOf(subject: Living): Millis | undefined {
  const { status, metadata } = subject.pod;
  return (
    parseTime(status?.termination?.deadline) ??
    lastStep(subject, ['DeadlineSet', 'TerminationBegan'])?.deadline ??
    parseTime(metadata.deletionTimestamp)
  );
}

/** When its PreExit stage is over at the latest; the rest of the time is reserved for PostExit entries. */
export const preExitDeadlineOf = (subject: Living): Millis | undefined =>
  parseTime(subject.pod.status?.termination?.preExitDeadline) ?? deadlineOf(subject);

export const untilText = (deadline: Millis | undefined, { now }: Living): string =>
  deadline === undefined ? '' : `, at the latest until ${clock(deadline)} (${inTime(deadline, now)})`;

/** Evidence of every end. */
export function begun(subject: Living): string[] {
  const step = lastStep(subject, ['TerminationBegan']);
  const { extendedSeconds, outageSeconds } = subject.pod.status?.termination ?? {};
  return [
    ...(step === undefined ? [] : [`its end began ${ago(step.at, subject.now)}: ${step.reason}`]),
    ...(extendedSeconds ? [`its time was extended by ${extendedSeconds} s`] : []),
    ...(outageSeconds ? [`${Math.round(outageSeconds)} s are not counted: its node did not answer`] : []),
    ...(isDeleted(subject) ? [] : ['it was not deleted: its object stays when it has ended']),
    ...eventLine(eventOf(subject, ['FailedKillPod']), subject),
  ];
}

/** The last advice of any. */
export const hurry = (subject: Living): string =>
  isDeleted(subject)
    ? `wait, or cut it short: kubectl delete pod ${subject.name} -n ${subject.namespace} --now`
    : 'wait: its phase then shows how it ended';
