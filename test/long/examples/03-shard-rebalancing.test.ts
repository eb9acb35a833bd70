import { afterAll, beforeAll, expect, test } from 'vitest';
import type { PodStatus } from '../../../src/api/generated/types.ts';
import { type Example, millisOf, podAddress, startExample } from '../../support/example.ts';
import { isReady, type PodRecord, recordPods } from '../../support/pods.ts';

let example: Example;
let record: PodRecord;
beforeAll(async () => {
  example = await startExample('03-shard-rebalancing');
  record = await recordPods(example.lifepod);
});
afterAll(async () => {
  record?.end();
  await example?.stop();
});

const KEYS = 40;
const SHARDS = ['shard-0', 'shard-1', 'shard-2'];
const ask = async (address: string, query: string): Promise<string> =>
  (await (await fetch(`http://${address}:8080/cgi-bin/kv?${query}`)).text()).trim();

async function clientLines(): Promise<{ at: number; text: string }[]> {
  const log = await example.lifepod.kubectlOk('logs', 'client', '--timestamps');
  return log
    .trimEnd()
    .split('\n')
    .map((line) => ({ at: Date.parse(line.slice(0, line.indexOf(' '))), text: line.slice(line.indexOf(' ') + 1) }));
}

/** Expects that the client has lost no answer. Resolves with the lines of its log. */
async function expectNothingLost(): Promise<{ at: number; text: string }[]> {
  const lines = await clientLines();
  expect(lines.filter(({ text }) => !/^\d+ acknowledged, 0 lost, \d+ asked again$/.test(text))).toEqual([]);
  return lines;
}

const lastStatus = (name: string, uid: string | undefined) =>
  record.history(name).findLast(({ pod }) => pod.metadata.uid === uid)?.pod.status;
const handOverOf = (status: PodStatus | undefined) => status?.deferContainerStatuses?.[0]?.state?.terminated;

const counted = (output: string): number[] =>
  output
    .split('\n')
    .filter((line) => /^\d+$/.test(line))
    .map(Number);
const sum = (counts: number[]): number => counts.reduce((total, count) => total + count, 0);

test('03-shard-rebalancing: three shards hold the keys', async () => {
  await example.step('kubectl apply -f store.yaml -f shards.yaml');
  const counts = counted(await example.step('kv?count'));
  expect(sum(counts)).toBe(KEYS);
  expect(Math.min(...counts)).toBeGreaterThan(0);
});

test('03-shard-rebalancing: a rolling update moves no key and loses none', async () => {
  const before = await Promise.all(SHARDS.map((name) => record.until(name, isReady)));
  const counts = async (): Promise<string[]> =>
    Promise.all(SHARDS.map(async (name) => ask(await podAddress(example.lifepod, name), 'count')));
  const countsBefore = await counts();
  await example.step('kubectl rollout restart statefulset/shard');
  for (const { metadata } of before) {
    const { name, uid } = metadata;
    await record.until(name, (pod) => pod.metadata.uid !== uid && isReady(pod));
    const status = lastStatus(name, uid);
    expect(status?.termination?.reason).toBe('Replaced');
    expect(handOverOf(status)).toMatchObject({ reason: 'Skipped', message: 'not due on Replaced' });
  }
  expect(await counts()).toEqual(countsBefore);
  await expectNothingLost();
});

test('03-shard-rebalancing: when the StatefulSet is scaled down, the shard hands over before its store ends, and no key is lost', async () => {
  await example.step('kubectl scale statefulset/shard --replicas=2');
  await record.gone('shard-2');
  const { status } = record.now('shard-2');
  expect(status?.termination?.reason).toBe('ScaledDown');
  const entry = handOverOf(status);
  const store = status?.containerStatuses?.[0]?.state?.terminated;
  expect(entry).toMatchObject({ exitCode: 0, reason: 'Completed' });
  expect(store).toMatchObject({ exitCode: 0 });
  expect(millisOf(entry?.finishedAt)).toBeLessThanOrEqual(millisOf(store?.finishedAt));
  expect(sum(counted(await example.step('/scripts/check')))).toBe(KEYS);
  const lines = await expectNothingLost();
  const during = lines.filter(({ at }) => at >= millisOf(entry?.startedAt) && at <= millisOf(store?.finishedAt) + 1000);
  expect(during.length).toBeGreaterThan(0);
});

test('03-shard-rebalancing: the timeline shows the hand-over, and cleanup leaves nothing', async () => {
  expect(await example.step('kubectl lifepod timeline shard-2')).toMatch(/^defer hand-over .* exit 0$/m);
  await example.step('kubectl delete -f client.yaml');
  expect(example.rest()).toEqual([]);
  const claims = (): Promise<string> => example.lifepod.kubectlOk('get', 'pvc', '-o', 'name');
  await expect.poll(claims, { timeout: 60_000 }).toBe('');
});
