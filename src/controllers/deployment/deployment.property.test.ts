/**
 * Tests properties of the Deployment controller while users change the template, scale, pause and resume, and while the engine is killed
 * between any two of its writes. There are no Pods: the test writes the status of the ReplicaSets as the ReplicaSet controller would.
 * LIFEPOD_SEED repeats a run; the seed is printed.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Deployment, ReplicaSet } from '../../api/generated/types.ts';
import { DEPLOYMENTS, REPLICA_SETS } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend } from '../../client/registry-fixture.ts';
import { uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import { type KilledEngines, killedEngines, turns } from '../replicas/killed-engines-fixture.ts';
import { startDeployments } from './deployment.ts';
import { deployment, rolling, templateWith } from './deployment-fixture.ts';
import { REVISION, revisionOf, sameTemplateIgnoringHash } from './revisions.ts';
import { maxSurge, maxUnavailable, sizeOf, total } from './rollout.ts';

const seed = Number(process.env['LIFEPOD_SEED']);
console.log(`properties of Deployments: seed ${seed} (LIFEPOD_SEED sets it)`);

type Step =
  | { do: 'template'; image: string }
  | { do: 'scale'; replicas: number }
  | { do: 'pause'; paused: boolean }
  | { do: 'progress'; set: number; ready: number }
  | { do: 'kill'; afterWrites: number }
  | { do: 'run'; turns: number };

const rollout: fc.Arbitrary<Step>[] = [
  fc.record({ do: fc.constant('template'), image: fc.constantFrom('v1', 'v2', 'v3') }),
  fc.record({ do: fc.constant('kill'), afterWrites: fc.integer({ min: 1, max: 6 }) }),
  fc.record({ do: fc.constant('run'), turns: fc.nat(40) }),
  fc.record({ do: fc.constant('progress'), set: fc.nat(3), ready: fc.nat(3) }),
  fc.record({ do: fc.constant('progress'), set: fc.nat(3), ready: fc.nat(3) }),
];
const others: fc.Arbitrary<Step>[] = [
  fc.record({ do: fc.constant('scale'), replicas: fc.nat(8) }),
  fc.record({ do: fc.constant('pause'), paused: fc.boolean() }),
];

interface Amounts {
  replicas: number;
  surge: number;
  unavailable: number;
}

const amounts: fc.Arbitrary<Amounts> = fc
  .record({ replicas: fc.integer({ min: 1, max: 8 }), surge: fc.nat(3), unavailable: fc.nat(3) })
  .filter(({ surge, unavailable }) => surge + unavailable > 0);

const availableOf = ({ status }: ReplicaSet): number => status?.availableReplicas ?? 0;

class World {
  readonly faults: string[] = [];
  readonly #backend: RegistryBackend;
  readonly #engines: KilledEngines;
  readonly #spec: NonNullable<Deployment['spec']>;
  /** The number of Pods that is permitted at most: the largest size of the Deployment so far plus its surge. */
  #most = 0;
  #before = { size: 0, available: 0 };
  readonly #revisions = new Map<string, number>();
  /** Whether only the template changes, so that enough Pods must stay available. */
  readonly #isRolloutOnly: boolean;

  constructor(backend: RegistryBackend, lags: Record<string, number>, of: Amounts, isRolloutOnly: boolean) {
    this.#backend = backend;
    this.#isRolloutOnly = isRolloutOnly;
    const { spec } = deployment({ replicas: of.replicas, strategy: rolling(of.surge, of.unavailable) });
    this.#spec = spec as NonNullable<Deployment['spec']>;
    this.#engines = killedEngines(backend, { start: startDeployments, lags, written: () => this.#check() });
  }

  async take(step: Step): Promise<void> {
    switch (step.do) {
      case 'kill':
        return this.#engines.killAfter(step.afterWrites);
      case 'run':
        return turns(step.turns);
      case 'progress':
        return void (await this.#progress(step.set, step.ready));
      case 'template':
        return this.write({ template: templateWith(step.image) });
      case 'scale':
        return this.write({ replicas: step.replicas });
      case 'pause':
        return this.write({ paused: step.paused });
    }
  }

  async write(change: Partial<Deployment['spec']>): Promise<void> {
    Object.assign(this.#spec, change);
    const { metadata, ...wanted } = deployment(this.#spec);
    this.#most = Math.max(this.#most, (this.#spec.replicas ?? 0) + maxSurge({ metadata, ...wanted }));
    // Keeps the annotations and the status, as kubectl does.
    const old = this.#deployment();
    const { uid: _, ...own } = metadata;
    const object = { ...wanted, metadata: { ...own, ...(old && { annotations: old.metadata.annotations ?? {} }) } };
    await this.#backend.set<Deployment>(DEPLOYMENTS, { ...object, status: undefined } as unknown as Deployment);
  }

  async settle(): Promise<void> {
    await this.write({ paused: false });
    for (let round = 0; round < 40; round++) {
      await this.#engines.settled();
      const changes = await Promise.all(this.#sets().map((_, index) => this.#progress(index, 100)));
      if (!changes.includes(true)) break;
    }
    const object = this.#deployment();
    const sets = this.#sets();
    const current = sets.filter(({ spec }) => sameTemplateIgnoringHash(spec?.template, object?.spec?.template));
    const wanted = this.#spec.replicas ?? 0;
    expect(current.map(sizeOf)).toEqual([wanted]);
    expect(total(sets, sizeOf)).toBe(wanted);
    const revisions = sets.map(revisionOf);
    expect(new Set(revisions).size).toBe(sets.length);
    expect(revisionOf(current[0] as ReplicaSet)).toBe(Math.max(...revisions));
    expect(object?.metadata.annotations?.[REVISION]).toBe(String(Math.max(...revisions)));
    expect(object?.status).toMatchObject({
      observedGeneration: object?.metadata.generation,
      conditions: expect.arrayContaining([expect.objectContaining({ type: 'Available', status: 'True' })]),
    });
    if (wanted > 0) expect(object?.status).toMatchObject({ updatedReplicas: wanted, availableReplicas: wanted });
    expect(this.faults).toEqual([]);
  }

  end = (): void => this.#engines.end();

  #deployment = (): Deployment | undefined => (this.#backend.objects(DEPLOYMENTS) as Deployment[])[0];
  #sets = (): ReplicaSet[] => this.#backend.objects(REPLICA_SETS) as ReplicaSet[];

  /**
   * Writes the status of a ReplicaSet as the ReplicaSet controller would, with up to `ready` more available Pods. `number` selects the
   * ReplicaSet. Resolves with false if there is nothing to write.
   */
  async #progress(number: number, ready: number): Promise<boolean> {
    const sets = this.#sets();
    const set = sets[number % sets.length];
    if (set === undefined) return false;
    const size = sizeOf(set);
    const available = Math.min(size, availableOf(set) + ready);
    const status = {
      replicas: size,
      readyReplicas: available,
      availableReplicas: available,
      observedGeneration: set.metadata.generation,
    };
    const { observedGeneration, replicas, availableReplicas = 0 } = set.status ?? {};
    if (observedGeneration === status.observedGeneration && replicas === size && availableReplicas === available)
      return false;
    try {
      await this.#backend.update(REPLICA_SETS, { ...set, status } as ReplicaSet, { subresource: 'status' });
    } catch (error) {
      if (!isApiError(error, 'Conflict') && !isApiError(error, 'NotFound')) throw error;
    }
    this.#before = this.#now();
    return true;
  }

  /** Counts only the available Pods that remain: a ReplicaSet that shrinks deletes unavailable Pods first. */
  #now() {
    const sets = this.#sets();
    return { size: total(sets, sizeOf), available: total(sets, (set) => Math.min(sizeOf(set), availableOf(set))) };
  }

  /** Runs after every write of the controller, and records violations in `faults`. */
  #check(): void {
    const { size, available } = this.#now();
    if (size > this.#before.size && size > this.#most) this.faults.push(`${size} Pods, more than ${this.#most}`);
    const object = deployment(this.#spec);
    const least = (this.#spec.replicas ?? 0) - maxUnavailable(object);
    if (this.#isRolloutOnly && available < this.#before.available && available < least)
      this.faults.push(`${available} available Pods, fewer than ${least}`);
    this.#before = { size, available };
    const sets = new Map(this.#sets().map((set) => [uidOf(set), revisionOf(set)]));
    for (const [uid, revision] of this.#revisions) {
      if (!sets.has(uid)) this.faults.push(`the revision ${revision} is lost`);
      else if ((sets.get(uid) ?? 0) < revision) this.faults.push(`the revision ${revision} became ${sets.get(uid)}`);
    }
    for (const [uid, revision] of sets) this.#revisions.set(uid, revision);
  }
}

const lags = fc.record({ deployments: fc.nat(15), replicasets: fc.nat(15) });
const options = { numRuns: 40, ...(Number.isNaN(seed) ? {} : { seed }) };

test.each([
  ['a rollout never exceeds the surge, keeps enough Pods available, and converges', rollout, true],
  [
    'while a Deployment is scaled and paused, it never exceeds the surge, loses no revision, and converges',
    [...rollout, ...others],
    false,
  ],
] as const)(
  '%s',
  async (_, kinds, isRolloutOnly) => {
    const steps = fc.array(fc.oneof(...kinds), { minLength: 1, maxLength: 25, size: 'max' });
    const property = fc.asyncProperty(lags, amounts, steps, async (lag, of, taken) => {
      const world = new World(await registryBackend(), lag, of, isRolloutOnly);
      try {
        await world.write({});
        for (const step of taken) await world.take(step);
        await world.settle();
      } finally {
        world.end();
      }
    });
    await fc.assert(property, options);
  },
  120_000,
);
