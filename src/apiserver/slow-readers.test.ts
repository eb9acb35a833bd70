/** Clients that ask for much and read nothing: what waits for them is bounded, and those who read get everything. */
import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import type { KubeObject } from '../machinery/meta.ts';
import { systemTimers } from '../platform/node.ts';
import type { ResourceBackend } from '../ports/backend.ts';
import { CONFIG_MAPS, startHostileServer } from './hostile-fixture.ts';
import { outgoingBudget } from './http/bounds/outgoing.ts';
import { configMap, object, ref } from './registry/testing.ts';
import { readText, recordingLog, type TestServer } from './server-fixture.ts';

const MEBIBYTE = 1024 * 1024;
/** Ten times what waits at most. */
const MEMORY_BYTES = 640 * MEBIBYTE;

/** What the heap has after a collection. */
function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
}

const text = 'x'.repeat(MEBIBYTE - 1000);
const config = ref('configmaps');

async function fill(backend: ResourceBackend, count: number): Promise<void> {
  for (let index = 0; index < count; index++) await backend.create(config, 'default', configMap(`c${index}`, { text }));
}

const records = ref('podrecords', 'lifepod.io');
const RECORDS_PATH = '/apis/lifepod.io/v1/namespaces/default/podrecords';
const record = (name: string): KubeObject => ({
  ...object('PodRecord', name, {
    podName: 'web',
    podUID: 'u',
    transitions: [{ key: 'a', at: '2026-01-01T00:00:00.000000Z', type: 'Step', message: text }],
  }),
  apiVersion: 'lifepod.io/v1',
});

/** Resolves when the connection is cut, which is an error to its client. */
const closed = (answer: IncomingMessage): Promise<void> =>
  new Promise((resolve) => void answer.on('error', () => undefined).once('close', resolve));

/** Answers whose headers are there and whose bodies nobody reads. */
const unread = (at: TestServer, path: string, count: number, headers = {}): Promise<IncomingMessage[]> =>
  Promise.all(Array.from({ length: count }, () => at.open('GET', path, { headers })));

test.each([{}, { 'accept-encoding': 'gzip' }, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }])(
  'fifty lists of 30 MiB that nobody reads take the memory of a few pieces: %j',
  async (headers) => {
    await using at = await startHostileServer();
    await fill(at.registry, 30);
    // The texts of objects are kept with them.
    await at.call('GET', CONFIG_MAPS);
    const [before, heapBefore] = [process.memoryUsage().rss, heapBytes()];
    const lists = await unread(at, `${CONFIG_MAPS}?includeObject=Object`, 50, headers);
    const { json, code } = await at.call('GET', CONFIG_MAPS);
    expect(code).toBe(200);
    expect(json.items).toHaveLength(30);
    expect(json.items[29].data.text).toBe(text);
    // The list that was read has 30 MiB here; half of what a copy of one object for each of the others would take.
    expect(heapBytes() - heapBefore).toBeLessThan((30 + 25) * MEBIBYTE);
    expect(process.memoryUsage().rss - before).toBeLessThan(MEMORY_BYTES);
    for (const list of lists) list.destroy();
  },
);

test('slow lists hold no more than a budget of objects that were updated meanwhile', async () => {
  await using at = await startHostileServer();
  const names = Array.from({ length: 10 }, (_, index) => `c${index}`);
  await fill(at.registry, names.length);
  const before = heapBytes();
  const open: IncomingMessage[] = [];
  // Each list holds 10 MiB of its own.
  for (let round = 0; round < 40; round++) {
    open.push(...(await unread(at, CONFIG_MAPS, 1)));
    for (const name of names) {
      await at.registry.update(config, configMap(name, { text, round: String(round) }, { namespace: 'default' }));
    }
  }
  const cut = Promise.race(open.map(closed));
  // The budget, the event window and the cache.
  expect(heapBytes() - before).toBeLessThan(256 * MEBIBYTE);
  const { json } = await at.call('GET', CONFIG_MAPS);
  expect(json.items[9].data.round).toBe('39');
  for (const each of open) each.resume();
  await cut;
  for (const each of open) each.destroy();
});

test('lists of what is in no cache count, and those for which most waits are cut', async () => {
  await using at = await startHostileServer();
  for (let index = 0; index < 10; index++) await at.registry.create(records, 'default', record(`r${index}`));
  const before = heapBytes();
  const lists = await unread(at, RECORDS_PATH, 40);
  const cut = Promise.race(lists.map(closed));
  const { json } = await at.call('GET', RECORDS_PATH);
  expect(json.items).toHaveLength(10);
  // Values and texts of what may wait, twice over: 40 lists have 800 MiB of both.
  expect(heapBytes() - before).toBeLessThan(256 * MEBIBYTE);
  for (const list of lists) list.resume();
  await cut;
  for (const list of lists) list.destroy();
});

