import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { DEFAULT_LIMITS } from '../http/bounds/limits.ts';
import { encodeProtobuf } from '../protobuf/encode.ts';
import { readText, turns } from '../server-fixture.ts';
import { type AuditedServer, startAuditedServer } from './audit-fixture.ts';

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const SECRETS = '/api/v1/namespaces/default/secrets';
const configMap = (name: string, data: object = { key: 'content' }) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data,
});
const JSON_TYPE = { 'content-type': 'application/json' };
const stagesOf = (events: { stage: string }[]) => events.map(({ stage }) => stage);

let server: AuditedServer;
const post = (path: string, object: object, headers: Record<string, string> = {}) =>
  server.call('POST', path, { body: JSON.stringify(object), headers: { ...JSON_TYPE, ...headers } });

describe('with a policy of all levels', () => {
  beforeAll(async () => {
    const rules = [
      { level: 'None', nonResourceURLs: ['/healthz*'] },
      { level: 'Metadata', resources: [{ resources: ['secrets'] }] },
      { level: 'Request', verbs: ['delete', 'patch'], omitStages: ['RequestReceived'] },
      { level: 'RequestResponse', omitStages: ['RequestReceived'], omitManagedFields: true },
    ];
    server = await startAuditedServer(rules, {}, { endWorkloads: () => undefined });
  });
  afterEach(() => void server.take());
  afterAll(() => server[Symbol.asyncDispose]());

  test('a request has the ID of the response, its user, its addresses, its object and its times', async () => {
    const before = Date.now();
    const headers = { 'audit-id': 'mine', 'user-agent': 'tests', 'x-forwarded-for': '198.51.100.1' };
    const { headers: got, code } = await post(
      `${SECRETS}?fieldManager=me`,
      { ...configMap('a', {}), kind: 'Secret' },
      headers,
    );
    expect([code, got['audit-id']]).toEqual([201, 'mine']);
    const [received, complete] = server.take();
    expect(complete).toEqual({
      ...received,
      stage: 'ResponseComplete',
      objectRef: { resource: 'secrets', namespace: 'default', name: 'a', apiVersion: 'v1' },
      responseStatus: { metadata: {}, code: 201 },
      stageTimestamp: expect.any(String),
      annotations: { 'authorization.k8s.io/decision': 'allow', 'authorization.k8s.io/reason': '' },
    });
    expect(received).toEqual({
      kind: 'Event',
      apiVersion: 'audit.k8s.io/v1',
      level: 'Metadata',
      auditID: 'mine',
      stage: 'RequestReceived',
      requestURI: `${SECRETS}?fieldManager=me`,
      verb: 'create',
      user: {
        username: 'kubernetes-admin',
        groups: ['system:masters', 'system:authenticated'],
        extra: expect.any(Object),
      },
      sourceIPs: ['198.51.100.1', '127.0.0.1'],
      userAgent: 'tests',
      objectRef: { resource: 'secrets', namespace: 'default', apiVersion: 'v1' },
      requestReceivedTimestamp: received.stageTimestamp,
      stageTimestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
    });
    const stamps = [received, complete].map(({ stageTimestamp }) => Date.parse(stageTimestamp));
    const times = [before - 1, ...stamps, Date.now() + 1];
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  });

  test('no line contains the content of a Secret at the level Metadata', async () => {
    const data = { password: Buffer.from('hidden').toString('base64') };
    const secret = { ...configMap('hidden', data), kind: 'Secret' };
    await post(SECRETS, secret);
    await server.call('GET', `${SECRETS}/hidden`);
    await server.call('GET', SECRETS);
    const patch = {
      body: JSON.stringify({ stringData: { password: 'hidden' } }),
      headers: { 'content-type': 'application/merge-patch+json' },
    };
    await server.call('PATCH', `${SECRETS}/hidden`, patch);
    await server.call('PUT', `${SECRETS}/hidden`, { body: JSON.stringify(secret), headers: JSON_TYPE });
    await server.call('DELETE', `${SECRETS}/hidden`);
    expect(server.lines).toHaveLength(12);
    for (const line of server.lines) expect(line).not.toMatch(/requestObject|responseObject|aGlkZGVu|password/);
  });

  test('the objects of the request and of the response are recorded, without managedFields if the rule says so', async () => {
    await post(CONFIG_MAPS, { ...configMap('b'), metadata: { name: 'b', managedFields: [] } });
    const [event] = server.take();
    expect(event.requestObject).toEqual(configMap('b'));
    expect(event.responseObject).toMatchObject({
      kind: 'ConfigMap',
      metadata: { name: 'b', uid: expect.any(String) },
      data: { key: 'content' },
    });
    expect(event.responseObject.metadata).not.toHaveProperty('managedFields');
    expect(event.responseStatus).toEqual({ metadata: {}, code: 201 });
  });

  test('bodies in YAML and protobuf are recorded as JSON', async () => {
    const yaml = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {key: content}\n';
    await server.call('POST', CONFIG_MAPS, { body: yaml, headers: { 'content-type': 'application/yaml' } });
    const protobuf = {
      'content-type': 'application/vnd.kubernetes.protobuf',
      accept: 'application/vnd.kubernetes.protobuf',
    };
    await server.call('POST', CONFIG_MAPS, { body: encodeProtobuf(configMap('d')), headers: protobuf });
    const events = server.take();
    expect(events.map(({ requestObject }) => requestObject)).toMatchObject([configMap('c'), configMap('d')]);
    expect(events.map(({ responseObject }) => responseObject)).toMatchObject([configMap('c'), configMap('d')]);
  });

  test('a Table is recorded as the client gets it', async () => {
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';
    const { json } = await server.call('GET', CONFIG_MAPS, { headers: { accept } });
    const [{ responseObject }] = server.take();
    expect(responseObject.kind).toBe('Table');
    expect(responseObject.rows.map(({ cells }: { cells: unknown[] }) => cells[0])).toEqual(
      json.rows.map(({ cells }: { cells: unknown[] }) => cells[0]),
    );
    expect(JSON.stringify(responseObject)).not.toContain('managedFields');
  });

  test('patches are recorded as they were sent, and deletes with their options', async () => {
    await post(CONFIG_MAPS, configMap('e'));
    server.take();
    const operations = [{ op: 'add', path: '/data/more', value: 'x' }];
    await server.call('PATCH', `${CONFIG_MAPS}/e`, {
      body: JSON.stringify(operations),
      headers: { 'content-type': 'application/json-patch+json' },
    });
    await server.call('PATCH', `${CONFIG_MAPS}/e?fieldManager=m&force=true`, {
      body: 'apiVersion: v1\nkind: ConfigMap\ndata: {applied: y}\n',
      headers: { 'content-type': 'application/apply-patch+yaml' },
    });
    await server.call('DELETE', `${CONFIG_MAPS}/e`, { body: '{"gracePeriodSeconds":3}', headers: JSON_TYPE });
    await server.call('DELETE', `${CONFIG_MAPS}/e`);
    const events = server.take();
    expect(events.map(({ verb, requestObject }) => [verb, requestObject])).toEqual([
      ['patch', operations],
      ['patch', { apiVersion: 'v1', kind: 'ConfigMap', data: { applied: 'y' } }],
      ['delete', { gracePeriodSeconds: 3 }],
      ['delete', undefined],
    ]);
    expect(events[2].responseStatus).toMatchObject({ status: 'Success', details: { name: 'e' }, code: 200 });
    expect(events[3].responseStatus).toEqual({
      metadata: {},
      status: 'Failure',
      message: 'configmaps "e" not found',
      reason: 'NotFound',
      details: { name: 'e', kind: 'configmaps' },
      code: 404,
    });
    for (const event of events) expect(event).not.toHaveProperty('responseObject');
  });

  test.each<[string, string, string, object, Record<string, unknown>]>([
    [
      'a body that is not JSON',
      'POST',
      CONFIG_MAPS,
      { body: '{', headers: JSON_TYPE },
      { verb: 'create', code: 400, reason: 'BadRequest' },
    ],
    [
      'an invalid object',
      'POST',
      CONFIG_MAPS,
      { body: JSON.stringify(configMap('A')), headers: JSON_TYPE },
      { verb: 'create', code: 422, reason: 'Invalid' },
    ],
    [
      'an unknown media type',
      'POST',
      CONFIG_MAPS,
      { body: 'x', headers: { 'content-type': 'x/y' } },
      { verb: 'create', code: 415, reason: 'UnsupportedMediaType' },
    ],
    [
      'a body that is too large',
      'POST',
      CONFIG_MAPS,
      { headers: { 'content-length': '999999999' } },
      { verb: 'create', code: 413, reason: 'RequestEntityTooLarge' },
    ],
    ['an unknown resource', 'GET', '/apis/a.b/v1/odds/x', {}, { verb: 'get', code: 404, reason: 'NotFound' }],
    ['an unknown path', 'GET', '/odd', {}, { verb: 'get', code: 404, reason: 'NotFound' }],
    ['a method that is not allowed', 'PUT', CONFIG_MAPS, {}, { verb: 'update', code: 405, reason: 'MethodNotAllowed' }],
    [
      'an option that is not valid',
      'GET',
      `${CONFIG_MAPS}?limit=x`,
      {},
      { verb: 'list', code: 400, reason: 'BadRequest' },
    ],
  ])('a request with %s is recorded with its Status', async (_, method, path, options, { verb, ...status }) => {
    const { code } = await server.call(method, path, options);
    expect(code).toBe(status['code']);
    // The server reads the rest of a body that it refuses before it ends the response.
    await expect.poll(() => server.lines.length).toBeGreaterThan(0);
    const [event, ...more] = server.take();
    expect(more).toEqual([]);
    expect(event).toMatchObject({
      stage: 'ResponseComplete',
      verb,
      responseStatus: { ...status, status: 'Failure' },
    });
  });

  test('a request for a path that belongs to no resource has no object reference and no objects', async () => {
    await server.call('GET', '/version');
    const [event] = server.take();
    expect(event).toMatchObject({ requestURI: '/version', verb: 'get', responseStatus: { code: 200 } });
    for (const field of ['objectRef', 'responseObject']) expect(event).not.toHaveProperty(field);
  });

  test('a request that the policy excludes is not recorded, and is counted', async () => {
    await server.call('GET', '/healthz');
    expect(server.lines).toEqual([]);
    const families = await server.metrics.families();
    const levels = families.find(({ name }) => name === 'apiserver_audit_level_total')?.samples ?? [];
    expect(levels.map(({ labels }) => labels['level'])).toContain('None');
  });

  test('an impersonated user is recorded next to the sender, and a refused request with the decision', async () => {
    const { code } = await server.call('GET', SECRETS, {
      headers: { 'impersonate-user': 'jane', 'impersonate-group': 'team' },
    });
    expect(code).toBe(403);
    expect(server.take()[1]).toMatchObject({
      user: { username: 'kubernetes-admin' },
      impersonatedUser: { username: 'jane', groups: ['team', 'system:authenticated'] },
      responseStatus: { status: 'Failure', reason: 'Forbidden', code: 403 },
      annotations: { 'authorization.k8s.io/decision': 'forbid' },
    });
  });

  test('a failed authentication is recorded without a user, once, with the kinds of its credentials', async () => {
    await server.call('GET', CONFIG_MAPS, { agent: server.anonymous });
    await server.call('GET', '/healthz', { agent: server.anonymous, headers: { authorization: 'Bearer wrong' } });
    await server.call('GET', '/version', { agent: server.anonymous, headers: { authorization: 'Bearer wrong' } });
    const events = server.take();
    expect(events).toHaveLength(2);
    expect(events[0]).toMatchObject({
      stage: 'ResponseStarted',
      user: {},
      verb: 'list',
      responseStatus: { reason: 'Unauthorized', message: 'Authentication failed, no credentials provided', code: 401 },
    });
    expect(events[1].responseStatus.message).toBe('Authentication failed, attempted: bearer');
  });

  test('a watch is recorded when it arrives, when it starts and when its client leaves', async () => {
    const leaving = new AbortController();
    const response = await server.open('GET', `${SECRETS}?watch=1`, { signal: leaving.signal });
    response.on('error', () => undefined);
    expect(stagesOf(server.take())).toEqual(['RequestReceived', 'ResponseStarted']);
    leaving.abort();
    await expect.poll(() => server.lines.length).toBe(1);
    expect(server.take()[0]).toMatchObject({ stage: 'ResponseComplete', verb: 'watch', responseStatus: { code: 200 } });
  });

  test('the request of lifepod down is recorded when the workloads begin to end', async () => {
    const leaving = new AbortController();
    const response = await server.open('POST', '/end-workloads', { signal: leaving.signal });
    response.on('error', () => undefined);
    const [started, ...others] = server.take();
    expect(started).toMatchObject({ stage: 'ResponseStarted', verb: 'post', requestURI: '/end-workloads' });
    expect(others).toEqual([]);
    leaving.abort();
    await expect.poll(() => stagesOf(server.take())).toEqual(['ResponseComplete']);
  });

  test('a watch that fails has the status of its failure in all its stages', async () => {
    await server.call('GET', `${SECRETS}?watch=1&fieldSelector=x`);
    const events = server.take();
    expect(stagesOf(events)).toEqual(['RequestReceived', 'ResponseStarted', 'ResponseComplete']);
    expect(events.slice(1).map(({ responseStatus }) => responseStatus.code)).toEqual([400, 400]);
  });

  test('a request whose client leaves before the response is recorded when it has ended', async () => {
    const { backend } = server;
    const { get } = backend;
    const reached = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    backend.get = async (request) => {
      reached.resolve();
      await released.promise;
      return get(request);
    };
    const leaving = new AbortController();
    const opened = server.open('GET', `${SECRETS}/gone`, { signal: leaving.signal }).catch(() => undefined);
    await reached.promise;
    leaving.abort();
    await opened;
    backend.get = get;
    released.resolve();
    await expect.poll(() => server.lines.length).toBe(2);
    expect(server.take()[1].responseStatus).toMatchObject({ reason: 'NotFound' });
  });

  test('an unexpected failure has the stage Panic and its text, which the client does not get', async () => {
    const { backend } = server;
    const { get } = backend;
    backend.get = () => Promise.reject(new Error('the reason'));
    const { code, text } = await server.call('GET', `${SECRETS}/a`);
    backend.get = get;
    expect(code).toBe(500);
    expect(text).not.toContain('the reason');
    expect(server.take()[1]).toMatchObject({
      stage: 'Panic',
      responseStatus: {
        status: 'Failure',
        reason: 'InternalError',
        message: "APIServer panic'd: the reason",
        code: 500,
      },
    });
    server.errors.length = 0;
  });

  test('a long list is recorded without its items', async () => {
    const text = 'x'.repeat(900_000);
    for (const name of ['l1', 'l2', 'l3', 'l4', 'l5']) await post(CONFIG_MAPS, configMap(name, { text }));
    server.take();
    const { code } = await server.call('GET', CONFIG_MAPS);
    const [event] = server.take();
    expect([code, event.responseStatus.code]).toEqual([200, 200]);
    expect(event).not.toHaveProperty('responseObject');
    expect(event.annotations).toMatchObject({ 'audit.k8s.io/truncated': 'true' });
  });
});

