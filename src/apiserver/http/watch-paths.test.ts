/** Clients such as Ruby's kubeclient use these deprecated paths for watches. */
import { expect, test } from 'vitest';
import { createCatalog } from '../../api/catalog.ts';
import { kinds } from '../../api/kinds.ts';
import { watchOptions } from './query.ts';
import { findPath, findRoute, pathSegments } from './routes.ts';

const CATALOG = createCatalog(kinds);
const routeOf = (method: string, path: string) => findRoute(findPath(CATALOG, pathSegments(path)), method, false);

test.each([
  ['/api/v1/watch/pods', 'pods', undefined, undefined],
  ['/api/v1/watch/namespaces/blue/pods', 'pods', 'blue', undefined],
  ['/api/v1/watch/namespaces/blue/pods/one', 'pods', 'blue', 'one'],
  ['/api/v1/watch/nodes', 'nodes', undefined, undefined],
  ['/api/v1/watch/nodes/one', 'nodes', undefined, 'one'],
  ['/apis/coordination.k8s.io/v1/watch/namespaces/blue/leases', 'leases', 'blue', undefined],
])('GET %s is a watch even without the query parameter watch', (path, resource, namespace, name) => {
  expect(routeOf('GET', path)).toMatchObject({ verb: 'watch', ref: { resource }, namespace, name });
});

test.each([
  ['GET', '/api/v1/watch', 'NotFound'],
  ['GET', '/api/v1/watch/unknowns', 'NotFound'],
  ['GET', '/api/v1/watch/pods/one', 'NotFound'],
  ['GET', '/api/v1/watch/namespaces/blue/pods/one/status', 'NotFound'],
  ['GET', '/api/v1/watch/namespaces/blue/bindings', 'MethodNotAllowed'],
  ['POST', '/api/v1/watch/namespaces/blue/pods', 'MethodNotAllowed'],
  ['DELETE', '/api/v1/watch/namespaces/blue/pods/one', 'MethodNotAllowed'],
])('%s %s fails with %s', (method, path, reason) => {
  expect(() => routeOf(method, path)).toThrow(expect.objectContaining({ status: expect.objectContaining({ reason }) }));
});

const selectorOf = (name: string | undefined, fieldSelector = '') =>
  watchOptions(new URLSearchParams({ fieldSelector }), 'blue', name).fieldSelector;

test.each([
  [undefined, 'spec.nodeName=n', 'spec.nodeName=n'],
  ['one', '', 'metadata.name=one'],
  ['one', 'metadata.name=one,spec.nodeName=n', 'metadata.name=one,spec.nodeName=n'],
  ['odd,=\\', '', 'metadata.name=odd\\,\\=\\\\'],
])('the name %s and the field selector "%s" of a watch select "%s"', (name, fieldSelector, selected) => {
  expect(selectorOf(name, fieldSelector)).toBe(selected);
});

test.each(['metadata.name=two', 'metadata.name!=one', 'spec.nodeName=n'])(
  'a watch of the object "one" is rejected with the field selector %s',
  (fieldSelector) => {
    expect(() => selectorOf('one', fieldSelector)).toThrow("fieldSelector metadata.name doesn't match requested name");
  },
);
