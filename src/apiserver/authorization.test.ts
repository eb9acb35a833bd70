import { createPrivateKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRbac } from './auth/authorization/rbac.ts';
import {
  clusterRole,
  clusterRoleBinding,
  rbacObjects,
  role,
  roleBinding,
  rule,
} from './auth/authorization/rbac-fixture.ts';
import { makeLeaf } from './pki/certificates.ts';
import { startTestServer, type TestServer } from './server-fixture.ts';

const rbac = createRbac(
  rbacObjects(
    clusterRole('discovery', { nonResourceURLs: ['/api/*', '/openapi/*'], verbs: ['get'] }),
    clusterRole('view', rule('get list watch', 'pods configmaps namespaces'), rule('patch', 'configmaps')),
    role('default', 'one', rule('list watch get', 'secrets', 'one')),
    clusterRole('ask', {
      apiGroups: ['authorization.k8s.io'],
      resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
      verbs: ['create'],
    }),
    clusterRoleBinding('ask', 'ask', 'User jane'),
    clusterRoleBinding('discovery', 'discovery', 'Group system:authenticated'),
    clusterRoleBinding('broken', 'absent', 'User jane'),
    roleBinding('default', 'jane', 'ClusterRole view', 'User jane'),
    roleBinding('default', 'one', 'Role one', 'User jane'),
  ),
);
const ABSENT = ': RBAC: clusterrole.rbac.authorization.k8s.io "absent" not found';

let at: TestServer;
let jane: Agent;

beforeAll(async () => {
  at = await startTestServer({ authorizer: rbac });
  const key = createPrivateKey(readFileSync(join(at.dataDir, 'pki', 'ca.key')));
  const authority = { certificate: at.pki.caCertificate, key };
  const leaf = await makeLeaf(authority, { commonName: 'jane', usage: 'client' }, Date.now());
  jane = new Agent({ ca: at.pki.caCertificate, keepAlive: true, cert: leaf.certificate, key: leaf.key });
});

afterAll(async () => {
  jane.destroy();
  await at[Symbol.asyncDispose]();
});

const IN_DEFAULT = '/api/v1/namespaces/default';

test.each<[string, string, number]>([
  ['GET', `${IN_DEFAULT}/pods`, 200],
  ['GET', `${IN_DEFAULT}/pods/absent`, 404],
  ['GET', IN_DEFAULT, 200],
  ['GET', '/api/v1', 200],
  ['GET', '/openapi/v3', 200],
  ['GET', `${IN_DEFAULT}/secrets?fieldSelector=metadata.name%3Done`, 200],
  ['GET', '/version', 200],
  ['GET', '/healthz', 200],
])('%s %s is allowed', async (method, path, code) => {
  expect((await at.call(method, path, { agent: jane })).code).toBe(code);
});

const janeCannot = (what: string): string => `User "jane" cannot ${what}${ABSENT}`;

test.each<[string, string, string]>([
  [
    'GET',
    '/api/v1/pods',
    `pods is forbidden: ${janeCannot('list resource "pods" in API group "" at the cluster scope')}`,
  ],
  [
    'GET',
    '/api/v1/namespaces/kube-system/pods',
    `pods is forbidden: ${janeCannot('list resource "pods" in API group "" in the namespace "kube-system"')}`,
  ],
  [
    'GET',
    `${IN_DEFAULT}/pods/x/log`,
    `pods "x" is forbidden: ${janeCannot('get resource "pods/log" in API group "" in the namespace "default"')}`,
  ],
  [
    'POST',
    `${IN_DEFAULT}/pods/x/exec?command=a`,
    `pods "x" is forbidden: ${janeCannot('create resource "pods/exec" in API group "" in the namespace "default"')}`,
  ],
  [
    'DELETE',
    `${IN_DEFAULT}/configmaps`,
    `configmaps is forbidden: ${janeCannot('deletecollection resource "configmaps" in API group "" in the namespace "default"')}`,
  ],
  [
    'GET',
    '/apis/apps/v1/namespaces/default/deployments?watch=1',
    `deployments.apps is forbidden: ${janeCannot('watch resource "deployments" in API group "apps" in the namespace "default"')}`,
  ],
  [
    'GET',
    `${IN_DEFAULT}/secrets?fieldSelector=metadata.name%3Dtwo`,
    `secrets "two" is forbidden: ${janeCannot('list resource "secrets" in API group "" in the namespace "default"')}`,
  ],
  [
    'GET',
    '/api/v1/namespaces/kube-system',
    `namespaces "kube-system" is forbidden: ${janeCannot('get resource "namespaces" in API group "" in the namespace "kube-system"')}`,
  ],
  [
    'GET',
    '/apis/odd.example/v1/things',
    `things.odd.example is forbidden: ${janeCannot('list resource "things" in API group "odd.example" at the cluster scope')}`,
  ],
  [
    'PUT',
    `${IN_DEFAULT}/configmaps`,
    `configmaps is forbidden: ${janeCannot('update resource "configmaps" in API group "" in the namespace "default"')}`,
  ],
  ['GET', '/metrics', `forbidden: ${janeCannot('get path "/metrics"')}`],
  ['GET', '/livez/ping', `forbidden: ${janeCannot('get path "/livez/ping"')}`],
  ['POST', '/api/v1', `forbidden: ${janeCannot('post path "/api/v1"')}`],
  ['GET', '/%3Ca%3E', `forbidden: ${janeCannot('get path "/&lt;a&gt;"')}`],
])('%s %s is refused with the text of upstream', async (method, path, message) => {
  const { code, json } = await at.call(method, path, { agent: jane });
  expect({ code, message: json.message, reason: json.reason }).toEqual({ code: 403, message, reason: 'Forbidden' });
});

