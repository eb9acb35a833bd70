/** Objects that must stay hidden from unauthorized users, and users with few rights. */
import type {
  ClusterRole,
  ClusterRoleBinding,
  PolicyRule,
  RbacV1Subject,
  Role,
  RoleBinding,
} from '../../../src/api/generated/types.ts';
import type { Access } from './oracle.ts';

/** Sends a request as the administrator. */
export type Call = (
  method: string,
  path: string,
  body?: object,
  // biome-ignore lint/suspicious/noExplicitAny: responses of many kinds
) => Promise<{ code: number; json: any }>;

/**
 * All planted objects have the name PLANTED, and no object has the name ABSENT. ABSENT_NAMESPACE does not exist. An absent name is as long
 * as the existing one.
 */
export const PLANTED = 'planted';
export const ABSENT = 'missing';
export const HIDDEN = 'hidden';
export const ABSENT_NAMESPACE = 'lacked';
const NAMESPACES = ['default', HIDDEN, 'kube-system'];

const RBAC = 'rbac.authorization.k8s.io';
const RBAC_PATH = `/apis/${RBAC}/v1`;

/** The text that a planted object contains. CANARY finds such texts in a response. */
export const canaryOf = (namespace: string, resource: string): string => `canary-${namespace}-${resource}-end`;
export const CANARY = /canary-([a-z-]+)-(secrets|configmaps)-end/g;

const subject = (text: string): RbacV1Subject => {
  const [kind = '', name = ''] = text.split(' ');
  const [namespace, account = ''] = name.split('/');
  return kind === 'ServiceAccount' ? { kind, namespace, name: account } : { apiGroup: RBAC, kind, name };
};

const rule = (verbs: string, resources: string, more: Partial<PolicyRule> = {}): PolicyRule => ({
  apiGroups: [''],
  verbs: verbs.split(' '),
  resources: resources.split(' '),
  ...more,
});

const CLUSTER_ROLES: Readonly<Record<string, PolicyRule[]>> = {
  'fuzz-discovery': [{ verbs: ['get'], nonResourceURLs: ['/api', '/apis/*', '/openapi/v3'] }],
  'fuzz-reader': [rule('get list watch', 'configmaps pods')],
  'fuzz-viewer': [
    rule('get list watch', 'configmaps events namespaces pods pods/log pods/status serviceaccounts services'),
    rule('get list watch', '*', { apiGroups: ['apps', RBAC, 'odd.example'] }),
    { verbs: ['*'], nonResourceURLs: ['/openapi*', '/api*', '/'] },
  ],
  'fuzz-named': [rule('get list watch patch', 'secrets', { resourceNames: [ABSENT] })],
  'fuzz-subresources': [rule('get create', '*/log pods/status')],
  'fuzz-apps': [rule('*', '*', { apiGroups: ['apps'] })],
  'fuzz-paths': [{ verbs: ['get', 'post'], nonResourceURLs: ['/metrics', '/.well-known/*'] }],
  'fuzz-nodes': [rule('get', 'nodes nodes/proxy')],
  'fuzz-impersonator': [
    rule('impersonate', 'users', { resourceNames: ['jane', 'nobody'] }),
    rule('impersonate', 'groups', { resourceNames: ['team', 'system:unauthenticated'] }),
    rule('impersonate', 'serviceaccounts', { resourceNames: ['robot'] }),
    {
      apiGroups: ['authentication.k8s.io'],
      verbs: ['impersonate'],
      resources: ['userextras/scopes'],
      resourceNames: ['a'],
    },
  ],
};

const ROLES: Readonly<Record<string, PolicyRule[]>> = {
  'fuzz-writer': [rule('get list create update patch delete', 'configmaps'), rule('get', 'secrets')],
};

