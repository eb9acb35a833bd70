import { once } from 'node:events';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createCatalog } from '../api/catalog.ts';
import { kinds } from '../api/kinds.ts';
import { startRegistry } from './registry/testing.ts';
import { startTestServer, type TestServer } from './server-fixture.ts';

const at = (version: string): string => `/apis/autoscaling/${version}/namespaces/default/horizontalpodautoscalers`;
const METRICS = 'autoscaling.alpha.kubernetes.io/metrics';
const pods = { metric: { name: 'hits' }, target: { type: 'AverageValue', averageValue: '1k' } };
const v1 = (spec: object = {}) => ({
  apiVersion: 'autoscaling/v1',
  kind: 'HorizontalPodAutoscaler',
  metadata: { name: 'a', namespace: 'default' },
  spec: { scaleTargetRef: { kind: 'Deployment', name: 'web' }, maxReplicas: 3, ...spec },
});
const v2 = (spec: object = {}) => ({ ...v1(spec), apiVersion: 'autoscaling/v2' });

let server: TestServer;
beforeEach(async () => {
  const catalog = createCatalog(kinds);
  const { backend } = await startRegistry({ catalog });
  server = await startTestServer({ backend, catalog });
});
afterEach(() => server[Symbol.asyncDispose]());

const send = (method: string, path: string, body: object, type = 'application/json') =>
  server.call(method, path, { body: JSON.stringify(body), headers: { 'content-type': type } });
const get = async (path: string) => (await server.call('GET', path)).json;

test('an object of each version is listed, with its revision, in both versions', async () => {
  expect((await send('POST', at('v1'), v1({ targetCPUUtilizationPercentage: 50 }))).code).toBe(201);
  const other = { ...v2({ metrics: [{ type: 'Pods', pods }] }), metadata: { name: 'b' } };
  expect((await send('POST', at('v2'), other)).code).toBe(201);
  const [older, newer] = [await get(at('v1')), await get(at('v2'))];
  expect([older.kind, older.apiVersion]).toEqual(['HorizontalPodAutoscalerList', 'autoscaling/v1']);
  expect(older.items).toMatchObject([
    { metadata: { name: 'a' }, spec: { targetCPUUtilizationPercentage: 50 } },
    { metadata: { name: 'b', annotations: { [METRICS]: expect.stringContaining('"metricName":"hits"') } } },
  ]);
  expect(newer.items).toMatchObject([
    { spec: { metrics: [{ resource: { name: 'cpu', target: { averageUtilization: 50 } } }] } },
    { spec: { metrics: [{ pods }] } },
  ]);
  const revisions = (list: typeof older) =>
    list.items.map((item: { metadata: { resourceVersion: string } }) => item.metadata.resourceVersion);
  expect(revisions(older)).toEqual(revisions(newer));
});

test.each([['application/merge-patch+json'], ['application/strategic-merge-patch+json']])(
  'a patch of the type %s changes an object in either version',
  async (type) => {
    await send('POST', at('v2'), v2({ metrics: [{ type: 'Pods', pods }] }));
    const percent = { spec: { targetCPUUtilizationPercentage: 40 } };
    expect((await send('PATCH', `${at('v1')}/a`, percent, type)).code).toBe(200);
    expect((await get(`${at('v2')}/a`)).spec.metrics).toMatchObject([{ pods }, { resource: { name: 'cpu' } }]);
    expect((await send('PATCH', `${at('v2')}/a`, { spec: { metrics: [{ type: 'Pods', pods }] } }, type)).code).toBe(
      200,
    );
    expect((await get(`${at('v1')}/a`)).spec.targetCPUUtilizationPercentage).toBeUndefined();
  },
);

test('a watch in one version shows writes in the other', async () => {
  await send('POST', at('v1'), v1());
  for (const version of ['v1', 'v2']) {
    const watch = await server.open('GET', `${at(version)}?watch=1`);
    const [added] = await once(watch, 'data');
    expect(JSON.parse(String(added))).toMatchObject({
      type: 'ADDED',
      object: { apiVersion: `autoscaling/${version}` },
    });
    const changed = once(watch, 'data');
    const [other, maxReplicas] = version === 'v1' ? ['v2', 7] : ['v1', 8];
    await send('PATCH', `${at(other)}/a`, { spec: { maxReplicas } }, 'application/merge-patch+json');
    const event = JSON.parse(String((await changed)[0]));
    expect(event).toMatchObject({
      type: 'MODIFIED',
      object: { apiVersion: `autoscaling/${version}`, spec: { maxReplicas } },
    });
    watch.destroy();
  }
});

