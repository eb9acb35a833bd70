/**
 * Tests properties of the decisions about a Deployment in a model of its ReplicaSets and their Pods. Between the decisions, Pods are
 * created, become ready and are deleted, and statuses are written. A crash may follow any write of a decision. LIFEPOD_SEED repeats a run;
 * the seed is printed.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Deployment, DeploymentStatus, ReplicaSet } from '../../api/generated/types.ts';
import { deployment, NOW, rolling, templateWith } from './deployment-fixture.ts';
import { reconcile } from './reconcile.ts';
import { revisionOf } from './revisions.ts';
import { maxSurge, maxUnavailable, sizeOf } from './rollout.ts';

const seed = Number(process.env['LIFEPOD_SEED']);
console.log(`properties of decisions about Deployments: seed ${seed} (LIFEPOD_SEED sets it)`);

type Step =
  | { do: 'decide'; writes: number }
  | { do: 'manage' | 'report'; set: number }
  | { do: 'ready'; set: number; pods: number }
  | { do: 'template'; image: string };

const set = fc.nat(3);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('decide'), writes: fc.integer({ min: 0, max: 4 }) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('manage'), set }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('report'), set }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('ready'), set, pods: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('template'), image: fc.constantFrom('v1', 'v2', 'v3') }) },
);

interface Owned {
  object: ReplicaSet;
  ready: number;
  unready: number;
  /** The status that the ReplicaSet controller is about to write. It counts the Pods from before the last creations and deletions. */
  next?: ReplicaSet['status'];
}

class Model {
  readonly #spec: NonNullable<Deployment['spec']>;
  status: DeploymentStatus = {};
  #sets: Owned[] = [];
  readonly faults: string[] = [];

  constructor(replicas: number, surge: number, unavailable: number) {
    this.#spec = deployment({ replicas, strategy: rolling(surge, unavailable) }).spec as NonNullable<
      Deployment['spec']
    >;
  }

  take(next: Step): void {
    if (next.do === 'template') this.#spec.template = templateWith(next.image);
    else if (next.do === 'decide') this.#decide(next.writes);
    else if (this.#sets.length > 0) this.#act(next, this.#sets[next.set % this.#sets.length] as Owned);
  }

  /** Takes all steps until the rollout is complete, and checks the result. */
  settle(): void {
    for (let round = 0; round < 60; round++) {
      this.#decide(100);
      this.#sets.forEach((_, index) => {
        this.take({ do: 'manage', set: index });
        this.take({ do: 'ready', set: index, pods: 100 });
        this.take({ do: 'report', set: index });
      });
    }
    const { replicas = 0 } = this.#spec;
    expect(this.status).toMatchObject({ replicas, updatedReplicas: replicas, availableReplicas: replicas });
    const revisions = this.#sets.map(({ object }) => revisionOf(object));
    expect(new Set(revisions).size).toBe(revisions.length);
    expect(this.faults).toEqual([]);
  }

  #act({ do: what, ...more }: Exclude<Step, { do: 'template' | 'decide' }>, owned: Owned): void {
    const { object } = owned;
    const missing = sizeOf(object) - owned.ready - owned.unready;
    if (what === 'manage') {
      const { ready, unready } = owned;
      const { generation = 0 } = object.metadata;
      const counts = { replicas: ready + unready, readyReplicas: ready, availableReplicas: ready };
      owned.next = { ...counts, observedGeneration: generation };
      // The ReplicaSet controller deletes Pods that are not ready first.
      const fewer = Math.min(owned.unready, Math.max(0, -missing));
      owned.unready += Math.max(0, missing) - fewer;
      owned.ready -= Math.max(0, -missing) - fewer;
    } else if (what === 'ready') {
      const count = Math.min(owned.unready, 'pods' in more ? more.pods : 0);
      owned.ready += count;
      owned.unready -= count;
    } else if (owned.next !== undefined && owned.next.observedGeneration === object.metadata.generation) {
      // A status of an earlier generation conflicts, because the spec has changed.
      owned.object = { ...object, status: owned.next };
    }
  }

  #decide(writes: number): void {
    const metadata = { ...deployment().metadata, generation: 1 };
    const object = { ...deployment(this.#spec, metadata), status: this.status };
    const replicaSets = this.#sets.map((owned) => owned.object);
    const { create, changes, status } = reconcile({ deployment: object, replicaSets, podsOf: () => [], now: NOW });
    const acts = [
      ...(create === undefined ? [] : [() => this.#create(create)]),
      ...changes.map(
        ({ to }) =>
          () =>
            this.#change(to),
      ),
      () => Object.assign(this, { status }),
    ];
    for (const act of acts.slice(0, writes)) {
      const before = this.#counts();
      act();
      this.#check(object, before);
    }
  }

  #create(object: ReplicaSet): void {
    const creationTimestamp = new Date(NOW + this.#sets.length * 1000).toISOString();
    const metadata = { ...object.metadata, uid: object.metadata.name, creationTimestamp, generation: 1 };
    this.#sets.push({ object: { ...object, metadata }, ready: 0, unready: 0 });
  }

  #change(to: ReplicaSet): void {
    const owned = this.#sets.find(({ object }) => object.metadata.name === to.metadata.name) as Owned;
    if (revisionOf(to) < revisionOf(owned.object)) this.faults.push(`a revision became ${revisionOf(to)}`);
    const generation = (owned.object.metadata.generation ?? 0) + Number(sizeOf(to) !== sizeOf(owned.object));
    owned.object = { ...to, metadata: { ...to.metadata, generation } };
  }

  /**
   * Returns the total size, and the available Pods that remain after the ReplicaSet controller has scaled down. A Pod is available if it is
   * ready and a status has reported it, because a decision sees only statuses.
   */
  #counts(): { available: number; size: number } {
    const sum = (count: (owned: Owned) => number): number => this.#sets.reduce((all, owned) => all + count(owned), 0);
    return {
      available: sum(({ object, ready }) => Math.min(ready, sizeOf(object), object.status?.availableReplicas ?? 0)),
      size: sum(({ object }) => sizeOf(object)),
    };
  }

  #check(object: Deployment, before: { available: number; size: number }): void {
    const { available, size } = this.#counts();
    const { replicas = 0 } = this.#spec;
    const least = replicas - maxUnavailable(object);
    if (available < before.available && available < least) this.faults.push(`${available} are left of ${least}`);
    if (size > before.size && size > replicas + maxSurge(object)) this.faults.push(`${size} replicas are too many`);
  }
}

test('no decision exceeds the surge or takes Pods that must stay, a crash loses no revision, and each rollout ends', () => {
  const amounts = fc
    .record({ replicas: fc.integer({ min: 1, max: 10 }), surge: fc.nat(4), unavailable: fc.nat(4) })
    .filter(({ surge, unavailable }) => surge + unavailable > 0);
  const property = fc.property(
    amounts,
    fc.array(step, { maxLength: 80, size: 'max' }),
    ({ replicas, surge, unavailable }, steps) => {
      const model = new Model(replicas, surge, unavailable);
      for (const next of steps) model.take(next);
      model.settle();
    },
  );
  fc.assert(property, { numRuns: 1000, ...(Number.isNaN(seed) ? {} : { seed }) });
}, 60_000);
