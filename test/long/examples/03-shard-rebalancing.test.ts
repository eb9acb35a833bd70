/** Runs examples/03-shard-rebalancing as its README describes. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Example, millisOf, podAddress, startExample } from '../../support/example.ts';
import { type PodRecord, recordPods } from '../../support/pods.ts';

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
const ask = async (address: string, query: string): Promise<string> =>
  (await (await fetch(`http://${address}:8080/cgi-bin/kv?${query}`)).text()).trim();

/** Resolves with the lines of the client's log, each with its time in milliseconds. */
async function clientLines(): Promise<{ at: number; text: string }[]> {
  const log = await example.lifepod.kubectlOk('logs', 'client', '--timestamps');
  return log
    .trimEnd()
    .split('\n')
    .map((line) => ({ at: Date.parse(line.slice(0, line.indexOf(' '))), text: line.slice(line.indexOf(' ') + 1) }));
}

/** Expects that the shard `name` handed over its keys before its store ended, while the client wrote and read without a loss. */
async function expectHandedOver(name: string): Promise<void> {
  const { status } = record.now(name);
  const entry = status?.deferContainerStatuses?.[0]?.state?.terminated;
  const store = status?.containerStatuses?.[0]?.state?.terminated;
  expect(entry).toMatchObject({ exitCode: 0, reason: 'Completed' });
  expect(store).toMatchObject({ exitCode: 0 });
  expect(millisOf(entry?.finishedAt)).toBeLessThanOrEqual(millisOf(store?.finishedAt));
  const lines = await clientLines();
  const during = lines.filter(({ at }) => at >= millisOf(entry?.startedAt) && at <= millisOf(store?.finishedAt) + 1000);
  expect(during.length).toBeGreaterThan(0);
  expect(lines.filter(({ text }) => !/^\d+ acknowledged, 0 lost, \d+ asked again$/.test(text))).toEqual([]);
}

test('03-shard-rebalancing: three shards hold the keys', async () => {
  await example.step('kubectl apply -f store.yaml -f shards.yaml');
  const counts = (await example.step('kv?count')).trimEnd().split('\n').map(Number);
  expect(counts.reduce((sum, count) => sum + count)).toBe(KEYS);
  expect(Math.min(...counts)).toBeGreaterThan(0);
});

test('03-shard-rebalancing: when a shard leaves, no acknowledged key is lost or stale at any time', async () => {
  await example.step('kubectl delete pod shard-2 --wait=false');
  await example.step('/scripts/check');
  await expectHandedOver('shard-2');
});

test('03-shard-rebalancing: when the next shard leaves, the last one has every key with a value not older than acknowledged', async () => {
  await example.step('kubectl delete pod shard-1');
  await expectHandedOver('shard-1');
  const acknowledged = Number(/^\d+/.exec((await clientLines()).at(-1)?.text ?? '')?.[0]);
  const address = await podAddress(example.lifepod, 'shard-0');
  for (let key = 0; key < KEYS; key++) {
    const [, value] = /^found (\d+)$/.exec(await ask(address, `get&key${key}`)) ?? [];
    expect(Number(value) % KEYS).toBe(key);
    expect(Number(value)).toBeGreaterThan(acknowledged - KEYS);
  }
});

test('03-shard-rebalancing: the timeline shows the hand-over, and cleanup leaves nothing', async () => {
  expect(await example.step('kubectl lifepod timeline shard-2')).toMatch(/^defer hand-over .* exit 0$/m);
  await example.step('kubectl delete pod client');
  expect(example.rest()).toEqual([]);
});
