/** Replays the requests that real clients have sent (test/clients/bodies). */
import { expect, test } from 'vitest';
import { META, typeOfKind } from '../api/facts/facts.ts';
import { decodeProtobuf } from './protobuf/decode.ts';
import { encodeAs, envelopeOf } from './protobuf/encode.ts';
import { PROTOBUF_TYPE } from './protobuf/envelope.ts';
import { type RecordedRequest, recordedRequests, startRecordedServer } from './recorded-bodies-fixture.ts';

const isProtobuf = ({ type }: RecordedRequest): boolean => type.startsWith(PROTOBUF_TYPE);
const bytesOf = (request: RecordedRequest): Buffer =>
  Buffer.from(request.body, isProtobuf(request) ? 'base64' : 'utf8');

function typeOf(apiVersion: string, kind: string): string | undefined {
  if (kind === 'DeleteOptions') return `${META}.DeleteOptions`;
  const [version = '', group = ''] = apiVersion.split('/').reverse();
  return typeOfKind(group, version, kind);
}

/**
 * Go writes these structs in JSON even if they are empty. Go writes a pointer to an empty struct, such as emptyDir, only if the pointer is
 * set.
 */
const ALWAYS_WRITTEN = new Set(['deprecatedSource', 'loadBalancer', 'metadata', 'resources', 'spec', 'status']);

/** Drops null, and the empty structs that Go writes only because it cannot omit them. */
function meaningful(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(meaningful);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value)
    .map(([key, inner]) => [key, meaningful(inner)] as const)
    .filter(([key, inner]) => {
      if (inner === null) return false;
      return !(ALWAYS_WRITTEN.has(key) && Object.keys(inner as object).length === 0);
    });
  return Object.fromEntries(entries);
}

function reencoded(object: Record<string, unknown>): Uint8Array {
  const fields = encodeAs(typeOf(String(object['apiVersion']), String(object['kind'])) ?? '', object);
  return Buffer.concat([envelopeOf(object, fields.length), fields]);
}

const clients = Object.entries(recordedRequests).map(([client, requests]) => ({ client, requests }));
const inProtobuf = clients
  .map(({ client, requests }) => ({ client, requests: requests.filter(isProtobuf) }))
  .filter(({ requests }) => requests.length > 0);

test('kubectl 1.32 and 1.36 and client-go send bodies in protobuf, kubectl 1.20 only in JSON', () => {
  expect(clients.map(({ client }) => client)).toContain('kubectl 1.20');
  expect(inProtobuf.map(({ client }) => client)).toEqual(['kubectl 1.32', 'kubectl 1.36', 'client-go 0.32']);
});

test.each(inProtobuf)('the protobuf bodies of $client are decoded and encoded without a loss', ({ requests }) => {
  for (const request of requests) {
    const decoded = decodeProtobuf(bytesOf(request), typeOf);
    expect(meaningful(decoded), request.command).toEqual(meaningful(request.object));
    expect(decodeProtobuf(reencoded(decoded), typeOf), request.command).toEqual(decoded);
  }
});

test.each(clients)('the server responds to the requests of $client as recorded', async ({ requests }) => {
  await using at = await startRecordedServer();
  for (const request of requests) {
    const { command, method, path, type, code } = request;
    // kubectl 1.20 sends some bodies without a type.
    const headers: Record<string, string> = type === '' ? {} : { 'content-type': type };
    const answer = await at.call(method, path, { body: bytesOf(request), headers });
    expect([command, method, path, answer.code], answer.text).toEqual([command, method, path, code]);
  }
  expect(at.errors).toEqual([]);
});
