/** Tests clients that do not read large responses: the waiting bytes are bounded, and clients that read get everything. */
import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import type { KubeObject } from '../machinery/meta.ts';
import { systemTimers } from '../platform/node-js.ts';
import type { ResourceApi } from '../ports/backend.ts';
import { isHttp2 } from './client-fixture.ts';
import { CONFIG_MAPS, startHostileServer } from './hostile-fixture.ts';
import { outgoingBudget } from './http/bounds/outgoing.ts';
import { configMap, object, ref } from './registry/testing.ts';
import { readText, recordingLog, type TestServer } from './server-fixture.ts';

const MEBIBYTE = 1024 * 1024;
/** The limit on the growth of the process: ten times the budget for waiting bytes. */
const MEMORY_BYTES = 640 * MEBIBYTE;

function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
}

const text = 'x'.repeat(MEBIBYTE - 1000);
const config = ref('configmaps');

async function fill(api: ResourceApi, count: number): Promise<void> {
  for (let index = 0; index < count; index++) await api.create(config, 'default', configMap(`c${index}`, { text }));
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

/** Resolves when the response is closed. Ignores the error that the client gets if the response is incomplete. */
const closed = (response: IncomingMessage): Promise<void> =>
  new Promise((resolve) => {
    response.on('error', () => undefined).once('close', resolve);
    if (response.closed) resolve();
  });

/**
 * Resolves when the headers of the responses have arrived. The bodies are not read. In HTTP/2, the server may reset a stream before it
 * sends the headers; the result then contains a closed stream instead of the response.
 */
const unread = (at: TestServer, path: string, count: number, headers = {}): Promise<IncomingMessage[]> =>
  Promise.all(
    Array.from({ length: count }, () =>
      at
        .open('GET', path, { headers })
        .catch((error) =>
          isHttp2 ? (new PassThrough().destroy() as unknown as IncomingMessage) : Promise.reject(error),
        ),
    ),
  );

test.each([{}, { 'accept-encoding': 'gzip' }, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }])(
  'fifty unread lists of 30 MiB with headers %j take only the memory of a few pieces',
  async (headers) => {
    await using at = await startHostileServer();
    await fill(at.registry, 30);
    // Read the list once before the measurement, so that the measurement does not include the cached texts of the objects.
    await at.call('GET', CONFIG_MAPS);
    const [before, heapBefore] = [process.memoryUsage().rss, heapBytes()];
    const lists = await unread(at, `${CONFIG_MAPS}?includeObject=Object`, 50, headers);
    const { json, code } = await at.call('GET', CONFIG_MAPS);
    expect(code).toBe(200);
    expect(json.items).toHaveLength(30);
    expect(json.items[29].data.text).toBe(text);
    // The list that this test has read takes 30 MiB. Each of the 50 unread lists may take half of an object, 25 MiB together.
    expect(heapBytes() - heapBefore).toBeLessThan((30 + 25) * MEBIBYTE);
    expect(process.memoryUsage().rss - before).toBeLessThan(MEMORY_BYTES);
    for (const list of lists) list.destroy();
  },
);

test('slow lists keep only a limited amount of memory for objects that were updated after the lists were read', async () => {
  await using at = await startHostileServer();
  const names = Array.from({ length: 10 }, (_, index) => `c${index}`);
  await fill(at.registry, names.length);
  const before = heapBytes();
  const open: IncomingMessage[] = [];
  // Open a list before each update of all objects, so that each list keeps 10 MiB that no other list shares.
  for (let round = 0; round < 40; round++) {
    open.push(...(await unread(at, CONFIG_MAPS, 1)));
    for (const name of names) {
      await at.registry.update(config, configMap(name, { text, round: String(round) }, { namespace: 'default' }));
    }
  }
  const cut = Promise.race(open.map(closed));
  // Covers the budget for held objects, the window of past events and the cache.
  expect(heapBytes() - before).toBeLessThan(256 * MEBIBYTE);
  const { json } = await at.call('GET', CONFIG_MAPS);
  expect(json.items[9].data.round).toBe('39');
  for (const each of open) each.resume();
  await cut;
  for (const each of open) each.destroy();
});

