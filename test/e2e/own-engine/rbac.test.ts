import { createPrivateKey } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { makeLeaf } from '../../../src/apiserver/pki/certificates.ts';
import { KUBECTL, OLDER_KUBECTL } from '../../support/kubectl.ts';
import { lifepod, useOwnEngine } from '../../support/own-engine.ts';
import { type Asked, askerOf } from './access/askers.ts';
import { testCanI } from './access/can-i.ts';
import { testBindingCreation, testRoleCreation } from './access/creations.ts';
import { DECISIONS, OBJECTS, USERS } from './access/decisions.ts';
import { testIdentities, testImpersonation } from './access/identities.ts';
import { type KubectlProgram, kubectlProgram } from './access/kubectl-program.ts';
import { testReconciliation } from './access/reconciliation.ts';

useOwnEngine();

const NAMESPACE = 'team';
const POD = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'one', namespace: NAMESPACE },
  spec: { nodeSelector: { no: 'node' }, containers: [{ name: 'app', image: 'busybox:1.28' }] },
});

beforeAll(async () => {
  const { kubectlOk } = lifepod;
  await kubectlOk('create', 'namespace', NAMESPACE);
  await kubectlOk('create', 'role', 'reader', '-n', NAMESPACE, '--verb=get,list,watch', '--resource=pods,pods/log');
  await kubectlOk(
    'create',
    'rolebinding',
    'reader',
    '-n',
    NAMESPACE,
    '--role=reader',
    '--user=jane',
    `--serviceaccount=${NAMESPACE}:bot`,
  );
  await kubectlOk('create', 'rolebinding', 'owners', '-n', NAMESPACE, '--clusterrole=admin', '--group=owners');
  await kubectlOk('create', 'clusterrole', 'metrics', '--verb=get', '--non-resource-url=/metrics');
  await kubectlOk('create', 'clusterrolebinding', 'metrics', '--clusterrole=metrics', '--user=jane');
  await lifepod.kubectlInput(POD, 'apply', '-f', '-');
  await lifepod.apply(OBJECTS);
  // The controller fills the role `admin` through `edit` and `view`.
  for (const [name, resource] of [
    ['admin', 'things'],
    ['admin', 'requests'],
    ['collection', 'cronjobs'],
  ] as const)
    await lifepod.until(['get', 'clusterrole', name, '-w', '-o', 'json', '--output-watch-events=false'], (line) =>
      line.includes(`"${resource}"`),
    );
});

test('a review of access and the request itself are decided as the roles say', async () => {
  const asker = askerOf(lifepod.kubeconfig);
  onTestFinished(() => asker.close());
  const users = Object.entries<Asked>(USERS);
  const allowedTo = async (text: string, ask: (user: Asked, text: string) => Promise<boolean>): Promise<string> => {
    const answers = await Promise.all(users.map(([, user]) => ask(user, text)));
    return users.flatMap(([name], index) => (answers[index] ? [name] : [])).join(' ');
  };
  const decisions = await Promise.all(
    DECISIONS.map(async ([text]) => ({
      text,
      reviewed: await allowedTo(text, asker.isReviewed),
      sent: await allowedTo(text, asker.isSent),
    })),
  );
  expect(decisions).toEqual(DECISIONS.map(([text, allowed]) => ({ text, reviewed: allowed, sent: allowed })));
});

const as = (user: string, ...groups: string[]): string[] => [
  '--as',
  user,
  ...groups.map((group) => `--as-group=${group}`),
];

const outcome = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await lifepod.kubectl(...args);
  return code === 0 ? stdout.trim() : stderr.trim();
};

const forbidden = (what: string, cause: string): string =>
  `Error from server (Forbidden): ${what} is forbidden: User "jane" cannot ${cause}`;

