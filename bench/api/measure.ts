import { median } from '../engine.ts';
import type { BenchServer } from './bench-server.ts';
import { Connection, type Target } from './connection.ts';

export interface Figure {
  what: string;
  value: number;
  /**
   * A rate (/s) is better if it is higher. A figure with another unit is better if it is lower. `×` is a ratio of two figures of the same
   * round.
   */
  unit: '/s' | 'ms' | 'µs' | 'MiB' | '×';
}

export type Measure = () => Promise<Figure[]>;

export interface Running {
  /** The checkouts run each of these short measurements in turns. */
  measures: Measure[];
  end(): Promise<void>;
}

export interface Section {
  /** Absent: once. */
  starts?: number;
  /** After each start. */
  rounds: number;
  open(checkout: string): Promise<Running>;
}

export type Request = Parameters<Connection['send']>;

export const AT_ONCE = 64;

export const openMany = (target: Target, count: number): Promise<Connection[]> =>
  openAll(() => Connection.open(target), count);

export async function openAll<T>(open: () => Promise<T>, count: number): Promise<T[]> {
  const opened: T[] = [];
  while (opened.length < count) {
    const some = Array.from({ length: Math.min(AT_ONCE, count - opened.length) }, open);
    opened.push(...(await Promise.all(some)));
  }
  return opened;
}

type Sender = Pick<Connection, 'send'>;

/** Sends one request at a time over each connection. Resolves with the requests per second. */
export async function rateOf(connections: readonly Sender[], count: number, request: () => Request): Promise<number> {
  let left = count;
  const began = performance.now();
  await Promise.all(
    connections.map(async (connection) => {
      while (left-- > 0) await connection.send(...request());
    }),
  );
  return count / ((performance.now() - began) / 1000);
}

export async function millisOf(times: number, call: () => Promise<unknown>): Promise<number> {
  const durations: number[] = [];
  for (let i = 0; i < times; i++) {
    const began = performance.now();
    await call();
    durations.push(performance.now() - began);
  }
  return median(durations);
}

export const perSecond = (what: string, value: number): Figure => ({ what, value, unit: '/s' });
export const millis = (what: string, value: number): Figure => ({ what, value, unit: 'ms' });
export const mebibytes = (what: string, value: number): Figure => ({ what, value, unit: 'MiB' });

/** Also measures the server's CPU time per request, which varies less with other load on the machine. */
export function loadOf(
  server: BenchServer,
  what: string,
  connections: readonly Sender[],
  count: number,
  request: () => Request,
): Measure {
  return async () => {
    const before = await server.cpuMillis();
    const rate = await rateOf(connections, count, request);
    const micros = ((await server.cpuMillis()) - before) * (1000 / count);
    return [perSecond(what, rate), { what: 'the same, CPU of the server for one', value: micros, unit: 'µs' }];
  };
}
