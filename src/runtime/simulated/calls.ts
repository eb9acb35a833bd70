/** The calls of a simulated runtime: their latency, their faults, and the times at which the runtime does not respond. */
import type { Millis } from '../../machinery/time.ts';
import { pause } from '../../platform/pause.ts';
import type { Timers } from '../../platform/platform.ts';
import { OutcomeUnknownError } from '../runtime.ts';

export interface CallOptions {
  timers: Timers;
  /** Latency of a call. */
  latencyMillis?: (call: string) => Millis;
  /** Throws to make a call fail. */
  fault?: (call: string) => void;
}

/** An interval in which the runtime does not respond. */
export interface Unreachable {
  millis: Millis;
  /** The calls under way still take effect at their time; absent: they never do. */
  takesEffect?: boolean;
}

export interface Calls {
  /** Every call, in order: for assertions. */
  readonly made: { at: Millis; call: string }[];
  readonly reachable: boolean;
  /**
   * Makes one call: waits for its latency, then for its effect. The effect takes place even if the caller has gone;
   * `caller` returns a signal that aborts when the caller has gone or the connection was cut.
   */
  run<T>(call: string, signal: AbortSignal, effect: (caller: () => AbortSignal) => T | Promise<T>): Promise<T>;
  /** Rejects with an OutcomeUnknownError if the runtime is unreachable, or becomes so before `work` has ended. */
  through<T>(what: string, work: Promise<T>): Promise<T>;
  /** Cuts every call under way and refuses every new one for the interval; intervals may overlap. */
  cut(interval: Unreachable, back: () => void): void;
}

export function createCalls({ timers, latencyMillis, fault }: CallOptions): Calls {
  const made: Calls['made'] = [];
  const underWay = new Set<(takesEffect: boolean) => void>();
  let outages = 0;

  const wait = (millis: Millis): Promise<void> => pause(timers, millis);

  /** `cut`: called when the connection is cut, with whether the effect still takes place. */
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
    throw new OutcomeUnknownError(`${what}: the runtime does not answer`);
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
