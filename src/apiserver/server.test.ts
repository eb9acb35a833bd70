import { createPrivateKey } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { connect } from 'node:tls';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { ConfigMap, Pod } from '../api/generated/types.ts';
import { CONFIG_MAPS as CONFIG_MAPS_REF, PODS } from '../api/resources.ts';
import { badRequest } from '../machinery/status.ts';
import { createVirtualTimers } from '../platform/virtual-timers.ts';
import type { LogOptions } from '../ports/node-connection.ts';
import { isHttp2 } from './client-fixture.ts';
import { makeAuthority, makeLeaf } from './pki/certificates.ts';
import { noNodes, readText, startTestServer, type TestServer } from './server-fixture.ts';

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const TABLE =
  'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json';
const configMap = (name: string, data: Record<string, string> = { a: 'b' }): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data });

const podOf = (name: string, containers: string[], initContainers: string[] = [], nodeName?: string): Pod => {
  const named = (names: string[]) => names.map((each) => ({ name: each, image: 'x' }));
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: { nodeName, containers: named(containers), initContainers: named(initContainers) },
  };
};

let at: TestServer;
beforeAll(async () => {
  at = await startTestServer();
});
afterAll(() => at[Symbol.asyncDispose]());

async function clientWith(issuer: { certificate: string; key: string }, commonName: string, organization: string) {
  const authority = { certificate: issuer.certificate, key: createPrivateKey(issuer.key) };
  const leaf = await makeLeaf(authority, { commonName, organization, usage: 'client' }, Date.now());
  return new Agent({ ca: at.pki.caCertificate, cert: leaf.certificate, key: leaf.key });
}

describe('authentication and authorization', () => {
  test('a client without a certificate can access only health and version', async () => {
    const { anonymous: agent } = at;
    for (const path of ['/healthz', '/livez', '/readyz', '/readyz?verbose', '/version']) {
      expect((await at.call('GET', path, { agent })).code).toBe(200);
    }
    for (const path of ['/api', '/apis', '/openapi/v3', '/api/v1/pods', '/nothing', '/readyzz', '/readyz/ping']) {
      const { code, json } = await at.call('GET', path, { agent });
      expect(code).toBe(401);
      expect(json).toMatchObject({
        kind: 'Status',
        status: 'Failure',
        reason: 'Unauthorized',
        message: 'Unauthorized',
      });
    }
  });

  test('a client with a certificate of another authority gets 401', async () => {
    const agent = await clientWith(await makeAuthority('another', Date.now()), 'kubernetes-admin', 'system:masters');
    expect((await at.call('GET', '/api/v1/pods', { agent })).code).toBe(401);
    agent.destroy();
  });

  test('a user outside system:masters gets 403 with a message that describes the refused action', async () => {
    const key = readFileSync(join(at.dataDir, 'pki', 'ca.key'), 'utf8');
    const agent = await clientWith({ certificate: at.pki.caCertificate, key }, 'jane', 'developers');
    const message = async (method: string, path: string) => (await at.call(method, path, { agent })).json;
    expect(await message('GET', '/api/v1/namespaces/default/pods')).toMatchObject({
      code: 403,
      reason: 'Forbidden',
      message: 'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "default"',
      details: { kind: 'pods' },
    });
    expect((await message('GET', '/api/v1/namespaces/default/pods/a/log')).message).toBe(
      'pods "a" is forbidden: User "jane" cannot get resource "pods/log" in API group "" in the namespace "default"',
    );
    expect((await message('GET', '/apis/coordination.k8s.io/v1/leases?watch=1')).message).toBe(
      'leases.coordination.k8s.io is forbidden: User "jane" cannot watch resource "leases" in API group "coordination.k8s.io" at the cluster scope',
    );
    expect((await message('GET', '/openapi/v3')).message).toBe('forbidden: User "jane" cannot get path "/openapi/v3"');
    agent.destroy();
  });
});

