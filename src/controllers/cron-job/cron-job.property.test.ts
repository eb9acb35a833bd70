/**
 * Tests properties of the CronJob controller while time passes and jumps, Jobs end and are deleted, and the engine is killed between any
 * two of its writes. The test ends Jobs as the Job controller does. LIFEPOD_SEED repeats a run; the seed is printed.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { CronJob, CronJobSpec, Job } from '../../api/generated/types.ts';
import { CRON_JOBS, JOBS } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend } from '../../client/registry-fixture.ts';
import { parseTime } from '../../machinery/time.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import { type KilledEngines, killedEngines, turns } from '../replicas/killed-engines-fixture.ts';
import { startCronJobs } from './cron-job.ts';
import { finished, spec } from './cron-job-fixture.ts';
import { endOf, scheduledTimeOf } from './jobs.ts';

const seed = Number(process.env['LIFEPOD_SEED']);
console.log(`properties of CronJobs: seed ${seed} (LIFEPOD_SEED sets it)`);

const SECOND = 1000;

type Step =
  | { do: 'pass'; seconds: number }
  | { do: 'jump'; seconds: number }
  | { do: 'kill'; afterWrites: number; endJobs: boolean }
  | { do: 'end'; job: number; type: 'Complete' | 'Failed' }
  | { do: 'delete'; job: number }
  | { do: 'suspend'; suspend: boolean };

const pass = fc.record({ do: fc.constant('pass' as const), seconds: fc.integer({ min: 1, max: 150 }) });
const kill = fc.record({
  do: fc.constant('kill' as const),
  afterWrites: fc.integer({ min: 1, max: 5 }),
  endJobs: fc.boolean(),
});
const end = fc.record({
  do: fc.constant('end' as const),
  job: fc.nat(3),
  type: fc.constantFrom('Complete' as const, 'Failed' as const),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  pass,
  pass,
  pass,
  kill,
  kill,
  end,
  end,
  fc.record({ do: fc.constant('jump' as const), seconds: fc.integer({ min: 1, max: 20_000 }) }),
  fc.record({ do: fc.constant('delete' as const), job: fc.nat(3) }),
  fc.record({ do: fc.constant('suspend' as const), suspend: fc.boolean() }),
);

const specs: fc.Arbitrary<Partial<CronJobSpec>> = fc.record(
  {
    schedule: fc.constantFrom('* * * * *', '*/3 * * * *', '@every 90s', '@every 20s'),
    concurrencyPolicy: fc.constantFrom('Allow', 'Forbid', 'Replace'),
    startingDeadlineSeconds: fc.integer({ min: 1, max: 120 }),
    successfulJobsHistoryLimit: fc.nat(2),
    failedJobsHistoryLimit: fc.nat(2),
  },
  { requiredKeys: ['schedule', 'concurrencyPolicy'] },
);

class World {
  readonly faults: string[] = [];
  readonly #backend: RegistryBackend;
  readonly #timers: VirtualTimers;
  readonly #engines: KilledEngines;
  readonly #spec: CronJobSpec;
  readonly #started = new Set<number>();
  /** Whether the test ends all Jobs after each write of the engine, so that the next engine finds only finished Jobs. */
  #endJobs = false;

