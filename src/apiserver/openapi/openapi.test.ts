import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCatalog } from '../../api/catalog.ts';
import { kinds } from '../../api/kinds.ts';
import { fewKinds, startTestServer, type TestServer } from '../server-fixture.ts';
import { openApiDocument, swaggerDocument } from './documents.ts';
import type { OpenApiDocument } from './swagger.ts';
import { readSwagger } from './swagger-fixture.ts';

const descriptions = JSON.parse(readFileSync(new URL('../../api/generated/docs.json', import.meta.url), 'utf8'));
const core = fewKinds.filter((kind) => kind.group === '');
const document = openApiDocument(core, descriptions, '0.0.0');

// biome-ignore lint/suspicious/noExplicitAny: tests look into documents
type Any = any;

function references(value: unknown, found = new Set<string>()): Set<string> {
  if (Array.isArray(value)) for (const inner of value) references(inner, found);
  else if (typeof value === 'object' && value !== null) {
    for (const [key, inner] of Object.entries(value)) {
      if (key === '$ref') found.add(String(inner));
      else references(inner, found);
    }
  }
  return found;
}

describe('the OpenAPI document of a group version', () => {
  const schemas = document.components.schemas as Record<string, Any>;

  test('the OpenAPI document contains every referenced schema under its upstream name', () => {
    const referenced = [...references(document)].map((ref) => ref.replace('#/components/schemas/', ''));
    expect(referenced.filter((name) => schemas[name] === undefined)).toEqual([]);
    for (const name of [
      'io.k8s.api.core.v1.Pod',
      'io.k8s.api.core.v1.PodList',
      'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta',
      'io.k8s.apimachinery.pkg.apis.meta.v1.Time',
      'io.k8s.apimachinery.pkg.api.resource.Quantity',
      'io.k8s.apimachinery.pkg.util.intstr.IntOrString',
    ]) {
      expect(Object.keys(schemas)).toContain(name);
    }
    expect(schemas['io.k8s.api.core.v1.Pod']['x-kubernetes-group-version-kind']).toEqual([
      { group: '', version: 'v1', kind: 'Pod' },
    ]);
  });

  test('the OpenAPI documents name types by the package of their group', () => {
    const all = openApiDocument(kinds, descriptions, '0.0.0').components.schemas;
    for (const name of [
      'io.k8s.api.storage.v1.StorageClass',
      'io.k8s.api.node.v1.RuntimeClass',
      'io.k8s.api.scheduling.v1.PriorityClass',
      'io.k8s.api.policy.v1.Eviction',
      'io.k8s.api.events.v1.Event',
      'io.lifepod.v1.PodRecord',
    ])
      expect(Object.keys(all)).toContain(name);
  });

  test('the OpenAPI document has the width of integers, and the lists that only a patch merges are atomic', () => {
    const { priority, terminationGracePeriodSeconds } = schemas['io.k8s.api.core.v1.PodSpec'].properties;
    expect([priority.format, terminationGracePeriodSeconds.format]).toEqual(['int32', 'int64']);
    expect(schemas['io.k8s.api.core.v1.PodStatus'].properties.hostIPs).toMatchObject({
      'x-kubernetes-list-type': 'atomic',
      'x-kubernetes-patch-strategy': 'merge',
    });
    expect(schemas['io.k8s.api.core.v1.PodSpec'].properties.nodeSelector['x-kubernetes-map-type']).toBe('atomic');
  });

  test('the OpenAPI document describes how patches merge lists', () => {
    const pod = schemas['io.k8s.api.core.v1.PodSpec'].properties;
    expect(pod.initContainers).toMatchObject({
      type: 'array',
      items: { allOf: [{ $ref: '#/components/schemas/io.k8s.api.core.v1.Container' }], default: {} },
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      'x-kubernetes-patch-merge-key': 'name',
      'x-kubernetes-patch-strategy': 'merge',
    });
    expect(pod.initContainers.description).toMatch(/^List of initialization containers/);
    expect(schemas['io.k8s.api.core.v1.Container'].properties.ports['x-kubernetes-list-map-keys']).toEqual([
      'containerPort',
      'protocol',
    ]);
    expect(pod.tolerations['x-kubernetes-list-type']).toBe('atomic');
    const { finalizers } = schemas['io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'].properties;
    expect(finalizers).toMatchObject({ 'x-kubernetes-list-type': 'set', 'x-kubernetes-patch-strategy': 'merge' });
  });

  test('the OpenAPI document omits the fields that defer containers cannot have, and describes their other fields', () => {
    const { properties } = schemas['io.k8s.api.core.v1.DeferContainer'];
    const app = schemas['io.k8s.api.core.v1.Container'].properties;
    const refused = ['lifecycle', 'readinessProbe', 'startupProbe'];
    expect(Object.keys(properties)).toEqual(
      expect.arrayContaining(Object.keys(app).filter((name) => !refused.includes(name))),
    );
    for (const name of refused) expect([name, properties[name]]).toEqual([name, undefined]);
    for (const name of ['image', 'imagePullPolicy', 'livenessProbe', 'restartPolicy', 'terminationMessagePolicy']) {
      expect(properties[name].description).not.toBe(app[name].description);
    }
    expect(properties.onReasons['x-kubernetes-list-type']).toBe('atomic');
    expect(properties.env['x-kubernetes-patch-merge-key']).toBe('name');
  });

  test('the OpenAPI document describes the phase Terminating, and how patches merge the lists of a termination', () => {
    expect(schemas['io.k8s.api.core.v1.PodStatus'].properties.phase.description).toContain('Terminating: ');
    const { skip, containers } = schemas['io.k8s.api.core.v1.PodTermination'].properties;
    expect(skip).toMatchObject({ 'x-kubernetes-list-type': 'set', 'x-kubernetes-patch-strategy': 'merge' });
    expect(containers).toMatchObject({
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      'x-kubernetes-patch-merge-key': 'name',
    });
  });

  test('the OpenAPI document describes every field of every type, also next to references', () => {
    const all = openApiDocument(kinds, descriptions, '0.0.0').components.schemas as Record<string, Any>;
    const silent = Object.entries(all)
      .filter(([name]) => !name.endsWith('List'))
      .flatMap(([name, { description, properties = {} }]) => [
        ...(description === undefined ? [name] : []),
        ...Object.keys(properties).filter((field) => properties[field].description === undefined),
      ]);
    expect(silent).toEqual([]);
    expect(all['io.k8s.api.core.v1.Pod'].properties.spec).toEqual({
      description: 'The desired state of the object.',
      default: {},
      allOf: [{ $ref: '#/components/schemas/io.k8s.api.core.v1.PodSpec' }],
    });
  });

  test('the OpenAPI document has the defaults of fields that are never absent', () => {
    const { affinity, restartPolicy } = schemas['io.k8s.api.core.v1.PodSpec'].properties;
    expect([affinity.default, restartPolicy.default]).toEqual([undefined, undefined]);
    const { containerPort, protocol } = schemas['io.k8s.api.core.v1.ContainerPort'].properties;
    expect([containerPort.default, protocol.default]).toEqual([0, 'TCP']);
    const { creationTimestamp, finalizers } = schemas['io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'].properties;
    expect([creationTimestamp.default, finalizers.items.default]).toEqual([undefined, '']);
  });

  test('the OpenAPI document has parameters for validation and dry runs on every write', () => {
    const item = document.paths['/api/v1/namespaces/{namespace}/pods/{name}'] as Any;
    const list = document.paths['/api/v1/namespaces/{namespace}/pods'] as Any;
    for (const operation of [item.patch, item.put, list.post]) {
      const names = operation.parameters.map((parameter: Any) => parameter.name);
      expect(names).toEqual(expect.arrayContaining(['dryRun', 'fieldManager', 'fieldValidation']));
      expect(operation['x-kubernetes-group-version-kind']).toEqual({ group: '', version: 'v1', kind: 'Pod' });
    }
    expect(item.patch['x-kubernetes-action']).toBe('patch');
    expect(Object.keys(item.patch.requestBody.content)).toContain('application/strategic-merge-patch+json');
    expect(Object.keys(document.paths)).toEqual(
      expect.arrayContaining([
        '/api/v1/pods',
        '/api/v1/nodes/{name}',
        '/api/v1/namespaces/{namespace}/pods/{name}/log',
      ]),
    );
    const operations = Object.values(document.paths).flatMap((path) => Object.values(path) as Any[]);
    const ids = operations.map((operation) => operation.operationId).filter((id) => id !== undefined);
    expect(new Set(ids).size).toBe(ids.length);
  });
});