test('health endpoints report each check', async () => {
  let isHealthy = true;
  const store = (): void => {
    if (!isHealthy) throw new Error('secret reason');
  };
  await using own = await startTestServer({ readyChecks: { store } });
  expect((await own.call('GET', '/readyz?verbose')).text).toBe(
    '[+]ping ok\n[+]store ok\n[+]shutdown ok\nreadyz check passed\n',
  );
  isHealthy = false;
  const failed = await own.call('GET', '/readyz');
  expect(failed.code).toBe(500);
  expect(failed.text).toBe('[+]ping ok\n[-]store failed: reason withheld\n[+]shutdown ok\nreadyz check failed\n');
  expect((await own.call('GET', '/readyz/store')).code).toBe(500);
  expect((await own.call('GET', '/readyz?exclude=store')).code).toBe(200);
  expect((await own.call('GET', '/readyz?verbose&exclude=store&exclude=b&exclude=a')).text).toBe(
    '[+]ping ok\n[+]store excluded: ok\n[+]shutdown ok\nwarn: some health checks cannot be excluded: no matches for "a","b"\nreadyz check passed\n',
  );
  expect((await own.call('GET', '/livez')).text).toBe('ok');
  expect((await own.call('GET', '/readyz/unknown')).code).toBe(404);
});