describe('a user with a client certificate', () => {
  let kubeconfig: string;
  beforeAll(async () => {
    const pki = join(lifepod.dataDir, 'pki');
    const authority = {
      certificate: readFileSync(join(pki, 'ca.crt'), 'utf8'),
      key: createPrivateKey(readFileSync(join(pki, 'ca.key'))),
    };
    const { certificate, key } = await makeLeaf(authority, { commonName: 'jane', usage: 'client' }, Date.now());
    const config = JSON.parse(readFileSync(lifepod.kubeconfig, 'utf8'));
    const base64 = (text: string): string => Buffer.from(text).toString('base64');
    config.users[0].user = { 'client-certificate-data': base64(certificate), 'client-key-data': base64(key) };
    kubeconfig = join(lifepod.dataDir, 'jane.kubeconfig');
    writeFileSync(kubeconfig, JSON.stringify(config), { mode: 0o600 });
  });

  const jane = (...args: string[]): Promise<string> => outcome('--kubeconfig', kubeconfig, ...args);
  const inTeam = 'in API group "" in the namespace "team"';

  test('reads what a Role allows, and gets the errors of Kubernetes for everything else', async () => {
    expect(await jane('get', 'pods', '-n', NAMESPACE, '-o', 'name')).toBe('pod/one');
    expect(await jane('get', 'pods', '-n', 'default')).toBe(
      forbidden('pods', 'list resource "pods" in API group "" in the namespace "default"'),
    );
    expect(await jane('get', 'pods', '-A')).toBe(
      forbidden('pods', 'list resource "pods" in API group "" at the cluster scope'),
    );
    expect(await jane('delete', 'pod', 'one', '-n', NAMESPACE)).toBe(
      forbidden('pods "one"', `delete resource "pods" ${inTeam}`),
    );
    expect(await jane('exec', 'one', '-n', NAMESPACE, '--', 'true')).toBe(
      forbidden('pods "one"', `create resource "pods/exec" ${inTeam}`),
    );
    expect(await jane('get', 'secrets', '-n', NAMESPACE)).toBe(
      forbidden('secrets', `list resource "secrets" ${inTeam}`),
    );
    expect(await jane('get', '--raw', '/metrics')).toContain('apiserver_request_total');
    expect(await jane('get', '--raw', '/metrics/cadvisor')).toContain('cannot get path');
  });

  test('cannot use the rights of other users, or grant rights', async () => {
    expect(await jane('get', 'pods', '-n', NAMESPACE, ...as('root', 'system:masters'))).toContain(
      'users "root" is forbidden: User "jane" cannot impersonate resource "users" in API group "" at the cluster scope',
    );
    expect(
      await jane('create', 'rolebinding', 'mine', '-n', NAMESPACE, '--clusterrole=cluster-admin', '--user=jane'),
    ).toContain('rolebindings.rbac.authorization.k8s.io is forbidden');
  });

  test('kubectl auth can-i answers for the user', async () => {
    expect(await jane('auth', 'can-i', 'list', 'pods', '-n', NAMESPACE)).toBe('yes');
    expect(
      (await lifepod.kubectl('auth', 'can-i', 'delete', 'pods', '-n', NAMESPACE, '--kubeconfig', kubeconfig)).stdout,
    ).toMatch(/^no/);
    const list = await jane('auth', 'can-i', '--list', '-n', NAMESPACE);
    expect(list).toMatch(/^pods\/log +\[\] +\[\] +\[get list watch\]$/m);
    expect(list).toMatch(/^selfsubjectaccessreviews\.authorization\.k8s\.io +\[\] +\[\] +\[create\]$/m);
    expect(list).toMatch(/^ +\[\/metrics\] +\[\] +\[get\]$/m);
  });
});

