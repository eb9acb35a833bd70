import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import { NAMESPACES, NODES, PODS, SERVICE_ACCOUNTS } from '../../api/resources.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { serviceUnavailable } from '../../machinery/status.ts';
import type { NodeUsage } from '../../ports/node-reports.ts';
import { noNodes, startTestServer, type TestServer } from '../server-fixture.ts';

const AT = Date.UTC(2026, 0, 31, 12);
const app = { name: 'app', cpuNanoCores: 250_000_000.4, memoryWorkingSetBytes: 50 * 2 ** 20 };
const usage: NodeUsage = {
  node: 'n',
  at: AT,
  windowMillis: 15_020,
  cpuNanoCores: 1_500_000_000,
  memoryWorkingSetBytes: 2 ** 30,
  pods: [
    { namespace: 'default', name: 'web', containers: [app, { ...app, name: 'side', cpuNanoCores: 1 }] },
    { namespace: 'other', name: 'web', containers: [app] },
    { namespace: 'default', name: 'ended', containers: [] },
  ],
};

let at: TestServer;
beforeEach(async () => {
  at = await startTestServer({
    nodes: {
      ...noNodes,
      usage: async () => usage,
      async document(node, path) {
        if (node !== 'n') throw serviceUnavailable(`no connection to the node ${JSON.stringify(node)}`);
        return path === '/stats/summary' ? { contentType: 'application/json', texts: ['{"node":{}}\n'] } : undefined;
      },
    },
  });
  const { set } = at.api;
  await set(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'other' } });
  const account = { name: 'default', namespace: 'other' };
  await set(SERVICE_ACCOUNTS, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: account });
  const createPod = (namespace: string, name: string, labels?: Record<string, string>): Promise<Pod> => {
    const spec = { containers: [{ name: 'app', image: 'x' }] };
    return set<Pod>(PODS, { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace, labels }, spec });
  };
  await createPod('default', 'web', { app: 'web' });
  await createPod('default', 'ended');
  await createPod('other', 'web');
  for (const name of ['n', 'elsewhere']) await set(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name } });
});
afterEach(() => at[Symbol.asyncDispose]());

const METRICS = '/apis/metrics.k8s.io/v1beta1';

test('the list of PodMetrics has an item with the labels of the Pod for each Pod with running containers', async () => {
  const { json } = await at.call('GET', `${METRICS}/namespaces/default/pods`);
  expect(json).toEqual({
    apiVersion: 'metrics.k8s.io/v1beta1',
    kind: 'PodMetricsList',
    metadata: {},
    items: [
      {
        apiVersion: 'metrics.k8s.io/v1beta1',
        kind: 'PodMetrics',
        metadata: {
          name: 'web',
          namespace: 'default',
          labels: { app: 'web' },
          creationTimestamp: '2026-01-31T12:00:00Z',
        },
        timestamp: '2026-01-31T12:00:00Z',
        window: '15.02s',
        containers: [
          { name: 'app', usage: { cpu: '250m', memory: '51200Ki' } },
          { name: 'side', usage: { cpu: '1n', memory: '51200Ki' } },
        ],
      },
    ],
  });
});

const names = async (path: string): Promise<string[]> =>
  (await at.call('GET', `${METRICS}/${path}`)).json.items.map(
    ({ metadata }: KubeObject) => `${metadata.namespace ?? ''}/${metadata.name}`,
  );

test('lists of metrics support label and field selectors', async () => {
  expect(await names('pods')).toEqual(['default/web', 'other/web']);
  expect(await names('pods?labelSelector=app%3Dweb')).toEqual(['default/web']);
  expect(await names('pods?fieldSelector=metadata.namespace%3Dother')).toEqual(['other/web']);
  expect(await names('nodes')).toEqual(['/n']);
});

test('a GET of one metrics object returns the object, or 404 if there is no usage to report', async () => {
  const one = await at.call('GET', `${METRICS}/nodes/n`);
  expect(one.json).toMatchObject({ kind: 'NodeMetrics', usage: { cpu: '1500m', memory: '1048576Ki' } });
  for (const path of ['nodes/gone', 'nodes/elsewhere', 'namespaces/default/pods/ended']) {
    expect(await at.call('GET', `${METRICS}/${path}`)).toMatchObject({ code: 404, json: { reason: 'NotFound' } });
  }
});

