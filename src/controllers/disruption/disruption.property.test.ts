/**
 * Tests properties of PodDisruptionBudgets while several clients evict Pods at the same time through two API servers on one store, and
 * while Pods become ready, fail, and are deleted and replaced. The engine and the second API server are killed between any two of their
 * writes. LIFEPOD_SEED repeats a run, whose seed is printed; LIFEPOD_RUNS sets the number of runs.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { mortal } from '../../../test/support/simulated-nodes/mortal.ts';
import { createCatalog } from '../../api/catalog.ts';
import { isHealthy } from '../../api/core/v1/pod/status/healthy.ts';
import type { Pod, PodDisruptionBudget, ReplicaSet } from '../../api/generated/types.ts';
import { kinds } from '../../api/kinds.ts';
import { POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS } from '../../api/resources.ts';
import { startRegistry } from '../../apiserver/registry/testing.ts';
import { type RegistryBackend, registryBackend } from '../../client/registry-fixture.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import type { ResourceApi } from '../../ports/backend.ts';
import type { Store, Txn } from '../../store/store.ts';
import type { ControllerOptions } from '../controller.ts';
import { controllerReference } from '../ownership/owner.ts';
import {
  type KilledEngines,
  type KilledEnginesOptions,
  killedEngines,
  turns,
} from '../replicas/killed-engines-fixture.ts';
import { REPLICA_SET } from '../replicas/replica-owner.ts';
import { replicaSet } from '../replicas/replicas-fixture.ts';
import { startDisruption } from './disruption.ts';

const seed = Number(process.env['LIFEPOD_SEED']);
const RUNS = Number(process.env['LIFEPOD_RUNS'] ?? 30);
console.log(`properties of PodDisruptionBudgets: seed ${seed}, ${RUNS} runs (LIFEPOD_SEED and LIFEPOD_RUNS set them)`);

const REPLICAS = 6;
const AMOUNTS = [
  { minAvailable: 3 },
  { minAvailable: '50%' },
  { maxUnavailable: 2 },
  { maxUnavailable: '34%' },
  { maxUnavailable: 0 },
] as const;
/** For each of AMOUNTS: the number of Pods that must be healthy. */
const REQUIRED = [3, 3, 4, 3, 6] as const;

type Step =
  | { do: 'evict'; pods: number[]; server: number }
  | { do: 'ready' | 'fail' | 'remove'; pod: number }
  | { do: 'replace' }
  | { do: 'kill' | 'crash'; afterWrites: number }
  | { do: 'run'; turns: number }
  | { do: 'settle' };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('evict'), pods: fc.array(fc.nat(9), { maxLength: 5 }), server: fc.nat(1) }),
  },
  fc.record({ do: fc.constantFrom('ready', 'ready', 'fail', 'remove'), pod: fc.nat(9) }),
  fc.record({ do: fc.constant('replace') }),
  fc.record({ do: fc.constantFrom('kill', 'crash'), afterWrites: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ do: fc.constant('run'), turns: fc.nat(40) }),
  fc.record({ do: fc.constant('settle') }),
) as fc.Arbitrary<Step>;

interface SecondServer {
  /** Kills the API server after this many more writes, as with kill -9. If the server has died already, first starts another one. */
  crashAfter(writes: number): Promise<void>;
  running(): { api: ResourceApi; died: Promise<void> };
}

async function secondServer(store: Store, timers: VirtualTimers): Promise<SecondServer> {
  const begin = async () => {
    const died = Promise.withResolvers<void>();
    const state = { isAlive: true, writesLeft: Number.POSITIVE_INFINITY };
    const die = (): void => {
      state.isAlive = false;
      died.resolve();
    };
    const counted: Store = Object.assign(Object.create(store), {
      async txn(txn: Txn) {
        const result = await store.txn(txn);
        if (--state.writesLeft <= 0) die();
        return result;
      },
    });
    const { registry } = await startRegistry({ store: mortal(counted, () => state.isAlive), timers });
    return { api: registry, died: died.promise, state, die };
  };
  let server = await begin();
  return {
    async crashAfter(writes) {
      if (!server.state.isAlive) server = await begin();
      server.state.writesLeft = writes;
    },
    running: () => server,
  };
}

class World {
  readonly #backend: RegistryBackend;
  readonly #second: SecondServer;
  readonly #required: number;
  readonly #engines: KilledEngines;
  readonly #evictions: Promise<unknown>[] = [];
  /** How many Pods ceased to be healthy without an eviction since the last settle(). Budgets do not prevent these losses. */
  #lost = 0;
  #created = 0;
  evicted = 0;
  refused = 0;
  readonly faults: string[] = [];

  constructor(
    backend: RegistryBackend,
    second: SecondServer,
    required: number,
    engines: Pick<KilledEnginesOptions, 'lags' | 'timers'>,
  ) {
    this.#backend = backend;
    this.#second = second;
    this.#required = required;
    const start = (options: ControllerOptions) => startDisruption({ ...options, catalog: createCatalog(kinds) });
    this.#engines = killedEngines(backend, { ...engines, start, written: () => undefined });
  }

