/**
 * Tracks the state of the zones of a cluster, and limits how many nodes of a zone get the NoExecute taint per second. If many nodes are not
 * ready, the cause is probably the network or the control plane, and their Pods still run. The functions perform no I/O.
 * Source: "Rate limits on eviction" in "Nodes" of the v1.33 documentation; ComputeZoneState, ReducedQPSFunc and handleDisruption of
 * pkg/controller/nodelifecycle of v1.33 (behavior); GetZoneKey of k8s.io/component-helpers/node/topology.
 */
import { isNodeReady } from '../../api/core/v1/node/ready.ts';
import type { Node } from '../../api/generated/types.ts';

/**
 * The defaults of upstream's --node-eviction-rate, --secondary-node-eviction-rate, --large-cluster-size-threshold and
 * --unhealthy-zone-threshold.
 */
const EVICTIONS_PER_SECOND = 0.1;
const SECONDARY_EVICTIONS_PER_SECOND = 0.01;
const LARGE_ZONE_NODES = 50;
const UNHEALTHY_SHARE = 0.55;

/** Nodes with this label do not count in the state of their zone. */
const EXCLUDED = 'node.kubernetes.io/exclude-disruption';

export type ZoneState = 'Normal' | 'PartialDisruption' | 'FullDisruption';

export interface ZoneCounts {
  ready: number;
  notReady: number;
}

export function zoneState({ ready, notReady }: ZoneCounts): ZoneState {
  if (ready === 0 && notReady > 0) return 'FullDisruption';
  return notReady > 2 && notReady / (notReady + ready) >= UNHEALTHY_SHARE ? 'PartialDisruption' : 'Normal';
}

/**
 * Returns how many nodes of the zone get the NoExecute taint per second; 0 if none get it. As in upstream, a zone in which no node is ready
 * has the rate of a healthy zone.
 */
export function evictionsPerSecond(counts: ZoneCounts): number {
  if (zoneState(counts) !== 'PartialDisruption') return EVICTIONS_PER_SECOND;
  return counts.ready + counts.notReady > LARGE_ZONE_NODES ? SECONDARY_EVICTIONS_PER_SECOND : 0;
}

/** Returns `REGION/ZONE` from the labels of the node. Nodes without these labels share the zone `/`. */
export const zoneOf = ({ metadata: { labels = {} } }: Node): string =>
  ['region', 'zone'].map((kind) => labels[`topology.kubernetes.io/${kind}`] ?? '').join('/');

const isCounted = ({ metadata: { labels = {} } }: Node): boolean => !(EXCLUDED in labels);

export interface Zones {
  /** Adds or updates the node. Returns whether rateOf() of a zone or areAllDown() has changed. */
  set(node: Node): boolean;
  remove(name: string): boolean;
  /** In evictions per second. */
  rateOf(zone: string): number;
  /** Whether there are nodes, but none is ready. Then no node has the NoExecute taint. */
  areAllDown(): boolean;
}

/** Counts the nodes of each zone, so that a change of one node examines no other node. */
export function createZones(): Zones {
  const nodes = new Map<string, { zone: string; counts: keyof ZoneCounts }>();
  const zones = new Map<string, ZoneCounts>();
  const total: ZoneCounts = { ready: 0, notReady: 0 };
  const countsOf = (zone: string): ZoneCounts => zones.get(zone) ?? { ready: 0, notReady: 0 };
  const areAllDown = (): boolean => zoneState(total) === 'FullDisruption';
  const add = (zone: string, counts: keyof ZoneCounts, by: 1 | -1): void => {
    const changed = { ...countsOf(zone) };
    changed[counts] += by;
    total[counts] += by;
    if (changed.ready + changed.notReady === 0) zones.delete(zone);
    else zones.set(zone, changed);
  };
  const change = (name: string, to: { zone: string; counts: keyof ZoneCounts } | undefined): boolean => {
    const from = nodes.get(name);
    if (from?.zone === to?.zone && from?.counts === to?.counts) return false;
    const affected = [from?.zone, to?.zone].filter((zone) => zone !== undefined);
    const seen = (): string =>
      JSON.stringify([areAllDown(), affected.map((zone) => evictionsPerSecond(countsOf(zone)))]);
    const before = seen();
    if (from !== undefined) add(from.zone, from.counts, -1);
    if (to === undefined) nodes.delete(name);
    else {
      nodes.set(name, to);
      add(to.zone, to.counts, 1);
    }
    return before !== seen();
  };
  return {
    set: (node) =>
      change(
        node.metadata.name,
        isCounted(node) ? { zone: zoneOf(node), counts: isNodeReady(node) ? 'ready' : 'notReady' } : undefined,
      ),
    remove: (name) => change(name, undefined),
    rateOf: (zone) => evictionsPerSecond(countsOf(zone)),
    areAllDown,
  };
}
