/**
 * Tests properties of the DaemonSet controller while users change the template, and while the engine is killed between any two of its
 * writes. Creates in flight when the engine is killed may still take effect, as with an API server in another process. LIFEPOD_SEED repeats
 * a run; the seed is printed.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ControllerRevision, DaemonSet, Pod } from '../../api/generated/types.ts';
import { CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend } from '../../client/registry-fixture.ts';
import { uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import { isPodActive, isPodReady } from '../ownership/pod-state.ts';
import { type KilledEngines, killedEngines, turns } from '../replicas/killed-engines-fixture.ts';
import { startDaemonSets } from './daemon-set.ts';
import { daemonSet, imageOf, makeReady, node, rolling, templateWith } from './daemon-set-fixture.ts';
import { nodeOf } from './placement.ts';

const seed = Number(process.env['LIFEPOD_SEED']);
console.log(`properties of DaemonSets: seed ${seed} (LIFEPOD_SEED sets it)`);

type Step =
  | { do: 'template'; image: string }
  | { do: 'ready' | 'end'; pod: number }
  | { do: 'kill'; afterWrites: number }
  | { do: 'run'; turns: number }
  | { do: 'settle' };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('template'), image: fc.constantFrom('v1', 'v2', 'v3') }),
  fc.record({ do: fc.constant('ready'), pod: fc.nat(20) }),
  fc.record({ do: fc.constantFrom('ready', 'end'), pod: fc.nat(20) }),
  fc.record({ do: fc.constant('kill'), afterWrites: fc.integer({ min: 1, max: 6 }) }),
  fc.record({ do: fc.constant('run'), turns: fc.nat(40) }),
  fc.record({ do: fc.constant('settle') }),
);

interface Amounts {
  nodes: number;
  surge: number;
  unavailable: number;
}

const amounts: fc.Arbitrary<Amounts> = fc
  .record({ nodes: fc.integer({ min: 1, max: 5 }), surge: fc.nat(2), unavailable: fc.nat(2) })
  .filter(({ surge, unavailable }) => (surge === 0) !== (unavailable === 0));

class World {
  readonly faults: string[] = [];
  readonly #backend: RegistryBackend;
  readonly #engines: KilledEngines;
  readonly #amounts: Amounts;
  #available = 0;
  /** The number of creates since the last settle() that were in flight when an engine was killed. Each may add a surplus Pod. */
  #late = 0;
  readonly #revisions = new Map<string, number>();
  /** UIDs of Pods that were ready at the last settle(). The controller knows that they are available. */
  #knownReady: ReadonlySet<string> = new Set();

  constructor(backend: RegistryBackend, lags: Record<string, number>, of: Amounts) {
    this.#backend = backend;
    this.#amounts = of;
    this.#engines = killedEngines(backend, { start: startDaemonSets, lags, written: () => this.#check() });
  }

  async begin(): Promise<void> {
    for (let i = 0; i < this.#amounts.nodes; i++) await this.#backend.set(NODES, node(`n${i}`));
    const { surge, unavailable } = this.#amounts;
    await this.#backend.create(DAEMON_SETS, 'a', daemonSet({ updateStrategy: rolling(surge, unavailable) }));
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
      case 'template': {
        const change = { spec: { template: templateWith(step.image) } };
        await this.#backend.patch(DAEMON_SETS, 'a', 'agent', 'application/merge-patch+json', change);
        return;
      }
      default:
        return void (await this.#progress(step.do, step.pod));
    }
  }

  async settle(): Promise<void> {
    for (let round = 0; round < 60; round++) {
      await this.#engines.settled();
      const results: boolean[] = [];
      for (const index of this.#pods().keys())
        for (const what of ['ready', 'end'] as const) results.push(await this.#progress(what, index));
      if (!results.includes(true)) break;
    }
    const object = (this.#backend.objects(DAEMON_SETS) as DaemonSet[])[0];
    const image = object?.spec?.template?.spec?.containers[0]?.image;
    const found = this.#pods().map((pod) => `${nodeOf(pod)}:${imageOf(pod)}`);
    expect(found.sort()).toEqual(Array.from({ length: this.#amounts.nodes }, (_, i) => `n${i}:${image}`));
    const { nodes } = this.#amounts;
    expect(object?.status).toMatchObject({ numberAvailable: nodes, updatedNumberScheduled: nodes });
    expect(this.faults).toEqual([]);
    this.#knownReady = new Set(this.#pods().map(uidOf));
    this.#late = 0;
  }

  end = (): void => this.#engines.end();

  #pods = (): Pod[] => this.#backend.objects(PODS) as Pod[];

  async #progress(what: 'ready' | 'end', number: number): Promise<boolean> {
    const pods = this.#pods();
    const pod = pods[number % pods.length];
    if (pod === undefined || isPodActive(pod) !== (what === 'ready') || (what === 'ready' && isPodReady(pod)))
      return false;
    try {
      if (what === 'ready') await makeReady(this.#backend, pod, Date.UTC(2026, 0));
      else await this.#backend.remove(PODS, 'a', pod.metadata.name);
    } catch (error) {
      // The controller has deleted the Pod meanwhile.
      if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
    }
    this.#available = this.#availableNodes();
    return true;
  }

  #availableNodes(): number {
    const available = this.#pods().filter((pod) => isPodActive(pod) && isPodReady(pod));
    return new Set(available.map(nodeOf)).size;
  }

  /** Runs after every write of the controller, and records violations in `faults`. */
  #check(): void {
    this.#late += this.#engines.takeLateCreates();
    const { nodes, surge, unavailable } = this.#amounts;
    const pods = this.#pods();
    const active = Map.groupBy(pods.filter(isPodActive), nodeOf);
    // A node without an available Pod may get a second Pod in excess of the surge.
    const surged = [...active.values()].filter(
      (on) => on.length > 1 && on.some((pod) => this.#knownReady.has(uidOf(pod))),
    );
    if (surged.length > surge + this.#late) this.faults.push(`${surged.length} nodes have a second Pod`);
    const most = surge === 0 ? 1 : 2;
    const length = Math.max(0, ...[...active.values()].map((on) => on.length));
    if (length > most + this.#late) this.faults.push(`a node has ${length} Pods`);
    if (surge === 0 && this.#late === 0 && new Set(pods.map(nodeOf)).size < pods.length)
      this.faults.push('a node has a Pod besides one that is being deleted');
    const available = this.#availableNodes();
    if (available < this.#available && available < nodes - unavailable)
      this.faults.push(`${available} of ${nodes} nodes have an available Pod`);
    this.#available = available;
    const revisions = this.#backend.objects(CONTROLLER_REVISIONS) as ControllerRevision[];
    const now = new Map(revisions.map((revision) => [uidOf(revision), revision.revision]));
    for (const [uid, number] of this.#revisions)
      if ((now.get(uid) ?? 0) < number) this.faults.push(`the revision ${number} is lost`);
    for (const [uid, number] of now) this.#revisions.set(uid, number);
  }
}

test('an update keeps within maxSurge and maxUnavailable, never runs a second Pod without a surge, loses no revision, and converges', async () => {
  const lags = fc.record({ pods: fc.nat(15), daemonsets: fc.nat(15), controllerrevisions: fc.nat(15) });
  const steps = fc.array(step, { minLength: 1, maxLength: 30 });
  const property = fc.asyncProperty(lags, amounts, steps, async (lag, of, taken) => {
    const world = new World(await registryBackend(), lag, of);
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
