/** The node's form of status.termination, with times in milliseconds. Source: the specification of defer containers, "Time". */
import { formatMicroTime, type Millis, parseTime } from '../../../../../machinery/time.ts';
import type { Pod, PodTermination } from '../../../../generated/types.ts';
import type { TerminationReason } from './termination-reasons.ts';

export type Stage = 'PreExit' | 'PostExit';

export interface Termination {
  reason: TerminationReason;
  /**
   * A delete request began the termination. Absent: the termination has another cause, such as the end of the app containers, or the node.
   */
  requested?: true;
  /** T0 of the specification. */
  startedAt: Millis;
  /** All containers that still run are killed at this time: D of the specification. */
  deadline: Millis;
  /** The end of the PreExit stage, by which app containers must have stopped: S of the specification. D - S is the PostExit reserve. */
  preExitDeadline: Millis;
  /** The total time by which extensions have moved the deadline. */
  extendedSeconds?: number;
  extendedStage?: Stage;
  /** The total time by which outages have moved the deadline. */
  outageSeconds?: number;
  /** The end of the latest outage that outageSeconds includes. */
  outagesCountedUntil?: Millis;
  /** The grace period of the latest delete request that the deadlines take into account. */
  deletionGracePeriodSeconds?: number;
  /** The grace period that the node grants. Absent if the node did not end the Pod. */
  nodeGracePeriodSeconds?: number;
  /** The deadlines already reflect that the Pod was removed from the API while its containers still ran. */
  forced?: true;
  /** The defer container whose turn it is, and the time from which its timeoutSeconds counts. */
  turn?: { entry: string; since: Millis };
}

const TIMES: ReadonlySet<string> = new Set([
  'startedAt',
  'deadline',
  'preExitDeadline',
  'outagesCountedUntil',
  'since',
]);

const withTimes = (fields: object, other: (time: never) => unknown): object =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => {
      if (TIMES.has(name)) return [name, other(value as never)];
      return [name, name === 'turn' ? withTimes(value, other) : value];
    }),
  );

export const movedBack = (termination: Termination, millis: Millis): Termination =>
  withTimes(termination, (time: Millis) => time - millis) as Termination;

/** Converts the termination to the form in the status. The result lacks the fields `containers` and `skip` of the status. */
export const terminationRecord = ({ forced: _, ...termination }: Termination): PodTermination =>
  withTimes(termination, formatMicroTime) as PodTermination;

/** Returns undefined if the status lacks the start or the deadline of the termination. preExitDeadline defaults to deadline. */
export function recordedTermination({ status }: Pod): Termination | undefined {
  const { containers: _, skip: __, ...recorded } = status?.termination ?? {};
  const termination = withTimes(recorded, parseTime) as Partial<Termination>;
  const { startedAt, deadline } = termination;
  if (startedAt === undefined || deadline === undefined) return undefined;
  return { preExitDeadline: deadline, ...termination } as Termination;
}

/** Returns what has moved the deadline of `before`, as a noun phrase; undefined if the deadline has not moved. */
export function causeOfMove(before: Termination | undefined, after: Termination): string | undefined {
  if (before === undefined || before.deadline === after.deadline) return undefined;
  if (after.deadline < before.deadline) {
    if (after.forced === true) return 'a deletion by force';
    const isOfNode = after.nodeGracePeriodSeconds !== before.nodeGracePeriodSeconds;
    return isOfNode ? 'a shorter grace period from the node' : 'another deletion with a shorter grace period';
  }
  const added = (field: 'outageSeconds' | 'extendedSeconds'): Millis =>
    ((after[field] ?? 0) - (before[field] ?? 0)) * 1000;
  const [outage, extension] = [added('outageSeconds'), added('extendedSeconds')];
  const causes = [
    ...(outage > 0 ? ['an outage of the node'] : []),
    ...(extension > 0 ? ['an extension of the grace period'] : []),
  ];
  const isReserved = after.deadline - before.deadline - outage - extension >= 1;
  if (isReserved || causes.length === 0) causes.push('the reserve of the PostExit entries');
  return causes.join(' and ');
}
