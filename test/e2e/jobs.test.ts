import { expect } from 'vitest';
import type { Job, Pod } from '../../src/api/generated/types.ts';
import { lifepod, record, test } from '../support/shared-engine.ts';

const IMAGE = 'busybox:1.28';
const INDEX = 'batch.kubernetes.io/job-completion-index';

const job = async (name: string): Promise<Job> => lifepod.get<Job>('job', name);
const pods = async (name: string): Promise<Pod[]> =>
  (await lifepod.get<{ items: Pod[] }>('pods', '-l', `batch.kubernetes.io/job-name=${name}`)).items;
const wait = (name: string, condition: string): Promise<void> => lifepod.wait(`job/${name}`, `--for=${condition}`);
const patch = (name: string, spec: object): Promise<string> =>
  lifepod.kubectlOk('patch', 'job', name, '-p', JSON.stringify({ spec }));
const apply = (name: string, script: string, spec: object = {}, podSpec: object = {}): Promise<unknown> => {
  const containers = [{ name: 'app', image: IMAGE, command: ['sh', '-c', script] }];
  const template = { spec: { containers, restartPolicy: 'Never', terminationGracePeriodSeconds: 20, ...podSpec } };
  return lifepod.apply({ apiVersion: 'batch/v1', kind: 'Job', metadata: { name }, spec: { template, ...spec } });
};

test('kubectl creates a Job, waits for it, shows it and its log, and deletes it with its Pods', async () => {
  expect(await lifepod.kubectlOk('create', 'job', 'hello', `--image=${IMAGE}`, '--', 'echo', 'hello')).toBe(
    'job.batch/hello created\n',
  );
  expect(await lifepod.kubectlOk('wait', 'job/hello', '--for=condition=complete', '--timeout=120s')).toBe(
    'job.batch/hello condition met\n',
  );
  expect(await lifepod.kubectlOk('get', 'job', 'hello')).toMatch(/^hello +Complete +1\/1 +\S+ +\S+$/m);
  expect(await lifepod.kubectlOk('logs', 'job/hello')).toBe('hello\n');
  // The Event Completed is written after the status.
  await record.event('hello', /^Normal Completed: Job completed$/);
  const shown = await lifepod.kubectlOk('describe', 'job', 'hello');
  expect(shown).toMatch(/Pods Statuses: +0 Active \(0 Ready\) \/ 1 Succeeded \/ 0 Failed/);
  expect(shown).toMatch(/Normal +SuccessfulCreate .* job-controller +Created pod: hello-/);
  expect(shown).toMatch(/Normal +Completed .* job-controller +Job completed/);
  const [pod] = await pods('hello');
  expect(await lifepod.kubectlOk('delete', 'job', 'hello')).toBe('job.batch "hello" deleted\n');
  await record.gone(pod?.metadata.name ?? '');
});

test('an indexed Job runs each index once, fails an index on its own, and is deleted when its time is over', async () => {
  const script = 'echo $JOB_COMPLETION_INDEX $(hostname); [ $JOB_COMPLETION_INDEX != 1 ]';
  const spec = { completions: 3, parallelism: 3, completionMode: 'Indexed', backoffLimitPerIndex: 0 };
  await apply('parts', script, spec);
  await wait('parts', 'condition=failed');
  const { status } = await job('parts');
  expect(status).toMatchObject({ succeeded: 2, failed: 1, completedIndexes: '0,2', failedIndexes: '1' });
  expect(status?.conditions?.map(({ type, reason }) => `${type} ${reason}`)).toEqual([
    'FailureTarget FailedIndexes',
    'Failed FailedIndexes',
  ]);
  const logs = await Promise.all(
    (await pods('parts')).map(async ({ metadata }) => {
      expect(metadata.labels?.[INDEX]).toBe(metadata.annotations?.[INDEX]);
      return lifepod.kubectlOk('logs', metadata.name);
    }),
  );
  expect(logs.sort()).toEqual(['0 parts-0\n', '1 parts-1\n', '2 parts-2\n']);
  const names = (await pods('parts')).map(({ metadata }) => metadata.name);
  await patch('parts', { ttlSecondsAfterFinished: 0 });
  for (const name of names) await record.gone(name);
  await lifepod.wait('--for=delete', 'job/parts');
});

test('a Job is suspended and resumed, and counts a Pod only after its defer container, whose failure it tries again', async () => {
  const entry = { name: 'upload', image: IMAGE, trigger: 'PostExit', onReasons: ['Completed'], timeoutSeconds: 10 };
  const command = ['sh', '-c', 'if [ -e /shared/tried ]; then exit 0; fi; touch /shared/tried; exit 1'];
  const mounts = { volumeMounts: [{ name: 'shared', mountPath: '/shared' }] };
  const deferContainers = [{ ...entry, ...mounts, command, failurePolicy: 'FailPod' }];
  const script = 'trap "exit 3" TERM; until [ -e /shared/go ]; do sleep 0.1; done';
  const containers = [{ name: 'app', image: IMAGE, command: ['sh', '-c', script], ...mounts }];
  const volumes = [{ name: 'shared', persistentVolumeClaim: { claimName: 'shared' } }];
  await lifepod.apply({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'shared' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
  });
  await apply('upload', '', { backoffLimit: 3 }, { containers, deferContainers, volumes });
  await wait('upload', 'jsonpath={.status.ready}=1');
  await patch('upload', { suspend: true });
  await wait('upload', 'condition=suspended');
  for (const { metadata } of await pods('upload')) await record.gone(metadata.name);
  expect(await lifepod.kubectlOk('get', 'job', 'upload')).toMatch(/^upload +Suspended +0\/1 /m);
  await patch('upload', { suspend: false });
  await wait('upload', 'jsonpath={.status.ready}=1');
  const [first] = await pods('upload');
  await lifepod.execOk(first?.metadata.name ?? '', '-c', 'app', '--', 'touch', '/shared/go');
  await wait('upload', 'condition=complete');
  expect((await job('upload')).status).toMatchObject({ failed: 1, succeeded: 1 });
  const failed = (await pods('upload')).find(({ status }) => status?.phase === 'Failed');
  expect([failed?.metadata.name, failed?.status?.reason]).toEqual([first?.metadata.name, 'DeferContainerFailed']);
});
