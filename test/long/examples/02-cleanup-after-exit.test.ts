import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Pod } from '../../../src/api/generated/types.ts';
import { type Example, millisOf, startExample } from '../../support/example.ts';
import { type PodRecord, recordPods } from '../../support/pods.ts';

let example: Example;
let record: PodRecord;
beforeAll(async () => {
  example = await startExample('02-cleanup-after-exit');
  record = await recordPods(example.lifepod);
});
afterAll(async () => {
  record?.end();
  await example?.stop();
});

const journal = (name: string): string[] =>
  readFileSync(join(example.nodeFolder, `${name}.journal`), 'utf8')
    .trimEnd()
    .split('\n');
const inDefer = (name: string) => (pod: Pod) =>
  pod.status?.deferContainerStatuses?.find((status) => status.name === name)?.state ?? {};

test('02-cleanup-after-exit: two workers share the volume', async () => {
  await example.step('kubectl apply -f refcount.yaml');
  await example.step('ls ');
});

test('02-cleanup-after-exit: a deleted worker is flushed, then its folder and reference are removed; the other is untouched', async () => {
  const began = Date.now();
  await example.step('kubectl delete pod worker-a');
  expect(Date.now() - began).toBeLessThan(20_000);
  await example.step('tail -n 1');
  const pod = record.now('worker-a');
  expect(record.history('worker-a').map(({ pod: { status } }) => status?.phase)).toContain('Terminating');
  const ends = ['fsync', 'kill-app', 'remove-tmp', 'release'].map((name) => inDefer(name)(pod).terminated);
  expect(ends.map((each) => each?.exitCode)).toEqual([0, 0, 0, 0]);
  const app = pod.status?.containerStatuses?.[0]?.state?.terminated;
  expect(app).toMatchObject({ exitCode: 0, reason: 'Completed' });
  const [fsync, kill, remove] = ends;
  expect(millisOf(fsync?.finishedAt)).toBeLessThanOrEqual(millisOf(app?.finishedAt));
  expect(millisOf(kill?.startedAt)).toBeLessThanOrEqual(millisOf(app?.finishedAt));
  expect(millisOf(remove?.startedAt)).toBeGreaterThanOrEqual(millisOf(app?.finishedAt));
  const lines = journal('worker-a');
  expect(lines).toEqual([
    ...lines.slice(0, -1).map((_, n) => `record ${n + 1}`),
    `closed after ${lines.length - 1} records`,
  ]);
  expect(journal('worker-b').at(-1)).toMatch(/^record/);
});

test('02-cleanup-after-exit: the timeline shows every entry', async () => {
  const drawn = await example.step('kubectl lifepod timeline worker-a');
  for (const name of ['acquire', 'app', 'fsync', 'kill-app', 'remove-tmp', 'release']) {
    expect(drawn).toMatch(new RegExp(` ${name} .* exit 0$`, 'm'));
  }
});

test('02-cleanup-after-exit: a reference is released once its unavailable service is back', async () => {
  await example.step('kubectl delete pod refcount');
  await example.step('kubectl wait --for=delete pod/worker-b');
  expect(inDefer('release')(record.now('worker-b')).terminated).toMatchObject({ exitCode: 0 });
  expect(existsSync(example.nodeFolder)).toBe(false);
  expect(example.rest()).toEqual([]);
});
