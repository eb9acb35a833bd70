import { expect, test } from 'vitest';
import { queryText, resourcePath } from './paths.ts';

const pods = { group: '', version: 'v1', resource: 'pods' };
const leases = { group: 'coordination.k8s.io', version: 'v1', resource: 'leases' };

test.each([
  [resourcePath(pods, 'a', 'x', 'binding'), '/api/v1/namespaces/a/pods/x/binding'],
  [resourcePath(pods, undefined), '/api/v1/pods'],
  [resourcePath(leases, 'n', 'l'), '/apis/coordination.k8s.io/v1/namespaces/n/leases/l'],
  [resourcePath(pods, 'a', '../x'), '/api/v1/namespaces/a/pods/..%2Fx'],
  [
    queryText({ limit: 5, watch: true, labelSelector: 'a=b,c', continue: '', fieldSelector: undefined }),
    '?limit=5&watch=true&labelSelector=a%3Db%2Cc',
  ],
  [queryText({}), ''],
])('the client builds the path or query "%s"', (got, wanted) => expect(got).toBe(wanted));
