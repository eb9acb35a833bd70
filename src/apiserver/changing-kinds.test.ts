/** All parts of the server must reflect the catalog when kinds are added and removed while the server runs. */
import { once } from 'node:events';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { anyKind, createCatalog, type KindCatalog } from '../api/catalog.ts';
import { kind } from '../api/declaration.ts';
import { typeOfKind } from '../api/facts/facts.ts';
import { kinds } from '../api/kinds.ts';
import type { KubeObject } from '../machinery/meta.ts';
import { decodeProtobuf } from './protobuf/decode.ts';
import { encodeProtobuf } from './protobuf/encode.ts';
import { startRegistry } from './registry/testing.ts';
import { readText, startTestServer, type TestServer } from './server-fixture.ts';
import { olderWidget, widget } from './widget-fixture.ts';

const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
const TABLE = 'application/json;as=Table;g=meta.k8s.io;v=v1';
const V1 = '/apis/example.com/v1/namespaces/default/widgets';
const MAPS = '/api/v1/namespaces/default/configmaps';
const V1_BETA1 = '/apis/example.com/v1beta1/namespaces/default/widgets';

const added = [anyKind(widget), anyKind(olderWidget)] as const;

let catalog: KindCatalog;
let at: TestServer;
beforeEach(async () => {
  catalog = createCatalog(kinds);
  const { backend } = await startRegistry({ catalog });
  at = await startTestServer({ backend, catalog });
});
afterEach(async () => {
  // The types of a kind are registered for the whole process as long as a catalog has the kind.
  for (const each of [...catalog.kinds].reverse()) if (!kinds.includes(each)) catalog.remove(each);
  await at[Symbol.asyncDispose]();
});

const groupOf = (apiVersion: string): [group: string, version: string] => {
  const [version = '', group = ''] = apiVersion.split('/').reverse();
  return [group, version];
};

const json = (body: object, contentType = 'application/json') => ({
  body: JSON.stringify(body),
  headers: { 'content-type': contentType },
});
const ofSize = (size: string) => ({
  apiVersion: 'example.com/v1',
  kind: 'Widget',
  metadata: { name: 'a', namespace: 'default' },
  data: { size },
});
const revision = async (): Promise<string> => (await get(MAPS)).json.metadata.resourceVersion;
const get = async (path: string, accept = 'application/json') => at.call('GET', path, { headers: { accept } });

test('an added kind is in discovery and in the OpenAPI documents until it is removed', async () => {
  const seen = async () => {
    const { groups } = (await get('/apis')).json;
    const { items } = (await get('/apis', AGGREGATED)).json;
    const { paths } = (await get('/openapi/v3')).json;
    const v2 = (await get('/openapi/v2')).json;
    return {
      group: groups.find(({ name }: { name: string }) => name === 'example.com')?.preferredVersion.version,
      resources: (await get('/apis/example.com/v1')).code,
      aggregated: items.find(({ metadata }: KubeObject) => metadata.name === 'example.com')?.versions.length,
      v3: (await get('/openapi/v3/apis/example.com/v1')).code,
      index: paths['apis/example.com/v1'] !== undefined,
      v2: v2.paths['/apis/example.com/v1/namespaces/{namespace}/widgets/{name}'] !== undefined,
    };
  };
  const absent = { group: undefined, resources: 404, aggregated: undefined, v3: 404, index: false, v2: false };
  const hashOf = async (path: string): Promise<string> => (await get('/openapi/v3')).json.paths[path].serverRelativeURL;
  const others = await hashOf('api/v1');
  expect(await seen()).toEqual(absent);
  catalog.add(...added);
  expect(await seen()).toEqual({ group: 'v1', resources: 200, aggregated: 2, v3: 200, index: true, v2: true });
  expect(await hashOf('api/v1')).toBe(others);
  for (const kind of [...added].reverse()) catalog.remove(kind);
  expect(await seen()).toEqual(absent);
});

test('the hash of an OpenAPI document changes when its kinds change', async () => {
  catalog.add(...added);
  const hash = async () => (await get('/openapi/v3')).json.paths['apis/example.com/v1'].serverRelativeURL;
  const before = await hash();
  catalog.add(kind('example.com/v1', 'Gadget', { types: { Gadget: ['... 0 meta.v1.TypeMeta'] }, columns: [] }));
  expect(await hash()).not.toBe(before);
});