test('a server-side apply that creates an object requires the right to create it', async () => {
  const apply = (agent?: Agent) =>
    at.call('PATCH', `${IN_DEFAULT}/configmaps/applied?fieldManager=me&force=true`, {
      body: JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied' }, data: { a: 'b' } }),
      headers: { 'content-type': 'application/apply-patch+yaml' },
      ...(agent === undefined ? {} : { agent }),
    });
  const refused = await apply(jane);
  expect(refused.code).toBe(403);
  expect(refused.json.message).toMatch(/^configmaps "applied" is forbidden: /);
  expect((await apply()).code).toBe(201);
  expect((await apply(jane)).code).toBe(200);
});

test('a request without a certificate gets 401, whatever the roles are', async () => {
  expect((await at.call('GET', `${IN_DEFAULT}/pods`, { agent: at.anonymous })).code).toBe(401);
});

describe('reviews of access', () => {
  const GROUP = '/apis/authorization.k8s.io/v1';
  const pods = (verb: string, namespace = 'default') => ({ resourceAttributes: { verb, resource: 'pods', namespace } });
  const ask = async (path: string, kind: string, spec: object, agent?: Agent, metadata: object = {}) => {
    const body = JSON.stringify({ apiVersion: 'authorization.k8s.io/v1', kind, metadata, spec });
    const { code, json } = await at.call('POST', `${GROUP}/${path}`, {
      body,
      ...(agent === undefined ? {} : { agent }),
    });
    return { code, status: json.status, message: json.message };
  };
  const allowed = {
    allowed: true,
    reason: 'RBAC: allowed by RoleBinding "jane/default" of ClusterRole "view" to User "jane"',
  };
  const denied = { allowed: false, reason: ABSENT.slice(2) };

  test('an administrator can ask about another user', async () => {
    const about = (spec: object) => ask('subjectaccessreviews', 'SubjectAccessReview', { user: 'jane', ...spec });
    expect(await about(pods('list'))).toMatchObject({ code: 201, status: allowed });
    expect(await about(pods('delete'))).toMatchObject({ code: 201, status: denied });
    expect(await about({ nonResourceAttributes: { verb: 'get', path: '/metrics' } })).toMatchObject({ status: denied });
    expect((await about({ user: '' })).message).toContain('at least one of user or group must be specified');
  });

  test('a review of a namespace is about this namespace', async () => {
    const path = 'namespaces/default/localsubjectaccessreviews';
    const about = (spec: object) => ask(path, 'LocalSubjectAccessReview', { user: 'jane', ...spec });
    expect(await about(pods('list'))).toMatchObject({ code: 201, status: allowed });
    expect(await about(pods('list', 'other'))).toMatchObject({ code: 422 });
    expect((await ask(path, 'LocalSubjectAccessReview', { user: 'x', ...pods('get') }, jane)).code).toBe(403);
  });

  test('a user who may ask gets answers about the own rights', async () => {
    expect((await ask('selfsubjectaccessreviews', 'SelfSubjectAccessReview', pods('get'), jane)).status).toEqual(
      allowed,
    );
    const rules = await ask('selfsubjectrulesreviews', 'SelfSubjectRulesReview', { namespace: 'default' }, jane);
    expect(rules.status).toMatchObject({ incomplete: false, evaluationError: denied.reason.slice('RBAC: '.length) });
    expect(rules.status.resourceRules).toContainEqual({
      apiGroups: [''],
      resources: ['secrets'],
      resourceNames: ['one'],
      verbs: ['list', 'watch', 'get'],
    });
    expect(rules.status.nonResourceRules).toEqual([{ verbs: ['get'], nonResourceURLs: ['/api/*', '/openapi/*'] }]);
    expect(await ask('selfsubjectrulesreviews', 'SelfSubjectRulesReview', {}, jane)).toMatchObject({
      code: 400,
      message: 'no namespace on request',
    });
  });
});