test('lists of uncached objects count toward the budget, and those with the most waiting bytes are cut', async () => {
  await using at = await startHostileServer();
  for (let index = 0; index < 10; index++) await at.registry.create(records, 'default', record(`r${index}`));
  const before = heapBytes();
  const lists = await unread(at, RECORDS_PATH, 40);
  const cut = Promise.race(lists.map(closed));
  const { json } = await at.call('GET', RECORDS_PATH);
  expect(json.items).toHaveLength(10);
  // Without a budget, the values and texts of 40 lists with 10 objects of 1 MiB each would take 800 MiB.
  expect(heapBytes() - before).toBeLessThan(256 * MEBIBYTE);
  for (const list of lists) list.resume();
  await cut;
  for (const list of lists) list.destroy();
});

test('lists of an earlier revision count toward the budget', async () => {
  await using at = await startHostileServer();
  await fill(at.registry, 10);
  const { resourceVersion } = (await at.call('GET', CONFIG_MAPS)).json.metadata;
  for (let index = 0; index < 10; index++) {
    await at.registry.update(config, configMap(`c${index}`, { text, round: '1' }, { namespace: 'default' }));
  }
  const before = heapBytes();
  const lists = await unread(at, `${CONFIG_MAPS}?limit=500&resourceVersion=${resourceVersion}`, 40);
  const cut = Promise.race(lists.map(closed));
  expect(heapBytes() - before).toBeLessThan(256 * MEBIBYTE);
  for (const list of lists) list.resume();
  await cut;
  for (const list of lists) list.destroy();
});

test('a watch of uncached objects starts with all of them, however many there are', async () => {
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

test('the initial events of watches of uncached objects count toward the budget', async () => {
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

test('a list whose pieces would split a surrogate pair arrives unchanged', async () => {
  await using at = await startHostileServer();
  const data = { text: `a${'😀'.repeat(100_000)}` };
  await at.registry.create(config, 'default', configMap('smile', data));
  expect((await at.call('GET', CONFIG_MAPS)).json.items[0].data).toEqual(data);
});

test('watches of clients that do not read are cut when too many bytes wait, and a client that reads gets everything', async () => {
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
  // A client that does not read does not notice that the server has closed the connection.
  for (const each of paused) each.resume();
  await cut;
  leave.abort();
  await over;
});

test('if the budget is exceeded, the client with the most waiting bytes is cut', async () => {
  const budget = outgoingBudget({ timers: systemTimers(), log: recordingLog().log }, MEBIBYTE);
  const responses: ServerResponse[] = [];
  const server = createServer((_, response) => {
    responses.push(response);
    response.flushHeaders();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const ask = (): Promise<IncomingMessage> =>
    new Promise((resolve) => get({ port, host: '127.0.0.1', agent: false }, resolve));
  const [few, much] = [await ask(), await ask()];
  const [fewResponse, muchResponse] = responses as [ServerResponse, ServerResponse];
  const [fewOut, muchOut] = [budget.open(fewResponse, '/few'), budget.open(muchResponse, '/much')];
  const [shared, own] = [{}, {}];
  muchOut.keep(shared, MEBIBYTE / 2);
  fewOut.keep(shared, MEBIBYTE / 2);
  // Both responses keep `shared`, which counts once in the budget.
  expect(budget.bytes()).toBe(MEBIBYTE / 2);
  const muchClosed = closed(much);
  muchOut.keep(own, MEBIBYTE / 2 + 1);
  expect(muchResponse.destroyed).toBe(true);
  expect(fewResponse.destroyed).toBe(false);
  expect(budget.bytes()).toBe(MEBIBYTE / 2);
  await muchClosed;
  fewOut.drop(shared, MEBIBYTE / 2);
  const over = once(fewResponse, 'close');
  fewOut.write('all of it');
  fewOut.end();
  expect(await readText(few)).toBe('all of it');
  await over;
  expect(budget.bytes()).toBe(0);
  server.close();
});

test('an object that a response keeps after its client has disconnected does not count', async () => {
  const budget = outgoingBudget({ timers: systemTimers(), log: recordingLog().log });
  const { promise: opened, resolve } = Promise.withResolvers<ServerResponse>();
  const server = createServer((_, response) => {
    response.flushHeaders();
    resolve(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = get({ port, host: '127.0.0.1', agent: false }, (response) => response.on('error', () => undefined));
  const response = await opened;
  const outgoing = budget.open(response, '/');
  const left = once(response, 'close');
  client.on('error', () => undefined).destroy();
  await left;
  outgoing.keep({}, MEBIBYTE);
  expect(budget.bytes()).toBe(0);
  server.close();
});
