import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Job, Pod } from '../../../src/api/generated/types.ts';
import { type Example, startExample } from '../../support/example.ts';
import { type PodRecord, recordPods, statusOf } from '../../support/pods.ts';

let example: Example;
let record: PodRecord;
beforeAll(async () => {
  example = await startExample('05-batch-upload');
  record = await recordPods(example.lifepod);
});
afterAll(async () => {
  record?.end();
  await example?.stop();
});

async function podsOf(job: string): Promise<Pod[]> {
  const selector = `batch.kubernetes.io/job-name=${job}`;
  const { items } = JSON.parse(await example.lifepod.kubectlOk('get', 'pods', '-l', selector, '-o', 'json'));
  return (items as Pod[]).sort((a, b) => Date.parse(createdAt(a)) - Date.parse(createdAt(b)));
}
const createdAt = ({ metadata }: Pod): string => metadata.creationTimestamp ?? '';
const phases = ({ metadata }: Pod): (string | undefined)[] =>
  record
    .history(metadata.name)
    .map(({ pod }) => pod.status?.phase)
    .filter((phase, index, all) => phase !== all[index - 1]);
const rows = Array.from({ length: 20_000 }, (_, n) => `${n + 1},${(n + 1) ** 2}\n`).join('');
const arrived = (name: string): string => readFileSync(join(example.nodeFolder, 'inbox', name), 'utf8');

function expectFailedUpload(pod: Pod): void {
  expect(phases(pod).slice(-2)).toEqual(['Terminating', 'Failed']);
  expect(pod.status).toMatchObject({ phase: 'Failed', reason: 'DeferContainerFailed' });
  expect(pod.status?.containerStatuses?.[0]?.state?.terminated).toMatchObject({ exitCode: 0 });
  expect(statusOf(pod, 'upload').state?.terminated?.reason).not.toBe('Completed');
}

test('05-batch-upload: a Pod whose upload fails is Failed although its app succeeded, and the Job counts it', async () => {
  await example.step('kubectl apply -f report.yaml');
  const [first] = await podsOf('report');
  expectFailedUpload(first as Pod);
});

test('05-batch-upload: the Job tries again, and is Complete only when the output has arrived whole', async () => {
  await example.step('kubectl apply -f receiver.yaml');
  expect(arrived('report')).toBe(`# exit codes {"compute":0}\n${rows}`);
  const pods = await podsOf('report');
  const last = pods.pop() as Pod;
  expect(phases(last).slice(-2)).toEqual(['Terminating', 'Succeeded']);
  expect(statusOf(last, 'upload').state?.terminated).toMatchObject({ exitCode: 0, reason: 'Completed' });
  expect(statusOf(last, 'upload-partial').state?.terminated).toMatchObject({
    reason: 'Skipped',
    message: 'the app containers did not fail',
  });
  for (const pod of pods) expectFailedUpload(pod);
  const { status } = await example.lifepod.get<Job>('job', 'report');
  expect(status).toMatchObject({ failed: pods.length, succeeded: 1 });
});

test('05-batch-upload: the output of a failed app arrives under another name, with its exit code', async () => {
  await example.step('report-2');
  expect(arrived('report-2.partial')).toBe(`# exit codes {"compute":3}\n${rows}`);
  const [pod, ...others] = (await podsOf('report-2')) as [Pod, ...Pod[]];
  expect(others).toEqual([]);
  expect(phases(pod).slice(-2)).toEqual(['Terminating', 'Failed']);
  expect(statusOf(pod, 'upload').state?.terminated).toMatchObject({
    reason: 'Skipped',
    message: 'the app containers did not succeed',
  });
  expect(statusOf(pod, 'upload-partial').state?.terminated).toMatchObject({ exitCode: 0, reason: 'Completed' });
});

test('05-batch-upload: a report that does not arrive makes the Pod Failed, and after the last one the Job', async () => {
  await example.step('report-3');
  const pods = await podsOf('report-3');
  expect(pods).toHaveLength(2);
  for (const pod of pods) expect(pod.status).toMatchObject({ phase: 'Failed', reason: 'DeferContainerFailed' });
});

test('05-batch-upload: a later deletion does not upload again', async () => {
  const [pod] = (await podsOf('report')).filter(({ status }) => status?.phase === 'Succeeded') as [Pod];
  const output = (await example.step('kubectl delete job report report-2 report-3')).split('\n');
  expect(output.slice(0, 4)).toEqual([
    ...['report', 'report-2', 'report-3'].map((name) => `job.batch "${name}" deleted`),
    'report-2.partial',
  ]);
  expect(output.join('\n')).toMatch(/^ *defer +upload .* exit 0( \d×)?$/m);
  await record.gone(pod.metadata.name);
  expect(statusOf(record.now(pod.metadata.name), 'upload')).toEqual(statusOf(pod, 'upload'));
  await example.step('kubectl delete configmap');
  expect(example.rest()).toEqual([]);
});
