/** Simulates the calls to a runtime: their latency, their failures, and outages during which the runtime does not respond. */
import type { Millis } from '../../machinery/time.ts';
import { pause } from '../../platform/pause.ts';
import type { Timers } from '../../platform/platform.ts';
import { OutcomeUnknownError } from '../runtime.ts';

export interface CallOptions {
  timers: Timers;
  /** Absent: 1 ms for every call. `call`: the name of the method, such as stopContainer. */
  latencyMillis?: (call: string) => Millis;
  /** Called before a call takes effect. If `fault` throws, the call does not take effect and rejects with the error. */
  fault?: (call: string) => void;
}

/** An interval during which the runtime does not respond. */
export interface Unreachable {
  millis: Millis;
  /** Whether the calls that are under way when the outage begins still take effect after their latency; absent: they do not. */
  takesEffect?: boolean;
}

export interface Calls {
  /** The calls that were made with run(), in order. For assertions. */
  readonly made: { at: Millis; call: string }[];
  readonly reachable: boolean;
  /**
   * Makes one call: waits for its latency, calls `effect`, even if the caller has aborted the call, and resolves with the result of
   * `effect`. `caller` returns a signal that aborts if the caller aborts the call or the connection is cut. During an outage, rejects after
   * the latency instead. If an outage begins during the call, rejects immediately, and calls `effect` only if the outage has `takesEffect`.
   */
  run<T>(call: string, signal: AbortSignal, effect: (caller: () => AbortSignal) => T | Promise<T>): Promise<T>;
  /**
   * Resolves with the result of `work`. Rejects with an OutcomeUnknownError if the runtime is unreachable, or becomes unreachable before
   * `work` has ended. `what`: names the work in the error message.
   */
  through<T>(what: string, work: Promise<T>): Promise<T>;
  /**
   * Starts an outage: every call that is under way, or is made before the outage ends, rejects. Outages may overlap. `back`: called when
   * this outage ends, unless another outage still lasts.
   */
  cut(interval: Unreachable, back: () => void): void;
}

export function createCalls({ timers, latencyMillis, fault }: CallOptions): Calls {
  const made: Calls['made'] = [];
  const underWay = new Set<(takesEffect: boolean) => void>();
  let outages = 0;

  const wait = (millis: Millis): Promise<void> => pause(timers, millis);

  /** Rejects when an outage begins. `cut`: called at this time. `takesEffect`: as for Unreachable. */
  const race = async <T>(what: string, work: Promise<T>, cut?: (takesEffect: boolean) => void): Promise<T> => {
    const lost = Promise.withResolvers<never>();
    const end = (takesEffect: boolean): void => {
      cut?.(takesEffect);
      lost.reject(new OutcomeUnknownError(`${what}: the connection to the runtime was cut`));
    };
    underWay.add(end);
    try {
      return await Promise.race([work, lost.promise]);
    } finally {
      underWay.delete(end);
    }
  };

  const refuse = (what: string): never => {
    throw new OutcomeUnknownError(`${what}: the runtime does not respond`);
  };

  return {
    made,
    get reachable() {
      return outages === 0;
    },
    async run(call, signal, effect) {
      signal.throwIfAborted();
      made.push({ at: timers.now(), call });
      if (outages > 0) {
        await wait(latencyMillis?.(call) ?? 1);
        return refuse(call);
      }
      const connection = new AbortController();
      const caller = (): AbortSignal => AbortSignal.any([signal, connection.signal]);
      let dropped = false;
      const work = async () => {
        await wait(latencyMillis?.(call) ?? 1);
        if (dropped) return new Promise<never>(() => undefined);
        fault?.(call);
        return effect(caller);
      };
      const result = await race(call, work(), (takesEffect) => {
        dropped = !takesEffect;
        connection.abort(new Error('the connection was cut'));
      });
      signal.throwIfAborted();
      return result;
    },
    async through(what, work) {
      if (outages === 0) return race(what, work);
      void work.catch(() => undefined);
      return refuse(what);
    },
    cut({ millis, takesEffect = false }, back) {
      outages++;
      for (const end of [...underWay]) end(takesEffect);
      timers.at(timers.now() + millis, () => {
        outages--;
        if (outages === 0) back();
      });
    },
  };
}
