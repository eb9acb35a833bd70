import { expect, test } from 'vitest';
import { createAudit } from '../../apiserver/audit/audit.ts';
import { jsonText } from '../../apiserver/audit/event.ts';
import { parsePolicy } from '../../apiserver/audit/policy.ts';
import type { Sink } from '../../apiserver/audit/sink.ts';
import { type RegistryBackend, registryBackend } from '../../client/registry-fixture.ts';
import { createMetrics } from '../../platform/metrics.ts';
import { systemTimers } from '../../platform/node-js.ts';
import { apiFor } from '../../ports/api-for.ts';
import type { ResourceApi } from '../../ports/backend.ts';
import { SCHEDULER } from '../users.ts';
import { auditedCalls } from './audited-calls.ts';

const CONFIG_MAPS = { group: '', version: 'v1', resource: 'configmaps' };
const configMap = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'a' } });

interface Started {
  backend: RegistryBackend;
  api: ResourceApi;
  // biome-ignore lint/suspicious/noExplicitAny: tests read fields of JSON
  take(): any[];
}

async function start(rules: object[], isStrict = false): Promise<Started> {
  const lines: string[] = [];
  const sink: Sink = {
    isStrict,
    add(event) {
      lines.push(jsonText(event));
      return isStrict ? Promise.resolve(false) : undefined;
    },
    close: async () => undefined,
  };
  const policy = parsePolicy({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules });
  const audit = createAudit({ policy, sink, metrics: createMetrics(), timers: systemTimers() });
  const backend = await registryBackend();
  const api = apiFor(auditedCalls(backend.serving, audit, 'lifepod/1'), SCHEDULER);
  return { backend, api, take: () => lines.splice(0).map((line) => JSON.parse(line)) };
}

const ALL = [{ level: 'RequestResponse', omitStages: ['RequestReceived'] }];

test('a call of a component is recorded as a request of its user, with what a client would have sent', async () => {
  const { api, take } = await start(ALL);
  await api.create(CONFIG_MAPS, 'a', configMap('x'));
  const [event] = take();
  expect(event).toEqual({
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'RequestResponse',
    auditID: expect.stringMatching(/^[0-9a-f-]{36}$/),
    stage: 'ResponseComplete',
    requestURI: '/api/v1/namespaces/a/configmaps',
    verb: 'create',
    user: { username: 'system:kube-scheduler', groups: ['system:authenticated'] },
    userAgent: 'lifepod/1',
    objectRef: { resource: 'configmaps', namespace: 'a', name: 'x', apiVersion: 'v1' },
    responseStatus: { metadata: {}, code: 201 },
    requestObject: configMap('x'),
    responseObject: expect.objectContaining({ kind: 'ConfigMap' }),
    requestReceivedTimestamp: expect.any(String),
    stageTimestamp: expect.any(String),
  });
});

test('each verb is recorded, and a failure with its Status', async () => {
  const { api, take } = await start(ALL);
  await api.create(CONFIG_MAPS, 'a', configMap('x'));
  await api.get(CONFIG_MAPS, 'a', 'x');
  await api.list(CONFIG_MAPS, {});
  await api.update(CONFIG_MAPS, configMap('x'));
  await api.patch(CONFIG_MAPS, 'a', 'x', 'application/merge-patch+json', { data: { k: 'v' } });
  await api.delete(CONFIG_MAPS, 'a', 'x');
  await api.deleteCollection(CONFIG_MAPS, { namespace: 'a' });
  await expect(api.get(CONFIG_MAPS, 'a', 'x')).rejects.toThrow('not found');
  const events = take();
  expect(events.map(({ verb, requestURI, responseStatus }) => `${verb} ${requestURI} ${responseStatus.code}`)).toEqual([
    'create /api/v1/namespaces/a/configmaps 201',
    'get /api/v1/namespaces/a/configmaps/x 200',
    'list /api/v1/configmaps 200',
    'update /api/v1/namespaces/a/configmaps/x 200',
    'patch /api/v1/namespaces/a/configmaps/x 200',
    'delete /api/v1/namespaces/a/configmaps/x 200',
    'deletecollection /api/v1/namespaces/a/configmaps 200',
    'get /api/v1/namespaces/a/configmaps/x 404',
  ]);
  expect(events[4].requestObject).toEqual({ data: { k: 'v' } });
  expect(events[7].responseStatus.reason).toBe('NotFound');
});

test('a watch is recorded when it starts and when it ends', async () => {
  const { api, take } = await start(ALL);
  const ending = new AbortController();
  const watch = api.watch(CONFIG_MAPS, {}, () => undefined, ending.signal);
  await new Promise(setImmediate);
  await new Promise(setImmediate);
  expect(take()).toMatchObject([
    {
      stage: 'ResponseStarted',
      verb: 'watch',
      requestURI: '/api/v1/configmaps?watch=true',
      responseStatus: { code: 200 },
    },
  ]);
  ending.abort();
  await watch;
  expect(take()).toMatchObject([{ stage: 'ResponseComplete' }]);
  await expect(api.watch(CONFIG_MAPS, { fieldSelector: 'x' }, () => undefined, ending.signal)).rejects.toThrow();
  await new Promise(setImmediate);
  expect(take().map(({ stage, responseStatus }) => [stage, responseStatus.code])).toEqual([
    ['ResponseStarted', 400],
    ['ResponseComplete', 400],
  ]);
});

test('an unexpected failure has the stage Panic', async () => {
  const { api, backend, take } = await start(ALL);
  backend.failNext('get configmaps', new Error('broken'));
  await expect(api.get(CONFIG_MAPS, 'a', 'x')).rejects.toThrow('broken');
  expect(take()).toMatchObject([
    { stage: 'Panic', responseStatus: { message: "APIServer panic'd: broken", code: 500 } },
  ]);
});

test('only the users of the policy are recorded, and requests of clients are left to the API server', async () => {
  const { api, backend, take } = await start([{ level: 'Metadata', users: ['system:kube-proxy'] }]);
  await api.list(CONFIG_MAPS, {});
  expect(take()).toEqual([]);
  expect(backend.calls.at(-1)).toContain('list configmaps');
});

test('in the mode blocking-strict, a call whose event is lost fails before it has an effect', async () => {
  const { api, backend } = await start([{ level: 'Metadata' }], true);
  await expect(api.create(CONFIG_MAPS, 'a', configMap('x'))).rejects.toThrow('failed to store audit event');
  expect(backend.calls.filter((call) => call.includes('configmaps'))).toEqual([]);
});
