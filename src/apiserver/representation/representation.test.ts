import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { typeOfKind } from '../../api/facts/facts.ts';
import { decodeProtobuf } from '../protobuf/decode.ts';
import { readText, startTestServer, type TestServer } from '../server-fixture.ts';
import { jsonRepresentation } from './json.ts';
import { metadataRepresentation, partialMetadata } from './metadata.ts';
import { sharedBytes } from './recent-bytes.ts';

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const metadataOnly = (kind: string): { headers: Record<string, string> } => ({
  headers: { accept: `application/json;as=${kind};g=meta.k8s.io;v=v1` },
});

let at: TestServer;
beforeAll(async () => {
  at = await startTestServer();
  for (const name of ['a', 'b']) {
    const body = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { secret: 'no' } });
    expect((await at.call('POST', CONFIG_MAPS, { body })).code).toBe(201);
  }
});
afterAll(() => at[Symbol.asyncDispose]());

test('a get with as=PartialObjectMetadata returns only the metadata', async () => {
  const { json } = await at.call('GET', `${CONFIG_MAPS}/a`, metadataOnly('PartialObjectMetadata'));
  const full = await at.call('GET', `${CONFIG_MAPS}/a`);
  expect(json).toEqual({
    kind: 'PartialObjectMetadata',
    apiVersion: 'meta.k8s.io/v1',
    metadata: full.json.metadata,
  });
});

test('a list with as=PartialObjectMetadataList returns only the metadata of each object', async () => {
  const { json } = await at.call('GET', CONFIG_MAPS, metadataOnly('PartialObjectMetadataList'));
  expect(json).toMatchObject({ kind: 'PartialObjectMetadataList', apiVersion: 'meta.k8s.io/v1' });
  expect(json.metadata.resourceVersion).toMatch(/^\d+$/);
  expect(json.items.map((item: { metadata: { name: string } }) => item.metadata.name)).toEqual(['a', 'b']);
  expect(JSON.stringify(json)).not.toContain('secret');
});

test('the metadata of a list is not served for a single object, nor the reverse', async () => {
  const list = await at.call('GET', CONFIG_MAPS, metadataOnly('PartialObjectMetadata'));
  expect(list).toMatchObject({ code: 406, json: { reason: 'NotAcceptable' } });
  expect(list.json.message).toBe('you requested PartialObjectMetadata, but the requested object is a list');
  const one = await at.call('GET', `${CONFIG_MAPS}/a`, metadataOnly('PartialObjectMetadataList'));
  expect(one.code).toBe(406);
  expect(one.json.message).toBe('you requested PartialObjectMetadataList, but the requested object is not a list');
});

test('a request for metadata that fails gets the whole Status', async () => {
  const { code, json } = await at.call('GET', `${CONFIG_MAPS}/missing`, metadataOnly('PartialObjectMetadata'));
  expect(code).toBe(404);
  expect(json).toMatchObject({ kind: 'Status', reason: 'NotFound', details: { name: 'missing' } });
});

test('a watch with as=PartialObjectMetadata sends only the metadata of each object', async () => {
  const response = await at.open('GET', `${CONFIG_MAPS}?watch=1`, metadataOnly('PartialObjectMetadata'));
  const lines = createInterface({ input: response });
  const [line] = (await once(lines, 'line')) as [string];
  expect(JSON.parse(line)).toMatchObject({
    type: 'ADDED',
    object: { kind: 'PartialObjectMetadata', metadata: { name: 'a' } },
  });
  expect(line).not.toContain('secret');
  lines.close();
  response.destroy();
});

const PROTOBUF = { headers: { accept: 'application/vnd.kubernetes.protobuf,application/json;q=0.5' } };
const bytesOf = async (response: IncomingMessage): Promise<Buffer> => Buffer.concat(await response.toArray());
const decodedAs = (bytes: Uint8Array, kind: string): object =>
  decodeProtobuf(bytes, (apiVersion, given) => {
    expect(`${apiVersion} ${given}`).toBe(`v1 ${kind}`);
    return typeOfKind('', 'v1', kind);
  });

test('a get in protobuf returns the same object as a get in JSON', async () => {
  const response = await at.open('GET', `${CONFIG_MAPS}/a`, PROTOBUF);
  expect(response.headers['content-type']).toBe('application/vnd.kubernetes.protobuf');
  const { json } = await at.call('GET', `${CONFIG_MAPS}/a`);
  expect(decodedAs(await bytesOf(response), 'ConfigMap')).toEqual(json);
});

test('a list in protobuf returns the same objects as a list in JSON', async () => {
  const response = await at.open('GET', CONFIG_MAPS, PROTOBUF);
  const { json } = await at.call('GET', CONFIG_MAPS);
  // The items of a list have no apiVersion and kind in protobuf.
  const items = json.items.map(({ apiVersion: _, kind: __, ...item }: Record<string, unknown>) => item);
  expect(decodedAs(await bytesOf(response), 'ConfigMapList')).toEqual({ ...json, items });
});

