import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Answer, startTestServer, type TestServer } from './server-fixture.ts';

let at: TestServer;
beforeAll(async () => {
  at = await startTestServer();
});
afterAll(() => at[Symbol.asyncDispose]());

const APPS = '/apis/apps/v1/namespaces/default';
const labels = { app: 'web', tier: 'a' };
const selector = {
  matchLabels: { app: 'web' },
  matchExpressions: [{ key: 'tier', operator: 'In', values: ['b', 'a'] }],
};
const template = { metadata: { labels }, spec: { containers: [{ name: 'app', image: 'busybox:1.28' }] } };

const send = (method: string, path: string, body: object, type = 'application/json'): Promise<Answer> =>
  at.call(method, path, { body: JSON.stringify(body), headers: { 'content-type': type } });
const apply = (path: string, manager: string, body: object, force = false): Promise<Answer> =>
  send('PATCH', `${path}?fieldManager=${manager}&force=${force}`, body, 'application/apply-patch+yaml');
const scaleTo = (name: string, replicas: number, more: object = {}) => ({
  apiVersion: 'autoscaling/v1',
  kind: 'Scale',
  metadata: { name, namespace: 'default', ...more },
  spec: { replicas },
});

async function created(plural: string, kind: string, name: string): Promise<string> {
  const body = { apiVersion: 'apps/v1', kind, metadata: { name }, spec: { replicas: 2, selector, template } };
  expect((await send('POST', `${APPS}/${plural}`, body)).code).toBe(201);
  return `${APPS}/${plural}/${name}`;
}

const kinds: [string, string][] = [
  ['statefulsets', 'StatefulSet'],
  ['replicasets', 'ReplicaSet'],
  ['deployments', 'Deployment'],
];

test.each(kinds)('the Scale of an object of %s shows and changes its replicas', async (plural, kind) => {
  const path = await created(plural, kind, 'shown');
  const { metadata, status } = (await at.call('GET', path)).json;
  await send('PATCH', `${path}/status`, { status: { ...status, replicas: 1 } }, 'application/merge-patch+json');
  const { json: scale } = await at.call('GET', `${path}/scale`);
  const { uid, creationTimestamp } = metadata;
  expect(scale).toEqual({
    apiVersion: 'autoscaling/v1',
    kind: 'Scale',
    metadata: { name: 'shown', namespace: 'default', uid, creationTimestamp, resourceVersion: expect.any(String) },
    spec: { replicas: 2 },
    status: { replicas: 1, selector: 'app=web,tier in (a,b)' },
  });
  const { code, json } = await send('PUT', `${path}/scale`, { ...scale, spec: { replicas: 5 } });
  expect([code, json.kind, json.spec]).toEqual([200, 'Scale', { replicas: 5 }]);
  const changed = (await at.call('GET', path)).json;
  expect([changed.spec.replicas, changed.metadata.generation, changed.status.replicas]).toEqual([5, 2, 1]);
  expect(changed.metadata.resourceVersion).toBe(json.metadata.resourceVersion);
});

test('the Scale of a ReplicationController has the selector as a text', async () => {
  const path = '/api/v1/namespaces/default/replicationcontrollers';
  const metadata = { name: 'shown' };
  const body = { apiVersion: 'v1', kind: 'ReplicationController', metadata, spec: { template } };
  expect((await send('POST', path, body)).code).toBe(201);
  expect((await send('PUT', `${path}/shown/scale`, scaleTo('shown', 3))).json).toMatchObject({
    spec: { replicas: 3 },
    status: { selector: 'app=web,tier=a' },
  });
  expect((await at.call('GET', `${path}/shown`)).json.spec.replicas).toBe(3);
});

test.each(['application/merge-patch+json', 'application/strategic-merge-patch+json'])(
  'a patch of type %s changes the Scale',
  async (type) => {
    const path = await created('deployments', 'Deployment', type.replace(/\W+/g, '-').toLowerCase());
    const { code, json } = await send('PATCH', `${path}/scale`, { spec: { replicas: 0 } }, type);
    expect([code, json.kind, json.spec]).toEqual([200, 'Scale', {}]);
    expect((await at.call('GET', path)).json.spec.replicas).toBe(0);
  },
);

