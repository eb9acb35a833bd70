/**
 * Gives the nodes of a zone their turns to get the NoExecute taint, one after another, at the rate of the zone.
 * Source: RateLimitedTimedQueue of pkg/controller/nodelifecycle/scheduler of v1.33, whose token bucket has one token (behavior).
 */
import type { Millis } from '../../machinery/time.ts';
import type { Timers } from '../../platform/platform.ts';
import { createWakes } from '../wakes.ts';

export interface EvictionTurns {
  /** Whether the node has its turn, or has had it since the last leave(). Otherwise the node waits, and `due` is called at its turn. */
  isTurn(node: string, zone: string): boolean;
  /** The node no longer needs a turn. */
  leave(node: string): void;
  /** Reads the rates of the zones with waiting nodes again, and reschedules the turns. */
  ratesChanged(): void;
}

interface Zone {
  /** Names of the waiting nodes, in the order of their turns. */
  waiting: Set<string>;
  rate: number;
  /** The earliest time of the next turn; infinite if the rate is 0. */
  nextAt: Millis;
}

export function createEvictionTurns(options: {
  /** Returns the number of turns per second; 0 if the nodes of the zone get no turns. */
  rateOf: (zone: string) => number;
  due: (node: string) => void;
  timers: Timers;
  signal: AbortSignal;
}): EvictionTurns {
  const { rateOf, due, timers, signal } = options;
  const zones = new Map<string, Zone>();
  /** By node: the zone in which it waits or has had its turn. */
  const zoneNames = new Map<string, string>();
  const wakes = createWakes(timers, signal, (name) => {
    const [first] = zones.get(name)?.waiting ?? [];
    if (first !== undefined) due(first);
  });

  const intervalMillis = (rate: number): Millis => (rate === 0 ? Number.POSITIVE_INFINITY : 1000 / rate);

  /** Returns the zone with its current rate. When the rate changes, a turn that was not due waits for the whole new interval. */
  function current(name: string): Zone {
    const rate = rateOf(name);
    const zone = zones.get(name) ?? {
      waiting: new Set<string>(),
      rate,
      nextAt: rate === 0 ? Number.POSITIVE_INFINITY : 0,
    };
    zones.set(name, zone);
    if (zone.rate === rate) return zone;
    if (zone.nextAt > timers.now() || rate === 0) zone.nextAt = timers.now() + intervalMillis(rate);
    zone.rate = rate;
    return zone;
  }

  function wake(name: string, { waiting, nextAt }: Zone): void {
    wakes.set(name, waiting.size > 0 && nextAt !== Number.POSITIVE_INFINITY ? nextAt : undefined);
  }

  function leave(node: string): void {
    const name = zoneNames.get(node);
    if (name === undefined) return;
    zoneNames.delete(node);
    const zone = current(name);
    if (zone.waiting.delete(node)) wake(name, zone);
  }

  return {
    isTurn(node, name) {
      if (zoneNames.get(node) !== name) leave(node);
      const zone = current(name);
      if (zoneNames.has(node) && !zone.waiting.has(node)) return true;
      zoneNames.set(node, name);
      zone.waiting.add(node);
      const [first] = zone.waiting;
      const now = timers.now();
      const isTurn = first === node && zone.nextAt <= now;
      if (isTurn) {
        zone.waiting.delete(node);
        zone.nextAt = now + intervalMillis(zone.rate);
      }
      wake(name, zone);
      return isTurn;
    },
    leave,
    ratesChanged() {
      for (const [name, zone] of zones) if (zone.waiting.size > 0) wake(name, current(name));
    },
  };
}