describe.each([
  ['pods', 'Pod'],
  ['services', 'Service'],
])('the proxy of %s in the OpenAPI document', (plural, kind) => {
  const { paths } = openApiDocument(
    kinds.filter((each) => each.group === '' && each.plural === plural),
    descriptions,
    '0.0.0',
  );
  test.each([
    ['', ''],
    ['/{path}', 'WithPath'],
  ])(
    'the OpenAPI document has all methods that the proxy forwards at proxy%s, with the parameter path',
    (below, suffix) => {
      const { parameters, ...item } = paths[`/api/v1/namespaces/{namespace}/${plural}/{name}/proxy${below}`] as Any;
      const methods = ['delete', 'get', 'head', 'options', 'patch', 'post', 'put'];
      expect(Object.keys(item).sort()).toEqual(methods);
      for (const method of methods) {
        const name = `${method.charAt(0).toUpperCase()}${method.slice(1)}`;
        expect(item[method].operationId).toBe(`connectCoreV1${name}Namespaced${kind}Proxy${suffix}`);
        expect(item[method].parameters).toMatchObject([{ name: 'path', in: 'query', schema: { type: 'string' } }]);
      }
      const inPath = parameters.flatMap((each: Any) => (each.in === 'path' ? each.name : []));
      expect(inPath).toEqual(['name', 'namespace', ...(below === '' ? [] : ['path'])]);
    },
  );
});