test.each([
  ['v1', v1],
  ['v2', v2],
])('a server-side apply in %s creates and changes an object, and conflicts with others', async (version, make) => {
  const apply = (manager: string, maxReplicas: number) =>
    send('PATCH', `${at(version)}/a?fieldManager=${manager}`, make({ maxReplicas }), 'application/apply-patch+yaml');
  expect((await apply('one', 3)).code).toBe(201);
  expect((await apply('one', 4)).json.spec.maxReplicas).toBe(4);
  const refused = await apply('two', 5);
  expect([refused.code, refused.json.message]).toEqual([409, expect.stringContaining('.spec.maxReplicas')]);
});

test('a status written in v1 is the status in v2, and leaves the spec unchanged', async () => {
  await send('POST', at('v2'), v2({ metrics: [{ type: 'Pods', pods }] }));
  const status = { currentReplicas: 2, desiredReplicas: 3, currentCPUUtilizationPercentage: 9 };
  expect((await send('PUT', `${at('v1')}/a/status`, { ...v1(), status })).code).toBe(200);
  expect(await get(`${at('v2')}/a`)).toMatchObject({
    spec: { maxReplicas: 3, metrics: [{ pods }] },
    status: {
      currentReplicas: 2,
      desiredReplicas: 3,
      currentMetrics: [{ type: 'Resource', resource: { current: { averageUtilization: 9 } } }],
    },
  });
});

const apply = (version: string, manager: string, body: object, force = '') =>
  send('PATCH', `${at(version)}/a?fieldManager=${manager}${force}`, body, 'application/apply-patch+yaml');
const cpu = { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } };
const withCpu = v2({ metrics: [{ type: 'Resource', resource: cpu }] });
const owners = async (): Promise<{ manager: string; apiVersion: string; fieldsV1: object }[]> =>
  (await get(`${at('v2')}/a`)).metadata.managedFields;

test('an apply in v1 conflicts with the owner of the same field in v2, and takes it by force', async () => {
  await apply('v2', 'one', withCpu);
  const body = v1({ targetCPUUtilizationPercentage: 70 });
  const refused = await apply('v1', 'two', body);
  expect([refused.code, refused.json.message]).toEqual([409, expect.stringContaining('.spec.metrics')]);
  expect((await apply('v1', 'two', body, '&force=true')).code).toBe(200);
  const one = (await owners()).find(({ manager }) => manager === 'one');
  expect(one).toMatchObject({ apiVersion: 'autoscaling/v2', fieldsV1: { 'f:spec': { 'f:maxReplicas': {} } } });
  expect(one?.fieldsV1).not.toHaveProperty(['f:spec', 'f:metrics']);
});

test('an update in v1 takes the field from its owner in v2', async () => {
  await apply('v2', 'one', withCpu);
  const change = { spec: { targetCPUUtilizationPercentage: 70 } };
  await send('PATCH', `${at('v1')}/a?fieldManager=two`, change, 'application/merge-patch+json');
  const one = (await owners()).find(({ manager }) => manager === 'one');
  expect(one?.fieldsV1).not.toHaveProperty(['f:spec', 'f:metrics']);
});

test('an applier that changes its version keeps one entry, and drops the fields that it no longer applies', async () => {
  const first = v2({ minReplicas: 2 });
  await apply('v2', 'one', first);
  expect((await apply('v1', 'one', v1())).code).toBe(200);
  expect((await get(`${at('v1')}/a`)).spec.minReplicas).toBe(1);
  expect(await owners()).toMatchObject([{ manager: 'one', apiVersion: 'autoscaling/v1' }]);
});

test('an applier that drops a field leaves it if another owns it in another version', async () => {
  await apply('v2', 'one', v2({ minReplicas: 2 }));
  expect((await apply('v1', 'two', v1({ minReplicas: 2 }))).code).toBe(200);
  expect((await apply('v2', 'one', v2())).code).toBe(200);
  expect((await get(`${at('v2')}/a`)).spec.minReplicas).toBe(2);
  expect((await apply('v1', 'two', v1())).code).toBe(200);
  expect((await get(`${at('v2')}/a`)).spec.minReplicas).toBe(1);
});

test('an applier that changes its version and drops required fields gets an error of validation', async () => {
  await apply('v2', 'one', withCpu);
  expect((await apply('v1', 'one', { ...v1(), spec: undefined })).code).toBe(422);
});
