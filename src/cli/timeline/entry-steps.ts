/** Corrects the order of the steps of defer containers (entries). Pure. */
import type { Transition } from '../../lifecycle/types.ts';

/** The steps of the preparation of an image. Without a pull, a missing image is a failed start. */
const IMAGE_STEPS: readonly string[] = ['Pulling', 'Pulled', 'PullFailed', 'StartFailed'];

/**
 * Returns all steps, preceded by a copy of the steps of defer containers, which follow the order of their list. The copy omits the steps of
 * images, which the node prepares in any order. For callers that look for the first step of each container.
 */
export const inListOrder = (recorded: readonly Transition[]): Transition[] => [
  ...recorded.filter(({ containerKind, type }) => containerKind === 'defer' && !IMAGE_STEPS.includes(type)),
  ...recorded,
];

/** Returns the names of the defer containers in the order of their list. `recorded`: the steps in the order of the record. */
export const entriesOf = (recorded: readonly Transition[]): string[] => [
  ...new Set(
    inListOrder(recorded).flatMap(({ containerKind, container }) =>
      containerKind === 'defer' && container !== undefined ? [container] : [],
    ),
  ),
];

/**
 * Returns the steps of one container. If the end of an entry precedes other steps by less than a second, moves it to the last place: in
 * records of older versions, the end of an entry without a run has the time of its status, whose whole seconds may precede earlier steps.
 * `own`: sorted by time.
 */
export function withLastEnd(own: readonly Transition[]): readonly Transition[] {
  const end = own.findLast(({ type }) => type === 'DeferEnded');
  const last = own.at(-1);
  if (end === undefined || last === undefined || last.at - end.at >= 1000) return own;
  return [...own.filter((step) => step !== end), { ...end, at: last.at }];
}
