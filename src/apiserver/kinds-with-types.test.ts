/** A kind that is added while the server runs must be served with the types that it brings. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { anyKind, createCatalog, type KindCatalog } from '../api/catalog.ts';
import { kind } from '../api/declaration.ts';
import { typeFacts, typeOfKind } from '../api/facts/facts.ts';
import { kinds } from '../api/kinds.ts';
import { nameColumn } from '../api/table.ts';
import { decodeProtobuf } from './protobuf/decode.ts';
import { encodeProtobuf } from './protobuf/encode.ts';
import { wrapped } from './protobuf/message-fixture.ts';
import { startRegistry } from './registry/testing.ts';
import { startTestServer, type TestServer } from './server-fixture.ts';

const gadgetOf = (specLines: readonly string[]) =>
  anyKind(
    kind('example.com/v1', 'Gadget', {
      columns: [nameColumn],
      types: {
        Gadget: ['... 0 meta.v1.TypeMeta', 'metadata? 1 meta.v1.ObjectMeta', 'spec? 2 GadgetSpec'],
        GadgetSpec: specLines,
        GadgetPart: ['name 1 string', 'count? 2 int32'],
      },
    }),
  );
const gadget = gadgetOf([
  'parts? 1 []GadgetPart list=map keys=name patch=merge merge=name',
  'size? 2 resource.Quantity',
]);
const PATH = '/apis/example.com/v1/namespaces/default/gadgets';

let catalog: KindCatalog;
let at: TestServer;
beforeEach(async () => {
  catalog = createCatalog(kinds);
  const { backend } = await startRegistry({ catalog });
  at = await startTestServer({ backend, catalog });
  catalog.add(gadget);
});
afterEach(async () => {
  catalog.remove(gadget);
  await at[Symbol.asyncDispose]();
});

const send = (method: string, path: string, spec: object, type = 'application/json') =>
  at.call(method, path, {
    body: JSON.stringify({
      apiVersion: 'example.com/v1',
      kind: 'Gadget',
      metadata: { name: 'a', namespace: 'default' },
      spec,
    }),
    headers: { 'content-type': type },
  });

test('bodies are checked against the types of an added kind', async () => {
  const wrong = await send('POST', PATH, { parts: [{ name: 'x', count: 2 ** 31 }] });
  expect([wrong.code, wrong.json.message]).toEqual([
    400,
    'Gadget in version "v1" cannot be handled as a Gadget: json: cannot unmarshal number 2147483648 into Go struct field GadgetPart.spec.parts.count of type int32',
  ]);
  const created = await send('POST', PATH, { size: '1024Mi', parts: [{ count: 1 }], color: 'red' });
  expect([created.code, created.json.spec]).toEqual([201, { size: '1Gi', parts: [{ name: '', count: 1 }] }]);
});

test('patches merge the lists of an added kind by their keys', async () => {
  await send('POST', PATH, { parts: [{ name: 'x', count: 1 }] });
  const merge = 'application/strategic-merge-patch+json';
  expect((await send('PATCH', `${PATH}/a`, { parts: [{ name: 'y' }] }, merge)).json.spec.parts).toHaveLength(2);
  const apply = { parts: [{ name: 'z', count: 3 }] };
  const applied = await send('PATCH', `${PATH}/a?fieldManager=m`, apply, 'application/apply-patch+yaml');
  expect(applied.json.spec.parts.map(({ name }: { name: string }) => name).sort()).toEqual(['x', 'y', 'z']);
});

test('the OpenAPI document and protobuf have the types of an added kind', async () => {
  const { schemas } = (await at.call('GET', '/openapi/v3/apis/example.com/v1')).json.components;
  expect(schemas['com.example.v1.GadgetSpec'].properties.parts).toMatchObject({
    items: { allOf: [{ $ref: '#/components/schemas/com.example.v1.GadgetPart' }] },
    'x-kubernetes-list-map-keys': ['name'],
  });
  const body = wrapped('example.com/v1', 'Gadget', [[2, [[1, [[1, 'x']]]]]]);
  const object = decodeProtobuf(body, () => gadget.schema);
  expect(object).toMatchObject({ spec: { parts: [{ name: 'x' }] } });
  expect(decodeProtobuf(encodeProtobuf(object), () => gadget.schema)).toEqual(object);
  expect(typeFacts(`${gadget.schema}List`)?.fields.map(({ json }) => json)).toEqual(['', 'metadata', 'items']);
});

test('a kind that is removed while an OpenAPI document is built is not in the document', async () => {
  for (const path of ['/openapi/v2', '/openapi/v3/apis/example.com/v1']) {
    // Building the document reads the subresources of the kind, so this getter removes the kind during the build.
    const brief = { ...gadget, kind: 'Gizmo', plural: 'gizmos', singular: 'gizmo', subresources: {} };
    catalog.add(brief);
    Object.defineProperty(brief, 'subresources', {
      get() {
        catalog.remove(brief);
        return {};
      },
    });
    const { code, text } = await at.call('GET', path);
    expect([path, code, catalog.kinds.includes(brief)]).toEqual([path, 200, false]);
    expect(text).toContain('gadgets');
    expect(text).not.toContain('gizmos');
  }
});

test('the types of a kind are removed with it, and it can be added again with other types', async () => {
  await send('POST', PATH, { parts: [] });
  catalog.remove(gadget);
  expect(typeFacts(gadget.schema)).toBeUndefined();
  const changed = gadgetOf(['color? 1 string']);
  catalog.add(changed);
  expect((await send('PUT', `${PATH}/a`, { color: 'red', parts: [] })).json.spec).toEqual({ color: 'red' });
  catalog.remove(changed);
  catalog.add(gadget);
});

test('a kind whose type has other fields than the type of the same name of another kind is not added', async () => {
  await send('POST', PATH, { size: '1Gi' });
  const own = ['... 0 meta.v1.TypeMeta', 'metadata? 1 meta.v1.ObjectMeta', 'spec? 2 GadgetSpec'];
  const gizmoOf = (gadgetSpec: readonly string[]) =>
    anyKind(kind('example.com/v1', 'Gizmo', { columns: [], types: { Gizmo: own, GadgetSpec: gadgetSpec } }));
  expect(() => catalog.add(gizmoOf(['color? 1 string']))).toThrow(
    'com.example.v1.GadgetSpec: another kind has this type with other fields: give one of the types another name',
  );
  expect(typeFacts('com.example.v1.Gizmo')).toBeUndefined();
  expect((await at.call('GET', `${PATH}/a`)).json.spec).toEqual({ size: '1Gi' });
});

test('two kinds may bring the same type, which stays until both are removed', () => {
  const spec = gadget.types?.['GadgetSpec'] ?? [];
  const part = gadget.types?.['GadgetPart'] ?? [];
  const types = {
    Gizmo: ['... 0 meta.v1.TypeMeta', 'spec? 2 GadgetSpec'],
    GadgetSpec: [...spec],
    GadgetPart: [...part],
  };
  const gizmo = anyKind(kind('example.com/v1', 'Gizmo', { columns: [], types }));
  catalog.add(gizmo);
  catalog.remove(gadget);
  expect(typeFacts('com.example.v1.GadgetSpec')?.fields.map(({ json }) => json)).toEqual(['parts', 'size']);
  catalog.remove(gizmo);
  expect(typeFacts('com.example.v1.GadgetSpec')).toBeUndefined();
  catalog.add(gadget);
});

test('a kind with a line that cannot be parsed is not added', () => {
  catalog.remove(gadget);
  expect(() => catalog.add(gadgetOf(['color? 1 other.v1.Color']))).toThrow('no package of the facts has the type');
  expect(catalog.find({ group: 'example.com', version: 'v1', resource: 'gadgets' })).toBeUndefined();
  expect(typeFacts(gadget.schema)).toBeUndefined();
});

test('a list in protobuf is correct after the kind was replaced by one with other types', async () => {
  await send('POST', PATH, { size: '1Gi' });
  const list = async () => {
    const accept = 'application/vnd.kubernetes.protobuf';
    const response = await at.open('GET', PATH, { headers: { accept } });
    const bytes = Buffer.concat(await response.toArray());
    return decodeProtobuf(bytes, () => `${gadget.schema}List`)['items'];
  };
  expect(await list()).toMatchObject([{ spec: { size: '1Gi' } }]);
  catalog.remove(gadget);
  const other = gadgetOf(['size? 200 resource.Quantity']);
  catalog.add(other);
  expect(await list()).toMatchObject([{ spec: { size: '1Gi' } }]);
  catalog.remove(other);
});

test.each([
  ['a reference to an unknown type', ['spec? 2 NopeSpec'], 'no type com.example.v2.NopeSpec is known'],
  ['a number that is no integer', ['size? x string'], 'the field number is not an integer'],
  ['a number twice', ['a 1 string', 'b 1 string'], 'another field has the name or number 1'],
  ['a line without a name', [''], 'a field has no name'],
])('a kind whose types have %s is not added', (_, lines, message) => {
  const types = { Broken: lines };
  const broken = anyKind(kind('example.com/v2', 'Broken', { columns: [], types }));
  expect(() => catalog.add(broken)).toThrow(message);
});

test('a kind may have the name of a kind of meta/v1', async () => {
  const table = anyKind(
    kind('example.com/v1', 'Status', { columns: [], types: { Status: ['... 0 meta.v1.TypeMeta', 'legs? 1 int32'] } }),
  );
  expect(table.schema).toBe('com.example.v1.Status');
  catalog.add(table);
  expect(typeOfKind('example.com', 'v1', 'Status')).toBe('com.example.v1.Status');
  catalog.remove(table);
});