test('a created object is answered in protobuf, and so is the Status of a request that fails', async () => {
  const body = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c' } });
  const created = await at.open('POST', CONFIG_MAPS, { ...PROTOBUF, body });
  expect(created.statusCode).toBe(201);
  expect(decodedAs(await bytesOf(created), 'ConfigMap')).toMatchObject({ metadata: { name: 'c' } });
  const failed = await at.open('POST', CONFIG_MAPS, { ...PROTOBUF, body });
  expect(failed.statusCode).toBe(409);
  expect(failed.headers['content-type']).toBe('application/vnd.kubernetes.protobuf');
  expect(decodedAs(await bytesOf(failed), 'Status')).toMatchObject({ reason: 'AlreadyExists', code: 409 });
  const deleted = await at.open('DELETE', `${CONFIG_MAPS}/c`, PROTOBUF);
  expect(decodedAs(await bytesOf(deleted), 'Status')).toMatchObject({ status: 'Success' });
});

test('a watch in protobuf sends frames, each with the length of its event', async () => {
  const response = await at.open('GET', `${CONFIG_MAPS}?watch=1&timeoutSeconds=1`, PROTOBUF);
  expect(response.headers['content-type']).toBe('application/vnd.kubernetes.protobuf;stream=watch');
  const bytes = await bytesOf(response);
  const objects: object[] = [];
  for (let start = 0; start < bytes.length; start += 4 + bytes.readUInt32BE(start)) {
    const frame = bytes.subarray(start + 4, start + 4 + bytes.readUInt32BE(start));
    expect(frame.subarray(2, 7).toString()).toBe('ADDED');
    objects.push(decodedAs(frame.subarray(frame.indexOf('k8s\0')), 'ConfigMap'));
  }
  expect(objects).toEqual((await at.call('GET', CONFIG_MAPS)).json.items);
});

test('a list in protobuf with as=PartialObjectMetadataList contains only the metadata', async () => {
  const accept = 'application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';
  const bytes = await bytesOf(await at.open('GET', CONFIG_MAPS, { headers: { accept } }));
  const list = decodeProtobuf(bytes, (_, kind) => typeOfKind('meta.k8s.io', 'v1', kind));
  expect(list).toMatchObject({ kind: 'PartialObjectMetadataList', items: [{ metadata: { name: 'a' } }, {}] });
  expect(bytes.includes('secret')).toBe(false);
});

test('a Table is never served in protobuf', async () => {
  const accept = 'application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1';
  const { code } = await at.call('GET', CONFIG_MAPS, { headers: { accept } });
  expect(code).toBe(406);
});

test('watches of metadata share the bytes of an event, and lists the object with the metadata', () => {
  const json = metadataRepresentation(jsonRepresentation);
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } };
  const event = { type: 'ADDED' as const, object };
  expect(json.event(event)).toBe(metadataRepresentation(jsonRepresentation).event(event));
  expect(partialMetadata(object)).toBe(partialMetadata(object));
});

test('a watch that requests initial events gets them, and a bookmark that ends them', async () => {
  const query = 'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
  const response = await at.open('GET', `${CONFIG_MAPS}?${query}&timeoutSeconds=1`);
  const events = (await readText(response)).trim().split('\n');
  const end = JSON.parse(events[2] as string);
  expect(end).toMatchObject({
    type: 'BOOKMARK',
    object: { kind: 'ConfigMap', metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } } },
  });
  expect(events.slice(0, 2).map((line) => JSON.parse(line).object.metadata.name)).toEqual(['a', 'b']);
});

test('an event is encoded once while its bytes are among the most recent', () => {
  const events = ['a', 'b', 'c'].map((name) => ({
    type: 'ADDED' as const,
    object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } },
  }));
  const encoded: string[] = [];
  const bytesOf = sharedBytes((event) => {
    encoded.push((event.object.metadata as { name: string }).name);
    return Buffer.alloc(10);
  }, 20);
  const [a, b, c] = events as [(typeof events)[0], (typeof events)[0], (typeof events)[0]];
  expect(bytesOf(a)).toBe(bytesOf(a));
  bytesOf(b);
  bytesOf(a);
  expect(encoded).toEqual(['a', 'b']);
  bytesOf(c);
  bytesOf(b);
  bytesOf(a);
  expect(encoded).toEqual(['a', 'b', 'c', 'a']);
});

test('the kept bytes of an event keep no other memory', () => {
  const event = { type: 'ADDED' as const, object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } } };
  const bytes = sharedBytes(() => Buffer.from('of a block for many buffers'))(event);
  expect(Buffer.from(bytes).toString()).toBe('of a block for many buffers');
  expect(bytes.buffer.byteLength).toBe(bytes.byteLength);
});