test('/ lists the paths of the server, each of which is served', async () => {
  const { json, text } = await at.call('GET', '/');
  expect(text).toMatch(/^\{\n {2}"paths": \[\n {4}"\/\.well-known\/openid-configuration",\n {4}"\/api",\n/);
  expect(json.paths).toEqual([...json.paths].sort());
  for (const path of json.paths) expect((await at.call('GET', path)).code, path).toBe(200);
  expect(json.paths).toEqual(
    expect.arrayContaining(['/api/v1', '/apis/apps', '/apis/apps/v1', '/livez/ping', '/readyz/shutdown', '/version']),
  );
  expect(await at.call('GET', '/', { agent: at.anonymous })).toMatchObject({ code: 401 });
  expect(await at.call('POST', '/', { body: '{}' })).toMatchObject({ code: 405 });
});

test('/version reports the version of the API and of lifepod', async () => {
  expect((await at.call('GET', '/version')).json).toMatchObject({
    major: '1',
    minor: '33',
    gitVersion: 'v1.33.0+lifepod.0.0.0',
    gitCommit: 'abc',
    buildDate: '2026-01-31T12:00:00Z',
    goVersion: expect.stringMatching(/^node\d+\.\d+\.\d+$/),
  });
});

describe('requests for objects', () => {
  test('objects can be created, read, updated, patched and deleted, and warnings are sent as headers', async () => {
    const create = vi.spyOn(at.backend, 'create');
    const tried = await at.call('POST', `${CONFIG_MAPS}?dryRun=All&fieldValidation=Strict`, {
      body: configMap('one'),
      headers: { 'user-agent': 'kubectl/v1.32.4 (linux/amd64)' },
    });
    expect(tried.code).toBe(201);
    expect(create.mock.lastCall?.[0]).toMatchObject({
      user: { name: 'kubernetes-admin', groups: ['system:masters', 'system:authenticated'] },
      source: 'client',
      verb: 'create',
      resource: CONFIG_MAPS_REF,
      namespace: 'default',
    });
    expect(create.mock.lastCall?.[2]).toMatchObject({
      dryRun: true,
      fieldValidation: 'Strict',
      fieldManager: 'kubectl',
    });
    const body = JSON.stringify({ ...JSON.parse(configMap('one')), unknown: 1 });
    const created = await at.call('POST', CONFIG_MAPS, { body });
    expect(created.code).toBe(201);
    expect(created.json.metadata).toMatchObject({ name: 'one', namespace: 'default' });
    expect(created.headers['warning']).toBe('299 - "unknown field \\"unknown\\""');
    expect(created.headers['audit-id']).toMatch(/^[0-9a-f-]{36}$/);
    expect((await at.call('GET', `${CONFIG_MAPS}/one`)).json).toEqual(created.json);
    const updated = await at.call('PUT', `${CONFIG_MAPS}/one`, { body: configMap('one', { a: 'c' }) });
    expect(updated.json.data).toEqual({ a: 'c' });
    const patched = await at.call('PATCH', `${CONFIG_MAPS}/one`, {
      body: '{"data":{"a":null,"x":"y"}}',
      headers: { 'content-type': 'application/merge-patch+json' },
    });
    expect(patched.json.data).toEqual({ x: 'y' });
    const { uid } = created.json.metadata;
    const options = { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 7, preconditions: { uid } };
    const remove = vi.spyOn(at.backend, 'delete');
    const deleted = await at.call('DELETE', `${CONFIG_MAPS}/one`, { body: JSON.stringify(options) });
    expect(deleted).toMatchObject({ code: 200, json: { status: 'Success' } });
    expect(remove.mock.lastCall?.[1]).toMatchObject({ gracePeriodSeconds: 7, preconditions: { uid } });
    expect((await at.call('GET', `${CONFIG_MAPS}/one`)).json).toMatchObject({
      code: 404,
      message: 'configmaps "one" not found',
    });
  });

  test('the body of a request may be YAML', async () => {
    const { code, json } = await at.call('POST', CONFIG_MAPS, {
      body: 'metadata:\n  name: from-yaml\ndata: {a: "1"}\n',
      headers: { 'content-type': 'application/yaml; charset=utf-8' },
    });
    expect(code).toBe(201);
    expect(json).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap', data: { a: '1' } });
  });

  test('a Binding can be posted to its Pod or to bindings', async () => {
    const binding = (name: string): string =>
      JSON.stringify({ apiVersion: 'v1', kind: 'Binding', metadata: { name }, target: { name: 'n' } });
    const nodesOfPods = () => (at.api.objects(PODS) as Pod[]).map(({ spec }) => spec?.nodeName);
    for (const name of ['p', 'q']) await at.api.set(PODS, podOf(name, ['app']));
    const posted = await at.call('POST', '/api/v1/namespaces/default/pods/p/binding', { body: binding('p') });
    expect(posted.code).toBe(201);
    expect(nodesOfPods()).toEqual(['n', undefined]);
    expect((await at.call('POST', '/api/v1/namespaces/default/bindings', { body: binding('q') })).code).toBe(201);
    expect(nodesOfPods()).toEqual(['n', 'n']);
    expect((await at.call('GET', '/api/v1/namespaces/default/bindings')).code).toBe(405);
  });

  test.each([
    [
      'an object of another kind',
      '{"apiVersion":"v1","kind":"Pod"}',
      'Pod in version "v1" cannot be handled as a ConfigMap: converting (v1.Pod) to (v1.ConfigMap): unknown conversion',
    ],
    [
      'an object of another version',
      '{"apiVersion":"apps/v1","kind":"ConfigMap"}',
      'the API version in the data (apps/v1) does not match the expected API version (v1)',
    ],
    [
      'an object of another namespace',
      '{"metadata":{"name":"a","namespace":"b"}}',
      'the namespace of the provided object does not match the namespace sent on the request',
    ],
    [
      'an empty body',
      '',
      /^the object provided is unrecognized \(must be of type ConfigMap\): couldn't get version\/kind; json parse error: .* \(<empty>\)$/,
    ],
    [
      'broken JSON',
      '{"kind": "ConfigMap", "apiVersion": ',
      /^the object provided is unrecognized .* json parse error: .* \(\{"kind": "ConfigMap", "apiVers \.\.\.\)$/,
    ],
    ['a list', '[]', /^the object provided is unrecognized/],
    ['bytes that are not UTF-8', new Uint8Array([0x7b, 0xff, 0x7d]), 'the body of the request is not valid UTF-8'],
  ])('POST refuses %s', async (_what, body, message) => {
    const { code, json } = await at.call('POST', CONFIG_MAPS, { body });
    expect(code).toBe(400);
    expect(json.message).toEqual(typeof message === 'string' ? message : expect.stringMatching(message));
  });

  test('PUT refuses an object with another name or without one', async () => {
    const put = async (body: string) => (await at.call('PUT', `${CONFIG_MAPS}/one`, { body })).json.message;
    expect(await put(configMap('two'))).toBe('the name of the object (two) does not match the name on the URL (one)');
    expect(await put('{}')).toBe('the name of the object (one based on URL) was undeterminable: name must be provided');
  });

  test('unsupported media types get 415 or 406', async () => {
    const post = async (type: string) =>
      at.call('POST', CONFIG_MAPS, { body: 'k8s', headers: { 'content-type': type } });
    expect((await post('application/cbor')).json).toMatchObject({
      code: 415,
      reason: 'UnsupportedMediaType',
      message:
        'the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf',
    });
    expect((await post('application/vnd.kubernetes.protobuf')).json.message).toMatch(
      /^the object provided is unrecognized \(must be of type ConfigMap\): .* protobuf parse error/,
    );
    const patch = await at.call('PATCH', `${CONFIG_MAPS}/a`, { body: '{}', headers: { 'content-type': 'text/plain' } });
    expect(patch.json.message).toBe(
      'the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml',
    );
    for (const accept of ['application/cbor', 'application/json;as=Table;v=v9;g=meta.k8s.io']) {
      expect((await at.call('GET', CONFIG_MAPS, { headers: { accept } })).code).toBe(406);
    }
    const accept = 'application/vnd.kubernetes.protobuf,application/json;q=0.5';
    expect((await at.call('GET', CONFIG_MAPS, { headers: { accept } })).code).toBe(200);
  });

  test.each([
    ['GET', '?limit=x', 400, 'strconv.ParseInt: parsing "x": invalid syntax'],
    [
      'GET',
      '?resourceVersionMatch=Exact',
      422,
      'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided',
    ],
    [
      'POST',
      '?dryRun=Some',
      422,
      'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"',
    ],
    [
      'POST',
      '?fieldValidation=Loud',
      422,
      'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Loud": supported values: "Ignore", "Strict", "Warn"',
    ],
    [
      'DELETE',
      '?propagationPolicy=Sometimes',
      422,
      'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Sometimes": supported values: "Background", "Foreground", "Orphan", "nil"',
    ],
  ])('%s refuses the query %s', async (method, query, code, message) => {
    const { json } = await at.call(method, `${CONFIG_MAPS}${query}`, method === 'POST' ? { body: configMap('x') } : {});
    expect(json).toMatchObject({ code, message });
  });

  describe('server-side apply', () => {
    const headers = { 'content-type': 'application/apply-patch+yaml' };
    const body = 'apiVersion: v1\nkind: ConfigMap\ndata: {a: b}\n';

    test('server-side apply passes YAML, fieldManager and force to the backend, and responds with 201 for a new object', async () => {
      await using own = await startTestServer();
      const patch = vi.spyOn(own.backend, 'patch');
      const apply = () => own.call('PATCH', `${CONFIG_MAPS}/a?fieldManager=me&force=true`, { body, headers });
      const config = { apiVersion: 'v1', kind: 'ConfigMap', data: { a: 'b' } };
      expect(await apply()).toMatchObject({ code: 201, json: config });
      expect(await apply()).toMatchObject({ code: 200, json: config });
      const passed = [
        'application/apply-patch+yaml',
        config,
        expect.objectContaining({ fieldManager: 'me', force: true }),
      ];
      expect(patch.mock.calls.map((call) => call.slice(1))).toEqual([passed, passed]);
    });

    test('server-side apply requires a fieldManager, and other patches refuse force', async () => {
      expect((await at.call('PATCH', `${CONFIG_MAPS}/a`, { body, headers })).json.message).toBe(
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
      );
      const merge = { 'content-type': 'application/merge-patch+json' };
      expect((await at.call('PATCH', `${CONFIG_MAPS}/a?force=true`, { body: '{}', headers: merge })).json.message).toBe(
        'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
      );
    });
  });

  test.each([
    ['GET', '/api/v1/namespaces/default/nothings', 404],
    ['GET', '/api/v1/configmaps/one', 404],
    ['GET', '/api/v1/namespaces/default/nodes', 404],
    ['GET', `${CONFIG_MAPS}/one/status`, 404],
    ['GET', `${CONFIG_MAPS}/one/status/more`, 404],
    ['GET', '/api/v1/namespaces/default/configmaps/%ff', 400],
    ['GET', '/nothing', 404],
    ['POST', '/api/v1/configmaps', 405],
    ['POST', `${CONFIG_MAPS}/one`, 405],
    ['PUT', CONFIG_MAPS, 405],
    ['POST', '/apis', 405],
  ])('%s %s gets %i', async (method, path, code) => {
    expect(await at.call(method, path)).toMatchObject({ code, json: { kind: 'Status', code } });
  });

  test('an unexpected failure is logged, and its details are not sent', async () => {
    await using own = await startTestServer();
    own.backend.get = () => Promise.reject(new Error('the password is 1234'));
    const { code, text } = await own.call('GET', `${CONFIG_MAPS}/one`);
    expect(code).toBe(500);
    expect(JSON.parse(text).reason).toBe('InternalError');
    expect(text).not.toContain('1234');
    expect(own.errors).toHaveLength(1);
    expect(String(own.errors[0]?.fields?.['error'])).toContain('1234');
  });
});

test('a request whose upgrade is ignored gets a response, and its connection is closed', async () => {
  const { certificate: cert, key } = at.pki.admin;
  const socket = connect({ host: at.server.host, port: at.server.port, ca: at.pki.caCertificate, cert, key });
  socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n');
  let text = '';
  for await (const chunk of socket) text += chunk;
  expect(text).toMatch(/^HTTP\/1\.1 200/);
  expect(text.toLowerCase()).toContain('connection: close');
});

describe('bodies that are too large', () => {
  test('a request with a too large Content-Length gets a complete response with 413', async () => {
    const body = JSON.stringify({ data: { a: 'x'.repeat(8 * 1024 * 1024) } });
    const { code, json, headers: responseHeaders } = await at.call('POST', CONFIG_MAPS, { body });
    expect(code).toBe(413);
    expect(json).toMatchObject({
      reason: 'RequestEntityTooLarge',
      message: 'Request entity too large: limit is 3145728',
    });
    expect(responseHeaders.connection).toBe(isHttp2 ? undefined : 'close');
  });

  test('a chunked body that is too large is refused with 413', async () => {
    const sent = at.send('POST', CONFIG_MAPS);
    for (let count = 0; count < 6; count += 1) sent.body.write('x'.repeat(1024 * 1024));
    sent.body.end();
    const response = await sent.response;
    expect(response.statusCode).toBe(413);
    expect(JSON.parse(await readText(response)).reason).toBe('RequestEntityTooLarge');
  });
});

describe('lists', () => {
  test('a list request passes its options to the backend and returns a list or a Table', async () => {
    await using own = await startTestServer();
    const labelled = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'one', labels: { a: 'b' } },
      data: { a: 'b' },
    };
    await own.call('POST', CONFIG_MAPS, { body: JSON.stringify(labelled) });
    // A list without a resourceVersion waits until the watch cache contains the object. The list below does not wait.
    await own.call('GET', CONFIG_MAPS);
    const list = vi.spyOn(own.backend, 'list');
    const query =
      '?limit=5&labelSelector=a%3Db&fieldSelector=metadata.name%3Done&resourceVersion=3&resourceVersionMatch=NotOlderThan&unknown=1';
    const { json } = await own.call('GET', `${CONFIG_MAPS}${query}`);
    expect(json).toMatchObject({
      kind: 'ConfigMapList',
      metadata: { resourceVersion: expect.stringMatching(/^\d+$/) },
    });
    expect(json.items.map((item: { metadata: { name: string } }) => item.metadata.name)).toEqual(['one']);
    expect(list.mock.lastCall?.[1]).toEqual({
      namespace: 'default',
      limit: 5,
      labelSelector: 'a=b',
      fieldSelector: 'metadata.name=one',
      resourceVersion: '3',
      resourceVersionMatch: 'NotOlderThan',
    });
    const table = (await own.call('GET', '/api/v1/configmaps', { headers: { accept: TABLE } })).json;
    expect(table).toMatchObject({
      kind: 'Table',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { resourceVersion: json.metadata.resourceVersion },
      columnDefinitions: [
        { name: 'Name', type: 'string', format: 'name', priority: 0 },
        { name: 'Data', type: 'string', format: '', priority: 0 },
        { name: 'Age', type: 'string', format: '', priority: 0 },
      ],
      rows: [
        {
          cells: ['one', 1, expect.any(String)],
          object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: { name: 'one' } },
        },
      ],
    });
    expect(table.rows[0].object.data).toBeUndefined();
    const rows = async (include: string) =>
      (await own.call('GET', `${CONFIG_MAPS}?includeObject=${include}`, { headers: { accept: TABLE } })).json;
    expect((await rows('Object')).rows[0].object).toMatchObject({ kind: 'ConfigMap', data: { a: 'b' } });
    expect((await rows('None')).rows[0].object).toBeNull();
    expect((await rows('Everything')).code).toBe(400);
    const one = (await own.call('GET', `${CONFIG_MAPS}/one`, { headers: { accept: TABLE } })).json;
    expect(one.rows).toHaveLength(1);
  });

  test('large lists are compressed if the client accepts gzip', async () => {
    await using own = await startTestServer();
    await own.call('POST', CONFIG_MAPS, { body: configMap('large', { a: 'x'.repeat(200_000) }) });
    expect((await own.call('GET', CONFIG_MAPS)).headers['content-encoding']).toBeUndefined();
    const response = await own.open('GET', CONFIG_MAPS, { headers: { 'accept-encoding': 'gzip' } });
    expect(response.headers['content-encoding']).toBe('gzip');
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk);
    const bytes = Buffer.concat(chunks);
    expect(bytes.length).toBeLessThan(10_000);
    expect(JSON.parse(gunzipSync(bytes).toString()).items).toHaveLength(1);
  });
});