test('a watch of what is in no cache begins with all of it, however much there is', async () => {
  await using at = await startHostileServer();
  for (let index = 0; index < 24; index++) await at.registry.create(records, 'default', record(`r${index}`));
  const leave = new AbortController();
  const reading = await at.open('GET', `${RECORDS_PATH}?watch=1`, { signal: leave.signal });
  const over = closed(reading);
  const lines = createInterface(reading)[Symbol.asyncIterator]();
  for (let index = 0; index < 24; index++) expect(JSON.parse((await lines.next()).value ?? '{}').type).toBe('ADDED');
  leave.abort();
  await over;
});

test('watches of what is in no cache count with what they begin with', async () => {
  await using at = await startHostileServer();
  for (let index = 0; index < 10; index++) await at.registry.create(records, 'default', record(`r${index}`));
  const before = heapBytes();
  const watches = await unread(at, `${RECORDS_PATH}?watch=1`, 40);
  const cut = Promise.race(watches.map(closed));
  for (const watch of watches) watch.resume();
  await cut;
  expect(heapBytes() - before).toBeLessThan(256 * MEBIBYTE);
  for (const watch of watches) watch.destroy();
});

test('a list whose pieces end within characters of four bytes arrives as it is', async () => {
  await using at = await startHostileServer();
  const data = { text: `a${'😀'.repeat(100_000)}` };
  await at.registry.create(config, 'default', configMap('smile', data));
  expect((await at.call('GET', CONFIG_MAPS)).json.items[0].data).toEqual(data);
});

test('a hundred watchers that do not read are cut when too much waits, one that reads gets all', async () => {
  await using at = await startHostileServer();
  await fill(at.registry, 10);
  const before = process.memoryUsage().rss;
  const watch = `${CONFIG_MAPS}?watch=1&resourceVersion=0`;
  const paused = await unread(at, watch, 100);
  const cut = Promise.all(paused.map(closed));
  const leave = new AbortController();
  const reading = await at.open('GET', watch, { signal: leave.signal });
  const over = closed(reading);
  const lines = createInterface(reading)[Symbol.asyncIterator]();
  const next = async () => JSON.parse((await lines.next()).value ?? '{}');
  for (let index = 0; index < 10; index++) expect((await next()).type).toBe('ADDED');
  for (let round = 0; round < 30; round++) {
    await at.registry.update(config, configMap('c0', { text, round: String(round) }, { namespace: 'default' }));
    expect((await next()).object.data.round).toBe(String(round));
  }
  expect(process.memoryUsage().rss - before).toBeLessThan(MEMORY_BYTES);
  // A client that does not read does not see that it was cut either.
  for (const each of paused) each.resume();
  await cut;
  leave.abort();
  await over;
});

test('beyond the budget the client is cut for which most waits', async () => {
  const budget = outgoingBudget({ timers: systemTimers(), log: recordingLog().log }, MEBIBYTE);
  const answers: ServerResponse[] = [];
  const server = createServer((_, response) => {
    answers.push(response);
    response.flushHeaders();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const ask = (): Promise<IncomingMessage> =>
    new Promise((resolve) => get({ port, host: '127.0.0.1', agent: false }, resolve));
  const [few, much] = [await ask(), await ask()];
  const [fewAnswer, muchAnswer] = answers as [ServerResponse, ServerResponse];
  const [fewOut, muchOut] = [budget.open(fewAnswer, '/few'), budget.open(muchAnswer, '/much')];
  const [shared, own] = [{}, {}];
  muchOut.keep(shared, MEBIBYTE / 2);
  fewOut.keep(shared, MEBIBYTE / 2);
  // Both wait for one object: it counts once.
  expect(budget.bytes()).toBe(MEBIBYTE / 2);
  const gone = closed(much);
  muchOut.keep(own, MEBIBYTE / 2 + 1);
  expect(muchAnswer.destroyed).toBe(true);
  expect(fewAnswer.destroyed).toBe(false);
  expect(budget.bytes()).toBe(MEBIBYTE / 2);
  await gone;
  fewOut.drop(shared, MEBIBYTE / 2);
  const over = once(fewAnswer, 'close');
  fewOut.write('all of it');
  fewOut.end();
  expect(await readText(few)).toBe('all of it');
  await over;
  expect(budget.bytes()).toBe(0);
  server.close();
});