  constructor(backend: RegistryBackend, timers: VirtualTimers, lags: Record<string, number>, changes: object) {
    this.#backend = backend;
    this.#timers = timers;
    this.#spec = spec(changes);
    const create = backend.create;
    backend.create = async (ref, namespace, object, ...rest) => {
      const isJob = ref.resource === 'jobs';
      const others = isJob ? this.#running().filter(({ metadata }) => metadata.name !== object.metadata.name) : [];
      const created = await create(ref, namespace, object, ...rest);
      if (isJob) this.#check(object as Job, others);
      return created;
    };
    const start = (options: Parameters<typeof startCronJobs>[0]) => startCronJobs({ ...options, localZone: 'UTC' });
    this.#engines = killedEngines(backend, {
      start,
      lags,
      timers,
      written: () => this.#endJobs && void this.#endAll(),
    });
  }

  async create(): Promise<void> {
    const metadata = { name: 'tick', namespace: 'a' };
    await this.#backend.set<CronJob>(CRON_JOBS, {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata,
      spec: this.#spec,
    });
  }

  async take(step: Step): Promise<void> {
    if (step.do === 'kill') {
      this.#endJobs = step.endJobs;
      return this.#engines.killAfter(step.afterWrites);
    }
    if (step.do === 'pass') this.#timers.advance(step.seconds * SECOND);
    if (step.do === 'jump') this.#timers.suspend(step.seconds * SECOND);
    if (step.do === 'suspend') await this.suspend(step.suspend);
    const job = step.do === 'end' || step.do === 'delete' ? this.#running()[step.job] : undefined;
    if (job !== undefined) {
      const { name } = job.metadata;
      const options = { propagationPolicy: 'Background' } as const;
      if (step.do === 'end') await this.#backend.setStatus(JOBS, 'a', name, finished(step.type, this.#timers.now()));
      else await this.#backend.delete(JOBS, 'a', name, options);
    }
    await this.#rest();
  }

  async suspend(suspend: boolean): Promise<void> {
    await this.#backend.patch(CRON_JOBS, 'a', 'tick', 'application/merge-patch+json', { spec: { suspend } });
  }

  /** Ends all Jobs, and checks that the next scheduled Job starts and that the status is complete. */
  async settle(): Promise<void> {
    this.#engines.killAfter(Number.POSITIVE_INFINITY);
    this.#endJobs = false;
    await this.suspend(false);
    await this.#rest();
    const before = this.#started.size;
    // All times are multiples of ten seconds, so the controller sees each scheduled time at once, before its starting deadline.
    this.#timers.advance(10 * SECOND - (this.#timers.now() % (10 * SECOND)));
    for (let round = 0; round < 24; round++) {
      await this.#rest();
      if (round % 6 === 0) await this.#endAll();
      await this.#rest();
      this.#timers.advance(10 * SECOND);
    }
    await this.#rest();
    expect(this.#started.size).toBeGreaterThan(before);
    const { status } = this.#cronJob();
    expect(status?.active?.map(({ name }) => name) ?? []).toEqual(this.#running().map(({ metadata }) => metadata.name));
    expect(parseTime(status?.lastScheduleTime)).toBe(Math.max(...this.#started));
    const ended = (type: string): number => this.#jobs().filter((job) => endOf(job)?.type === type).length;
    expect(ended('Complete')).toBeLessThanOrEqual(this.#spec.successfulJobsHistoryLimit ?? 3);
    expect(ended('Failed')).toBeLessThanOrEqual(this.#spec.failedJobsHistoryLimit ?? 1);
    expect(this.faults).toEqual([]);
  }

  end = (): void => this.#engines.end();

  #cronJob = (): CronJob => this.#backend.objects(CRON_JOBS)[0] as CronJob;
  #jobs = (): Job[] => this.#backend.objects(JOBS) as Job[];
  #running = (): Job[] => this.#jobs().filter((job) => endOf(job) === undefined);

  async #endAll(): Promise<void> {
    const status = finished('Complete', this.#timers.now());
    await Promise.allSettled(
      this.#running().map(({ metadata }) => this.#backend.setStatus(JOBS, 'a', metadata.name, status)),
    );
  }

  /** Resolves when the engines make no further calls. The clock advances only then, so that each decision belongs to the current time. */
  async #rest(): Promise<void> {
    for (let calls = -1; calls !== this.#backend.calls.length; ) {
      calls = this.#backend.calls.length;
      await turns(40);
    }
  }

  /** `others`: the Jobs that ran before the new Job was created. */
  #check(job: Job, others: readonly Job[]): void {
    const scheduled = scheduledTimeOf(job, this.#cronJob()) ?? 0;
    const now = this.#timers.now();
    const { startingDeadlineSeconds: deadline, concurrencyPolicy } = this.#spec;
    if (this.#started.has(scheduled)) this.faults.push(`${job.metadata.name} was started twice`);
    this.#started.add(scheduled);
    if (scheduled > now) this.faults.push(`${job.metadata.name} was started before its time`);
    if (deadline !== undefined && scheduled + deadline * SECOND < now)
      this.faults.push(`${job.metadata.name} was started after its deadline`);
    if (concurrencyPolicy !== 'Allow' && others.length > 0)
      this.faults.push(`${job.metadata.name} was started while ${others[0]?.metadata.name} was running`);
    if (this.#cronJob().spec?.suspend === true) this.faults.push(`${job.metadata.name} was started while suspended`);
  }
}

test('no time is started twice, early or after the deadline, the concurrency policy holds, and the status is complete', async () => {
  const lags = fc.record({ cronjobs: fc.nat(15), jobs: fc.nat(15) });
  const steps = fc.array(step, { minLength: 1, maxLength: 20, size: 'max' });
  const property = fc.asyncProperty(lags, specs, steps, async (lag, changes, taken) => {
    const timers = createVirtualTimers();
    const world = new World(await registryBackend({ timers }), timers, lag, changes);
    try {
      await world.create();
      for (const next of taken) await world.take(next);
      await world.settle();
    } finally {
      world.end();
    }
  });
  await fc.assert(property, { numRuns: 25, ...(Number.isNaN(seed) ? {} : { seed }) });
}, 120_000);
