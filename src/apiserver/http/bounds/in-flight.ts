/**
 * Limits the requests that the server handles at the same time, except long-running requests (see limits.ts).
 *
 * If a user may not have one more request in flight (see shared-places.ts), a request waits in the user's queue. Users with waiting
 * requests take turns. A request that waits too long, or finds no place in the queue, gets 429 TooManyRequests.
 *
 * The limits have the effect of upstream's API Priority and Fairness with its suggested configuration: system:masters is exempt, components
 * of the cluster have a share of their own, and users do not wait for each other. There are no FlowSchemas and no
 * PriorityLevelConfigurations: one process without peers needs neither several flows per user nor shares that can be lent.
 * Source: k8s.io/apiserver/pkg/server/filters/priority-and-fairness.go and pkg/util/flowcontrol of v1.33 (behavior).
 */

import { ApiError } from '../../../machinery/status.ts';
import { onAbort } from '../../../platform/on-abort.ts';
import type { Timers } from '../../../platform/platform.ts';
import type { UserInfo } from '../../../ports/request.ts';
import { isPrivileged } from '../../auth/authorization/authorizer.ts';
import type { Exchange } from '../exchange.ts';
import type { RequestMetrics } from '../request-metrics.ts';
import { busy, type Limits } from './limits.ts';
import { sharedPlaces } from './shared-places.ts';
import { turnToBegin } from './turns.ts';

/** Source: a quarter of --request-timeout of v1.33. */
const QUEUE_MILLIS = 15_000;

/**
 * Counts the request as in flight when its user may have one more. The caller must call the resulting function once when the request has
 * ended. Returns no promise if the request may begin at once. Rejects with 429 TooManyRequests if the user has too many waiting requests,
 * or if this request has waited for QUEUE_MILLIS, and with the reason of the request's signal if the client disconnects before its turn.
 */
export type EnterFlight = (exchange: Exchange) => (() => void) | Promise<() => void>;

export function requestsInFlight(limits: QueueLimits, timers: Timers, measure: Measure): EnterFlight {
  const { enter, wait } = fairQueue(limits, timers);
  const waitCounted = async (exchange: Exchange): Promise<() => void> => {
    measure.queued(exchange, 1);
    try {
      return await wait(exchange.user, exchange.signal);
    } catch (error) {
      if (error instanceof ApiError) measure.dropped(exchange);
      throw error;
    } finally {
      measure.queued(exchange, -1);
    }
  };
  const begin = (exchange: Exchange, free: () => void): (() => void) | Promise<() => void> => {
    measure.inFlight(exchange, 1);
    const leave = (): void => {
      measure.inFlight(exchange, -1);
      free();
    };
    const turn = turnToBegin(exchange.user);
    return turn === undefined ? leave : turn.then(() => leave);
  };
  return (exchange) => {
    const free = enter(exchange.user);
    return free === undefined ? waitCounted(exchange).then((later) => begin(exchange, later)) : begin(exchange, free);
  };
}

type QueueLimits = Pick<Limits, 'inFlight' | 'queued'>;
type Measure = Pick<RequestMetrics, 'inFlight' | 'queued' | 'dropped'>;

interface Waiting {
  user: UserInfo;
  proceed(leave: () => void): void;
}

const NEEDS_NO_PLACE = (): void => undefined;

interface FairQueue {
  /** Returns a function that frees the place, or undefined if the request must wait. */
  enter(user: UserInfo): (() => void) | undefined;
  /** Resolves to a function that frees the place. Rejects like EnterFlight. */
  wait(user: UserInfo, signal: AbortSignal): Promise<() => void>;
}

export function fairQueue({ inFlight, queued }: QueueLimits, timers: Timers): FairQueue {
  const seats = sharedPlaces(inFlight);
  const queue = sharedPlaces(queued);
  /** The users are in the order of their turns. */
  const lines = new Map<string, Set<Waiting>>();
  const take = (user: UserInfo): (() => void) | undefined => {
    const leave = seats.take(user);
    return (
      leave &&
      (() => {
        leave();
        admit();
      })
    );
  };
  /** Lets requests proceed, one of each user in turn, until no user may have a further place. */
  const admit = (): void => {
    for (const [name, line] of lines) {
      const [first] = line;
      const leave = first && take(first.user);
      if (first === undefined || leave === undefined) continue;
      line.delete(first);
      lines.delete(name);
      if (line.size > 0) lines.set(name, line);
      first.proceed(leave);
    }
  };
  const join = (waiting: Waiting): (() => void) => {
    const { name } = waiting.user;
    const line = lines.get(name) ?? new Set();
    lines.set(name, line.add(waiting));
    return () => {
      line.delete(waiting);
      if (line.size === 0 && lines.get(name) === line) lines.delete(name);
    };
  };
  return {
    enter(user) {
      if (isPrivileged(user)) return NEEDS_NO_PLACE;
      // A new request must not overtake the waiting requests of the same user.
      return lines.has(user.name) ? undefined : take(user);
    },
    async wait(user, signal) {
      const free = queue.take(user);
      if (free === undefined) throw busy();
      const turn = Promise.withResolvers<() => void>();
      const leaveLine = join({ user, proceed: turn.resolve });
      // Leave the queue at once: a place that is given to a request that no longer waits would never be freed.
      const giveUp = (error: unknown): void => {
        leaveLine();
        turn.reject(error);
      };
      const timer = timers.at(timers.now() + QUEUE_MILLIS, () => giveUp(busy()));
      const abort = (): void => giveUp(signal.reason);
      onAbort(signal, abort);
      try {
        return await turn.promise;
      } finally {
        free();
        timer.cancel();
        signal.removeEventListener('abort', abort);
      }
    },
  };
}