test('a JSON patch of the Scale can test the replicas before it changes them', async () => {
  const path = await created('deployments', 'Deployment', 'json');
  const patch = (tested: number) => [
    { op: 'test', path: '/spec/replicas', value: tested },
    { op: 'replace', path: '/spec/replicas', value: 7 },
  ];
  const type = 'application/json-patch+json';
  expect((await send('PATCH', `${path}/scale`, patch(3), type)).code).toBe(422);
  expect((await send('PATCH', `${path}/scale`, patch(2), type)).json.spec).toEqual({ replicas: 7 });
});

describe('a write of the Scale is rejected', () => {
  let path: string;
  beforeAll(async () => {
    path = await created('deployments', 'Deployment', 'refusing');
  });
  test.each<[string, object, number, string]>([
    [
      'a negative number',
      scaleTo('refusing', -1),
      422,
      'Scale.autoscaling "refusing" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
    ],
    [
      'an older resourceVersion',
      scaleTo('refusing', 1, { resourceVersion: '1' }),
      409,
      'Operation cannot be fulfilled on deployments.apps "refusing": the object has been modified; please apply your changes to the latest version and try again',
    ],
    [
      'another name',
      scaleTo('other', 1),
      400,
      'the name of the object (other) does not match the name on the URL (refusing)',
    ],
    [
      'another kind',
      { ...scaleTo('refusing', 1), kind: 'Deployment' },
      400,
      expect.stringContaining('Deployment') as unknown as string,
    ],
  ])('a write of the Scale with %s is rejected', async (_, body, code, message) => {
    expect(await send('PUT', `${path}/scale`, body)).toMatchObject({ code, json: { message } });
    expect((await at.call('GET', path)).json.spec.replicas).toBe(2);
  });
  test('a Scale of an object that does not exist is not found', async () => {
    expect((await at.call('GET', `${APPS}/deployments/none/scale`)).code).toBe(404);
    expect((await at.call('GET', `${APPS}/daemonsets/none/scale`)).code).toBe(404);
  });
});

test('server-side applies of an object and of its Scale conflict about the replicas, and the later owner is shown', async () => {
  const path = `${APPS}/deployments/applied`;
  const base = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'applied' } };
  const whole = { ...base, spec: { replicas: 2, selector, template } };
  expect((await apply(path, 'me', whole)).code).toBe(201);
  const refused = await apply(`${path}/scale`, 'scaler', scaleTo('applied', 4));
  expect(refused).toMatchObject({
    code: 409,
    json: { message: expect.stringContaining('conflict with "me": .spec.replicas') },
  });
  const forced = await apply(`${path}/scale`, 'scaler', scaleTo('applied', 4), true);
  expect([forced.code, forced.json.spec]).toEqual([200, { replicas: 4 }]);
  const owners = async () =>
    (await at.call('GET', path)).json.metadata.managedFields.map(
      // biome-ignore lint/suspicious/noExplicitAny: parsed JSON
      ({ manager, apiVersion, subresource, fieldsV1 }: any) => [
        manager,
        apiVersion,
        subresource,
        fieldsV1['f:spec']['f:replicas'],
      ],
    );
  expect(await owners()).toEqual([
    ['me', 'apps/v1', undefined, undefined],
    ['scaler', 'apps/v1', 'scale', {}],
  ]);
  expect((await apply(path, 'me', whole)).code).toBe(409);
  expect((await apply(path, 'me', { ...whole, spec: { selector, template } })).json.spec.replicas).toBe(4);
  expect((await send('PUT', `${path}/scale?fieldManager=hand`, scaleTo('applied', 6))).code).toBe(200);
  expect(await owners()).toEqual([
    ['me', 'apps/v1', undefined, undefined],
    ['hand', 'apps/v1', 'scale', {}],
  ]);
});

test('the Scale is shown as a table, and listed by the discovery documents', async () => {
  const path = await created('statefulsets', 'StatefulSet', 'listed');
  const headers = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
  const { columnDefinitions, rows } = (await at.call('GET', `${path}/scale`, { headers })).json;
  expect(columnDefinitions.map(({ name }: { name: string }) => name)).toEqual(['Name', 'Desired', 'Available', 'Age']);
  expect(rows[0].cells.slice(0, 3)).toEqual(['listed', 2, 0]);
  expect((await at.call('GET', '/apis/apps/v1')).json.resources).toContainEqual({
    name: 'statefulsets/scale',
    singularName: '',
    namespaced: true,
    group: 'autoscaling',
    version: 'v1',
    kind: 'Scale',
    verbs: ['get', 'patch', 'update'],
  });
});