describe('the Swagger document', () => {
  const info = { title: 'Kubernetes', version: 'v1.33.0+lifepod.0.0.0' };
  const encoded = async (form: 'json' | 'protobuf', of: OpenApiDocument = document): Promise<Buffer> =>
    Buffer.concat(await swaggerDocument([() => of], info, form));
  const swaggerOf = async (of?: OpenApiDocument): Promise<Any> => JSON.parse((await encoded('json', of)).toString());

  test('the Swagger document has the same schemas, without keywords that Swagger does not support', async () => {
    const swagger = await swaggerOf();
    expect(swagger.swagger).toBe('2.0');
    const referenced = [...references(swagger)];
    expect(referenced.filter((ref) => swagger.definitions[ref.replace('#/definitions/', '')] === undefined)).toEqual(
      [],
    );
    expect(JSON.stringify(swagger)).not.toMatch(/"(allOf|oneOf|requestBody)":/);
    const { spec } = swagger.definitions['io.k8s.api.core.v1.Pod'].properties;
    expect(spec).toEqual({
      $ref: '#/definitions/io.k8s.api.core.v1.PodSpec',
      description: 'The desired state of the object.',
    });
    const post = swagger.paths['/api/v1/namespaces/{namespace}/pods'].post;
    expect(post.parameters[0]).toEqual({
      name: 'body',
      in: 'body',
      required: true,
      schema: { $ref: '#/definitions/io.k8s.api.core.v1.Pod' },
    });
  });

  test('fields whose names are keywords of schemas stay in the Swagger document', async () => {
    const properties = Object.fromEntries(['allOf', 'default', 'items', 'oneOf'].map((name) => [name, { default: 1 }]));
    const { definitions } = await swaggerOf({ info, paths: {}, components: { schemas: { Odd: { properties } } } });
    expect(definitions.Odd).toEqual({ properties: { allOf: {}, default: {}, items: {}, oneOf: {} } });
  });

  test('the Swagger document has the same contents in protobuf as in JSON', async () => {
    expect(readSwagger(await encoded('protobuf'))).toEqual(await swaggerOf());
  });

  test('a keyword without a field in protobuf is an error', async () => {
    const schemas = { Odd: { contentEncoding: 'base64' } };
    await expect(encoded('protobuf', { info, paths: {}, components: { schemas } })).rejects.toThrow('contentEncoding');
  });
});

