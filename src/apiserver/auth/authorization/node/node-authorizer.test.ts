import { describe, expect, test } from 'vitest';
import { parseFieldSelector } from '../../../../machinery/field-selector.ts';
import type { Attributes } from '../../../../ports/authorizer.ts';
import type { UserInfo } from '../../../../ports/request.ts';
import { createNodeAuthorizer } from './node-authorizer.ts';

const RELATED = [
  'secrets/ns/own',
  'configmaps/ns/own',
  'persistentvolumeclaims/ns/own',
  'persistentvolumes//own',
].concat(['serviceaccounts/ns/own', 'pods/ns/own', 'resourceclaims/ns/own']);
const authorizer = createNodeAuthorizer({
  synced: Promise.resolve(),
  relates: (node, resource, namespace, name) => node === 'n1' && RELATED.includes(`${resource}/${namespace}/${name}`),
});
const n1: UserInfo = { name: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] };

/**
 * Parses a text such as `get secrets ns/own`, `list pods ?spec.nodeName=n1`, `patch pods/status ns/own` or `get
 * leases.coordination.k8s.io`.
 */
function attributes(text: string, user = n1): Attributes {
  const [verb = '', what = '', ...where] = text.split(' ');
  const [kind = '', subresource] = what.split('/');
  const [resource = '', ...group] = kind.split('.');
  const at = where.find((each) => !each.startsWith('?')) ?? '';
  const selector = where.find((each) => each.startsWith('?'))?.slice(1);
  const [namespace = '', name = ''] = at.includes('/') ? at.split('/') : ['', at];
  const fieldSelector = selector === undefined ? undefined : parseFieldSelector(selector);
  return { user, verb, group: group.join('.'), resource, subresource, namespace, name, fieldSelector };
}

const NO_RELATION = "no relationship found between node 'n1' and this object";
const ONLY_SELECTED = 'can only list/watch pods with spec.nodeName field selector';
const ONE = 'can only get individual resources of this type';

test.each([
  'get secrets ns/own',
  'list secrets ns/own',
  'watch configmaps ns/own',
  'get persistentvolumeclaims ns/own',
  'patch persistentvolumeclaims/status ns/own',
  'get persistentvolumes own',
  'get resourceclaims.resource.k8s.io ns/own',
  'create serviceaccounts/token ns/own',
  'get pods ns/own',
  'watch pods ns/own',
  'list pods ?spec.nodeName=n1',
  'watch pods ?status.phase=Running,spec.nodeName=n1',
  'create pods ns/',
  'delete pods ns/any',
  'patch pods/status ns/any',
  'create pods/eviction ns/any',
  'get nodes n1',
  'watch nodes n1',
  'create nodes',
  'patch nodes any',
  'update nodes/status any',
  'create leases.coordination.k8s.io kube-node-lease/',
  'get leases.coordination.k8s.io kube-node-lease/n1',
  'update leases.coordination.k8s.io kube-node-lease/n1',
  'create csinodes.storage.k8s.io',
  'patch csinodes.storage.k8s.io n1',
  'create resourceslices.resource.k8s.io',
  'list resourceslices.resource.k8s.io ?nodeName=n1',
  'create podrecords.lifepod.io ns/',
  'update podrecords.lifepod.io ns/uid.0',
  'get podrecords.lifepod.io ns/uid.0',
  'list podrecords.lifepod.io ?nodeName=n1,podUID=u',
  'list services',
  'create events ns/',
  'patch events ns/e',
  'get runtimeclasses.node.k8s.io r',
  'create tokenreviews.authentication.k8s.io',
])('a node may %s', async (text) => {
  expect(await authorizer.authorize(attributes(text))).toEqual({ allowed: true, reason: '' });
});

