/** examples/05-batch-upload, as its README says it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Example, startExample } from '../../support/example.ts';
import { type PodRecord, recordPods } from '../../support/pods.ts';

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
const upload = (name: string) => record.now(name).status?.deferContainerStatuses?.[0];
const rows = Array.from({ length: 20_000 }, (_, n) => `${n + 1},${(n + 1) ** 2}\n`).join('');
const arrived = (name: string): string => readFileSync(join(example.nodeFolder, 'inbox', name), 'utf8');

test('the app has completed, and the first upload fails: the Pod is Terminating', async () => {
  await example.step('kubectl apply -f report.yaml');
});

test('the output arrives whole when the receiver is there; the Pod is Succeeded only then', async () => {
  await example.step('kubectl apply -f receiver.yaml');
  expect(arrived('report')).toBe(`# exit codes {"compute":0}\n${rows}`);
  await record.until('report', ({ status }) => status?.phase === 'Succeeded');
  expect(phases('report').slice(-2)).toEqual(['Terminating', 'Succeeded']);
  expect(upload('report')?.restartCount).toBeGreaterThanOrEqual(1);
  expect(upload('report')?.state?.terminated).toMatchObject({ exitCode: 0, reason: 'Completed' });
});

test('what a failing app has written arrives as well, with its exit code', async () => {
  await example.step('report-2');
  expect(arrived('report-2')).toBe(`# exit codes {"compute":3}\n${rows}`);
  await record.until('report-2', ({ status }) => status?.phase === 'Failed');
  expect(phases('report-2').slice(-2)).toEqual(['Terminating', 'Failed']);
});

test('a later deletion does not upload again', async () => {
  const before = upload('report');
  const inbox = (await example.step('kubectl delete pod report report-2')).split('\n');
  expect(inbox.slice(0, 3)).toEqual(['pod "report" deleted', 'pod "report-2" deleted', 'report-2']);
  expect(inbox.join('\n')).toMatch(/^ *defer +upload .* exit 0 \d×$/m);
  expect(upload('report')).toEqual(before);
  await example.step('kubectl delete -f receiver.yaml');
  expect(example.rest()).toEqual([]);
});
