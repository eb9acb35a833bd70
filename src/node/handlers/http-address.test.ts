import { expect, test } from 'vitest';
import { addressOf, redirected } from './http-address.ts';

const from = addressOf({ scheme: 'http', host: '10.0.0.7', port: 8080, path: '/a/b?x=1' });

test('the address of a request has the host and the port in the URL and in the Host header', () => {
  expect(from).toEqual({
    scheme: 'http',
    hostname: '10.0.0.7',
    port: 8080,
    host: '10.0.0.7:8080',
    target: '/a/b?x=1',
    url: 'http://10.0.0.7:8080/a/b?x=1',
  });
  expect(addressOf({ scheme: 'https', host: '::1', port: 443, path: '' })).toMatchObject({
    hostname: '::1',
    url: 'https://[::1]:443/',
  });
});

test.each([
  ['http://10.0.0.7/c', { scheme: 'http', port: 80, host: '10.0.0.7', target: '/c' }, false],
  ['https://10.0.0.7/c?y', { scheme: 'https', port: 443, host: '10.0.0.7', target: '/c?y' }, false],
  ['https://10.0.0.7:8443', { scheme: 'https', port: 8443, host: '10.0.0.7:8443', target: '/' }, false],
  ['//10.0.0.7:81/c', { scheme: 'http', port: 81, host: '10.0.0.7:81', target: '/c' }, false],
  ['/c', { scheme: 'http', port: 8080, host: '10.0.0.7:8080', target: '/c' }, true],
  ['c', { scheme: 'http', port: 8080, host: '10.0.0.7:8080', target: '/a/c' }, true],
])('a redirect to %s leads to the right address', (location, address, relative) => {
  for (const status of [301, 302, 303, 307, 308])
    expect(redirected(from, status, location)).toMatchObject({
      address: { ...address, hostname: '10.0.0.7' },
      relative,
    });
});

test.each([
  [200, '/c'],
  [304, '/c'],
  [302, ''],
  [302, 'http://10.0.0.8/'],
])('a response with the status %i and the Location "%s" is not a redirect', (status, location) => {
  expect(redirected(from, status, location)).toBeUndefined();
});
