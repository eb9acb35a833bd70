import type { IncomingMessage } from 'node:http';
import type { ServerHttp2Stream } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import { expect, test } from 'vitest';
import { StreamConnection } from '../http/http2/stream-connection.ts';
import { auditIdOf, failedAuthentication, sourceIpsOf, userAgentOf } from './client-facts.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const sent = (headers: Record<string, string>, remoteAddress = '192.0.2.9', url = '/') =>
  ({ headers, url, socket: { remoteAddress } }) as unknown as IncomingMessage;

test.each(['a', 'A-1_2.3:4/5', 'x'.repeat(64)])('the Audit-ID %s of a client is used', (id) => {
  expect(auditIdOf(sent({ 'audit-id': id }))).toBe(id);
});

test.each(['', ' ', 'a b', 'a\u00e9', 'x'.repeat(65), 'a, b'])('the Audit-ID %j of a client is replaced', (id) => {
  expect(auditIdOf(sent({ 'audit-id': id }))).toMatch(UUID);
});

test('a request without an Audit-ID gets a new one', () => {
  expect(auditIdOf(sent({}))).toMatch(UUID);
});

test.each<[Record<string, string>, string, string[]]>([
  [{}, '192.0.2.9', ['192.0.2.9']],
  [{}, '::ffff:192.0.2.9', ['192.0.2.9']],
  [{}, 'fe80::1%eth0', ['fe80::1']],
  [{ 'x-forwarded-for': '198.51.100.1, 203.0.113.1' }, '192.0.2.9', ['198.51.100.1', '203.0.113.1', '192.0.2.9']],
  [{ 'x-forwarded-for': '198.51.100.1,192.0.2.9' }, '192.0.2.9', ['198.51.100.1', '192.0.2.9']],
  [{ 'x-forwarded-for': '192.0.2.9,198.51.100.1' }, '192.0.2.9', ['192.0.2.9', '198.51.100.1', '192.0.2.9']],
  [{ 'x-forwarded-for': 'unknown,<script>, 2001:DB8::0:1' }, '192.0.2.9', ['2001:db8::1', '192.0.2.9']],
  [{ 'x-real-ip': '198.51.100.1' }, '192.0.2.9', ['198.51.100.1', '192.0.2.9']],
  [{ 'x-forwarded-for': '198.51.100.1', 'x-real-ip': '198.51.100.1' }, '192.0.2.9', ['198.51.100.1', '192.0.2.9']],
  [{ 'x-real-ip': 'x' }, '', []],
])('the source addresses of %j from %s are %j', (headers, remote, expected) => {
  expect(sourceIpsOf(sent(headers, remote))).toEqual(expected);
});

test('the User-Agent is decoded as UTF-8 and truncated', () => {
  expect(userAgentOf(sent({}))).toBeUndefined();
  expect(userAgentOf(sent({ 'user-agent': Buffer.from('é').toString('latin1') }))).toBe('é');
  expect(userAgentOf(sent({ 'user-agent': 'x'.repeat(1024) }))).toBe('x'.repeat(1024));
  expect(userAgentOf(sent({ 'user-agent': 'x'.repeat(2000) }))).toBe(`${'x'.repeat(1024)}...TRUNCATED`);
});

test.each<[Record<string, string>, string, string]>([
  [{}, '/', 'Authentication failed, no credentials provided'],
  [{ authorization: 'Bearer secret' }, '/', 'Authentication failed, attempted: bearer'],
  [{ authorization: 'Bearer' }, '/', 'Authentication failed, no credentials provided'],
  [
    { authorization: 'Basic c2VjcmV0' },
    '/?access_token=secret',
    'Authentication failed, attempted: basic, access_token',
  ],
])('the message for failed credentials %j at %s names their kinds only', (headers, url, message) => {
  expect(failedAuthentication(sent(headers, '', url))).toBe(message);
});

test('the message names a client certificate, also on a stream of HTTP/2', () => {
  const connection = { getPeerCertificate: () => ({ subject: { CN: 'jane' } }) } as unknown as TLSSocket;
  for (const socket of [connection, new StreamConnection({} as ServerHttp2Stream, connection)])
    expect(failedAuthentication({ headers: {}, url: '/', socket } as unknown as IncomingMessage)).toBe(
      'Authentication failed, attempted: x509',
    );
});