test.each<[string, string]>([
  ['get secrets ns/other', NO_RELATION],
  ['get secrets', 'can only read namespaced object of this type'],
  ['list secrets ns/', 'No Object name found'],
  ['list secrets', 'can only read namespaced object of this type'],
  ['update secrets ns/own', 'can only read resources of this type'],
  ['get secrets/x ns/own', 'cannot read subresource'],
  ['watch configmaps ns/other', NO_RELATION],
  ['list persistentvolumeclaims ns/own', ONE],
  ['get persistentvolumeclaims/status ns/own', 'can only get/update/patch this type'],
  ['patch persistentvolumeclaims/status ns/other', NO_RELATION],
  ['get persistentvolumes other', NO_RELATION],
  ['watch persistentvolumes own', ONE],
  ['get volumeattachments.storage.k8s.io own', NO_RELATION],
  ['create serviceaccounts/token ns/other', NO_RELATION],
  ['create serviceaccounts/token ns/', 'can only create tokens for individual service accounts'],
  ['get serviceaccounts ns/own', 'can only create tokens for individual service accounts'],
  ['create serviceaccounts ns/own', 'can only create token subresource of serviceaccount'],
  ['get pods ns/other', NO_RELATION],
  ['list pods', ONLY_SELECTED],
  ['list pods ?spec.nodeName=n2', ONLY_SELECTED],
  ['list pods ?spec.nodeName!=n1', ONLY_SELECTED],
  ['watch pods ns/other', NO_RELATION],
  ['get pods/log ns/own', ''],
  ['update pods ns/own', ''],
  ['deletecollection pods ?spec.nodeName=n1', ''],
  ['get pods/status ns/own', ''],
  ['create pods/binding ns/own', ''],
  ['get nodes n2', "node 'n1' cannot read 'n2', only its own Node object"],
  ['list nodes', "node 'n1' cannot read all nodes, only its own Node object"],
  ['delete nodes n1', ''],
  ['get nodes/proxy n1', ''],
  [
    'get leases.coordination.k8s.io kube-node-lease/n2',
    'can only access node lease with the same name as the requesting node',
  ],
  ['get leases.coordination.k8s.io ns/n1', 'can only access leases in the "kube-node-lease" system namespace'],
  ['list leases.coordination.k8s.io kube-node-lease/', 'can only get, create, update, patch, or delete a node lease'],
  ['get csinodes.storage.k8s.io n2', 'can only access CSINode with the same name as the requesting node'],
  ['list csinodes.storage.k8s.io', 'can only get, create, update, patch, or delete a CSINode'],
  ['get csinodes.storage.k8s.io/x n1', ''],
  [
    'watch resourceslices.resource.k8s.io',
    'can only list/watch/deletecollection resourceslices with nodeName field selector',
  ],
  ['list podrecords.lifepod.io', 'can only list/watch podrecords with nodeName field selector'],
  ['list podrecords.lifepod.io ?nodeName=n2', 'can only list/watch podrecords with nodeName field selector'],
  ['delete podrecords.lifepod.io ns/uid.0', ''],
  ['list namespaces', ''],
  ['get deployments.apps ns/own', ''],
  ['create pods/exec ns/own', ''],
])('a node may not %s', async (text, reason) => {
  const decision = await authorizer.authorize(attributes(text));
  expect(decision.allowed).toBe(false);
  if (reason !== '') expect(decision.reason).toBe(reason);
});

describe('identities of nodes', () => {
  test.each<[string, UserInfo, string]>([
    ['a node by name only', { name: 'system:node:n1', groups: [] }, ''],
    ['a member of the group with another name', { name: 'jane', groups: ['system:nodes'] }, ''],
    [
      'a node without a name',
      { name: 'system:node:', groups: ['system:nodes'] },
      'unknown node for user "system:node:"',
    ],
    [
      'another node',
      { name: 'system:node:n2', groups: ['system:nodes'] },
      "no relationship found between node 'n2' and this object",
    ],
  ])('%s may not read the Secrets of a node', async (_, user, reason) => {
    expect(await authorizer.authorize(attributes('get secrets ns/own', user))).toEqual({ allowed: false, reason });
  });

  test('a node has no rules that can be listed, and other users get no error', async () => {
    const errors = ['node authorizer does not support user rule resolution'];
    expect(await authorizer.rulesFor(n1, 'ns')).toEqual({ roles: [], errors });
    expect(await authorizer.rulesFor({ name: 'jane', groups: [] }, 'ns')).toEqual({ roles: [], errors: [] });
  });

  test('a path is decided by the rules of the role system:node', async () => {
    expect(await authorizer.authorize({ user: n1, verb: 'get', path: '/metrics' })).toMatchObject({ allowed: false });
  });

  test('decisions wait until the objects are known', async () => {
    const known = Promise.withResolvers<void>();
    let isKnown = false;
    const late = createNodeAuthorizer({ synced: known.promise, relates: () => isKnown });
    const decision = late.authorize(attributes('get secrets ns/own'));
    isKnown = true;
    known.resolve();
    expect((await decision).allowed).toBe(true);
  });
});
