/**
 * Tests properties of the Job controller while Pods end, users delete Pods and change the Job, and the engine is killed between any two of
 * its writes. Calls in flight when the engine is killed may still take effect, as with an API server in another process. LIFEPOD_SEED
 * repeats a run, whose seed is printed; LIFEPOD_RUNS sets the number of runs.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { Job, JobSpec, Pod, PodTemplateSpec } from '../../api/generated/types.ts';
import { JOBS, PODS } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend } from '../../client/registry-fixture.ts';
import { uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import { isPodActive } from '../ownership/pod-state.ts';
import { type KilledEngines, killedEngines, turns } from '../replicas/killed-engines-fixture.ts';
import { isFinished, trueCondition } from './conditions.ts';
import { formatIntervals, hasIndex, parseIntervals, withIndexes } from './intervals.ts';
import { startJobs } from './job.ts';
import { newJob, setPhase } from './job-fixture.ts';
import { indexOf, isTracked } from './job-pods.ts';

const seed = Number(process.env['LIFEPOD_SEED']);
const RUNS = Number(process.env['LIFEPOD_RUNS'] ?? 40);
console.log(`properties of Jobs: seed ${seed} (LIFEPOD_SEED sets it)`);

const PHASES = ['Running', 'Terminating', 'Succeeded', 'Failed'] as const;
type Step =
  | { do: 'phase'; pod: number; phase: (typeof PHASES)[number] }
  | { do: 'delete' | 'gone'; pod: number }
  | { do: 'change'; spec: Partial<JobSpec> }
  | { do: 'kill'; afterWrites: number }
  | { do: 'run'; turns: number }
  | { do: 'settle' };

const change: fc.Arbitrary<Partial<JobSpec>> = fc.oneof(
  fc.record({ suspend: fc.boolean() }),
  fc.record({ parallelism: fc.integer({ min: 1, max: 4 }) }),
);
const phase = fc.record({ do: fc.constant('phase'), pod: fc.nat(20), phase: fc.constantFrom(...PHASES) });
const step: fc.Arbitrary<Step> = fc.oneof(
  phase,
  phase,
  fc.record({ do: fc.constantFrom('delete', 'gone'), pod: fc.nat(20) }),
  fc.record({ do: fc.constant('change'), spec: change }),
  fc.record({ do: fc.constant('kill'), afterWrites: fc.integer({ min: 1, max: 8 }) }),
  fc.record({ do: fc.constant('run'), turns: fc.nat(40) }),
  fc.record({ do: fc.constant('settle') }),
);

const templates = [false, true].map((defers) => {
  const template = newJob().spec?.template as PodTemplateSpec;
  const deferContainers = [{ name: 'bye', image: 'x' }];
  return defers ? { ...template, spec: { containers: [], ...template.spec, deferContainers } } : template;
});
const common = {
  parallelism: fc.integer({ min: 1, max: 4 }),
  backoffLimit: fc.constantFrom(2, 1000),
  podReplacementPolicy: fc.constantFrom('Failed', 'TerminatingOrFailed'),
  template: fc.constantFrom(...templates),
};
const completions = fc.integer({ min: 1, max: 6 });
const specs: fc.Arbitrary<JobSpec> = fc.oneof(
  fc.record({ ...common, completions: fc.option(completions, { nil: undefined }) }),
  fc.record({
    ...common,
    completions,
    completionMode: fc.constant('Indexed'),
    backoffLimitPerIndex: fc.constantFrom(undefined, 0, 2),
  }),
);

class World {
  readonly faults: string[] = [];
  readonly #backend: RegistryBackend;
  readonly #engines: KilledEngines;
  readonly #spec: JobSpec;
  readonly #ended = { Succeeded: new Set<string>(), Failed: new Set<string>() };
  /** UIDs of the Pods that had the finalizer when their containers had completed and their defer containers began. */
  readonly #completed = new Set<string>();
  readonly #deleted = new Set<string>();
  /**
   * UIDs of the Pods that were deleted with the finalizer. Such a Pod may count as failed before it ends, and a Pod that the Job deleted
   * might not count at all.
   */
  readonly #ending = new Set<string>();
  readonly #indexes = new Map<string, number>();
  /** The highest parallelism since the last settled(). */
  #allowed: number;
  /** The number of creates since the last settled() that were in flight when an engine was killed. Each may add a surplus Pod. */
  #late = 0;
  /** UIDs that uncountedTerminatedPods has contained. */
  readonly #announced = { succeeded: new Set<string>(), failed: new Set<string>() };

  constructor(backend: RegistryBackend, lags: Record<string, number>, spec: JobSpec) {
    this.#backend = backend;
    this.#spec = spec;
    this.#allowed = spec.parallelism ?? 1;
    this.#engines = killedEngines(backend, { start: startJobs, lags, written: () => this.#check() });
  }

  async begin(): Promise<void> {
    await this.#backend.create(JOBS, 'a', newJob(this.#spec));
    await this.#settled();
  }

  async take(step: Step): Promise<void> {
    switch (step.do) {
      case 'kill':
        return this.#engines.killAfter(step.afterWrites);
      case 'run':
        return turns(step.turns);
      case 'settle':
        return this.#settled();
      case 'change':
        this.#allowed = Math.max(this.#allowed, step.spec.parallelism ?? 0);
        await this.#backend.patch(JOBS, 'a', 'work', 'application/merge-patch+json', { spec: step.spec });
        return;
      default:
        await this.#act(step);
    }
  }

  /** Resolves when the engine is idle. Records a fault if an active Pod lacks the finalizer then. */
  async #settled(): Promise<void> {
    await this.#engines.settled();
    this.#late = 0;
    const active = this.#pods().filter(isPodActive);
    // Without `completions`, all Pods that are active after the first success remain.
    const kept = this.#spec.completions === undefined ? active.length : 0;
    this.#allowed = Math.max(this.#job().spec?.parallelism ?? 1, kept);
    if (!active.every(isTracked)) this.faults.push('an active Pod has no finalizer');
  }

  /** Resumes the Job, lets all Pods succeed until the Job has ended, and compares the status with the recorded outcomes. */
  async settle(): Promise<void> {
    const resumed = { spec: { suspend: false } };
    await this.#backend.patch(JOBS, 'a', 'work', 'application/merge-patch+json', resumed);
    for (let round = 0; round < 40 && !isFinished(this.#job()); round++) {
      await this.#settled();
      for (const index of this.#pods().keys()) {
        await this.#act({ do: 'phase', pod: index, phase: 'Succeeded' });
        await this.#act({ do: 'gone', pod: index });
      }
    }
    const { status = {} } = this.#job();
    const { succeeded = 0, failed = 0 } = status;
    expect({ faults: this.faults, isFinished: isFinished(this.#job()) }).toEqual({ faults: [], isFinished: true });
    expect(failed).toBe(this.#announced.failed.size);
    expect(missing(this.#ended.Failed, this.#announced.failed, this.#ending)).toEqual([]);
    if (this.#spec.completionMode === 'Indexed') {
      const failedIndexes = parseIntervals(status.failedIndexes, 100);
      // A Pod that was being deleted may have been counted as failed before it succeeded.
      const succeededPods = [...this.#indexes].filter(([uid]) => !this.#announced.failed.has(uid));
      const completed = new Set(
        succeededPods.map(([, index]) => index).filter((index) => !hasIndex(failedIndexes, index)),
      );
      expect(status.completedIndexes ?? '').toBe(formatIntervals(withIndexes([], completed)));
      expect(succeeded).toBe(completed.size);
    } else {
      const both = new Set([...this.#announced.failed, ...this.#announced.succeeded]);
      expect(succeeded).toBe(this.#announced.succeeded.size);
      expect(both.size).toBe(failed + succeeded);
      expect(missing(this.#ended.Succeeded, this.#announced.succeeded, this.#ending)).toEqual([]);
      expect(missing(this.#deleted, both)).toEqual([]);
    }
    await this.#engines.settled();
    expect(this.#pods().filter(isTracked)).toEqual([]);
  }

  end = (): void => this.#engines.end();

  #job = (): Job => this.#backend.objects(JOBS)[0] as Job;
  #pods = (): Pod[] => this.#backend.objects(PODS) as Pod[];

  async #act(step: Extract<Step, { pod: number }>): Promise<void> {
    const pods = this.#pods();
    const pod = pods[step.pod % pods.length];
    if (pod === undefined) return;
    try {
      if (step.do === 'phase') await this.#end(pod, step.phase);
      else if (step.do === 'delete') await this.#delete(pod);
      else if (pod.metadata.deletionTimestamp !== undefined) {
        if (!hasEnded(pod)) await this.#end(pod, 'Failed');
        await this.#backend.remove(PODS, 'a', pod.metadata.name);
      }
    } catch (error) {
      // The controller has changed or deleted the Pod meanwhile.
      if (!['NotFound', 'Conflict'].some((reason) => isApiError(error, reason as 'NotFound'))) throw error;
    }
  }

  async #end(pod: Pod, phase: (typeof PHASES)[number]): Promise<void> {
    const isDeleted = pod.metadata.deletionTimestamp !== undefined;
    const isFinal = phase === 'Succeeded' || phase === 'Failed';
    if (hasEnded(pod) || (isDeleted && (!isFinal || !pod.spec?.nodeName))) return;
    // In the phase Terminating, only the defer containers are left to run.
    if (!isFinal && pod.status?.phase === 'Terminating') return;
    if (phase === 'Terminating' && pod.spec?.deferContainers === undefined) return;
    await setPhase(this.#backend, pod, phase, Date.UTC(2026, 0));
    const current = this.#pods().find(({ metadata }) => metadata.uid === pod.metadata.uid);
    if (phase === 'Terminating' && current !== undefined && isTracked(current)) this.#completed.add(uidOf(pod));
    if (!isFinal || current === undefined) return;
    if (!isTracked(current)) {
      // Pods that a Job deletes because it has succeeded do not count.
      const { succeeded, failed } = this.#announced;
      const isCounted = succeeded.has(uidOf(pod)) || failed.has(uidOf(pod));
      const hasSucceeded = trueCondition(this.#job(), 'SuccessCriteriaMet') !== undefined;
      if (this.#completed.has(uidOf(pod)) && !isCounted && !hasSucceeded)
        this.faults.push('a Pod that had completed was not counted');
      return;
    }
    this.#ended[phase].add(uidOf(pod));
    if (phase === 'Succeeded') this.#indexes.set(uidOf(pod), indexOf(pod) ?? 0);
  }

  async #delete(pod: Pod): Promise<void> {
    if (!isPodActive(pod)) return;
    await this.#backend.delete(PODS, 'a', pod.metadata.name, { preconditions: { uid: uidOf(pod) } });
    const current = this.#pods().find(({ metadata }) => metadata.uid === pod.metadata.uid);
    if (current !== undefined && isTracked(current))
      for (const set of [this.#deleted, this.#ending]) set.add(uidOf(pod));
  }

  /** Runs after every write of the controller, and records violations in `faults`. */
  #check(): void {
    this.#late += this.#engines.takeLateCreates();
    const pods = this.#pods();
    for (const pod of pods)
      if (pod.metadata.deletionTimestamp !== undefined && isTracked(pod)) this.#ending.add(uidOf(pod));
    const active = pods.filter(isPodActive).length;
    if (active > this.#allowed + this.#late) this.faults.push(`${active} Pods are active`);
    const { status = {} } = this.#job();
    for (const list of ['succeeded', 'failed'] as const)
      for (const uid of status.uncountedTerminatedPods?.[list] ?? []) this.#announced[list].add(uid);
    const isIndexed = this.#spec.completionMode === 'Indexed';
    if ((status.failed ?? 0) > this.#announced.failed.size) this.faults.push('a failed Pod is counted twice');
    if (!isIndexed && (status.succeeded ?? 0) > this.#announced.succeeded.size)
      this.faults.push('a Pod that has succeeded is counted twice');
  }
}

const missing = (
  uids: ReadonlySet<string>,
  announced: ReadonlySet<string>,
  others: ReadonlySet<string> = new Set(),
): string[] => [...uids].filter((uid) => !announced.has(uid) && !others.has(uid));

test('a Job counts each of its Pods exactly once, ends, and leaves no finalizer', async () => {
  const lags = fc.record({ pods: fc.nat(15), jobs: fc.nat(15) });
  const steps = fc.array(step, { minLength: 1, maxLength: 30 });
  const property = fc.asyncProperty(lags, specs, steps, async (lag, spec, taken) => {
    const world = new World(await registryBackend(), lag, spec);
    try {
      await world.begin();
      for (const next of taken) await world.take(next);
      await world.settle();
    } finally {
      world.end();
    }
  });
  await fc.assert(property, { numRuns: RUNS, ...(Number.isNaN(seed) ? {} : { seed }) });
}, 3_600_000);