test('metrics support only the verbs get and list', async () => {
  const named = `${METRICS}/nodes/n`;
  for (const [method, path] of [
    ['DELETE', named],
    ['PUT', named],
    ['PATCH', named],
    ['POST', `${METRICS}/nodes`],
    ['DELETE', `${METRICS}/nodes`],
    ['GET', `${METRICS}/nodes?watch=true`],
  ] as const) {
    expect(await at.call(method, path, { body: '{}' }), `${method} ${path}`).toMatchObject({ code: 405 });
  }
});

test('metrics are available as a Table', async () => {
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  const { json } = await at.call('GET', `${METRICS}/namespaces/default/pods`, { headers: { accept } });
  expect(json.rows.map(({ cells }: { cells: unknown }) => cells)).toEqual([['web', '250000001n', '100Mi', '15.02s']]);
});

test('discovery lists metrics with their verbs and without a storageVersionHash', async () => {
  const { json } = await at.call('GET', METRICS);
  expect(json.resources).toEqual([
    { name: 'nodes', singularName: '', namespaced: false, kind: 'NodeMetrics', verbs: ['get', 'list'] },
    { name: 'pods', singularName: '', namespaced: true, kind: 'PodMetrics', verbs: ['get', 'list'] },
  ]);
});

test('the proxy of a Node returns the document that the node serves at the path', async () => {
  const proxy = (name: string, path: string) => at.call('GET', `/api/v1/nodes/${name}/proxy${path}`);
  expect(await proxy('n', '/stats/summary')).toMatchObject({ code: 200, json: { node: {} } });
  expect(await proxy('n', '/nothing')).toMatchObject({ code: 404, text: '404 page not found\n' });
  expect(await proxy('n:10250', '/stats/summary')).toMatchObject({ code: 200, json: { node: {} } });
  expect(await proxy('n', '/')).toMatchObject({ code: 404, text: '404 page not found\n' });
  const bare = await proxy('n', '?a=b');
  expect([bare.code, bare.headers.location]).toEqual([301, '/api/v1/nodes/n/proxy/?a=b']);
  expect(await proxy('gone', '/stats/summary')).toMatchObject({ code: 404, json: { reason: 'NotFound' } });
  expect(await proxy('elsewhere', '/healthz')).toMatchObject({
    code: 503,
    json: {
      reason: 'ServiceUnavailable',
      message: 'error trying to reach service: no connection to the node "elsewhere"',
    },
  });
  for (const [path, code] of [
    ['run', 404],
    ['stats/summary', 405],
  ] as const) {
    expect(await at.call('POST', `/api/v1/nodes/n/proxy/${path}`, { body: '' })).toMatchObject({ code });
  }
  // Only proxy supports further paths: a path below status does not exist.
  expect(await at.call('GET', '/api/v1/nodes/n/status/more')).toMatchObject({ code: 404 });
});

test('an unauthenticated client gets 401 for metrics and the proxy of a Node', async () => {
  for (const path of [`${METRICS}/nodes`, '/api/v1/nodes/n/proxy/stats/summary']) {
    expect(await at.call('GET', path, { agent: at.anonymous })).toMatchObject({ code: 401 });
  }
});

test('ComponentStatuses are read with a warning that they are deprecated, and cannot be written', async () => {
  const list = await at.call('GET', '/api/v1/componentstatuses');
  expect(list.json).toMatchObject({ kind: 'ComponentStatusList' });
  expect(list.headers['warning']).toBe('299 - "v1 ComponentStatus is deprecated in v1.19+"');
  const selected = await at.call('GET', '/api/v1/componentstatuses?fieldSelector=metadata.name%3Dscheduler');
  expect(selected.json).toMatchObject({ items: [{ metadata: { name: 'scheduler' } }] });
  expect((await at.call('GET', '/api/v1/componentstatuses/etcd-0')).json).toMatchObject({
    kind: 'ComponentStatus',
    conditions: [{ type: 'Healthy', status: 'True', message: 'ok' }],
  });
  expect((await at.call('GET', '/api/v1/componentstatuses/odd')).code).toBe(404);
  expect((await at.call('DELETE', '/api/v1/componentstatuses/scheduler')).code).toBe(405);
});
