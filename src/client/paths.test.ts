import { expect, test } from 'vitest';
import { LEASES, PODS } from '../api/resources.ts';
import { queryText, resourcePath } from './paths.ts';

test.each([
  [resourcePath(PODS, 'a', 'x', 'binding'), '/api/v1/namespaces/a/pods/x/binding'],
  [resourcePath(PODS, undefined), '/api/v1/pods'],
  [resourcePath(LEASES, 'n', 'l'), '/apis/coordination.k8s.io/v1/namespaces/n/leases/l'],
  [resourcePath(PODS, 'a', '../x'), '/api/v1/namespaces/a/pods/..%2Fx'],
  [
    queryText({ limit: 5, watch: true, labelSelector: 'a=b,c', continue: '', fieldSelector: undefined }),
    '?limit=5&watch=true&labelSelector=a%3Db%2Cc',
  ],
  [queryText({}), ''],
])('the client builds the path or query "%s"', (got, wanted) => expect(got).toBe(wanted));
