/** Uses the real scheduler, node agents, garbage collector and ttl-after-finished, in virtual time. */
import { expect, test } from 'vitest';
import type { Job, JobSpec, Node, Pod, PodSpec } from '../../src/api/generated/types.ts';
import { JOBS, NODES, PODS } from '../../src/api/resources.ts';
import { conditionOf, isReady, simplePod } from '../support/simulated-nodes/objects.ts';
import {
  type ContainerScript,
  type SimulatedCluster,
  type SimulatedRun,
  startSimulatedCluster,
} from '../support/simulated-nodes/simulated-cluster.ts';

const INDEX = 'batch.kubernetes.io/job-completion-index';
const SECOND = 1000;

const start = (nodes: number, script: (run: SimulatedRun) => ContainerScript): Promise<SimulatedCluster> =>
  startSimulatedCluster({ nodes, time: 'virtual', script });

const create = (
  { client, during }: SimulatedCluster,
  spec: Partial<JobSpec>,
  pod: Partial<PodSpec> = {},
): Promise<Job> => {
  const podSpec = simplePod('', { restartPolicy: 'Never', terminationGracePeriodSeconds: 5, ...pod }).spec;
  const job = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'work', namespace: 'default' } };
  return during(client.resource<Job>(JOBS).create({ ...job, spec: { template: { spec: podSpec }, ...spec } }));
};
const patch = ({ client, during }: SimulatedCluster, spec: object): Promise<Job> =>
  during(client.resource<Job>(JOBS).patch('work', 'default', 'application/merge-patch+json', { spec }));
const until = async (cluster: SimulatedCluster, isTrue: (job: Job) => boolean): Promise<Job> => {
  const jobs = await cluster.until<Job>(JOBS, ([job]) => job !== undefined && isTrue(job), 3600 * SECOND);
  return jobs[0] as Job;
};
const is = (type: string) => (job: Job) => conditionOf(job as object, type) === 'True';
const pods = (cluster: SimulatedCluster): Promise<readonly Pod[]> => cluster.until<Pod>(PODS, () => true);
const isActive = ({ metadata, status }: Pod): boolean =>
  metadata.deletionTimestamp === undefined && !['Succeeded', 'Failed'].includes(status?.phase ?? '');

test('a Job with 60 completions runs ten Pods in parallel on three nodes, and is deleted when its time is over', async () => {
  await using cluster = await start(3, () => ({ runMillis: 7 * SECOND, exitCode: 0 }));
  await create(cluster, { completions: 60, parallelism: 10, ttlSecondsAfterFinished: 100 });
  let most = 0;
  await cluster.until<Pod>(
    PODS,
    (all) => {
      most = Math.max(most, all.filter(isActive).length);
      return all.filter(({ status }) => status?.phase === 'Succeeded').length === 60;
    },
    3600 * SECOND,
  );
  expect(most).toBe(10);
  const { status } = await until(cluster, is('Complete'));
  expect([status?.succeeded, status?.failed, status?.active]).toEqual([60, undefined, undefined]);
  expect((await pods(cluster)).flatMap(({ metadata }) => metadata.finalizers ?? [])).toEqual([]);
  await cluster.pass(90 * SECOND);
  expect(await pods(cluster)).toHaveLength(60);
  await cluster.until<Job>(JOBS, ({ length }) => length === 0);
  await cluster.until<Pod>(PODS, ({ length }) => length === 0);
});

test('an indexed Job tries each index again after its back-off, on agents that are killed meanwhile', async () => {
  // The first two Pods of each odd index fail.
  const runs = new Map<string, number>();
  const script = ({ pod }: SimulatedRun): ContainerScript => {
    const index = pod.name.split('-')[1] ?? '';
    const count = (runs.get(index) ?? 0) + 1;
    runs.set(index, count);
    return { runMillis: 3 * SECOND, exitCode: Number(index) % 2 === 1 && count <= 2 ? 1 : 0 };
  };
  await using cluster = await start(2, script);
  await create(cluster, { completions: 6, parallelism: 6, completionMode: 'Indexed', backoffLimitPerIndex: 2 });
  await until(cluster, ({ status }) => status?.completedIndexes === '0,2,4');
  cluster.node('node-1').kill();
  await cluster.restart('node-1');
  const { status } = await until(cluster, is('Complete'));
  expect([status?.succeeded, status?.failed, status?.completedIndexes]).toEqual([6, 6, '0-5']);
  const failures = (await pods(cluster)).map(
    ({ metadata }) =>
      `${metadata.annotations?.[INDEX]}:${metadata.annotations?.['batch.kubernetes.io/job-index-failure-count']}`,
  );
  expect(failures.sort()).toEqual(['0:0', '1:0', '1:1', '1:2', '2:0', '3:0', '3:1', '3:2', '4:0', '5:0', '5:1', '5:2']);
});

test('a Job whose node is removed runs its Pod on another node, and the failure that its policy ignores does not count', async () => {
  await using cluster = await start(2, () => ({ runMillis: 300 * SECOND, exitCode: 0 }));
  const ignored = { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] };
  await create(cluster, { backoffLimit: 0, podFailurePolicy: { rules: [ignored] } });
  const [first] = await cluster.until<Pod>(PODS, ([pod]) => pod !== undefined && isReady(pod));
  await cluster.removeNode(first?.spec?.nodeName ?? '');
  await cluster.until<Node>(NODES, ({ length }) => length === 1);
  const { status } = await until(cluster, is('Complete'));
  expect([status?.succeeded, status?.failed]).toEqual([1, undefined]);
});

test('a Job counts its Pods only after their defer containers, waits for these when it is suspended, and ends after them', async () => {
  const script = ({ container }: SimulatedRun): ContainerScript =>
    container === 'bye' ? { runMillis: 20 * SECOND, exitCode: 0 } : {};
  await using cluster = await start(2, script);
  const deferContainers = [{ name: 'bye', image: 'busybox:1.28', trigger: 'PostExit', timeoutSeconds: 30 }];
  const pod = { deferContainers, terminationGracePeriodSeconds: 60 };
  await create(cluster, { parallelism: 2, completions: 2, activeDeadlineSeconds: 100 }, pod);
  await until(cluster, ({ status }) => status?.ready === 2);
  await patch(cluster, { suspend: true });
  const suspended = await until(cluster, is('Suspended'));
  expect([suspended.status?.active, suspended.status?.terminating]).toEqual([undefined, 2]);
  await cluster.until<Pod>(PODS, ({ length }) => length === 0);
  const gone = await until(cluster, ({ status }) => status?.terminating === 0);
  expect(gone.status?.failed).toBeUndefined();
  await patch(cluster, { suspend: false });
  const announced = await until(cluster, is('FailureTarget'));
  // The defer containers run with the reason DeadlineExceeded, and the Job does not count the Pods yet.
  expect([announced.status?.failed, announced.status?.terminating]).toEqual([undefined, 2]);
  const reasons = (all: readonly Pod[]): (string | undefined)[] => all.map(({ status }) => status?.termination?.reason);
  await cluster.until<Pod>(PODS, (all) => reasons(all).join() === 'DeadlineExceeded,DeadlineExceeded');
  const failed = await until(cluster, is('Failed'));
  expect([failed.status?.failed, failed.status?.terminating]).toEqual([2, 0]);
});
