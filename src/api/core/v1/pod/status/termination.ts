/** status.termination as the node works with it: its times are milliseconds. Source: the specification of defer containers, "Time". */
import { formatMicroTime, type Millis, parseTime } from '../../../../../machinery/time.ts';
import type { Pod, PodTermination } from '../../../../generated/types.ts';
import type { TerminationReason } from './termination-reasons.ts';

export type Stage = 'PreExit' | 'PostExit';

export interface Termination {
  reason: TerminationReason;
  /** A client deleted the Pod for that reason; absent: the Pod ended, or its node ended it. */
  requested?: true;
  /** T0 of the specification. */
  startedAt: Millis;
  /** D: it ends everything. */
  deadline: Millis;
  /** S: it ends the PreExit stage, and the time of the app containers. D - S is the reserve of the PostExit stage. */
  preExitDeadline: Millis;
  extendedSeconds?: number;
  /** The stage that was extended last. */
  extendedStage?: Stage;
  outageSeconds?: number;
  outagesCountedUntil?: Millis;
  /** The grace period of the delete that the deadlines count. */
  deletionGracePeriodSeconds?: number;
  /** The time from the node that the deadlines count. */
  nodeGracePeriodSeconds?: number;
  /** The deadlines count that the object is gone. */
  forced?: true;
  /** The entry whose turn it is; its timeoutSeconds counts from `since`. */
  turn?: { entry: string; since: Millis };
}

const TIMES: ReadonlySet<string> = new Set([
  ...['startedAt', 'deadline', 'preExitDeadline', 'outagesCountedUntil', 'since'],
]);

/** The same fields with other times. */
const withTimes = (fields: object, other: (time: never) => unknown): object =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => {
      if (TIMES.has(name)) return [name, other(value as never)];
      return [name, name === 'turn' ? withTimes(value, other) : value];
    }),
  );

/** All of it, so much earlier. */
export const movedBack = (termination: Termination, millis: Millis): Termination =>
  withTimes(termination, (time: Millis) => time - millis) as Termination;

/** As the status is to have it, but for its containers and what was given up. */
export const terminationRecord = ({ forced: _, ...termination }: Termination): PodTermination =>
  withTimes(termination, formatMicroTime) as PodTermination;

/** As the status has it; undefined: it has none that says when it began and when it ends. */
export function recordedTermination({ status }: Pod): Termination | undefined {
  const { containers: _, skip: __, ...recorded } = status?.termination ?? {};
  const termination = withTimes(recorded, parseTime) as Partial<Termination>;
  const { startedAt, deadline } = termination;
  if (startedAt === undefined || deadline === undefined) return undefined;
  return { preExitDeadline: deadline, ...termination } as Termination;
}
