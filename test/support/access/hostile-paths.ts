/** Generates methods with valid paths, and with paths that try to reach another path than the authorized one. */
import fc from 'fast-check';
import { ABSENT, ABSENT_NAMESPACE, HIDDEN, PLANTED } from './planted.ts';

export interface HostilePath {
  method: string;
  /** With the query. */
  target: string;
}

const RESOURCES = [
  'api/v1 configmaps',
  'api/v1 secrets',
  'api/v1 secrets',
  'api/v1 pods',
  'api/v1 services',
  'api/v1 serviceaccounts',
  'api/v1 events',
  'api/v1 odd',
  'apis/apps/v1 deployments',
  'apis/rbac.authorization.k8s.io/v1 roles',
  'apis/metrics.k8s.io/v1beta1 pods',
  'apis/lifepod.io/v1 podrecords',
  'apis/odd.example/v1 things',
  'apis/apps/v2 deployments',
];
const CLUSTER_RESOURCES = ['api/v1 nodes', 'api/v1 namespaces', 'apis/rbac.authorization.k8s.io/v1 clusterroles'];
const NAMESPACES = ['default', HIDDEN, HIDDEN, ABSENT_NAMESPACE, 'kube-system'];
const NAMES = [PLANTED, PLANTED, ABSENT, 'robot', 'fuzz-writer'];
const SUBRESOURCES = [
  'status',
  'log',
  'exec',
  'attach',
  'portforward',
  'proxy',
  'proxy/x/../y',
  'token',
  'scale',
  'eviction',
  'binding',
  'finalize',
  'constructor',
];
const QUERIES = [
  'watch=1',
  'watch=TRUE',
  'watch=false',
  `fieldSelector=metadata.name%3D${ABSENT}`,
  `fieldSelector=metadata.name%3D${PLANTED}`,
  'limit=1&continue=x',
  'resourceVersion=0',
  'follow=1',
  'command=a&stdout=1',
  'fieldManager=x&force=1',
  'pretty=1',
];
const OTHER_PATHS = [
  '/',
  '/metrics',
  '/metrics/x',
  '/version',
  '/healthz',
  '/livez/ping',
  '/readyz?verbose',
  '/api',
  '/api/v1',
  '/apis',
  '/apis/apps',
  '/apis/apps/v1',
  '/openapi/v2',
  '/openapi/v3',
  '/openapi/v3/apis/apps/v1',
  '/.well-known/openid-configuration',
  '/openid/v1/jwks',
  '/debug/pprof/',
  '/logs/',
  '/api/v1/proxy/nodes/fuzz-node/logs',
  '/api/v1/watch',
  '/api/v1/watch/namespaces',
];

const maybe = <T>(weight: number, arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: 10 - weight, arbitrary: fc.constant(undefined) }, { weight, arbitrary });

const namespacedPath = fc
  .record({
    resource: fc.constantFrom(...RESOURCES),
    watch: maybe(1, fc.constant('watch')),
    namespace: maybe(8, fc.constantFrom(...NAMESPACES)),
    name: maybe(6, fc.constantFrom(...NAMES)),
    subresource: maybe(3, fc.constantFrom(...SUBRESOURCES)),
  })
  .map(({ resource, watch, namespace, name, subresource }) => {
    const [root = '', plural = ''] = resource.split(' ');
    const within = namespace === undefined ? [] : ['namespaces', namespace];
    const below = name === undefined ? [] : [name, ...(subresource === undefined ? [] : [subresource])];
    return `/${[root, ...(watch === undefined ? [] : [watch]), ...within, plural, ...below].join('/')}`;
  });

