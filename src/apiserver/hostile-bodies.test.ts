/** Tests that requests with harmful bodies and parameters do not affect other clients. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { kinds } from '../api/kinds.ts';
import type { Sending } from './client-fixture.ts';
import {
  CONFIG_MAPS,
  LARGE,
  OTHERS_WAIT_MILLIS,
  repeatUpTo,
  startHostileServer,
  whileServingOthers,
} from './hostile-fixture.ts';
import { type Answer, readText, type TestServer } from './server-fixture.ts';

const APPLY = 'application/apply-patch+yaml';

let at: TestServer;
beforeAll(async () => {
  at = await startHostileServer();
  await at.call('POST', CONFIG_MAPS, { body: '{"metadata":{"name":"one"},"data":{"a":"b"}}' });
});
afterAll(() => at[Symbol.asyncDispose]());

const apply = (body: string): Promise<Answer> =>
  at.call('PATCH', `${CONFIG_MAPS}/one?fieldManager=me`, { body, headers: { 'content-type': APPLY } });
const postYaml = (body: string): Promise<Answer> =>
  at.call('POST', CONFIG_MAPS, { body, headers: { 'content-type': 'application/yaml' } });
const patch = (type: string, body: string): Promise<Answer> =>
  at.call('PATCH', `${CONFIG_MAPS}/one`, { body, headers: { 'content-type': `application/${type}` } });

async function threadsOf(call: () => Promise<unknown>): Promise<number> {
  let threads = 0;
  const count = (): void => {
    threads += 1;
  };
  subscribe('worker_threads', count);
  try {
    await call();
  } finally {
    unsubscribe('worker_threads', count);
  }
  return threads;
}

describe('YAML bodies', () => {
  const head = 'apiVersion: v1\nkind: ConfigMap\n';

  test('YAML of more than 4096 characters is parsed in a worker thread, and shorter YAML without aliases is not', async () => {
    const data = (count: number): string => `${head}data:\n${repeatUpTo(count, (index) => `  k${index}: v\n`)}`;
    expect(await threadsOf(async () => expect((await apply(data(1000))).code).toBe(200))).toBe(0);
    expect(await threadsOf(async () => expect((await apply(data(100_000))).json.data.k999).toBe('v'))).toBe(1);
  });

  test('a YAML body that contains JSON is parsed as JSON, however long it is', async () => {
    const data = Object.fromEntries(Array.from({ length: 40_000 }, (_, index) => [`k${index}`, 'v']));
    const body = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'json' }, data });
    const threads = await threadsOf(async () => {
      const { code, othersWaited } = await whileServingOthers(at, () => postYaml(body));
      expect(code).toBe(201);
      expect(othersWaited).toBeLessThan(OTHERS_WAIT_MILLIS);
    });
    expect(threads).toBe(0);
  });

  test('a megabyte of text is accepted as YAML', async () => {
    const text = repeatUpTo(
      900_000,
      (index) => `    the line ${index} of a text that is as long as a ConfigMap may be\n`,
    );
    const { code, json } = await apply(`${head}data:\n  text: |\n${text}`);
    expect(code).toBe(200);
    expect(json.data.text.length).toBeGreaterThan(800_000);
  });

  test('a short YAML body with aliases is parsed in a worker thread, and a value that contains itself is refused', async () => {
    const data = `${head}data:\n  x: &x v\n  y: *x\n`;
    expect(await threadsOf(async () => expect((await apply(data)).json.data).toMatchObject({ x: 'v', y: 'v' }))).toBe(
      1,
    );
    const { code, json, othersWaited } = await whileServingOthers(at, () => apply(`a: &a [${'*a,'.repeat(1300)}]`));
    expect([code, json.message]).toEqual([
      400,
      "error decoding patch: anchor 'a' value contains itself at line 1, column 8",
    ]);
    expect(othersWaited).toBeLessThan(OTHERS_WAIT_MILLIS);
  });

  test('concurrent YAML bodies are parsed one after another, and requests beyond the limit get 429', async () => {
    const body = `${head}data:\n${repeatUpTo(10_000, (index) => `  k${index}: v\n`)}`;
    const codes = (await Promise.all(Array.from({ length: 20 }, () => apply(body)))).map(({ code }) => code);
    expect(new Set(codes)).toEqual(new Set([200, 429]));
  });
});

describe('100,000 levels of nesting', () => {
  const nest = (inner: string): string => `${'{"a":'.repeat(100_000)}${inner}${'}'.repeat(100_000)}`;
  const object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"deep"},"data":${nest('1')}}`;

  test.each<[string, () => Promise<Answer>]>([
    ['a POST', () => at.call('POST', CONFIG_MAPS, { body: object })],
    ['a POST of YAML', () => postYaml(object)],
    ['DeleteOptions', () => at.call('DELETE', `${CONFIG_MAPS}/one`, { body: nest('1') })],
    ['a merge patch', () => patch('merge-patch+json', nest('null'))],
    ['a strategic merge patch', () => patch('strategic-merge-patch+json', nest('null'))],
    ['a JSON patch', () => patch('json-patch+json', `[{"op":"add","path":"/data","value":${nest('1')}}]`)],
    ['an apply', () => apply(object)],
  ])('100,000 levels of nesting in %s are refused', async (_what, call) => {
    const { code, json } = await call();
    expect(code).toBe(400);
    expect(json.message).toMatch(/exceeded max depth/);
    expect(at.errors).toEqual([]);
  });
});

describe('values that are missing, too long or of the wrong type', () => {
  test('a continue token whose version is an object with a toString is refused', async () => {
    const token = Buffer.from('{"v":{"toString":1},"rv":1,"start":"a"}').toString('base64url');
    const { code, json } = await at.call('GET', `${CONFIG_MAPS}?limit=1&continue=${token}`);
    expect(code).toBe(400);
    expect(json.message).toContain('continue key is not valid: server does not recognize this encoded version');
  });

  test.each(['apiVersion', 'kind'])('a body whose %s is an object with a toString is refused', async (field) => {
    const body = JSON.stringify({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'one' },
      [field]: { toString: 1 },
    });
    const why = `json: cannot unmarshal object into Go struct field .${field} of type string`;
    const answers = [
      await at.call('POST', CONFIG_MAPS, { body }),
      await apply(body),
      await patch('merge-patch+json', body),
      await patch('json-patch+json', JSON.stringify([{ op: 'add', path: `/${field}`, value: { toString: 1 } }])),
    ];
    for (const { code, json } of answers) {
      expect(code).toBe(400);
      expect(json.message).toContain(`couldn't get version/kind; json parse error: ${why}`);
    }
  });

  test('a PriorityClass without a name is refused', async () => {
    const body = '{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{},"value":1}';
    const { code, json } = await at.call('POST', '/apis/scheduling.k8s.io/v1/priorityclasses', { body });
    expect(code).toBe(422);
    expect(json.message).toBe(
      'PriorityClass.scheduling.k8s.io "" is invalid: metadata.name: Required value: name or generateName is required',
    );
  });

  // A SelfSubjectReview needs no fields.
  test.each(kinds.filter(({ computed, kind }) => computed === undefined && kind !== 'SelfSubjectReview'))(
    'a $kind of $group/$version without a name, metadata or spec is refused',
    async ({ group, version, kind, plural, namespaced }) => {
      const path = `${group === '' ? '/api' : `/apis/${group}`}/${version}${namespaced ? '/namespaces/default' : ''}`;
      const apiVersion = group === '' ? version : `${group}/${version}`;
      for (const rest of [{}, { metadata: {} }, { metadata: null, spec: null }, { metadata: {}, spec: {} }]) {
        const { code } = await at.call('POST', `${path}/${plural}`, {
          body: JSON.stringify({ apiVersion, kind, ...rest }),
        });
        expect(code).toBeGreaterThanOrEqual(400);
        expect(code).toBeLessThan(500);
      }
    },
  );

  test.each(['GET', 'DELETE', 'PUT', 'PATCH'])(
    '%s of an object with a name of 8 kB gets 404, whether or not its kind is cached',
    async (method) => {
      const name = 'x'.repeat(8000);
      const body = method === 'PUT' ? JSON.stringify({ metadata: { name } }) : method === 'PATCH' ? '{}' : '';
      const headers = { 'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json' };
      for (const path of [CONFIG_MAPS, '/apis/lifepod.io/v1/namespaces/default/podrecords'])
        expect(await at.call(method, `${path}/${name}`, { body, headers })).toMatchObject({ code: 404 });
    },
  );

  test('a list with a namespace or a field selector of 8 kB is empty', async () => {
    const long = 'x'.repeat(8000);
    for (const path of [
      `/apis/lifepod.io/v1/namespaces/${long}/podrecords`,
      `/apis/lifepod.io/v1/namespaces/default/podrecords?fieldSelector=metadata.name%3D${long}`,
    ])
      expect((await at.call('GET', path)).json).toMatchObject({ items: [] });
  });
});

describe('incomplete bodies', () => {
  const begin = (bytes: number): Sending => {
    const headers = { 'content-type': 'application/json', 'content-length': String(LARGE) };
    const sent = at.send('POST', CONFIG_MAPS, { headers });
    sent.body.on('error', () => undefined).write('x'.repeat(bytes));
    return sent;
  };

  test('the largest incomplete bodies are refused if all together are too large, and a complete body is still read', async () => {
    const first = begin(LARGE - 1);
    const all = [first, ...Array.from({ length: 29 }, () => begin(LARGE - 1))];
    const response = await first.response;
    expect(response.statusCode).toBe(429);
    expect(JSON.parse(await readText(response))).toMatchObject({ reason: 'TooManyRequests' });
    const body = `{"metadata":{"name":"meanwhile"},"data":{"a":"${'x'.repeat(900_000)}"}}`;
    expect((await at.call('POST', CONFIG_MAPS, { body })).code).toBe(201);
    for (const { body: each } of all) each.destroy();
  });

  test('a body that arrives in chunks of one byte takes no more memory than its bytes', async () => {
    const before = process.memoryUsage().rss;
    const { host, port } = at.server;
    const { caCertificate: ca, admin } = at.pki;
    const socket = connect({ host, port, ca, cert: admin.certificate, key: admin.key });
    socket.write(`POST ${CONFIG_MAPS} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n`);
    socket.write('1\r\nx\r\n'.repeat(1_000_000));
    socket.write('0\r\n\r\n');
    expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1.1 400 /);
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 * 1024);
    socket.destroy();
  });
});
