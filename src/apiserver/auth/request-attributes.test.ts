import { expect, test } from 'vitest';
import { requestAttributes } from './request-attributes.ts';

const at = (method: string, url: string) => {
  const [path = '', query] = url.split('?');
  const attributes = requestAttributes({ method, query: new URLSearchParams(query) }, path.split('/').slice(1));
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined && value !== ''));
};

const named = (op: string, value: string) => ({ field: 'metadata.name', op, value });

test.each<[string, string, object]>([
  ['GET', '/api', { verb: 'get', path: '/api' }],
  ['GET', '/api/v1', { verb: 'get', path: '/api/v1' }],
  ['POST', '/apis/apps/v1', { verb: 'post', path: '/apis/apps/v1' }],
  ['GET', '/odd/a/b/c', { verb: 'get', path: '/odd/a/b/c' }],
  ['GET', '/api/v1/odds', { verb: 'list', resource: 'odds' }],
  ['GET', '/api/v1/odds?watch=1', { verb: 'watch', resource: 'odds' }],
  ['DELETE', '/apis/a.b/v1/odds', { verb: 'deletecollection', group: 'a.b', resource: 'odds' }],
  ['PUT', '/apis/a.b/v1/odds/x', { verb: 'update', group: 'a.b', resource: 'odds', name: 'x' }],
  [
    'PATCH',
    '/api/v1/namespaces/n/odds/x/status',
    { verb: 'patch', resource: 'odds', namespace: 'n', name: 'x', subresource: 'status' },
  ],
  ['GET', '/api/v1/namespaces/n', { verb: 'get', resource: 'namespaces', namespace: 'n', name: 'n' }],
  [
    'PUT',
    '/api/v1/namespaces/n/finalize',
    { verb: 'update', resource: 'namespaces', namespace: 'n', name: 'n', subresource: 'finalize' },
  ],
  ['GET', '/api/v1/watch/namespaces/n/odds/x', { verb: 'watch', resource: 'odds', namespace: 'n', name: 'x' }],
  [
    'GET',
    '/api/v1/watch/namespaces/n/odds/x/log',
    { verb: 'watch', resource: 'odds', namespace: 'n', name: 'x', subresource: 'log' },
  ],
  ['GET', '/api/v1/proxy/nodes/x/logs', { verb: 'proxy', resource: 'nodes', name: 'x' }],
  ['GET', '/api/v1/odds//log', { verb: 'list', resource: 'odds', subresource: 'log' }],
  [
    'GET',
    '/api/v1/odds?fieldSelector=metadata.name%3Dx',
    { verb: 'list', resource: 'odds', name: 'x', fieldSelector: [named('=', 'x')] },
  ],
  [
    'GET',
    '/api/v1/odds?fieldSelector=metadata.name!%3Dx',
    { verb: 'list', resource: 'odds', fieldSelector: [named('!=', 'x')] },
  ],
  [
    'GET',
    '/api/v1/odds?fieldSelector=metadata.name%3Da%252Fb',
    { verb: 'list', resource: 'odds', fieldSelector: [named('=', 'a%2Fb')] },
  ],
  ['GET', '/api/v1/odds?fieldSelector=odd', { verb: 'list', resource: 'odds' }],
  ['GET', '/api/v1/odds/x?fieldSelector=a%3Db', { verb: 'get', resource: 'odds', name: 'x' }],
  ['HEAD', '/api/v1/odds/x', { verb: 'get', resource: 'odds', name: 'x' }],
  ['OPTIONS', '/api/v1/odds/x', { resource: 'odds', name: 'x' }],
])('the attributes of %s %s', (method, url, attributes) => {
  expect(at(method, url)).toEqual(attributes);
});