describe('in a blocking mode', () => {
  test('a response ends only when its event is written', async () => {
    const written = Promise.withResolvers<boolean>();
    await using audited = await startAuditedServer([{ level: 'Metadata', omitStages: ['RequestReceived'] }], {
      add: () => written.promise,
    });
    let isAnswered = false;
    const answer = audited.call('GET', '/version').finally(() => (isAnswered = true));
    await expect.poll(() => audited.lines.length).toBe(1);
    await turns(10);
    expect(isAnswered).toBe(false);
    written.resolve(true);
    expect((await answer).code).toBe(200);
  });

  test('a lost event does not change the response, but blocking-strict refuses the request before it has an effect', async () => {
    const lose = { add: async () => false };
    await using lenient = await startAuditedServer([{ level: 'Metadata' }], lose);
    expect((await lenient.call('GET', '/version')).code).toBe(200);
    await using strict = await startAuditedServer([{ level: 'Metadata' }], { ...lose, isStrict: true });
    const body = JSON.stringify(configMap('a'));
    const { code, json } = await strict.call('POST', CONFIG_MAPS, { body, headers: JSON_TYPE });
    expect([code, json.message]).toEqual([500, 'Internal error occurred: failed to store audit event']);
    expect(stagesOf(strict.take())).toEqual(['RequestReceived']);
    await expect(strict.api.get({ group: '', version: 'v1', resource: 'configmaps' }, 'default', 'a')).rejects.toThrow(
      'not found',
    );
    const families = await strict.metrics.families();
    const refused = families.find(({ name }) => name === 'apiserver_audit_requests_rejected_total')?.samples;
    expect(refused?.map(({ value }) => value)).toEqual([1]);
  });
});

