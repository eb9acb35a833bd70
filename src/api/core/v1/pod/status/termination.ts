/** The node's form of status.termination, with times in milliseconds. Source: the specification of defer containers, "Time". */
import { formatMicroTime, type Millis, parseTime } from '../../../../../machinery/time.ts';
import type { Pod, PodTermination } from '../../../../generated/types.ts';
import type { TerminationReason } from './termination-reasons.ts';

export type Stage = 'PreExit' | 'PostExit';

export interface Termination {
  reason: TerminationReason;
  /**
   * Whether a delete request began the termination; absent if the termination has another cause, such as the end of the app containers, or
   * the node.
   */
  requested?: true;
  /** The start of the termination: T0 of the specification. */
  startedAt: Millis;
  /** The end of the termination, D of the specification: all containers that still run are killed at this time. */
  deadline: Millis;
  /** The end of the PreExit stage, by which app containers must have stopped: S of the specification. D - S is the PostExit reserve. */
  preExitDeadline: Millis;
  /** The total time by which extensions have moved the deadline; absent if there were none. */
  extendedSeconds?: number;
  /** The stage that was extended most recently; absent if no stage was extended. */
  extendedStage?: Stage;
  /** The total time by which outages have moved the deadline; absent if there were none. */
  outageSeconds?: number;
  /** The end of the latest outage that outageSeconds includes; absent if there was none. */
  outagesCountedUntil?: Millis;
  /** The grace period in seconds of the latest delete request that the deadlines take into account; absent if there was none. */
  deletionGracePeriodSeconds?: number;
  /** The grace period in seconds that the node grants, which the deadlines take into account; absent if the node did not end the Pod. */
  nodeGracePeriodSeconds?: number;
  /** Whether the deadlines already reflect that the Pod was removed from the API while its containers still ran; absent if not. */
  forced?: true;
  /** The defer container whose turn it is, and the time from which its timeoutSeconds counts; absent if no defer container has its turn. */
  turn?: { entry: string; since: Millis };
}

const TIMES: ReadonlySet<string> = new Set([
  'startedAt',
  'deadline',
  'preExitDeadline',
  'outagesCountedUntil',
  'since',
]);

/** Returns a copy of the fields in which each time is replaced by the result of `other`. */
const withTimes = (fields: object, other: (time: never) => unknown): object =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => {
      if (TIMES.has(name)) return [name, other(value as never)];
      return [name, name === 'turn' ? withTimes(value, other) : value];
    }),
  );

/** Returns a copy of the termination in which all times are earlier by `millis`. */
export const movedBack = (termination: Termination, millis: Millis): Termination =>
  withTimes(termination, (time: Millis) => time - millis) as Termination;

/**
 * Converts the termination to the form in the status. The result lacks `forced`, which the status does not have, and the fields
 * `containers` and `skip` of the status.
 */
export const terminationRecord = ({ forced: _, ...termination }: Termination): PodTermination =>
  withTimes(termination, formatMicroTime) as PodTermination;

/** Reads the termination from the status; undefined if the status lacks its start or deadline. preExitDeadline defaults to deadline. */
export function recordedTermination({ status }: Pod): Termination | undefined {
  const { containers: _, skip: __, ...recorded } = status?.termination ?? {};
  const termination = withTimes(recorded, parseTime) as Partial<Termination>;
  const { startedAt, deadline } = termination;
  if (startedAt === undefined || deadline === undefined) return undefined;
  return { preExitDeadline: deadline, ...termination } as Termination;
}
