/** Requests with the users who may send them, under roles and bindings of all forms: see askers.ts. */
import {
  clusterRole,
  clusterRoleBinding,
  role,
  roleBinding,
  rule,
} from '../../../../src/apiserver/auth/authorization/rbac-fixture.ts';

export const USERS = {
  admin: { name: 'kubernetes-admin', groups: ['system:masters'] },
  root: { name: 'root' },
  auditor: { name: 'auditor' },
  owner: { name: 'olga', groups: ['owners'] },
  editor: { name: 'edgar', groups: ['others', 'editors'] },
  viewer: { name: 'vera', groups: ['viewers'] },
  june: { name: 'june' },
  bot: { name: 'system:serviceaccount:a:bot' },
  robot: { name: 'system:serviceaccount:b:bot' },
  collector: { name: 'collector' },
  monitor: { name: 'monitor', groups: ['system:monitoring'] },
  broken: { name: 'broken' },
  outsider: { name: 'outsider' },
  anonymous: { name: 'system:anonymous' },
} as const satisfies Record<string, { name: string; groups?: readonly string[] }>;

const labeled = <T extends { metadata: object }>(labels: Record<string, string>, object: T): T => ({
  ...object,
  metadata: { ...object.metadata, labels },
});
const aggregatedTo = (name: string) => ({ [`rbac.authorization.k8s.io/aggregate-to-${name}`]: 'true' });
const odd = (verb: string, resource: string) => ({ apiGroups: ['odd.example'], resources: [resource], verbs: [verb] });
const batch = (verb: string, resource: string) => ({ apiGroups: ['batch'], resources: [resource], verbs: [verb] });
const named = (name: string) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
const clusterRoleSelectors = [{ matchLabels: { collected: 'yes' } }];

const objects = [
  named('a'),
  named('b'),
  clusterRole('everything', { apiGroups: ['*'], resources: ['*'], verbs: ['*'] }),
  clusterRole('scaler', { apiGroups: ['apps'], resources: ['*/scale'], verbs: ['update'] }),
  clusterRole('logs', { nonResourceURLs: ['/logs/*'], verbs: ['get'] }),
  labeled(aggregatedTo('view'), clusterRole('things', odd('list', 'things'))),
  labeled(aggregatedTo('admin'), clusterRole('requests', odd('create', 'requests'))),
  labeled({ collected: 'yes' }, clusterRole('collected', batch('list', 'cronjobs'))),
  { ...clusterRole('collection'), aggregationRule: { clusterRoleSelectors } },
  role('a', 'reader', rule('get list watch', 'pods pods/log')),
  role('a', 'tls', rule('get list watch update create deletecollection', 'secrets', 'tls')),
  role('b', 'pods', rule('*', 'pods')),
  role('b', 'settings', rule('get', 'configmaps')),
  clusterRoleBinding('root', 'everything', 'User root'),
  clusterRoleBinding('auditor', 'view', 'User auditor'),
  clusterRoleBinding('logs', 'logs', 'User collector'),
  clusterRoleBinding('broken', 'absent', 'User broken', 'User june'),
  roleBinding('a', 'owners', 'ClusterRole admin', 'Group owners'),
  roleBinding('a', 'editors', 'ClusterRole edit', 'Group editors'),
  roleBinding('a', 'viewers', 'ClusterRole view', 'Group viewers'),
  roleBinding('a', 'tls', 'Role tls', 'User june'),
  roleBinding('a', 'bot', 'Role reader', 'ServiceAccount a/bot'),
  roleBinding('a', 'robot', 'ClusterRole scaler', 'ServiceAccount b/bot'),
  roleBinding('a', 'collection', 'ClusterRole collection', 'User collector'),
  roleBinding('b', 'june', 'Role pods', 'User june'),
  roleBinding('b', 'accounts', 'Role settings', 'Group system:serviceaccounts:b'),
  roleBinding('b', 'broken', 'Role absent', 'User broken'),
];

/** The namespaces, roles and bindings. Controllers fill the aggregated roles. */
export const OBJECTS = { apiVersion: 'v1', kind: 'List', items: objects };

const EVERYONE = Object.keys(USERS).join(' ');
const AUTHENTICATED = EVERYONE.replace(' anonymous', '');
const VIEW = 'admin root auditor owner editor viewer';
const EDIT = 'admin root owner editor';
const OWN = 'admin root owner';
const ALL = 'admin root';
const RBAC = 'rbac.authorization.k8s.io';

