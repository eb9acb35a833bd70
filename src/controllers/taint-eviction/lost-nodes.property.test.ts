/**
 * Tests properties of the controllers taint-eviction and pod-gc while nodes are tainted, removed and added, and the engine is killed
 * between any two of its writes. No Pod is evicted before its tolerationSeconds have passed, or fails before its node has been missing for
 * 40 s. Each Pod has its condition before it is deleted. Finally, all Pods that must be deleted have been or are being deleted, and no
 * other Pod has the condition. LIFEPOD_SEED repeats a run, whose seed is printed; LIFEPOD_RUNS sets the number of runs.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Node, Pod, PodCondition, Toleration } from '../../api/generated/types.ts';
import { NODES, PODS } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend } from '../../client/registry-fixture.ts';
import { uidOf } from '../../machinery/meta.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import { startPodGc } from '../pod-gc/pod-gc.ts';
import { type KilledEngines, killedEngines, turns } from '../replicas/killed-engines-fixture.ts';
import { startTaintEviction } from './taint-eviction.ts';

const seed = Number(process.env['LIFEPOD_SEED']);
const RUNS = Number(process.env['LIFEPOD_RUNS'] ?? 60);
console.log(`properties of lost nodes: seed ${seed} (LIFEPOD_SEED sets it)`);

const NODE_NAMES = ['n1', 'n2'] as const;
const KEYS = ['maintenance', 'node.kubernetes.io/not-ready'] as const;
const QUARANTINE_MILLIS = 40_000;
/** In turns of the event loop: longer than the lag of any watch. */
const CAUGHT_UP = 60;

type Step =
  | { do: 'taint' | 'untaint'; node: number; key: number }
  | { do: 'remove'; node: number }
  | { do: 'add'; node: number }
  | { do: 'create'; node: number; seconds: number[] }
  | { do: 'pass'; seconds: number }
  | { do: 'kill'; afterWrites: number }
  | { do: 'settle' };

const node = fc.nat(1);
/** The tolerationSeconds for each of KEYS. -1: no toleration; infinite: tolerated forever. */
const seconds = fc.tuple(...KEYS.map(() => fc.constantFrom(-1, 0, 20, 60, Number.POSITIVE_INFINITY)));
const pass = fc.record({ do: fc.constant('pass'), seconds: fc.constantFrom(1, 5, 19, 20, 39, 40) });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constantFrom('taint', 'untaint'), node, key: fc.nat(1) }),
  fc.record({ do: fc.constant('remove'), node }),
  fc.record({ do: fc.constant('add'), node }),
  fc.record({ do: fc.constant('create'), node, seconds }),
  fc.record({ do: fc.constant('create'), node, seconds }),
  pass,
  pass,
  fc.record({ do: fc.constant('kill'), afterWrites: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ do: fc.constant('settle') }),
);

interface NodeState {
  exists: boolean;
  /** When the node got each taint. Contains the last time for a removed taint, because a late engine may still act on it. */
  since: Map<string, Millis>;
  taints: Set<string>;
  missingSince: Millis;
}

interface PodState {
  node: NodeState;
  seconds: readonly number[];
  createdAt: Millis;
  pod: Pod;
}

class World {
  readonly faults: string[] = [];
  readonly #backend: RegistryBackend;
  readonly #timers: VirtualTimers = createVirtualTimers();
  readonly #engines: KilledEngines;
  readonly #nodes = new Map<string, NodeState>();
  readonly #pods = new Map<string, PodState>();