describe('watches', () => {
  test('watches stream the existing objects and changes, and end with the client', async () => {
    await using own = await startTestServer();
    await own.call('POST', CONFIG_MAPS, { body: configMap('one') });
    const watch = vi.spyOn(own.backend, 'watch');
    const leave = new AbortController();
    const path = `${CONFIG_MAPS}?watch=true&resourceVersion=0&allowWatchBookmarks=true&timeoutSeconds=9`;
    const response = await own.open('GET', path, { signal: leave.signal });
    expect(response.headers['content-type']).toBe('application/json');
    expect(watch.mock.lastCall?.[1]).toEqual({
      namespace: 'default',
      resourceVersion: '0',
      allowWatchBookmarks: true,
      timeoutSeconds: 9,
    });
    const lines = createInterface(response)[Symbol.asyncIterator]();
    const next = async () => JSON.parse((await lines.next()).value ?? '');
    expect(await next()).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'one' } } });
    await own.call('POST', CONFIG_MAPS, { body: configMap('two') });
    expect(await next()).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'two' } } });
    response.once('error', () => undefined);
    leave.abort();
    await watch.mock.results[0]?.value;
  });

  test('a watch responds before its first event, and only the Table of the first event has column definitions', async () => {
    await using own = await startTestServer();
    const watch = vi.spyOn(own.backend, 'watch');
    const response = await own.open('GET', `${CONFIG_MAPS}?watch=1`, { headers: { accept: TABLE } });
    const lines = createInterface(response)[Symbol.asyncIterator]();
    const next = async () => JSON.parse((await lines.next()).value ?? '');
    await own.call('POST', CONFIG_MAPS, { body: configMap('one') });
    expect(await next()).toMatchObject({
      type: 'ADDED',
      object: {
        kind: 'Table',
        metadata: { resourceVersion: expect.stringMatching(/^\d+$/) },
        columnDefinitions: [{}, {}, {}],
        rows: [{ cells: ['one', 1, expect.any(String)] }],
      },
    });
    await own.call('POST', CONFIG_MAPS, { body: configMap('two') });
    expect(await next()).toMatchObject({
      object: { columnDefinitions: null, rows: [{ cells: ['two', 1, expect.any(String)] }] },
    });
    const sink = watch.mock.lastCall?.[2];
    sink?.({ type: 'ERROR', object: badRequest('no more').status });
    expect(await next()).toMatchObject({ type: 'ERROR', object: { kind: 'Status', message: 'no more' } });
    response.destroy();
  });

  test('a watch that cannot start responds with the failure', async () => {
    await using own = await startTestServer();
    own.backend.watch = () => Promise.reject(badRequest('invalid field selector'));
    expect(await own.call('GET', `${CONFIG_MAPS}?watch=1`)).toMatchObject({
      code: 400,
      json: { message: 'invalid field selector' },
    });
  });

  test('the watch of a client that does not read is cut', async () => {
    await using own = await startTestServer();
    const watch = vi.spyOn(own.backend, 'watch');
    const response = await own.open('GET', `${CONFIG_MAPS}?watch=1`);
    response.pause();
    const cut = once(response, 'aborted');
    const metadata = { name: 'big', namespace: 'default' };
    for (let sent = 0; sent < 40; sent += 1) {
      const data = { a: `${sent}`.padEnd(1_000_000, 'x') };
      await own.api.set<ConfigMap>(CONFIG_MAPS_REF, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
    }
    await watch.mock.results[0]?.value;
    response.resume();
    await cut;
  });

  test('watches end when the server closes, and requests in progress get their response', async () => {
    const own = await startTestServer();
    let respond = (): void => undefined;
    const received = new Promise<void>((resolveReceived) => {
      own.backend.get = () =>
        new Promise((resolve) => {
          respond = () => resolve({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'late' } });
          resolveReceived();
        });
    });
    const watch = await own.open('GET', `${CONFIG_MAPS}?watch=1`);
    const slow = own.call('GET', `${CONFIG_MAPS}/late`);
    await received;
    const closed = own.server.close();
    expect(await readText(watch)).toBe('');
    respond();
    const began = performance.now();
    expect(await slow).toMatchObject({ code: 200, json: { metadata: { name: 'late' } } });
    await closed;
    // close() destroys open connections after CLOSE_GRACE_MILLIS, 5 s.
    expect(performance.now() - began).toBeLessThan(3_000);
    const fresh = new Agent({ ca: own.pki.caCertificate });
    await expect(own.call('GET', '/healthz', { agent: fresh })).rejects.toThrow(/ECONNREFUSED/);
    await own[Symbol.asyncDispose]();
  });
});

