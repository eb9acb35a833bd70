/** A rule is a generator of effects. It does not see the effects of other rules. */
import type { Millis } from '../machinery/time.ts';
import { type Action, actionKey, type FailedAction, type Memory, type ProbeMemory, type Stop } from './types.ts';
import type { PodView } from './view.ts';

export type Effect =
  | { action: Action; after?: RetryAt | undefined } // after: replaces the back-off.
  | { wakeAt: Millis }
  | { run: string; stop: Stop } // Why the run is ended. The first reason stays.
  | { signal: string } // The run gets its stop signal now. The first time stays.
  | { probe: string; memory: ProbeMemory };

/** Returns the earliest time of the next try. */
export type RetryAt = (failure: Pick<FailedAction, 'at' | 'count'>) => Millis;

export type Rule<Result = void> = Generator<Effect, Result, undefined>;

export const act = (action: Action, after?: RetryAt): Effect => ({ action, after });
export const wake = (wakeAt: Millis): Effect => ({ wakeAt });

/** In seconds. Each failed try doubles the delay, from `first` up to `longest`. */
export const LONG = { first: 10, longest: 300 };
export const SHORT = { first: 1, longest: 10 };

const retryAfter =
  ({ first, longest }: typeof LONG): RetryAt =>
  ({ at, count }) =>
    at + Math.min(longest, first * 2 ** (count - 1)) * 1000;

/** Source: Images, "ImagePullBackOff" (v1.33). */
export const pullRetryAt = retryAfter(LONG);
/** Short, because most failures of actions other than pulls are transient. */
export const retryAt = retryAfter(SHORT);

export interface Plan extends Pick<Memory, 'stops' | 'signalledAt' | 'probes'> {
  actions: Action[];
  wakeAt: Millis | undefined; // When to decide again if nothing changes before; undefined: only after a change.
  killedAt: ReadonlyMap<string, Millis>; // By ID of the run: the deadline of the kill that is requested or under way.
  pending(key: string): boolean; // Whether the action with this key is under way or requested now.
}

export function reduce(view: PodView, effects: Iterable<Effect>): Plan {
  const { now } = view;
  const actions = new Map<string, Action>();
  const times: Millis[] = [];
  const [stops, signalledAt, probes] = [{ ...view.stops }, { ...view.signalledAt }, { ...view.probes }];
  const pending = (key: string): boolean => view.isUnderWay(key) || actions.has(key);
  for (const effect of effects) {
    if ('wakeAt' in effect) times.push(effect.wakeAt);
    else if ('stop' in effect) stops[effect.run] ??= effect.stop;
    else if ('signal' in effect) signalledAt[effect.signal] ??= now;
    else if ('probe' in effect) probes[effect.probe] = effect.memory;
    else {
      const { action, after } = effect;
      const key = actionKey(action);
      if (pending(key)) continue;
      const failure = view.lastTryOf(key);
      const isPull = action.kind === 'pullImage' || failure?.image !== undefined;
      const retry = after ?? (isPull ? pullRetryAt : retryAt);
      const dueAt = failure === undefined || failure.due === true ? now : retry(failure);
      if (dueAt > now) times.push(dueAt);
      else actions.set(key, action);
    }
  }
  const wakeAt = times.filter((at) => at > now && Number.isFinite(at)).sort((a, b) => a - b)[0];
  const kills = [...actions.values(), ...view.observed.underWay].filter((action) => action.kind === 'stopContainer');
  const killedAt = new Map(kills.reverse().map(({ id, deadline }) => [id, deadline]));
  return { actions: [...actions.values()], wakeAt, killedAt, stops, signalledAt, probes, pending };
}