  constructor(backend: RegistryBackend, lags: Record<string, number>) {
    this.#backend = backend;
    this.#engines = killedEngines(backend, {
      start: async (options) => void (await Promise.all([startTaintEviction(options), startPodGc(options)])),
      lags,
      written: () => this.#check(),
      timers: this.#timers,
    });
  }

  async take(next: Step): Promise<void> {
    if (next.do === 'kill') return this.#engines.killAfter(next.afterWrites);
    if (next.do === 'settle') return this.settle();
    if (next.do === 'pass') return this.#pass(next.seconds);
    const name = NODE_NAMES[next.node] ?? 'n1';
    const state = this.#nodes.get(name);
    if (next.do === 'add') return this.add(name);
    if (state === undefined || !state.exists) return;
    if (next.do === 'create') return this.#create(name, state, next.seconds);
    if (next.do === 'remove') {
      Object.assign(state, { exists: false, missingSince: this.#timers.now(), taints: new Set() });
      return this.#backend.remove(NODES, undefined, name);
    }
    const key = KEYS[next.key] ?? KEYS[0];
    if (next.do === 'untaint') state.taints.delete(key);
    else if (!state.taints.has(key)) {
      state.taints.add(key);
      state.since.set(key, this.#timers.now());
    }
    await this.#write(name, state);
  }

  async add(name: string): Promise<void> {
    if (this.#nodes.get(name)?.exists) return;
    const before = this.#nodes.get(name);
    const fresh = { since: new Map(), taints: new Set<string>(), missingSince: Number.POSITIVE_INFINITY };
    const state = Object.assign(before ?? fresh, { exists: true });
    this.#nodes.set(name, state);
    await this.#write(name, state);
  }

  async settle(): Promise<void> {
    await turns(CAUGHT_UP);
    await this.#engines.settled();
    this.#check();
    for (const { node, seconds, pod } of this.#pods.values()) {
      // A node may return after its Pods have failed. These Pods have ended, and keep the condition.
      if (node.exists && pod.status?.phase === 'Failed') continue;
      const isLimited = KEYS.some((key, index) => node.taints.has(key) && Number.isFinite(seconds[index]));
      const mustGo = !node.exists || isLimited;
      const { name, deletionTimestamp } = pod.metadata;
      if (!node.exists) this.faults.push(`${name} is left although its node is missing`);
      else if (mustGo && deletionTimestamp === undefined) this.faults.push(`${name} was not evicted`);
      if (!mustGo && deletionTimestamp === undefined && markOf(pod)) this.faults.push(`${name} has a stale condition`);
    }
  }

  end = (): void => this.#engines.end();

  async #pass(duration: number): Promise<void> {
    await turns(CAUGHT_UP);
    this.#timers.advance(duration * 1000);
    await turns(CAUGHT_UP);
  }

  async #write(name: string, { taints, since }: NodeState): Promise<void> {
    const timeAdded = (key: string): string => formatTime(since.get(key) ?? 0);
    const spec = { taints: [...taints].map((key) => ({ key, effect: 'NoExecute', timeAdded: timeAdded(key) })) };
    await this.#backend.set<Node>(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name }, spec });
  }

  async #create(nodeName: string, state: NodeState, each: readonly number[]): Promise<void> {
    const tolerations = KEYS.flatMap((key, index): Toleration[] => {
      const limit = each[index] ?? -1;
      if (limit < 0) return key === 'maintenance' ? [] : [{ ...tolerated(key), tolerationSeconds: 0 }];
      return [Number.isFinite(limit) ? { ...tolerated(key), tolerationSeconds: limit } : tolerated(key)];
    });
    const metadata = { name: `p${this.#pods.size + 1}-${this.#timers.now()}`, namespace: 'a' };
    const spec = { nodeName, tolerations, containers: [{ name: 'app', image: 'x' }] };
    const pod = await this.#backend.set<Pod>(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec });
    this.#pods.set(uidOf(pod), { node: state, seconds: each, createdAt: this.#timers.now(), pod });
  }

  #check(): void {
    const present = new Map((this.#backend.objects(PODS) as Pod[]).map((pod) => [uidOf(pod), pod]));
    for (const [uid, state] of this.#pods) {
      const now = present.get(uid);
      if (now === undefined) {
        if (markOf(state.pod)?.reason !== 'DeletionByPodGC') this.#fault(state, 'was removed without its condition');
        this.#pods.delete(uid);
        continue;
      }
      if (now.status?.phase === 'Failed' && state.pod.status?.phase !== 'Failed') this.#checkFailed(state);
      const isNew = now.metadata.deletionTimestamp !== undefined && state.pod.metadata.deletionTimestamp === undefined;
      if (isNew && !markOf(state.pod)) this.#fault(state, 'was deleted without its condition');
      if (isNew && markOf(now)?.reason === 'DeletionByTaintManager') this.#checkEvicted(state);
      state.pod = now;
    }
  }

  #checkFailed(state: PodState): void {
    if (this.#timers.now() - state.node.missingSince < QUARANTINE_MILLIS) this.#fault(state, 'failed too early');
  }

  #checkEvicted(state: PodState): void {
    const isOver = KEYS.some((key, index) => {
      const from = Math.max(state.node.since.get(key) ?? Number.POSITIVE_INFINITY, state.createdAt);
      return this.#timers.now() - from >= Math.max(0, state.seconds[index] ?? 0) * 1000;
    });
    if (!isOver) this.#fault(state, 'was evicted too early');
  }

  #fault({ pod }: PodState, what: string): void {
    this.faults.push(`${pod.metadata.name} ${what}`);
  }
}

const tolerated = (key: string): Toleration => ({ key, operator: 'Exists', effect: 'NoExecute' });
const markOf = ({ status }: Pod): PodCondition | undefined =>
  status?.conditions?.find((each) => each.type === 'DisruptionTarget' && each.status === 'True');

test('Pods are evicted and fail in time, each after its condition, and no other Pod keeps the condition', async () => {
  const lags = fc.record({ pods: fc.nat(20), nodes: fc.nat(20) });
  const steps = fc.array(step, { minLength: 1, maxLength: 30, size: 'max' });
  const property = fc.asyncProperty(lags, steps, async (lag, taken) => {
    const world = new World(await registryBackend(), lag);
    for (const name of NODE_NAMES) await world.add(name);
    try {
      for (const next of taken) await world.take(next);
      await world.settle();
      expect(world.faults).toEqual([]);
    } finally {
      world.end();
    }
  });
  await fc.assert(property, { numRuns: RUNS, ...(Number.isNaN(seed) ? {} : { seed }) });
}, 60_000);
