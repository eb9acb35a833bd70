/** status.termination in the node's representation, with times in milliseconds. Source: the specification of defer containers, "Time". */
import { formatMicroTime, type Millis, parseTime } from '../../../../../machinery/time.ts';
import type { Pod, PodTermination } from '../../../../generated/types.ts';
import type { TerminationReason } from './termination-reasons.ts';

export type Stage = 'PreExit' | 'PostExit';

export interface Termination {
  reason: TerminationReason;
  /** Set if a client deleted the Pod for that reason; absent if the Pod ended on its own or the node ended it. */
  requested?: true;
  /** T0 of the specification. */
  startedAt: Millis;
  /** D: everything ends at this time. */
  deadline: Millis;
  /** S: the end of the PreExit stage and of the time of the app containers. D - S is the reserve of the PostExit stage. */
  preExitDeadline: Millis;
  extendedSeconds?: number;
  /** The stage that was extended most recently. */
  extendedStage?: Stage;
  outageSeconds?: number;
  outagesCountedUntil?: Millis;
  /** The grace period of the delete request that the deadlines are based on. */
  deletionGracePeriodSeconds?: number;
  /** The time granted by the node that the deadlines are based on. */
  nodeGracePeriodSeconds?: number;
  /** Set if the deadlines take into account that the object is already deleted. */
  forced?: true;
  /** The entry whose turn it is; its timeoutSeconds counts from `since`. */
  turn?: { entry: string; since: Millis };
}

const TIMES: ReadonlySet<string> = new Set([
  'startedAt',
  'deadline',
  'preExitDeadline',
  'outagesCountedUntil',
  'since',
]);

/** Applies `other` to all times. */
const withTimes = (fields: object, other: (time: never) => unknown): object =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => {
      if (TIMES.has(name)) return [name, other(value as never)];
      return [name, name === 'turn' ? withTimes(value, other) : value];
    }),
  );

/** Moves all times of the termination back. */
export const movedBack = (termination: Termination, millis: Millis): Termination =>
  withTimes(termination, (time: Millis) => time - millis) as Termination;

/** The form stored in the status, without the containers and the skipped entries. */
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
