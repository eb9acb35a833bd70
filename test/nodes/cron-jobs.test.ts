import { expect, test } from 'vitest';
import type { CronJob, CronJobSpec, Job, JobSpec, Pod, PodSpec } from '../../src/api/generated/types.ts';
import { CRON_JOBS, JOBS, PODS } from '../../src/api/resources.ts';
import { endOf } from '../../src/controllers/cron-job/jobs.ts';
import { uidOf } from '../../src/machinery/meta.ts';
import { parseTime } from '../../src/machinery/time.ts';
import { type SimulatedCluster, startSimulatedCluster } from '../support/simulated-nodes/simulated-cluster.ts';

const HOUR = 3_600_000;
const container = (name: string) => ({ name, image: 'busybox:1.28' });

interface Changes {
  spec?: Partial<CronJobSpec>;
  job?: Partial<JobSpec>;
  pod?: Partial<PodSpec>;
}

async function create({ client, during }: SimulatedCluster, { spec, job, pod }: Changes): Promise<void> {
  const template = { spec: { containers: [container('app')], restartPolicy: 'Never', ...pod } };
  const object: CronJob = {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name: 'tick', namespace: 'default' },
    spec: { schedule: '* * * * *', jobTemplate: { spec: { template, ...job } }, ...spec },
  };
  await during(client.resource<CronJob>(CRON_JOBS).create(object));
}

/** Returns the scheduled time, in minutes since the epoch, from the name of a Job or of its Pod. */
const minuteOf = (name: string): number => Number(/^tick-(\d+)/.exec(name)?.[1]);

test('a CronJob runs a Job each minute, and keeps the last three that succeeded and the last that failed', async () => {
  await using cluster = await startSimulatedCluster({
    nodes: 2,
    time: 'virtual',
    script: ({ pod }) => ({ runMillis: 5000, exitCode: Number(minuteOf(pod.name) % 5 === 0) }),
  });
  await create(cluster, { job: { backoffLimit: 0 } });
  const seen = new Map<number, string>();
  const isHeld = (jobs: readonly Job[]): boolean => {
    const ends = jobs.map((job) => endOf(job)?.type);
    for (const job of jobs) seen.set(minuteOf(job.metadata.name), endOf(job)?.type ?? 'none');
    const isIdle = ![...seen.values()].includes('none');
    return seen.size >= 20 && isIdle && ends.toSorted().join() === 'Complete,Complete,Complete,Failed';
  };
  const jobs = await cluster.until<Job>(JOBS, isHeld, HOUR);
  const minutes = [...seen.keys()].sort((a, b) => a - b);
  expect(minutes).toEqual(minutes.map((_, index) => (minutes[0] ?? 0) + index));
  for (const [minute, end] of seen) expect([minute, end]).toEqual([minute, minute % 5 === 0 ? 'Failed' : 'Complete']);
  const last = (end: string, count: number): number[] =>
    minutes.filter((minute) => seen.get(minute) === end).slice(-count);
  const wanted = [...last('Complete', 3), ...last('Failed', 1)].sort((a, b) => a - b);
  expect(jobs.map(({ metadata }) => minuteOf(metadata.name)).sort((a, b) => a - b)).toEqual(wanted);
  const isUpToDate = ([tick]: readonly CronJob[]): boolean =>
    tick?.status?.active === undefined && (parseTime(tick?.status?.lastSuccessfulTime) ?? 0) > 0;
  await cluster.until<CronJob>(CRON_JOBS, isUpToDate);
});

test('Replace deletes the running Job, and its Pod runs its defer container for the reason OwnerDeleted', async () => {
  await using cluster = await startSimulatedCluster({
    nodes: 2,
    time: 'virtual',
    script: ({ container: name }) => (name === 'app' ? { stopMillis: 1 } : { runMillis: 2000 }),
  });
  const deferContainers = [{ ...container('report'), trigger: 'PostExit', onReasons: ['OwnerDeleted'] }];
  await create(cluster, { spec: { concurrencyPolicy: 'Replace' }, pod: { deferContainers } });
  const jobNames = new Set<string>();
  const last = new Map<string, Pod>();
  await cluster.until<Pod>(
    PODS,
    (pods) => {
      for (const pod of pods) last.set(uidOf(pod), pod);
      for (const { metadata } of pods) jobNames.add(metadata.name.replace(/-[^-]+$/, ''));
      return jobNames.size >= 4;
    },
    HOUR,
  );
  const existing = await cluster.until<Pod>(PODS, (pods) => {
    for (const pod of pods) last.set(uidOf(pod), pod);
    return pods.length === 1;
  });
  const deleted = [...last.values()].filter((pod) => !existing.some((other) => uidOf(other) === uidOf(pod)));
  expect(deleted.length).toBeGreaterThanOrEqual(3);
  for (const { status } of deleted) {
    const marks = status?.conditions?.filter(({ type }) => type === 'DeletionReason');
    expect(marks).toEqual([expect.objectContaining({ status: 'True', reason: 'OwnerDeleted' })]);
    expect(status?.deferContainerStatuses?.[0]?.state?.terminated).toMatchObject({ exitCode: 0, reason: 'Completed' });
  }
  await cluster.until<Job>(JOBS, (jobs) => jobs.length === 1);
});