describe('impersonation by the administrator', () => {
  test('a ServiceAccount has the rights of its bindings, in its namespace only', async () => {
    const bot = as(`system:serviceaccount:${NAMESPACE}:bot`);
    expect(await outcome('get', 'pods', '-n', NAMESPACE, '-o', 'name', ...bot)).toBe('pod/one');
    expect(await outcome('get', 'pods', '-n', 'default', ...bot)).toContain('cannot list resource "pods"');
  });

  test('a token of a ServiceAccount has the same rights', async () => {
    await lifepod.kubectlOk('create', 'serviceaccount', 'bot', '-n', NAMESPACE);
    const token = (await lifepod.kubectlOk('create', 'token', 'bot', '-n', NAMESPACE)).trim();
    const config = JSON.parse(readFileSync(lifepod.kubeconfig, 'utf8'));
    config.users[0].user = { token };
    const kubeconfig = join(lifepod.dataDir, 'bot.kubeconfig');
    writeFileSync(kubeconfig, JSON.stringify(config), { mode: 0o600 });
    const bot = (...args: string[]) => outcome('--kubeconfig', kubeconfig, ...args);
    expect(await bot('get', 'pods', '-n', NAMESPACE, '-o', 'name')).toBe('pod/one');
    expect(await bot('get', 'pods', '-n', 'default')).toBe(
      'Error from server (Forbidden): pods is forbidden: User "system:serviceaccount:team:bot" cannot list resource "pods" in API group "" in the namespace "default"',
    );
    expect(await bot('auth', 'can-i', 'watch', 'pods', '-n', NAMESPACE)).toBe('yes');
    expect(await bot('auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}')).toBe(
      'system:serviceaccount:team:bot',
    );
  });

  test('an administrator of a namespace can do there what the role admin allows, and grant no more', async () => {
    const owner = as('olga', 'owners');
    const { kubectlOk } = lifepod;
    await kubectlOk('create', 'configmap', 'mine', '-n', NAMESPACE, ...owner);
    await kubectlOk('create', 'role', 'pods', '-n', NAMESPACE, '--verb=get', '--resource=pods', ...owner);
    expect(
      await outcome(
        'create',
        'role',
        'quotas',
        '-n',
        NAMESPACE,
        '--verb=create',
        '--resource=resourcequotas',
        ...owner,
      ),
    ).toContain(
      'is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["resourcequotas"], Verbs:["create"]}',
    );
    expect(
      await outcome(
        'create',
        'rolebinding',
        'root',
        '-n',
        NAMESPACE,
        '--clusterrole=cluster-admin',
        '--user=olga',
        ...owner,
      ),
    ).toContain('{APIGroups:["*"], Resources:["*"], Verbs:["*"]}');
    expect(await outcome('create', 'configmap', 'mine', '-n', 'default', ...owner)).toContain(
      'configmaps is forbidden',
    );
    expect(await outcome('get', 'nodes', ...owner)).toContain('nodes is forbidden');
  });

  test('a server-side apply needs the rights to patch and to create', async () => {
    await lifepod.kubectlOk('create', 'role', 'patcher', '-n', NAMESPACE, '--verb=get,patch', '--resource=configmaps');
    await lifepod.kubectlOk('create', 'rolebinding', 'patcher', '-n', NAMESPACE, '--role=patcher', '--user=pat');
    const apply = (name: string, ...args: string[]) => {
      const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: NAMESPACE }, data: { a: 'b' } };
      return lifepod.kubectlInput(
        JSON.stringify(map),
        'apply',
        '--server-side',
        '--validate=false',
        '-f',
        '-',
        ...args,
      );
    };
    expect((await apply('applied', ...as('pat'))).stderr).toContain('configmaps "applied" is forbidden');
    expect((await apply('applied')).code).toBe(0);
    expect((await apply('applied', ...as('pat'), '--force-conflicts')).code).toBe(0);
  });
});

function testRights(kubectl: KubectlProgram): void {
  testCanI(kubectl);
  testRoleCreation(kubectl);
  testBindingCreation(kubectl);
  testReconciliation(kubectl);
  testImpersonation(kubectl);
}

describe('kubectl', () => {
  const kubectl = kubectlProgram(KUBECTL, 'new');
  testRights(kubectl);
  testIdentities(kubectl);
});

describe.skipIf(OLDER_KUBECTL === undefined)('kubectl 1.20', () =>
  testRights(kubectlProgram(OLDER_KUBECTL ?? '', 'old')),
);

test('the roles that every cluster has exist, and tables and descriptions show them', async () => {
  const { kubectlOk } = lifepod;
  expect(await kubectlOk('get', 'clusterroles')).toMatch(/^cluster-admin +\d{4}-\d\d-\d\dT/m);
  expect(await kubectlOk('get', 'clusterrolebindings', '-o', 'wide')).toMatch(
    /^cluster-admin +ClusterRole\/cluster-admin +\S+ +system:masters *$/m,
  );
  expect(await kubectlOk('describe', 'clusterrole', 'view')).toMatch(/^ +pods\/log +\[\] +\[\] +\[get list watch\]$/m);
  expect(await kubectlOk('describe', 'rolebinding', 'reader', '-n', NAMESPACE)).toMatch(
    /^ +ServiceAccount +bot +team$/m,
  );
  expect(await kubectlOk('auth', 'can-i', '--list')).toMatch(/^\*\.\* +\[\] +\[\] +\[\*\]$/m);
});