/** Bindings with a namespace are RoleBindings, the others ClusterRoleBindings. */
const BINDINGS: readonly [namespace: string, role: string, subjects: string[]][] = [
  ['', 'ClusterRole fuzz-viewer', ['User viewer']],
  ['', 'ClusterRole fuzz-discovery', ['Group team', 'User jane']],
  ['', 'ClusterRole fuzz-nodes', ['Group system:bootstrappers']],
  ['', 'ClusterRole fuzz-impersonator', ['User proxy']],
  ['', 'ClusterRole fuzz-apps', ['ServiceAccount hidden/robot']],
  ['', 'ClusterRole fuzz-absent', ['User jane', 'Group team']],
  ['', 'ClusterRole fuzz-paths', ['User jane']],
  ['default', 'ClusterRole fuzz-reader', ['User jane', 'ServiceAccount default/robot']],
  ['default', 'ClusterRole fuzz-named', ['Group team']],
  ['default', 'Role fuzz-writer', ['ServiceAccount hidden/robot']],
  [HIDDEN, 'Role fuzz-writer', ['Group team']],
  [HIDDEN, 'ClusterRole fuzz-subresources', ['User jane', 'Group system:serviceaccounts']],
];

export interface Planted {
  access: Access;
  tokens: readonly { token: string; name: string; groups: readonly string[] }[];
}

export const BOOTSTRAP_TOKEN = 'fuzzed.0123456789abcdef';

export async function plant(call: Call): Promise<Planted> {
  const create = async (path: string, body: object): Promise<void> => {
    const { code, json } = await call('POST', path, body);
    if (code !== 201 && code !== 409) throw new Error(`${path}: ${code} ${json?.message}`);
  };
  await create('/api/v1/namespaces', { metadata: { name: HIDDEN } });
  for (const namespace of NAMESPACES) {
    const at = `/api/v1/namespaces/${namespace}`;
    const text = (resource: string) => ({ text: canaryOf(namespace, resource) });
    await create(`${at}/configmaps`, { metadata: { name: PLANTED }, data: text('configmaps') });
    await create(`${at}/secrets`, { metadata: { name: PLANTED, annotations: text('secrets') } });
  }
  for (const [name, rules] of Object.entries(CLUSTER_ROLES))
    await create(`${RBAC_PATH}/clusterroles`, { metadata: { name }, rules });
  for (const namespace of ['default', HIDDEN])
    for (const [name, rules] of Object.entries(ROLES))
      await create(`${RBAC_PATH}/namespaces/${namespace}/roles`, { metadata: { name }, rules });
  for (const [index, [namespace, roleText, subjects]] of BINDINGS.entries()) {
    const [kind, name] = roleText.split(' ');
    const path = namespace === '' ? 'clusterrolebindings' : `namespaces/${namespace}/rolebindings`;
    const roleRef = { apiGroup: RBAC, kind, name };
    await create(`${RBAC_PATH}/${path}`, {
      metadata: { name: `fuzz-${index}` },
      roleRef,
      subjects: subjects.map(subject),
    });
  }
  return { access: await readAccess(call), tokens: await plantTokens(call, create) };
}

async function readAccess(call: Call): Promise<Access> {
  const list = async <T>(plural: string): Promise<T[]> => (await call('GET', `${RBAC_PATH}/${plural}`)).json.items;
  return {
    roles: await list<Role>('roles'),
    clusterRoles: await list<ClusterRole>('clusterroles'),
    roleBindings: await list<RoleBinding>('rolebindings'),
    clusterRoleBindings: await list<ClusterRoleBinding>('clusterrolebindings'),
  };
}

async function plantTokens(
  call: Call,
  create: (path: string, body: object) => Promise<void>,
): Promise<Planted['tokens']> {
  const [id = '', secret = ''] = BOOTSTRAP_TOKEN.split('.');
  await create('/api/v1/namespaces/kube-system/secrets', {
    metadata: { name: `bootstrap-token-${id}` },
    type: 'bootstrap.kubernetes.io/token',
    stringData: { 'token-id': id, 'token-secret': secret, 'usage-bootstrap-authentication': 'true' },
  });
  const tokens = [
    {
      token: BOOTSTRAP_TOKEN,
      name: `system:bootstrap:${id}`,
      groups: ['system:bootstrappers', 'system:authenticated'],
    },
  ];
  for (const namespace of ['default', HIDDEN]) {
    const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
    await create(accounts, { metadata: { name: 'robot' } });
    const { code, json } = await call('POST', `${accounts}/robot/token`, { spec: {} });
    if (code !== 201) throw new Error(`no token: ${code} ${json?.message}`);
    tokens.push({
      token: json.status.token,
      name: `system:serviceaccount:${namespace}:robot`,
      groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
    });
  }
  return tokens;
}
