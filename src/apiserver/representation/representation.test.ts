import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestServer, type TestServer } from '../server-fixture.ts';
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
