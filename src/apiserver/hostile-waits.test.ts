/** Requests that wait in an admission plugin must not hold up other requests, and their number and memory must be bounded. */
import { once } from 'node:events';
import { afterEach, expect, test } from 'vitest';
import type { AdmissionPlugin, AdmissionRequest } from './admission/plugin.ts';
import { admissionPlugins } from './admission/plugins.ts';
import { CONFIG_MAPS } from './hostile-fixture.ts';
import { DEFAULT_LIMITS } from './http/bounds/limits.ts';
import { configMap, startRegistry } from './registry/testing.ts';
import { type Answer, startTestServer, type TestServer } from './server-fixture.ts';

const LARGE = 900_000;
const SMALL = 100;
/** The number of requests that a test sends at a time, so that their TLS handshakes stay below the limit. */
const BATCH = 100;

let at: TestServer;
/** The requests that have waited in the plugin: creates of objects named `held-…`, and deletes of objects named `kept-…`. */
let held: AdmissionRequest[];
let release: () => void;
/** Resolves when `count` requests have begun to wait. */
let reached: (count: number) => Promise<void>;

async function start({ waiting } = DEFAULT_LIMITS): Promise<void> {
  held = [];
  const released = Promise.withResolvers<void>();
  release = released.resolve;
  let arrived = Promise.withResolvers<void>();
  reached = async (count) => {
    while (held.length < count) await arrived.promise;
  };
  const wait = (request: AdmissionRequest, prefix: string): Promise<void> | undefined => {
    if (!request.name.startsWith(prefix)) return undefined;
    held.push(request);
    arrived.resolve();
    arrived = Promise.withResolvers();
    return released.promise;
  };
  const plugin: AdmissionPlugin = {
    name: 'Wait',
    handles: ({ kind }) => kind.kind === 'ConfigMap',
    admit: (request) => wait(request, 'held'),
    validate: (request) => (request.operation === 'DELETE' ? wait(request, 'kept') : undefined),
  };
  const { backend, registry } = await startRegistry({
    admission: [...admissionPlugins, () => plugin],
    roomBytes: 2 ** 30,
  });
  at = await startTestServer({ backend, limits: { ...DEFAULT_LIMITS, waiting } });
  const dispose = at[Symbol.asyncDispose].bind(at);
  at[Symbol.asyncDispose] = async () => {
    await dispose();
    registry.close();
  };
}
afterEach(() => at[Symbol.asyncDispose]());

const bodyOf = (name: string, length: number): string => JSON.stringify(configMap(name, { k: 'x'.repeat(length) }));
const post = (name: string, length: number, signal?: AbortSignal): Promise<Answer> =>
  at.call('POST', CONFIG_MAPS, { body: bodyOf(name, length), signal });

/** Sends requests that wait in the plugin. Resolves once all of them wait. */
async function hold(count: number, length: number): Promise<Promise<Answer>[]> {
  const responses: Promise<Answer>[] = [];
  const before = held.length;
  while (responses.length < count) {
    const size = Math.min(BATCH, count - responses.length);
    for (let index = 0; index < size; index++) responses.push(post(`held-${before + responses.length}`, length));
    await reached(before + responses.length);
  }
  return responses;
}

async function serveOthers(): Promise<void> {
  for (const length of [LARGE, SMALL]) {
    expect((await post('other', length)).code).toBe(201);
    const path = `${CONFIG_MAPS}/other`;
    expect((await at.call('PUT', path, { body: bodyOf('other', length) })).code).toBe(200);
    const headers = { 'content-type': 'application/merge-patch+json' };
    expect((await at.call('PATCH', path, { body: bodyOf('other', length), headers })).code).toBe(200);
    expect((await at.call('DELETE', path)).code).toBe(200);
  }
}

const codesOf = async (responses: Promise<Answer>[]): Promise<number[]> => [
  ...new Set((await Promise.all(responses)).map(({ code }) => code)),
];

const REFUSED = {
  code: 429,
  headers: { 'retry-after': '1' },
  json: { reason: 'TooManyRequests', message: 'Too many requests, please try again later.' },
};

test('100 requests with large bodies that wait in a plugin hold up no other requests, and all complete afterwards', async () => {
  await start();
  const responses = await hold(100, LARGE);
  await serveOthers();
  release();
  expect(await codesOf(responses)).toEqual([201]);
});

test('1280 requests with small bodies that wait in a plugin hold up no other requests, and a further one gets 429', async () => {
  await start();
  const responses = await hold(1280, SMALL);
  await serveOthers();
  expect(await post('held-beyond', SMALL)).toMatchObject(REFUSED);
  await serveOthers();
  release();
  expect(await codesOf(responses)).toEqual([201]);
});

test('beyond the limit on their memory, a request that would wait gets 429, and other requests are served', async () => {
  await start();
  const responses: Promise<Answer>[] = [];
  const refused = Promise.withResolvers<Answer>();
  let isFull = false;
  while (!isFull) {
    const response = post(`held-${responses.length}`, LARGE);
    responses.push(response);
    void response.then((answer) => {
      isFull ||= answer.code === 429;
      if (answer.code === 429) refused.resolve(answer);
    });
    await reached(responses.length);
    // The response of a refused request arrives before the response to a later request.
    await at.call('GET', '/healthz');
  }
  expect(await refused.promise).toMatchObject(REFUSED);
  expect(responses.length).toBeGreaterThan(100);
  expect(responses.length).toBeLessThan(300);
  await serveOthers();
  release();
  expect((await codesOf(responses)).sort()).toEqual([201, 429]);
});

test('a delete that waits counts toward the limit on the number of waiting requests', async () => {
  await start({ ...DEFAULT_LIMITS, waiting: 3 });
  await post('kept-1', SMALL);
  const deleted = at.call('DELETE', `${CONFIG_MAPS}/kept-1`);
  await reached(1);
  const responses = await hold(2, SMALL);
  expect(await post('held-beyond', SMALL)).toMatchObject(REFUSED);
  release();
  expect(await codesOf(responses)).toEqual([201]);
  expect(await deleted).toMatchObject({ code: 200 });
});

test('a request whose client disconnects makes room for another one that waits', async () => {
  await start({ ...DEFAULT_LIMITS, waiting: 3 });
  const leave = new AbortController();
  const left = post('held-left', SMALL, leave.signal).catch(() => 'left');
  await reached(1);
  const responses = await hold(2, SMALL);
  expect(await post('held-beyond', SMALL)).toMatchObject(REFUSED);
  const noticed = once((held[0] as AdmissionRequest).context.signal, 'abort');
  leave.abort();
  expect(await left).toBe('left');
  await noticed;
  // The plugin still waits for the request of the disconnected client, but this request no longer counts.
  const next = post('held-next', SMALL);
  await reached(5);
  release();
  expect(await codesOf([...responses, next])).toEqual([201]);
});
