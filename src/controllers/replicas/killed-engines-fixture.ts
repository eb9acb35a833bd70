/** Runs a controller in consecutive engines for property tests. The test kills each engine between two of its writes. */
import { mortal } from '../../../test/support/simulated-nodes/mortal.ts';
import { type RegistryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import type { ResourceRef } from '../../machinery/meta.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import type { ResourceApi } from '../../ports/backend.ts';
import type { ControllerOptions } from '../controller.ts';

const WRITES = ['create', 'update', 'patch', 'delete'] as const;

export interface KilledEngines {
  /** Kills the running engine after this many more writes, as with kill -9, and then starts the next engine. */
  killAfter(writes: number): void;
  /** Returns how many creates since the last call were in flight when an engine was killed, and may still take effect. Ignores Events. */
  takeLateCreates(): number;
  /** Like takeLateCreates(), but for deletes. */
  takeLateDeletes(): number;
  /** Advances the clock by six minutes, and resolves when the engine is idle. The engine is not killed meanwhile. */
  settled(): Promise<void>;
  end(): void;
}

/** Lets the engine work for some turns of the event loop. */
export const turns = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i++) await new Promise(setImmediate);
};

export interface KilledEnginesOptions {
  start: (options: ControllerOptions) => Promise<void>;
  /** By plural name of a resource: by how many turns of the event loop its watch events are delayed. */
  lags: Readonly<Record<string, number>>;
  written: () => void;
  timers?: VirtualTimers;
}

export function killedEngines(backend: RegistryBackend, options: KilledEnginesOptions): KilledEngines {
  const { start, lags, written, timers = createVirtualTimers() } = options;
  const late = { create: 0, delete: 0 };
  let engine = begin();

  function begin() {
    const stop = new AbortController();
    const state = { isAlive: true, writesLeft: Number.POSITIVE_INFINITY, underWay: { create: 0, delete: 0 } };
    const die = (): void => {
      state.isAlive = false;
      late.create += state.underWay.create;
      late.delete += state.underWay.delete;
      stop.abort();
    };
    const ended = (): void => {
      written();
      state.writesLeft -= 1;
      if (state.writesLeft > 0 || !state.isAlive) return;
      die();
      setImmediate(() => (engine = begin()));
    };
    const api: ResourceApi = {
      ...backend,
      watch(ref, watching, sink, signal) {
        const deliver: typeof sink = (event) => void turns(lags[ref.resource] ?? 0).then(() => sink(event));
        return backend.watch(ref, watching, deliver, signal);
      },
    };
    for (const verb of WRITES) {
      const call = backend[verb] as (...args: unknown[]) => Promise<unknown>;
      const counted = (...args: unknown[]): Promise<unknown> => {
        const isLate = (verb === 'create' || verb === 'delete') && (args[0] as ResourceRef).resource !== 'events';
        if (isLate) state.underWay[verb] += 1;
        return call(...args).finally(() => {
          if (isLate) state.underWay[verb] -= 1;
          ended();
        });
      };
      Object.assign(api, { [verb]: counted });
    }
    const client = clientOf(mortal(api, () => state.isAlive));
    void start(withInformers({ client, timers, log: silentLog, signal: stop.signal }));
    return { state, die };
  }

  const take = (verb: keyof typeof late): number => {
    const taken = late[verb];
    late[verb] = 0;
    return taken;
  };

  return {
    killAfter(writes) {
      engine.state.writesLeft = writes;
    },
    takeLateCreates: () => take('create'),
    takeLateDeletes: () => take('delete'),
    async settled() {
      engine.state.writesLeft = Number.POSITIVE_INFINITY;
      for (let i = 0; i < 3; i++) {
        await turns(150);
        timers.advance(120_000);
      }
      await turns(150);
    },
    end: () => engine.die(),
  };
}