  async begin(spec: object): Promise<void> {
    await this.#backend.set<ReplicaSet>(REPLICA_SETS, replicaSet({ replicas: REPLICAS }));
    await this.#backend.set(POD_DISRUPTION_BUDGETS, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'web', namespace: 'a' },
      spec: { selector: { matchLabels: { app: 'web' } }, ...spec },
    } as PodDisruptionBudget);
    for (let i = 0; i < REPLICAS; i++) await this.#replace();
    for (const { metadata } of this.#pods()) await this.#setReady(metadata.name, true);
    await this.settle();
  }

  async take(step: Step): Promise<void> {
    switch (step.do) {
      case 'evict':
        for (const pod of step.pods) this.#evictions.push(this.#evict(pod, step.server));
        return;
      case 'replace':
        if (this.#pods().length < REPLICAS) await this.#replace();
        return;
      case 'kill':
        return this.#engines.killAfter(step.afterWrites);
      case 'crash':
        return this.#second.crashAfter(step.afterWrites);
      case 'run':
        return turns(step.turns);
      case 'settle':
        return this.settle();
      default:
        return this.#change(step.do, step.pod).catch((error: unknown) => {
          if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
        });
    }
  }

  async settle(): Promise<void> {
    await Promise.all(this.#evictions.splice(0));
    await this.#engines.settled();
    const healthy = this.#healthy();
    const [budget] = this.#backend.objects(POD_DISRUPTION_BUDGETS) as PodDisruptionBudget[];
    expect(budget?.status).toMatchObject({
      currentHealthy: healthy,
      disruptionsAllowed: this.#pods().length === 0 ? 0 : Math.max(0, healthy - (budget?.status?.desiredHealthy ?? 0)),
      desiredHealthy: this.#pods().length === 0 ? expect.any(Number) : this.#required,
    });
    expect(budget?.status?.disruptedPods).toBeUndefined();
    this.#lost = 0;
  }

  end = (): void => this.#engines.end();

  #pods = (): Pod[] => this.#backend.objects(PODS) as Pod[];
  #healthy = (): number => this.#pods().filter(isHealthy).length;
  #named = (number: number): Pod | undefined => this.#pods()[number % this.#pods().length];

  async #evict(number: number, server: number): Promise<void> {
    const pod = this.#named(number);
    if (pod === undefined) return;
    const { name } = pod.metadata;
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: 'a' } } as KubeObject;
    try {
      const isAnswered = await this.#send(server, (api) =>
        api.create(PODS, 'a', eviction, { name, subresource: 'eviction' }),
      );
      if (!isAnswered) return;
    } catch (error) {
      if (isApiError(error, 'TooManyRequests')) this.refused += 1;
      else if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
      return;
    }
    if (!isHealthy(pod)) return;
    this.evicted += 1;
    const healthy = this.#healthy();
    if (healthy + this.#lost < this.#required)
      this.faults.push(
        `after the eviction of ${name}, ${healthy} Pods are healthy, less than ${this.#required} - ${this.#lost}`,
      );
  }

  /** Resolves with false if the server dies before it answers. */
  async #send(server: number, call: (api: ResourceApi) => Promise<unknown>): Promise<boolean> {
    if (server === 0) return call(this.#backend).then(() => true);
    const { api, died } = this.#second.running();
    return Promise.race([call(api).then(() => true), died.then(() => false)]);
  }

  async #replace(): Promise<void> {
    const [owner] = this.#backend.objects(REPLICA_SETS);
    if (owner === undefined) throw new Error('there is no ReplicaSet');
    const ownerReferences = [controllerReference(owner, REPLICA_SET.owner)];
    // Reuse names, as StatefulSets do.
    const name = `pod-${this.#created++ % 9}`;
    if (this.#pods().some(({ metadata }) => metadata.name === name)) return;
    await this.#backend.set<Pod>(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'a', labels: { app: 'web' }, ownerReferences },
      spec: { containers: [{ name: 'app', image: 'x' }], nodeName: 'n1' },
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'False' }] },
    });
  }

  async #setReady(name: string, isReady: boolean): Promise<void> {
    const pod = this.#pods().find(({ metadata }) => metadata.name === name);
    if (pod === undefined) return;
    const conditions = [...(pod.status?.conditions ?? []).filter(({ type }) => type !== 'Ready')];
    conditions.push({ type: 'Ready', status: isReady ? 'True' : 'False' });
    await this.#backend.setStatus(PODS, 'a', name, { ...pod.status, phase: 'Running', conditions });
  }

  async #change(what: 'ready' | 'fail' | 'remove', number: number): Promise<void> {
    const pod = this.#named(number);
    if (pod === undefined) return;
    const { name, deletionTimestamp } = pod.metadata;
    if (what === 'ready') return this.#setReady(name, true);
    // The Pod counted as lost when its deletion began.
    if (deletionTimestamp === undefined) this.#lost += 1;
    return what === 'fail' ? this.#setReady(name, false) : this.#backend.remove(PODS, 'a', name);
  }
}

test(
  'evictions never leave fewer healthy Pods than the budget requires',
  async () => {
    let [evicted, refused] = [0, 0];
    const lags = fc.record({ pods: fc.nat(20), poddisruptionbudgets: fc.nat(20), replicasets: fc.nat(20) });
    const property = fc.asyncProperty(
      lags,
      fc.nat(AMOUNTS.length - 1),
      fc.array(step, { minLength: 1, maxLength: 25, size: 'max' }),
      async (lag, amount, steps) => {
        const timers = createVirtualTimers();
        const backend = await registryBackend({ timers });
        const second = await secondServer(backend.store, timers);
        const engines = { lags: lag, timers };
        const world = new World(backend, second, REQUIRED[amount] ?? 0, engines);
        try {
          await world.begin(AMOUNTS[amount] ?? {});
          for (const next of steps) await world.take(next);
          await world.settle();
          expect(world.faults).toEqual([]);
          evicted += world.evicted;
          refused += world.refused;
        } finally {
          world.end();
        }
      },
    );
    await fc.assert(property, { numRuns: RUNS, ...(Number.isNaN(seed) ? {} : { seed }) });
    expect(evicted).toBeGreaterThan(0);
    expect(refused).toBeGreaterThan(0);
  },
  Math.max(60_000, RUNS * 1000),
);
