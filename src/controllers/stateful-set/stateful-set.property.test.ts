/**
 * Tests properties of the StatefulSet controller while users scale and update the StatefulSet and delete Pods, while Pods fail, and while
 * the engine is killed between any two of its writes. Writes in flight when the engine is killed may still take effect, as with an API
 * server in another process. LIFEPOD_SEED repeats a run; the seed is printed.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ControllerRevision, Pod, StatefulSet } from '../../api/generated/types.ts';
import { CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend } from '../../client/registry-fixture.ts';
import { type KubeObject, uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import { isPodActive } from '../ownership/pod-state.ts';
import { type KilledEngines, killedEngines, turns } from '../replicas/killed-engines-fixture.ts';
import { isHealthy, isRunningAndReady, isTerminating, ordinalOf, revisionOf } from './members.ts';
import { startStatefulSets } from './stateful-set.ts';
import { claimTemplate, imageOf, makeReady, removeClaim, statefulSet, templateWith } from './stateful-set-fixture.ts';

const seed = Number(process.env['LIFEPOD_SEED']);
console.log(`properties of StatefulSets: seed ${seed} (LIFEPOD_SEED sets it)`);

type Step =
  | { do: 'template'; image: string }
  | { do: 'scale'; replicas: number }
  | { do: 'ready' | 'end' | 'fail' | 'delete'; pod: number }
  | { do: 'kill'; afterWrites: number }
  | { do: 'run'; turns: number }
  | { do: 'settle' };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('template'), image: fc.constantFrom('v1', 'v2', 'v3') }),
  fc.record({ do: fc.constant('scale'), replicas: fc.nat(4) }),
  fc.record({ do: fc.constant('ready'), pod: fc.nat(20) }),
  fc.record({ do: fc.constantFrom('ready', 'end', 'end', 'fail', 'delete'), pod: fc.nat(20) }),
  fc.record({ do: fc.constant('kill'), afterWrites: fc.integer({ min: 1, max: 6 }) }),
  fc.record({ do: fc.constant('run'), turns: fc.nat(40) }),
  fc.record({ do: fc.constant('settle') }),
);

interface Shape {
  policy: 'OrderedReady' | 'Parallel';
  start: number;
  partition: number;
  whenScaled: 'Retain' | 'Delete';
}

const shape: fc.Arbitrary<Shape> = fc.record({
  policy: fc.constantFrom('OrderedReady', 'OrderedReady', 'Parallel'),
  start: fc.constantFrom(0, 3),
  partition: fc.constantFrom(0, 0, 1),
  whenScaled: fc.constantFrom('Retain', 'Delete'),
});

class World {
  readonly faults: string[] = [];
  readonly #backend: RegistryBackend;
  readonly #engines: KilledEngines;
  readonly #shape: Shape;
  readonly #set: StatefulSet;
  readonly #claims = new Set<string>();
  /** UIDs of claims that were deleted because their owners no longer existed. */
  readonly #collected = new Set<string>();
  #seen: ReadonlySet<string> = new Set();
  /** By UID: the names of bound Pods that their node has not removed. */
  readonly #bound = new Map<string, string>();
  #terminating: ReadonlySet<string> = new Set();
  /** Whether a user or a failure has disturbed the order since the last settle(). */
  #isDisturbed = false;
  /** The number of creates and deletes since the last settle() that were in flight when an engine was killed. They may be out of order. */
  #late = 0;

  constructor(backend: RegistryBackend, lags: Record<string, number>, of: Shape) {
    this.#backend = backend;
    this.#shape = of;
    this.#set = statefulSet({
      replicas: 3,
      podManagementPolicy: of.policy,
      ordinals: { start: of.start },
      updateStrategy: { rollingUpdate: { partition: of.partition } },
      volumeClaimTemplates: [claimTemplate('data')],
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: of.whenScaled },
      revisionHistoryLimit: 0,
    });
    this.#engines = killedEngines(backend, { start: startStatefulSets, lags, written: () => this.#check() });
  }

  async begin(): Promise<void> {
    await this.#backend.create(STATEFUL_SETS, 'a', this.#set);
    await this.settle();
  }

  async take(step: Step): Promise<void> {
    switch (step.do) {
      case 'kill':
        return this.#engines.killAfter(step.afterWrites);
      case 'run':
        return turns(step.turns);
      case 'settle':
        return this.settle();
      case 'template':
        return this.#patch({ template: templateWith(step.image) });
      case 'scale':
        return this.#patch({ replicas: step.replicas });
      default:
        return void (await this.#progress(step.do, step.pod));
    }
  }

  async settle(): Promise<void> {
    for (let round = 0; round < 80; round++) {
      await this.#engines.settled();
      const results: boolean[] = [];
      for (const index of this.#pods().keys())
        for (const what of ['ready', 'end'] as const) results.push(await this.#progress(what, index));
      results.push(await this.#collectClaims());
      if (!results.includes(true)) break;
    }
    const { start, partition } = this.#shape;
    const { spec, status } = (this.#backend.objects(STATEFUL_SETS) as StatefulSet[])[0] as StatefulSet;
    const replicas = spec?.replicas ?? 0;
    const image = spec?.template.spec?.containers[0]?.image;
    const pods = this.#pods().sort((a, b) => this.#ordinal(a) - this.#ordinal(b));
    expect(pods.map((pod) => this.#ordinal(pod))).toEqual(Array.from({ length: replicas }, (_, i) => start + i));
    for (const pod of pods.slice(partition)) expect(imageOf(pod)).toBe(image);
    expect(status).toMatchObject({ replicas, availableReplicas: replicas });
    // Claims with owners belonged to Pods that were scaled down, and must have been deleted.
    expect(this.#allClaims().flatMap(({ metadata }) => metadata.ownerReferences ?? [])).toEqual([]);
    expect(this.faults).toEqual([]);
    this.#isDisturbed = false;
    this.#late = 0;
  }

  end = (): void => this.#engines.end();

  #allClaims = (): KubeObject[] => this.#backend.objects(PERSISTENT_VOLUME_CLAIMS);

  /** Acts as the garbage collector: deletes the claims whose owners no longer exist. Resolves with false if there was none. */
  async #collectClaims(): Promise<boolean> {
    const uids = new Set(this.#pods().map(uidOf));
    const orphaned = this.#allClaims().filter(({ metadata }) => {
      const owners = metadata.ownerReferences ?? [];
      return owners.length > 0 && owners.every(({ uid }) => !uids.has(uid));
    });
    for (const claim of orphaned) {
      this.#collected.add(uidOf(claim));
      await removeClaim(this.#backend, claim.metadata.name);
    }
    return orphaned.length > 0;
  }

  #pods = (): Pod[] => this.#backend.objects(PODS) as Pod[];
  #ordinal = (pod: Pod): number => ordinalOf(this.#set, pod) ?? -1;

  async #patch(spec: object): Promise<void> {
    await this.#backend.patch(STATEFUL_SETS, 'a', 'db', 'application/merge-patch+json', { spec });
  }

  async #progress(what: 'ready' | 'end' | 'fail' | 'delete', number: number): Promise<boolean> {
    const pods = this.#pods();
    const pod = pods[number % pods.length];
    if (pod === undefined || isTerminating(pod) !== (what === 'end')) return false;
    if (what === 'ready' && (isRunningAndReady(pod) || !isPodActive(pod))) return false;
    if (what === 'fail' || what === 'delete') this.#isDisturbed = true;
    const { name } = pod.metadata;
    try {
      if (what === 'ready') {
        await makeReady(this.#backend, pod, Date.UTC(2026, 0));
        this.#bound.set(uidOf(pod), name);
      } else if (what === 'fail') {
        // From now on, a delete removes the Pod at once, without waiting for its node.
        this.#bound.delete(uidOf(pod));
        await this.#backend.setStatus(PODS, 'a', name, { ...pod.status, phase: 'Failed' });
      } else if (what === 'delete') await this.#backend.delete(PODS, 'a', name);
      else {
        this.#bound.delete(uidOf(pod));
        await this.#backend.remove(PODS, 'a', name);
      }
    } catch (error) {
      // The controller has changed or deleted the Pod meanwhile.
      if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
    }
    return true;
  }

  /** Runs after every write of the controller, and records violations in `faults`. */
  #check(): void {
    this.#late += this.#engines.takeLateCreates() + this.#engines.takeLateDeletes();
    const pods = this.#pods();
    this.#checkPods(pods);
    if (this.#shape.policy === 'OrderedReady' && !this.#isDisturbed) this.#checkOrder(pods);
    this.#seen = new Set(pods.map(uidOf));
    this.#terminating = new Set(pods.filter(isTerminating).map(uidOf));
  }

  #checkPods(pods: readonly Pod[]): void {
    if (new Set(pods.map(this.#ordinal)).size < pods.length) this.faults.push('two Pods have one ordinal');
    const uids = new Set(pods.map(uidOf));
    for (const [uid, name] of this.#bound)
      if (!uids.has(uid) && this.#seen.has(uid)) this.faults.push(`${name} is gone before its node has removed it`);
    const claims = this.#allClaims();
    const [claimUids, claimNames] = [new Set(claims.map(uidOf)), new Set(claims.map(({ metadata }) => metadata.name))];
    for (const uid of this.#claims)
      if (!claimUids.has(uid) && !this.#collected.has(uid)) this.faults.push('a claim is lost');
    for (const uid of claimUids) this.#claims.add(uid);
    const revisions = this.#backend.objects(CONTROLLER_REVISIONS) as ControllerRevision[];
    const names = new Set(revisions.map(({ metadata }) => metadata.name));
    for (const pod of pods) {
      if (!claimNames.has(`data-${pod.metadata.name}`)) this.faults.push(`${pod.metadata.name} has no claim`);
      if (!names.has(revisionOf(pod) ?? '')) this.faults.push(`the revision of ${pod.metadata.name} is lost`);
    }
  }

  #checkOrder(pods: readonly Pod[]): void {
    const late = this.#late;
    for (const pod of pods.filter((each) => !this.#seen.has(uidOf(each)))) {
      const ordinal = this.#ordinal(pod);
      const healthy = pods.filter((each) => this.#ordinal(each) < ordinal && isHealthy(each)).length;
      const missing = ordinal - this.#shape.start - healthy;
      if (missing > 0 && late === 0) this.faults.push(`${pod.metadata.name} starts before ${missing} Pods are ready`);
    }
    const terminating = pods.filter(isTerminating);
    if (terminating.length > 1 + late) this.faults.push(`${terminating.length} Pods are being deleted`);
    for (const pod of terminating.filter((each) => !this.#terminating.has(uidOf(each)))) {
      const replicas = (this.#backend.objects(STATEFUL_SETS) as StatefulSet[])[0]?.spec?.replicas ?? 0;
      const isCondemned = this.#ordinal(pod) >= this.#shape.start + replicas;
      if (isCondemned && late === 0 && pods.some((each) => this.#ordinal(each) > this.#ordinal(pod)))
        this.faults.push(`${pod.metadata.name} is scaled down before a Pod with a higher ordinal`);
    }
  }
}

test('no ordinal has two Pods, an ordered StatefulSet keeps its order, no claim or revision in use is lost, and it converges', async () => {
  const lag = fc.nat(15);
  const lags = fc.record({ pods: lag, statefulsets: lag, controllerrevisions: lag, persistentvolumeclaims: lag });
  const steps = fc.array(step, { minLength: 1, maxLength: 30 });
  const property = fc.asyncProperty(lags, shape, steps, async (given, of, taken) => {
    const world = new World(await registryBackend(), given, of);
    try {
      await world.begin();
      for (const next of taken) await world.take(next);
      await world.settle();
    } finally {
      world.end();
    }
  });
  await fc.assert(property, { numRuns: 40, ...(Number.isNaN(seed) ? {} : { seed }) });
}, 120_000);
