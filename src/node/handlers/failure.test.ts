import { expect, test } from 'vitest';
import { dialFailure, joinHostPort, type SocketError, transferFailure } from './failure.ts';

const socketError = (code: string, more: object = {}): SocketError => Object.assign(new Error(code), { code, ...more });

test('joinHostPort() puts only IPv6 addresses in brackets', () => {
  expect(joinHostPort('::1', 80)).toBe('[::1]:80');
  expect(joinHostPort('127.0.0.1', 80)).toBe('127.0.0.1:80');
  expect(joinHostPort('example.com', 80)).toBe('example.com:80');
});

test.each([
  ['ECONNREFUSED', 'connection refused'],
  ['ECONNRESET', 'connection reset by peer'],
  ['ECONNABORTED', 'software caused connection abort'],
  ['EHOSTUNREACH', 'no route to host'],
  ['EHOSTDOWN', 'host is down'],
  ['ENETUNREACH', 'network is unreachable'],
  ['ETIMEDOUT', 'connection timed out'],
  ['EADDRNOTAVAIL', 'cannot assign requested address'],
])('a connection that fails with %s has the message of Go', (code, text) => {
  expect(dialFailure(socketError(code), 'example.com', 80)).toBe(`dial tcp example.com:80: connect: ${text}`);
  expect(dialFailure(socketError(code, { address: '::1' }), 'example.com', 80)).toBe(
    `dial tcp [::1]:80: connect: ${text}`,
  );
});

test.each([
  ['ENOTFOUND', 'no such host'],
  ['EAI_AGAIN', 'Temporary failure in name resolution'],
])('a host name that fails with %s has the message of the lookup', (code, text) => {
  expect(dialFailure(socketError(code), 'example.com', 80)).toBe(`dial tcp: lookup example.com: ${text}`);
});

test('a connection to several addresses has the message of the first', () => {
  const errors = [socketError('ECONNREFUSED', { address: '10.0.0.1' }), socketError('EHOSTUNREACH')];
  const all = Object.assign(socketError('EHOSTDOWN'), { errors });
  expect(dialFailure(all, 'example.com', 80)).toBe('dial tcp 10.0.0.1:80: connect: connection refused');
});

test.each(['EMFILE', 'ENOMEM', ''])('an error of the node has no message: %s', (code) => {
  expect(dialFailure(socketError(code), 'example.com', 80)).toBeUndefined();
  expect(transferFailure(socketError(code, { syscall: 'read' }), { local: 'a:1', remote: 'b:2' })).toBeUndefined();
});

test.each(['read', 'write'])('an error of %s on an open connection has the message of Go', (syscall) => {
  const ends = { local: 'a:1', remote: 'b:2' };
  expect(transferFailure(socketError('ECONNRESET', { syscall }), ends)).toBe(
    `${syscall} tcp a:1->b:2: ${syscall}: connection reset by peer`,
  );
});

test('an error of another system call on an open connection has no message', () => {
  const error = socketError('ECONNRESET', { syscall: 'connect' });
  expect(transferFailure(error, { local: 'a:1', remote: 'b:2' })).toBeUndefined();
});