const clusterPath = fc
  .record({
    resource: fc.constantFrom(...CLUSTER_RESOURCES),
    name: maybe(
      8,
      fc.constantFrom(PLANTED, HIDDEN, ABSENT_NAMESPACE, 'fuzz-node', 'fuzz-node:10250', '127.0.0.1:6443', '..'),
    ),
    subresource: maybe(5, fc.constantFrom('status', 'finalize', 'proxy', 'proxy/', 'proxy/pods', 'proxy/../..', 'odd')),
  })
  .map(({ resource, name, subresource }) => {
    const [root = '', plural = ''] = resource.split(' ');
    const below = name === undefined ? [] : [name, ...(subresource === undefined ? [] : [subresource])];
    return `/${[root, plural, ...below].join('/')}`;
  });

type Change = (path: string, place: number) => string;

/** `place` is a fraction of the path's length. A slash is not changed. */
const atCharacter =
  (change: (char: string) => string): Change =>
  (path, place) => {
    const index = Math.floor(path.length * place);
    const char = path[index] ?? '';
    return char === '' || char === '/' ? path : `${path.slice(0, index)}${change(char)}${path.slice(index + 1)}`;
  };

/** Does not replace the first slash. */
const atSlash =
  (by: string): Change =>
  (path, place) => {
    const slashes = [...path.matchAll(/\//g)].map(({ index }) => index).slice(1);
    const index = slashes[Math.floor(slashes.length * place)];
    return index === undefined ? path : `${path.slice(0, index)}${by}${path.slice(index + 1)}`;
  };

const atSegment =
  (change: (segment: string) => string): Change =>
  (path, place) => {
    const segments = path.split('/');
    const index = 1 + Math.floor((segments.length - 1) * place);
    return segments.map((segment, at) => (at === index ? change(segment) : segment)).join('/');
  };

const percent = (char: string): string => `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`;

const CHANGES: readonly Change[] = [
  atCharacter(percent),
  atCharacter((char) => percent(char).toUpperCase()),
  atCharacter((char) => `%25${percent(char).slice(1)}`),
  ...['//', '%2f', '%2F', '/./', '/../', '/%2e%2e/', '/%2e/', '%5c', '\\', ';/', '/;a=b/'].map(atSlash),
  atSegment((segment) => segment.toUpperCase()),
  atSegment((segment) => `${segment};a=b`),
  atSegment((segment) => `${segment}%00`),
  atSegment((segment) => `${segment}.`),
  atSegment(() => ''),
  atSegment(() => '%2e%2e'),
  atSegment(() => 'x'.repeat(3000)),
  (path) => `${path}/`,
  (path) => `${path}//`,
  (path) => `${path}%ff`,
  (path) => `${path}%`,
  (path) => `${path}%20`,
  (path) => `/${path}`,
  (path) => `/x/..${path}`,
  (path) => `/healthz/..${path}`,
  (path) => `/healthz%2f..${path}`,
  (path) => path.replace('namespaces', 'Namespaces'),
  (path) => path.replace(/namespaces\/[^/]*/, `namespaces/default/../${HIDDEN}`),
  (path) => path.replace('/api/', '/apis/'),
  (path) => path.replace('/api/', '/apis//'),
];

const METHODS = ['GET', 'GET', 'GET', 'GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'TRACE', 'PROPFIND'];

export const hostilePath: fc.Arbitrary<HostilePath> = fc
  .record({
    method: fc.constantFrom(...METHODS),
    path: fc.oneof(
      { weight: 8, arbitrary: namespacedPath },
      { weight: 2, arbitrary: clusterPath },
      { weight: 2, arbitrary: fc.constantFrom(...OTHER_PATHS) },
    ),
    changes: fc.array(fc.tuple(fc.constantFrom(...CHANGES), fc.double({ min: 0, max: 0.999, noNaN: true })), {
      maxLength: 3,
    }),
    isChanged: fc.boolean(),
    query: maybe(3, fc.constantFrom(...QUERIES)),
  })
  .map(({ method, path, changes, isChanged, query }) => {
    const [plain = '', given] = path.split('?');
    const changed = isChanged ? changes.reduce((text, [change, place]) => change(text, place), plain) : plain;
    const parameters = given ?? query;
    return { method, target: parameters === undefined ? changed : `${changed}?${parameters}` };
  });