/** A request, such as `get pods/log NAMESPACE/NAME` or `get /path`, and the users who may send it. */
export const DECISIONS: readonly (readonly [string, string])[] = [
  ['get /version', EVERYONE],
  ['get /healthz', EVERYONE],
  ['get /healthz/ping', 'admin monitor'],
  ['get /api', AUTHENTICATED],
  ['get /apis/apps/v1', AUTHENTICATED],
  ['get /openapi/v3', AUTHENTICATED],
  ['get /metrics', 'admin monitor'],
  ['get /logs/any', 'admin collector'],
  ['get /logs', 'admin'],
  ['get /', 'admin'],
  ['post /api', 'admin'],
  ['get /.well-known/openid-configuration', 'admin bot robot'],
  ['list pods a', `${VIEW} bot`],
  ['watch pods a', `${VIEW} bot`],
  ['get pods a/x', `${VIEW} bot`],
  ['get pods/log a/x', `${VIEW} bot`],
  ['get pods/status a/x', VIEW],
  ['list pods', 'admin root auditor'],
  ['watch pods', 'admin root auditor'],
  ['list pods c', 'admin root auditor'],
  ['list pods b', 'admin root auditor june'],
  ['delete pods b/x', 'admin root june'],
  ['deletecollection pods b', 'admin root june'],
  ['get pods/log b/x', 'admin root auditor'],
  ['create pods a', EDIT],
  ['delete pods a/x', EDIT],
  ['deletecollection pods a', EDIT],
  ['patch pods a/x', EDIT],
  ['update pods a/x', EDIT],
  ['update pods/status a/x', ALL],
  ['create pods/exec a/x', EDIT],
  ['get pods/exec a/x', EDIT],
  ['create pods/portforward a/x', EDIT],
  ['create pods/eviction a/x', EDIT],
  ['create pods/binding a/x', ALL],
  ['get secrets a/tls', `${EDIT} june`],
  ['get secrets a/other', EDIT],
  ['list secrets a', EDIT],
  ['list secrets a/tls', `${EDIT} june`],
  ['watch secrets a/tls', `${EDIT} june`],
  ['update secrets a/tls', `${EDIT} june`],
  ['patch secrets a/tls', EDIT],
  ['create secrets a', EDIT],
  ['deletecollection secrets a', EDIT],
  ['create serviceaccounts/token a/bot', EDIT],
  ['get configmaps a/x', VIEW],
  ['get configmaps b/x', 'admin root auditor robot'],
  ['get endpoints a/x', VIEW],
  ['create endpoints a', ALL],
  ['list events a', VIEW],
  ['get services/proxy a/x', EDIT],
  ['update replicationcontrollers/scale a/x', EDIT],
  ['list resourcequotas a', VIEW],
  ['create resourcequotas a', ALL],
  ['get namespaces a/a', VIEW],
  ['list namespaces', 'admin root auditor'],
  ['create namespaces', ALL],
  ['delete namespaces a/a', ALL],
  ['list nodes', ALL],
  ['patch nodes/status /node-1', ALL],
  ['get persistentvolumes /x', ALL],
  ['update deployments.apps a/x', EDIT],
  ['update deployments.apps/scale a/x', `${EDIT} robot`],
  ['update statefulsets.apps/scale a/x', `${EDIT} robot`],
  ['update deployments.apps/scale b/x', ALL],
  ['get deployments.apps/scale a/x', VIEW],
  ['update deployments.apps/status a/x', ALL],
  ['list jobs.batch a', VIEW],
  ['list cronjobs.batch a', `${VIEW} collector`],
  ['list cronjobs.batch b', 'admin root auditor'],
  ['list leases.coordination.k8s.io a', EDIT],
  [`list rolebindings.${RBAC} a`, OWN],
  [`create roles.${RBAC} a`, OWN],
  [`list clusterroles.${RBAC}`, ALL],
  ['list things.odd.example a', VIEW],
  ['list others.odd.example a', ALL],
  ['create requests.odd.example a', OWN],
  ['create selfsubjectaccessreviews.authorization.k8s.io', AUTHENTICATED],
  ['create selfsubjectreviews.authentication.k8s.io', AUTHENTICATED],
  ['create localsubjectaccessreviews.authorization.k8s.io a', OWN],
  ['create subjectaccessreviews.authorization.k8s.io', ALL],
  ['create tokenreviews.authentication.k8s.io', ALL],
];
