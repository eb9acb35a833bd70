/** The node's form of status.termination, with times in milliseconds. Source: the specification of defer containers, "Time". */
import { formatMicroTime, type Millis, parseTime } from '../../../../../machinery/time.ts';
import type { Pod, PodTermination } from '../../../../generated/types.ts';
import type { TerminationReason } from './termination-reasons.ts';

export type Stage = 'PreExit' | 'PostExit';

export interface Termination {
  reason: TerminationReason;
  /** Set if a client deleted the Pod, for `reason`. Absent if the Pod ended on its own or the node terminates it. */
  requested?: true;
  /** The start of the termination: T0 of the specification. */
  startedAt: Millis;
  /** The end of the termination, D of the specification: all containers that still run are killed at this time. */
  deadline: Millis;
  /** The end of the PreExit stage, by which app containers must have stopped: S of the specification. D - S is the PostExit reserve. */
  preExitDeadline: Millis;
  extendedSeconds?: number;
  /** The stage that was extended most recently. */
  extendedStage?: Stage;
  outageSeconds?: number;
  outagesCountedUntil?: Millis;
  /** The grace period in seconds of the delete request from which the deadlines were computed. */
  deletionGracePeriodSeconds?: number;
  /** The grace period in seconds that the node grants, from which the deadlines were computed. */
  nodeGracePeriodSeconds?: number;
  /** Set if the deadlines take into account that the Pod no longer exists in the API, although its containers still run. */
  forced?: true;
  /** The defer container whose turn it is. Its timeoutSeconds counts from `since`. */
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

/** Converts the termination to the form stored in the status. The result lacks the containers and the skipped entries. */
export const terminationRecord = ({ forced: _, ...termination }: Termination): PodTermination =>
  withTimes(termination, formatMicroTime) as PodTermination;

/** Reads the termination from the status; undefined if it lacks the start or the deadline. */
export function recordedTermination({ status }: Pod): Termination | undefined {
  const { containers: _, skip: __, ...recorded } = status?.termination ?? {};
  const termination = withTimes(recorded, parseTime) as Partial<Termination>;
  const { startedAt, deadline } = termination;
  if (startedAt === undefined || deadline === undefined) return undefined;
  return { preExitDeadline: deadline, ...termination } as Termination;
}