describe('OpenAPI over HTTP', () => {
  let at: TestServer;
  beforeAll(async () => {
    at = await startTestServer({ catalog: createCatalog(fewKinds) });
  });
  afterAll(() => at[Symbol.asyncDispose]());

  test('the OpenAPI index has URLs with a hash, and the documents at these URLs can be cached', async () => {
    const { paths } = (await at.call('GET', '/openapi/v3')).json;
    expect(Object.keys(paths)).toEqual(['api/v1', 'apis/coordination.k8s.io/v1']);
    const url = paths['apis/coordination.k8s.io/v1'].serverRelativeURL;
    expect(url).toMatch(/^\/openapi\/v3\/apis\/coordination\.k8s\.io\/v1\?hash=[0-9A-F]{64}$/);
    const response = await at.call('GET', url);
    expect(response.headers['cache-control']).toBe('public, immutable, max-age=31536000');
    expect(response.json.components.schemas['io.k8s.api.coordination.v1.LeaseSpec']).toBeDefined();
    const old = await at.call('GET', '/openapi/v3/apis/coordination.k8s.io/v1?hash=OLD');
    expect(old.headers['cache-control']).toBe('no-cache, private');
  });

  const PROTOBUF = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';
  const bytesOf = async (accept: string, encoding = 'identity'): Promise<Buffer> => {
    const response = await at.open('GET', '/openapi/v2', { headers: { accept, 'accept-encoding': encoding } });
    expect(response.headers['content-type']).toBe(PROTOBUF.replace('@', '.'));
    expect(response.headers['content-encoding'] ?? 'identity').toBe(encoding);
    return Buffer.concat(await response.toArray());
  };

  test('the Swagger document is served in JSON and in protobuf', async () => {
    const { json } = await at.call('GET', '/openapi/v2');
    const bytes = await bytesOf(`${PROTOBUF}, application/json`);
    expect(readSwagger(bytes)).toEqual(json);
    for (const accept of [PROTOBUF.replace('@', '.'), `application/json;q=0.5, ${PROTOBUF}`])
      expect((await bytesOf(accept)).equals(bytes)).toBe(true);
    expect(gunzipSync(await bytesOf(PROTOBUF, 'gzip')).equals(bytes)).toBe(true);
    expect((await at.call('GET', '/openapi/v3', { headers: { accept: PROTOBUF } })).code).toBe(406);
    expect((await at.call('GET', '/openapi/v2', { headers: { accept: 'application/yaml' } })).code).toBe(406);
    expect((await at.call('GET', '/openapi/v3/apis/apps/v1')).code).toBe(404);
    expect((await at.call('GET', '/openapi/v1')).code).toBe(404);
  });

  test('a client that has the document gets 304 Not Modified', async () => {
    const seen = new Set<unknown>();
    for (const [path, accept] of [
      ['/openapi/v2', 'application/json'],
      ['/openapi/v2', PROTOBUF],
      ['/openapi/v3/api/v1', 'application/json'],
      ['/openapi/v3/apis/coordination.k8s.io/v1', 'application/json'],
    ] as const) {
      const { etag } = (await at.call('GET', path, { headers: { accept } })).headers;
      const again = await at.call('GET', path, { headers: { accept, 'if-none-match': `"OLD", ${etag}` } });
      expect([again.code, again.text, again.headers.etag]).toEqual([304, '', etag]);
      expect((await at.call('GET', path, { headers: { accept, 'if-none-match': '"OLD"' } })).code).toBe(200);
      seen.add(etag);
    }
    expect(seen.size).toBe(4);
  });
});