describe('logs', () => {
  const LOG = '/api/v1/namespaces/default/pods/p/log';

  test('logs are streamed from the node with the options of the query, and end with the client', async () => {
    const seen: unknown[] = [];
    let aborted: Promise<unknown> = Promise.resolve();
    await using own = await startTestServer({
      nodes: {
        ...noNodes,
        async *logs(of, container, options: LogOptions, signal) {
          seen.push(of, container, options);
          yield Buffer.from('one\n');
          aborted = once(signal, 'abort');
          await aborted;
        },
      },
    });
    const { metadata } = await own.api.set(PODS, podOf('p', ['a', 'b'], ['c'], 'node-1'));
    const leave = new AbortController();
    const query = 'container=c&follow=true&tailLines=3&timestamps=true&sinceSeconds=60&limitBytes=100';
    const response = await own.open('GET', `${LOG}?${query}`, { signal: leave.signal });
    expect(response.headers['content-type']).toBe('text/plain');
    const [chunk] = await once(response, 'data');
    expect(chunk.toString()).toBe('one\n');
    expect(seen).toEqual([
      { namespace: 'default', name: 'p', uid: metadata.uid },
      'c',
      { follow: true, previous: false, timestamps: true, tailLines: 3, sinceSeconds: 60, limitBytes: 100 },
    ]);
    response.once('error', () => undefined);
    leave.abort();
    await aborted;
  });

  test('logs wait for a reader that pauses, as a pager does', async () => {
    const timers = createVirtualTimers();
    const text = Buffer.alloc(32 * 1024 * 1024, 'a');
    await using own = await startTestServer({
      timers,
      nodes: {
        ...noNodes,
        async *logs() {
          yield text;
        },
      },
    });
    await own.api.set(PODS, podOf('p', ['a'], [], 'node-1'));
    const response = await own.open('GET', LOG);
    timers.advance(3_600_000);
    expect((await readText(response)).length).toBe(text.length);
  });

  test('logs of an unknown or ambiguous container are refused with the wording of upstream', async () => {
    await using own = await startTestServer();
    const message = async (query = '') => (await own.call('GET', `${LOG}${query}`)).json.message;
    await own.api.set(PODS, podOf('p', ['a', 'b'], ['c', 'd'], 'node-1'));
    expect(await message()).toBe(
      'a container name must be specified for pod p, choose one of: [a b] or one of the init containers: [c d]',
    );
    expect(await message('?container=x')).toBe('container x is not valid for pod p');
    expect(await message('?sinceTime=2026')).toBe(
      'parsing time "2026" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "-"',
    );
    expect(await message('?tailLines=-1')).toBe(
      'PodLogOptions "p" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0',
    );
    await own.api.set(PODS, podOf('unbound', ['a']));
    expect((await own.call('GET', '/api/v1/namespaces/default/pods/unbound/log')).code).toBe(204);
  });

  test('a log request that the node refuses gets the error of the node', async () => {
    const refusal = 'container "a" in pod "p" is waiting to start: PodInitializing';
    await using own = await startTestServer({
      nodes: {
        ...noNodes,
        // biome-ignore lint/correctness/useYield: it only throws
        async *logs() {
          throw badRequest(refusal);
        },
      },
    });
    await own.api.set(PODS, podOf('p', ['a'], [], 'node-1'));
    expect(await own.call('GET', LOG)).toMatchObject({ code: 400, json: { message: refusal } });
  });
});

test('starting a server on a port in use fails with an error of one sentence', async () => {
  await expect(startTestServer({ port: at.server.port })).rejects.toThrow(
    `port ${at.server.port} on 127.0.0.1 is already in use: choose another with --port`,
  );
});
