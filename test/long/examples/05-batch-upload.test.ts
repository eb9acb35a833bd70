/** Runs examples/05-batch-upload as its README describes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
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

const phases = (name: string): (string | undefined)[] =>
  record
    .history(name)
    .map(({ pod }) => pod.status?.phase)
    .filter((phase, index, all) => phase !== all[index - 1]);
const entry = (name: string, own: string) => statusOf(record.now(name), own);
const upload = (name: string) => entry(name, 'upload');
const rows = Array.from({ length: 20_000 }, (_, n) => `${n + 1},${(n + 1) ** 2}\n`).join('');
const arrived = (name: string): string => readFileSync(join(example.nodeFolder, 'inbox', name), 'utf8');

test('05-batch-upload: the Pod is Terminating when the app has completed and the first upload fails', async () => {
  await example.step('kubectl apply -f report.yaml');
});

test('05-batch-upload: the output arrives whole once the receiver runs, and only then the Pod is Succeeded', async () => {
  await example.step('kubectl apply -f receiver.yaml');
  expect(arrived('report')).toBe(`# exit codes {"compute":0}\n${rows}`);
  await record.until('report', ({ status }) => status?.phase === 'Succeeded');
  expect(phases('report').slice(-2)).toEqual(['Terminating', 'Succeeded']);
  expect(upload('report').restartCount).toBeGreaterThanOrEqual(1);
  expect(upload('report').state?.terminated).toMatchObject({ exitCode: 0, reason: 'Completed' });
  expect(entry('report', 'upload-partial').state?.terminated).toMatchObject({
    reason: 'Skipped',
    message: 'the app containers did not fail',
  });
});

test('05-batch-upload: the output of a failed app arrives under another name, with its exit code', async () => {
  await example.step('report-2');
  expect(arrived('report-2.partial')).toBe(`# exit codes {"compute":3}\n${rows}`);
  await record.until('report-2', ({ status }) => status?.phase === 'Failed');
  expect(phases('report-2').slice(-2)).toEqual(['Terminating', 'Failed']);
  expect(upload('report-2').state?.terminated).toMatchObject({
    reason: 'Skipped',
    message: 'the app containers did not succeed',
  });
  expect(entry('report-2', 'upload-partial').state?.terminated).toMatchObject({ exitCode: 0, reason: 'Completed' });
});

test('05-batch-upload: a report that does not arrive makes the Pod Failed although its app succeeded', async () => {
  await example.step('report-3');
  const { status } = record.now('report-3');
  expect(status).toMatchObject({ phase: 'Failed', reason: 'DeferContainerFailed' });
  expect(status?.containerStatuses?.[0]?.state?.terminated).toMatchObject({ exitCode: 0 });
  expect(upload('report-3').state?.terminated?.reason).not.toBe('Completed');
});

test('05-batch-upload: a later deletion does not upload again', async () => {
  const before = upload('report');
  const inbox = (await example.step('kubectl delete pod report report-2 report-3')).split('\n');
  expect(inbox.slice(0, 4)).toEqual([
    ...['report', 'report-2', 'report-3'].map((name) => `pod "${name}" deleted`),
    'report-2.partial',
  ]);
  expect(inbox.join('\n')).toMatch(/^ *defer +upload .* exit 0 \d×$/m);
  expect(upload('report')).toEqual(before);
  await example.step('kubectl delete configmap');
  expect(example.rest()).toEqual([]);
});
