/** Finds why a Pod was terminated, what moved its deadline, and when it was over, for `lifepod timeline` and `why`. Pure. */
import type { Transition } from '../../lifecycle/types.ts';
import { listed } from '../why/subject.ts';
import { shortDuration } from './scale.ts';

/** A shorter time between the end of the termination and the deletion of the object is not shown. */
const SHORT_MILLIS = 500;

/**
 * Returns the step at which the termination was over; undefined if the Pod is not gone. Finalizers may keep the object after the Pod has
 * ended, and a completed Pod exists until it is deleted, so Finished or Removed counts unless the deletion was at about the same time.
 * `steps` are in the order of their times.
 */
export function endOfTermination(steps: readonly Transition[]): Transition | undefined {
  const of = (type: string): Transition | undefined => steps.find((step) => step.type === type);
  const gone = of('Gone') ?? of('Removed');
  const ended = of('Finished') ?? of('Removed');
  if (gone === undefined || ended === undefined) return gone;
  return Math.abs(gone.at - ended.at) < SHORT_MILLIS ? gone : ended;
}

/**
 * Returns everything that has moved the deadline, as a noun phrase; undefined if the record has no cause. Omits moves that do not change
 * the text of the deadline. `steps`: the steps with deadlines, in order.
 */
export function causesOfMoves(steps: readonly Transition[], began: Transition): string | undefined {
  const texts = steps.map(({ deadline = began.at }) => shortDuration(deadline - began.at));
  const moves = steps.flatMap(({ message }, i) => (i > 0 && texts[i] !== texts[i - 1] ? (message ?? []) : []));
  const causes = moves.flatMap((message) => message.split(' and ').map(withoutClause));
  return causes.length === 0 ? undefined : listed([...new Set(causes)]);
}

/** Returns a cause of a record that an older lifepod wrote in the words of today. */
const withoutClause = (cause: string): string => cause.replace(', which does not count', '');

/**
 * Returns the reason of the termination. An eviction by the node is not called NodePressure, its reason in the API, because that is also
 * the reason for a Pod that exceeded a limit of its own.
 */
export const terminationReason = ({ reason }: Transition): string | undefined =>
  reason === 'NodePressure' ? 'Evicted by its node' : reason;

export const firstSentence = (text: string): string => text.replace(/\.(\s.*)?$/s, '');

/** Returns the message with which the node evicted the Pod; undefined if the record has none. */
export function evictionMessage(steps: readonly Transition[]): string | undefined {
  const { message = '' } = steps.find(({ type }) => type === 'Finished') ?? {};
  return /^Evicted: (.+)/s.exec(message)?.[1]?.trim();
}
