/**
 * Tests properties of the ReplicaSet controller while users scale ReplicaSets and create, relabel, end and delete Pods, and while the
 * engine is killed between any two of its writes. Two ReplicaSets have the same selector, so that they compete for Pods. Calls in flight
 * when the engine is killed may still take effect, as with an API server in another process. LIFEPOD_SEED repeats a run; the seed is
 * printed.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Pod, ReplicaSet } from '../../api/generated/types.ts';
import { PODS, REPLICA_SETS } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend } from '../../client/registry-fixture.ts';
import { uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import { controllerOf, isControlledBy } from '../ownership/owner.ts';
import { isPodActive } from '../ownership/pod-state.ts';
import { type KilledEngines, killedEngines, turns } from './killed-engines-fixture.ts';
import { startReplicaSets } from './replicas.ts';
import { replicaSet, template } from './replicas-fixture.ts';

const seed = Number(process.env['LIFEPOD_SEED']);
console.log(`properties of ReplicaSets: seed ${seed} (LIFEPOD_SEED sets it)`);

const NAMES = ['one', 'two'] as const;

type Step =
  | { do: 'scale'; name: string; replicas: number }
  | { do: 'create' }
  | { do: 'delete' | 'end' | 'relabel'; pod: number }
  | { do: 'kill'; afterWrites: number }
  | { do: 'run'; turns: number }
  | { do: 'settle' };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('scale'), name: fc.constantFrom(...NAMES), replicas: fc.nat(6) }),
  fc.record({ do: fc.constant('create') }),
  fc.record({ do: fc.constantFrom('delete', 'end', 'relabel'), pod: fc.nat(20) }),
  fc.record({ do: fc.constant('kill'), afterWrites: fc.integer({ min: 1, max: 8 }) }),
  fc.record({ do: fc.constant('run'), turns: fc.nat(30) }),
  fc.record({ do: fc.constant('settle') }),
);

class World {
  readonly #backend: RegistryBackend;
  readonly #engines: KilledEngines;
  /** By name of a ReplicaSet: its highest spec.replicas since the last settle(). */
  readonly #mostWanted = new Map<string, number>();
  /**
   * How many surplus Pods are permitted until the next settle(): Pods that users added, and creates in flight when an engine was killed.
   */
  #more = 0;
  readonly #controllers = new Map<string, string>();
  readonly faults: string[] = [];
  #created = 0;

  constructor(backend: RegistryBackend, lags: Record<string, number>) {
    this.#backend = backend;
    this.#engines = killedEngines(backend, { start: startReplicaSets, lags, written: () => this.#check() });
  }

  async take(step: Step): Promise<void> {
    switch (step.do) {
      case 'scale':
        return this.scale(step.name, step.replicas);
      case 'create':
        this.#more += 1;
        await this.#put(`user-${++this.#created}`);
        return;
      case 'kill':
        return this.#engines.killAfter(step.afterWrites);
      case 'run':
        return turns(step.turns);
      case 'settle':
        return this.settle();
      default:
        return this.#change(step.do, step.pod).catch((error: unknown) => {
          // The controller has deleted or changed the Pod meanwhile.
          if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
        });
    }
  }

  async scale(name: string, replicas: number): Promise<void> {
    this.#mostWanted.set(name, Math.max(this.#mostWanted.get(name) ?? 0, replicas));
    await this.#backend.set<ReplicaSet>(REPLICA_SETS, replicaSet({ replicas }, { name }));
  }

  async settle(): Promise<void> {
    await this.#engines.settled();
    this.#check();
    const active = this.#pods().filter(isPodActive);
    for (const owner of this.#owners()) {
      const { name, generation } = owner.metadata;
      const owned = active.filter((pod) => isControlledBy(pod, owner));
      const wanted = owner.spec?.replicas ?? 0;
      if (owned.length !== wanted) this.faults.push(`${name} has ${owned.length} Pods instead of ${wanted}`);
      expect(owner.status).toMatchObject({ replicas: wanted, observedGeneration: generation });
      this.#mostWanted.set(name, wanted);
    }
    const free = active.filter((pod) => controllerOf(pod) === undefined && pod.metadata.labels?.['app'] === 'web');
    if (free.length > 0) this.faults.push(`${free.length} matching Pods are not adopted`);
    this.#more = 0;
  }

  end = (): void => this.#engines.end();

  #owners = (): ReplicaSet[] => this.#backend.objects(REPLICA_SETS) as ReplicaSet[];
  #pods = (): Pod[] => this.#backend.objects(PODS) as Pod[];

  /** Checks after every write that no Pod gets another controller without a release, and that no ReplicaSet has too many Pods. */
  #check(): void {
    this.#more += this.#engines.takeLateCreates();
    for (const pod of this.#pods()) {
      const [before, now] = [this.#controllers.get(uidOf(pod)), controllerOf(pod)?.uid];
      if (before !== undefined && now !== undefined && before !== now)
        this.faults.push(`${pod.metadata.name} was adopted twice`);
      if (now === undefined) this.#controllers.delete(uidOf(pod));
      else this.#controllers.set(uidOf(pod), now);
    }
    for (const owner of this.#owners()) {
      const { length } = this.#pods().filter((pod) => isPodActive(pod) && isControlledBy(pod, owner));
      const most = (this.#mostWanted.get(owner.metadata.name) ?? 0) + this.#more;
      if (length > most) this.faults.push(`${owner.metadata.name} has ${length} Pods, more than ${most}`);
    }
  }

  async #put(name: string): Promise<void> {
    const metadata = { ...template.metadata, name, namespace: 'a' };
    await this.#backend.set<Pod>(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec: template.spec });
  }

  async #change(what: 'delete' | 'end' | 'relabel', number: number): Promise<void> {
    const pods = this.#pods().filter(isPodActive);
    const pod = pods[number % pods.length];
    if (pod === undefined) return;
    const { name } = pod.metadata;
    if (what === 'delete') return this.#backend.remove(PODS, 'a', name);
    if (what === 'end') return this.#backend.setStatus(PODS, 'a', name, { phase: 'Failed' });
    const app = pod.metadata.labels?.['app'] === 'web' ? 'other' : 'web';
    if (app === 'web') this.#more += 1;
    await this.#backend.patch(PODS, 'a', name, 'application/merge-patch+json', { metadata: { labels: { app } } });
  }
}

test('no Pod is adopted twice, replicas converge, and only late creates and Pods that users add can be too many', async () => {
  const lags = fc.record({ pods: fc.nat(20), replicasets: fc.nat(20) });
  const property = fc.asyncProperty(
    lags,
    fc.array(step, { minLength: 1, maxLength: 25, size: 'max' }),
    async (lag, steps) => {
      const world = new World(await registryBackend(), lag);
      for (const name of NAMES) await world.scale(name, 2);
      try {
        for (const next of steps) await world.take(next);
        await world.settle();
        expect(world.faults).toEqual([]);
      } finally {
        world.end();
      }
    },
  );
  await fc.assert(property, { numRuns: 30, ...(Number.isNaN(seed) ? {} : { seed }) });
}, 60_000);