test('a request that exceeds a limit of the server is recorded', async () => {
  const limits = { ...DEFAULT_LIMITS, watches: 0 };
  await using audited = await startAuditedServer([{ level: 'Metadata' }], {}, { limits });
  await audited.call('GET', `${CONFIG_MAPS}?watch=1`);
  const events = audited.take();
  expect(stagesOf(events)).toEqual(['RequestReceived', 'ResponseStarted', 'ResponseComplete']);
  expect(events[2].responseStatus).toMatchObject({ reason: 'TooManyRequests', code: 429 });
});

test('the stages of a request are in the order of their times', async () => {
  await using audited = await startAuditedServer([{ level: 'Metadata' }]);
  for (let count = 0; count < 50; count++) await audited.call('GET', '/version');
  const times = audited.take().map(({ stageTimestamp }) => stageTimestamp);
  expect(times).toEqual([...times].sort());
});

describe('hostile headers', () => {
  test('hostile headers lead to valid lines of limited length', async () => {
    await using audited = await startAuditedServer([{ level: 'Metadata' }]);
    const long = Array.from({ length: 1200 }, (_, index) => `10.0.${index % 256}.1`).join(',');
    const hostile: Record<string, string>[] = [
      { 'audit-id': '"}\\' },
      { 'audit-id': 'x'.repeat(8000) },
      { 'user-agent': 'a\u00ff\u0080\t"\\' },
      { 'user-agent': '"}\u00e2\u0080\u00a8'.repeat(1000) },
      { 'x-forwarded-for': long },
      { 'x-forwarded-for': '::1,'.repeat(3000) },
      { 'x-real-ip': '"}' },
      { 'impersonate-user': '"}\u00ff', 'impersonate-extra-%22%0a': '\u0080' },
    ];
    for (const headers of hostile) {
      const id = (await audited.call('GET', `/version?${encodeURIComponent('\n"')}`, { headers })).headers['audit-id'];
      const events = audited.lines.map((line) => {
        expect(line).not.toMatch(/[\n\r]/);
        expect(line.length).toBeLessThan(100_000);
        return JSON.parse(line);
      });
      audited.take();
      expect(events.map(({ auditID }) => auditID)).toEqual([id, id]);
      expect(id).toMatch(/^[\x21-\x7e]{1,64}$/);
    }
  });
});

test('a server without a policy uses the Audit-ID of a client, too', async () => {
  await using audited = await startAuditedServer([{ level: 'None' }]);
  const response = await audited.open('GET', '/version', { headers: { 'audit-id': 'mine' } });
  await readText(response);
  expect(response.headers['audit-id']).toBe('mine');
  expect(audited.lines).toEqual([]);
});
