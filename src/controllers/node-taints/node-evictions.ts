/** Decides when a node gets the NoExecute taint of its state. The invariants are in node-taints.ts. */
import type { Node, Taint } from '../../api/generated/types.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import { EVICTING_KEYS, SHUTTING_DOWN } from '../../scheduling/node-taints.ts';
import { SUSPENDED_MILLIS } from '../controller.ts';
import { createWakes } from '../wakes.ts';
import { createEvictionTurns } from './eviction-turns.ts';
import { createZones, zoneOf } from './zones.ts';

/** A node gets the NoExecute taint after it has not been ready for this time. */
const EVICTS_AFTER_MILLIS = 30_000;

export interface NodeEvictions {
  set(node: Node): void;
  remove(name: string): void;
  /** Whether the node must have the NoExecute taint now. If this may become true later, `due` is called then. */
  isDue(node: Node, now: Millis): boolean;
}

export function createNodeEvictions(options: {
  /** Called with the name of a node when the result of isDue() may have changed. */
  due: (name: string) => void;
  timers: Timers;
  log: Log;
  signal: AbortSignal;
}): NodeEvictions {
  const { due, timers, log, signal } = options;
  /**
   * The earliest time from which the 30 s count: the start of the controller, the end of the last suspension of the machine, or the end of
   * the last period in which no node was ready, whichever is last.
   */
  let countsFrom = timers.now();
  const names = new Set<string>();
  /** By node name: when the node will have been not ready for 30 s. */
  const dueAt = new Map<string, Millis>();
  const wakes = createWakes(timers, signal, (name) => {
    if (timers.now() - (dueAt.get(name) ?? timers.now()) >= SUSPENDED_MILLIS) countsFrom = timers.now();
    due(name);
  });
  const zones = createZones();
  const turns = createEvictionTurns({ rateOf: zones.rateOf, due, timers, signal });
  let wereAllDown = false;

  const zonesChanged = (): void => {
    turns.ratesChanged();
    if (zones.areAllDown() === wereAllDown) return;
    wereAllDown = zones.areAllDown();
    if (!wereAllDown) countsFrom = timers.now();
    log.debug(`node-taints: ${wereAllDown ? 'no node is ready: no Pod is evicted for that' : 'a node is ready'}`);
    for (const name of names) due(name);
  };

  return {
    set(node) {
      names.add(node.metadata.name);
      if (zones.set(node)) zonesChanged();
    },
    remove(name) {
      names.delete(name);
      wakes.cancel(name);
      dueAt.delete(name);
      turns.leave(name);
      if (zones.remove(name)) zonesChanged();
    },
    isDue(node, now) {
      const { name } = node.metadata;
      const since = notReadySince(node);
      const isTainted = (node.spec?.taints ?? []).some(isEvicting);
      const at = since === undefined ? Number.POSITIVE_INFINITY : Math.max(since, countsFrom) + EVICTS_AFTER_MILLIS;
      const isWaiting = !isTainted && now < at && at !== Number.POSITIVE_INFINITY;
      if (isWaiting) dueAt.set(name, at);
      else dueAt.delete(name);
      wakes.set(name, isWaiting ? at : undefined);
      const mayEvict = since !== undefined && !zones.areAllDown();
      if (mayEvict && !isTainted && now >= at) return turns.isTurn(name, zoneOf(node));
      turns.leave(name);
      return mayEvict && isTainted;
    },
  };
}

export const isEvicting = ({ key, effect }: Taint): boolean => effect === 'NoExecute' && EVICTING_KEYS.includes(key);

/**
 * Returns since when the node has not been ready: 0 if the Ready condition has no time; undefined if the node is ready, has no Ready
 * condition, or is shutting down.
 */
function notReadySince({ status }: Node): Millis | undefined {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready === undefined || ready.status === 'True' || ready.message?.includes(SHUTTING_DOWN)) return undefined;
  return parseTime(ready.lastTransitionTime) ?? 0;
}