test('objects of an added kind are created, changed with all patch types, shown as tables, and deleted', async () => {
  expect((await at.call('POST', V1, json(ofSize('1')))).code).toBe(404);
  catalog.add(...added);
  expect((await at.call('POST', V1, json(ofSize('1')))).code).toBe(201);
  const patches = {
    'application/json-patch+json': [{ op: 'replace', path: '/data/size', value: '2' }],
    'application/merge-patch+json': { data: { size: '3' } },
    'application/strategic-merge-patch+json': { data: { size: '4' } },
  };
  for (const [type, patch] of Object.entries(patches)) {
    expect((await at.call('PATCH', `${V1}/a`, json(patch, type))).code).toBe(200);
  }
  const apply = json(ofSize('5'), 'application/apply-patch+yaml');
  expect((await at.call('PATCH', `${V1}/a?fieldManager=test&force=true`, apply)).json.data).toEqual({ size: '5' });
  expect((await get(V1, TABLE)).json.rows[0].cells.slice(0, 2)).toEqual(['a', '5']);
  expect((await at.call('PUT', `${V1}/a`, json(ofSize('6')))).json.data).toEqual({ size: '6' });
  expect((await at.call('DELETE', `${V1}/a`)).code).toBe(200);
  expect((await get(V1)).json.items).toEqual([]);
});

test('objects of an added kind are read and written in protobuf, also by watches', async () => {
  catalog.add(...added);
  const accept = 'application/vnd.kubernetes.protobuf';
  const headers = { accept, 'content-type': accept };
  const bytesOf = async (method: string, path: string, body?: Uint8Array): Promise<Buffer> => {
    const response = await at.open(method, path, { headers, ...(body === undefined ? {} : { body }) });
    expect([path, response.headers['content-type']?.split(';')[0]]).toEqual([path, accept]);
    return Buffer.concat(await response.toArray());
  };
  const decoded = (bytes: Buffer): object =>
    decodeProtobuf(bytes.subarray(bytes.indexOf('k8s\0')), (version, kind) => typeOfKind(...groupOf(version), kind));
  const created = decoded(await bytesOf('POST', V1, encodeProtobuf(ofSize('1'))));
  expect(created).toMatchObject(ofSize('1'));
  expect(decoded(await bytesOf('GET', `${V1}/a`))).toEqual(created);
  expect(decoded(await bytesOf('GET', V1))).toMatchObject({ kind: 'WidgetList', items: [{ data: { size: '1' } }] });
  const watch = await at.open('GET', `${V1}?watch=1`, { headers });
  const [event] = (await once(watch, 'data')) as [Buffer];
  expect(decoded(event)).toEqual(created);
  watch.destroy();
  expect(decoded(await bytesOf('GET', `${V1_BETA1}/a`))).toMatchObject({
    apiVersion: 'example.com/v1beta1',
    metadata: { annotations: { size: '1' } },
  });
});

test('the rules of an added kind are applied, with the wording of the API', async () => {
  catalog.add(...added);
  const { code, json: status } = await at.call('POST', V1, json({ ...ofSize('1'), data: { color: 'green' } }));
  expect(code).toBe(422);
  expect(status.message).toBe(
    'Widget.example.com "a" is invalid: data.color: Unsupported value: "green": supported values: "red", "blue"',
  );
});

test('two versions of a kind show the same object', async () => {
  catalog.add(...added);
  await at.call('POST', V1, json(ofSize('1')));
  expect((await get(`${V1_BETA1}/a`)).json).toMatchObject({
    apiVersion: 'example.com/v1beta1',
    metadata: { annotations: { size: '1' } },
  });
  const patch = json({ metadata: { annotations: { size: '2' } } }, 'application/merge-patch+json');
  expect((await at.call('PATCH', `${V1_BETA1}/a`, patch)).code).toBe(200);
  expect((await get(`${V1}/a`)).json).toMatchObject({ apiVersion: 'example.com/v1', data: { size: '2' } });
});

test('the watches of a removed kind end with an ERROR event, and its objects are served again if it is added again', async () => {
  catalog.add(...added);
  await at.call('POST', V1, json(ofSize('1')));
  const watch = await at.open('GET', `${V1}?watch=1&resourceVersion=0`);
  const other = await at.open('GET', `${MAPS}?watch=1&resourceVersion=${await revision()}`);
  const events = readText(watch);
  for (const kind of [...added].reverse()) catalog.remove(kind);
  const lines = (await events)
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.map(({ type }) => type)).toEqual(['ADDED', 'ERROR']);
  expect(lines[1].object).toMatchObject({
    kind: 'Status',
    code: 404,
    reason: 'NotFound',
    message: 'the server could not find the requested resource',
  });
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'later', namespace: 'default' } };
  const [[event]] = await Promise.all([once(other, 'data'), at.call('POST', MAPS, json(map))]);
  expect(JSON.parse(String(event)).object.metadata.name).toBe('later');
  other.destroy();
  expect((await get(`${V1}/a`)).code).toBe(404);
  catalog.add(...added);
  expect((await get(`${V1}/a`)).json.data).toEqual({ size: '1' });
});
