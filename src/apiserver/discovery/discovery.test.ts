import { afterAll, beforeAll, expect, test } from 'vitest';
import { createCatalog } from '../../api/catalog.ts';
import { fewKinds, startTestServer, type TestServer } from '../server-fixture.ts';

const AGGREGATED =
  'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json';

let at: TestServer;
beforeAll(async () => {
  at = await startTestServer({ catalog: createCatalog(fewKinds) });
});
afterAll(() => at[Symbol.asyncDispose]());

const get = async (path: string, accept = 'application/json') => at.call('GET', path, { headers: { accept } });

test('the unaggregated discovery documents list versions, groups and resources', async () => {
  expect((await get('/api')).json).toMatchObject({ kind: 'APIVersions', versions: ['v1'] });
  const preferredVersion = { groupVersion: 'coordination.k8s.io/v1', version: 'v1' };
  const group = { name: 'coordination.k8s.io', versions: [preferredVersion], preferredVersion };
  expect((await get('/apis')).json).toEqual({ kind: 'APIGroupList', apiVersion: 'v1', groups: [group] });
  expect((await get('/apis/coordination.k8s.io')).json).toEqual({ kind: 'APIGroup', apiVersion: 'v1', ...group });
  const core = (await get('/api/v1')).json;
  expect(core).toMatchObject({ kind: 'APIResourceList', groupVersion: 'v1' });
  expect(core.resources.map((resource: { name: string }) => resource.name)).toEqual([
    'bindings',
    'configmaps',
    'nodes',
    'nodes/proxy',
    'nodes/status',
    'pods',
    'pods/attach',
    'pods/binding',
    'pods/defer',
    'pods/ephemeralcontainers',
    'pods/eviction',
    'pods/exec',
    'pods/log',
    'pods/portforward',
    'pods/proxy',
    'pods/status',
  ]);
  expect(core.resources).toContainEqual({
    name: 'pods',
    singularName: 'pod',
    namespaced: true,
    kind: 'Pod',
    verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
    shortNames: ['po'],
    categories: ['all'],
    storageVersionHash: 'xPOwRZ+Yhw8=',
  });
  expect(core.resources).toContainEqual({
    name: 'bindings',
    singularName: 'binding',
    namespaced: true,
    kind: 'Binding',
    verbs: ['create'],
  });
  expect(core.resources).toContainEqual({
    name: 'pods/binding',
    singularName: '',
    namespaced: true,
    kind: 'Binding',
    verbs: ['create'],
  });
});

test.each(['/apis/apps', '/api/v2', '/apis/coordination.k8s.io/v9', '/apis/apps/v1'])(
  'discovery of %s returns 404',
  async (path) => {
    expect(await get(path)).toMatchObject({ code: 404, json: { reason: 'NotFound' } });
  },
);

test('the aggregated discovery documents list all groups with their resources and subresources', async () => {
  const response = await get('/api', AGGREGATED);
  expect(response.headers['content-type']).toBe('application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList');
  expect(response.json).toMatchObject({ kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.k8s.io/v2' });
  const [core] = response.json.items;
  expect(core.versions[0]).toMatchObject({ version: 'v1', freshness: 'Current' });
  const subresource = (name: string, kind: string, verbs: string[], group = '') => ({
    subresource: name,
    responseKind: { group, version: 'v1', kind },
    verbs,
  });
  const pods = core.versions[0].resources.find((resource: { resource: string }) => resource.resource === 'pods');
  expect(pods).toEqual({
    resource: 'pods',
    responseKind: { group: '', version: 'v1', kind: 'Pod' },
    scope: 'Namespaced',
    singularResource: 'pod',
    verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
    shortNames: ['po'],
    categories: ['all'],
    subresources: [
      subresource('attach', 'PodAttachOptions', ['create', 'get']),
      subresource('binding', 'Binding', ['create']),
      subresource('defer', 'DeferControl', ['update'], 'lifepod.io'),
      subresource('ephemeralcontainers', 'Pod', ['get', 'patch', 'update']),
      subresource('eviction', 'Eviction', ['create'], 'policy'),
      subresource('exec', 'PodExecOptions', ['create', 'get']),
      subresource('log', 'Pod', ['get']),
      subresource('portforward', 'PodPortForwardOptions', ['create', 'get']),
      subresource('proxy', 'PodProxyOptions', ['create', 'delete', 'get', 'patch', 'update']),
      subresource('status', 'Pod', ['get', 'patch', 'update']),
    ],
  });
  const groups = (await get('/apis', 'application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList')).json;
  expect(groups.apiVersion).toBe('apidiscovery.k8s.io/v2beta1');
  expect(groups.items.map((item: { metadata: { name: string } }) => item.metadata.name)).toEqual([
    'coordination.k8s.io',
  ]);
});

test('the list of CustomResourceDefinitions, which kubectl reads before it reports an unknown kind, is empty', async () => {
  const answer = await at.call('GET', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions');
  expect(answer).toMatchObject({ code: 200, json: { kind: 'CustomResourceDefinitionList', items: [] } });
});
