/** Generates hostile requests to the API, and bytes that may be invalid HTTP. */
import fc from 'fast-check';
import type { KindDefinition } from '../../src/api/kind.ts';
import { kinds } from '../../src/api/kinds.ts';
import { type Body, hostileBody, hostileObject, pathOf } from './hostile-objects.ts';
import { asYaml, damaged, hostileText, hostileValue } from './hostile-values.ts';

export interface HostileRequest {
  method: string;
  /** The path, including the query. */
  path: string;
  headers: Record<string, string>;
  /** One character per byte (latin1). */
  body: string;
}

/** These names differ from those of the objects that the test itself needs. */
const NAMES = ['one', 'two', 'three', 'four'];
const NAMESPACES = ['default', 'default', 'default', 'other', 'none'];

/** Lone surrogates are replaced, as in Go's clients, because encodeURIComponent() throws on them. */
const escaped = (text: string): string => encodeURIComponent(text.toWellFormed());

const oddName = hostileText.map((text) => escaped(text).slice(0, 3000));
const segment = (usual: readonly string[]): fc.Arbitrary<string> =>
  fc.oneof({ weight: 12, arbitrary: fc.constantFrom(...usual) }, { weight: 1, arbitrary: oddName });

const flag = fc.constantFrom('true', 'false', '1', '0', '', 'x');
const number = fc.constantFrom('0', '1', '-1', '1.5', '9007199254740993', '99999999999999999999', 'x', '');
const selector = fc.oneof(
  fc.constantFrom(
    'a=b',
    'a in (b,c)',
    '!a',
    'a notin (',
    'a>1',
    'metadata.name=one',
    'spec.nodeName!=,',
    '=,=',
    'a\\=b=c',
  ),
  fc
    .array(fc.constantFrom('a', '=', '!', ',', '(', ')', ' in ', ' notin ', '>', '\\', ''), { maxLength: 40 })
    .map((parts) => parts.join('')),
);
/** These are nearly as long as a request head allows. */
const longSelector = fc.constantFrom(
  '!a,'.repeat(1200).slice(0, -1),
  `a notin (${Array.from({ length: 800 }, (_, index) => `b${index}`)})`,
  `${Array.from({ length: 1100 }, (_, index) => `!a${index}`)}`,
);
const continueToken = fc.oneof(
  hostileValue.map((value) => Buffer.from(JSON.stringify(value) ?? '').toString('base64url')),
  fc
    .record({
      v: fc.constantFrom('meta.k8s.io/v1', 'x'),
      rv: fc.constantFrom(0, -1, 1, 2 ** 53, '1'),
      start: hostileText,
    })
    .map((token) => Buffer.from(JSON.stringify(token)).toString('base64url')),
);

const PARAMETERS: Readonly<Record<string, fc.Arbitrary<string>>> = {
  labelSelector: fc.oneof({ weight: 5, arbitrary: selector }, { weight: 1, arbitrary: longSelector }),
  fieldSelector: selector,
  continue: continueToken,
  limit: number,
  resourceVersion: number,
  resourceVersionMatch: fc.constantFrom('Exact', 'NotOlderThan', 'x'),
  watch: flag,
  sendInitialEvents: flag,
  allowWatchBookmarks: flag,
  timeoutSeconds: number,
  dryRun: fc.constantFrom('All', 'x', ''),
  fieldManager: hostileText,
  fieldValidation: fc.constantFrom('Strict', 'Warn', 'Ignore', 'x'),
  force: flag,
  pretty: flag,
  includeObject: fc.constantFrom('None', 'Metadata', 'Object', 'x'),
  gracePeriodSeconds: number,
  propagationPolicy: fc.constantFrom('Foreground', 'Background', 'Orphan', 'x'),
  follow: flag,
  previous: flag,
  container: fc.constantFrom('app', 'before', 'after', ''),
  tailLines: number,
  limitBytes: number,
  sinceSeconds: number,
  sinceTime: hostileText,
  command: hostileText,
};

const query: fc.Arbitrary<string> = fc
  .oneof(
    { weight: 2, arbitrary: fc.constant([]) },
    { weight: 3, arbitrary: fc.subarray(Object.keys(PARAMETERS), { maxLength: 5 }) },
  )
  .chain((names) =>
    fc.tuple(
      ...names.map((name) => (PARAMETERS[name] as fc.Arbitrary<string>).map((value) => `${name}=${escaped(value)}`)),
    ),
  )
  .map((parameters) => (parameters.length === 0 ? '' : `?${parameters.join('&')}`));

interface Target {
  path: string;
  method: string;
}

const METHODS = ['GET', 'GET', 'POST', 'POST', 'PUT', 'PATCH', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'];

/** For most pairs of path and method, the path allows the method. */
function targetOf(kind: KindDefinition): fc.Arbitrary<Target> {
  const root = pathOf(kind);
  const namespace = kind.namespaced ? segment(NAMESPACES).map((name) => `/namespaces/${name}`) : fc.constant('');
  const collection = namespace.map((within) => `${root}${within}/${kind.plural}`);
  const item = fc.tuple(collection, segment(NAMES)).map(([path, name]) => `${path}/${name}`);
  const subresources = Object.keys(kind.subresources);
  const sub = fc
    .tuple(item, segment(['status', 'constructor', ...subresources]))
    .map(([path, name]) => `${path}/${name}`);
  const to = (path: fc.Arbitrary<string>, methods: readonly string[]): fc.Arbitrary<Target> =>
    fc.record({
      path,
      method: fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...methods) }, fc.constantFrom(...METHODS)),
    });
  return fc.oneof(
    { weight: 4, arbitrary: to(collection, ['POST', 'POST', 'GET']) },
    { weight: 4, arbitrary: to(item, ['PATCH', 'PUT', 'GET', 'DELETE']) },
    { weight: subresources.length === 0 ? 0 : 3, arbitrary: to(sub, ['PATCH', 'PUT', 'POST', 'GET']) },
  );
}

const POINTERS = [
  '',
  '/',
  '/-',
  '/metadata',
  '/metadata/labels',
  '/metadata/labels/a',
  '/metadata/name',
  '/metadata/managedFields/0',
  '/spec',
  '/spec/containers/0',
  '/spec/containers/-',
  '/spec/containers/4294967296',
  '/spec/containers/-1',
  '/spec/containers/01',
  '/data',
  '/data/a',
  '/data/a~1b',
  '/data/~2',
  '/__proto__/polluted',
  '/constructor/prototype/polluted',
  'data',
  '/status',
];
const operation = fc.record(
  {
    op: fc.constantFrom('add', 'remove', 'replace', 'move', 'copy', 'test', 'x'),
    path: fc.oneof({ weight: 5, arbitrary: fc.constantFrom<unknown>(...POINTERS) }, hostileValue),
    from: fc.constantFrom(...POINTERS),
    value: hostileValue,
  },
  { requiredKeys: ['op', 'path'] },
);

const DIRECTIVES = [
  { $patch: 'delete' },
  { $patch: 'replace' },
  { $patch: 'x' },
  { $retainKeys: ['name', 1] },
  { '$setElementOrder/containers': [{ name: 'app' }, { name: 'none' }, null] },
  { '$deleteFromPrimitiveList/finalizers': ['a', {}] },
];

function patchOf(kind: KindDefinition): fc.Arbitrary<Body> {
  const object = hostileObject(kind, 'one');
  const json = (type: string, value: fc.Arbitrary<unknown>): fc.Arbitrary<Body> =>
    damaged(value.map((each) => Buffer.from(JSON.stringify(each) ?? ''))).map((bytes) => ({ type, bytes }));
  const strategic = fc.tuple(object, fc.constantFrom(...DIRECTIVES), fc.boolean()).map(([whole, directive, within]) => {
    const { spec } = whole as { spec?: object };
    return within ? { ...whole, spec: { ...spec, ...directive } } : { ...whole, ...directive };
  });
  const apply = damaged(object.map((each) => Buffer.from(asYaml(each))));
  return fc.oneof(
    json('application/json-patch+json', fc.array(operation, { maxLength: 6 })),
    json('application/merge-patch+json', fc.oneof(object, hostileValue)),
    json('application/strategic-merge-patch+json', fc.oneof(object, strategic, hostileValue)),
    json('application/apply-patch+yaml', object),
    apply.map((bytes) => ({ type: 'application/apply-patch+yaml', bytes })),
  );
}

const deleteOptions: fc.Arbitrary<Body> = fc
  .record(
    { kind: fc.constantFrom('DeleteOptions', 'Pod'), preconditions: hostileValue, gracePeriodSeconds: hostileValue },
    { requiredKeys: [] },
  )
  .map((options) => ({ type: 'application/json', bytes: Buffer.from(JSON.stringify(options)) }));

const noBody = fc.constant<Body>({ type: 'application/json', bytes: Buffer.alloc(0) });

function bodyFor(kind: KindDefinition, { method, path }: Target): fc.Arbitrary<Body> {
  if (method === 'PATCH') return patchOf(kind);
  if (method === 'DELETE') return fc.oneof(noBody, deleteOptions);
  if (method !== 'POST' && method !== 'PUT') return noBody;
  const subresource = kind.subresources[path.split('/').at(-1) ?? ''];
  const named = kinds.find((each) => each.kind === subresource?.bodyKind?.kind) ?? kind;
  return fc.constantFrom(...NAMES).chain((name) => hostileBody(named, name));
}

const USUAL_ACCEPTS = ['application/json', '*/*', 'application/json;as=Table;v=v1;g=meta.k8s.io', ''];
const ODD_ACCEPTS = ['application/yaml', 'text/html;q=0', 'application/vnd.kubernetes.protobuf', ',,;q=x', 'a/b;c=d;;'];
const acceptHeader = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom(...USUAL_ACCEPTS) },
  { weight: 1, arbitrary: fc.constantFrom(...ODD_ACCEPTS) },
);
const OTHER_HEADERS: readonly Record<string, string>[] = [
  {},
  { 'accept-encoding': 'gzip' },
  { 'content-encoding': 'gzip' },
  { 'audit-id': '\u00ff<script>' },
  { 'x-remote-user': 'system:masters', 'impersonate-user': 'a' },
  { 'impersonate-group': 'system:masters' },
  {
    'impersonate-user': 'system:serviceaccount:default:\u00ff',
    'impersonate-uid': 'a',
    'impersonate-extra-%zz': '\u00ff',
  },
  { authorization: 'Bearer a.b.c' },
  { authorization: 'Bearer eyJhbGciOiJub25lIn0.eyJpc3MiOiJrdWJlcm5ldGVzL3NlcnZpY2VhY2NvdW50In0.' },
  { authorization: 'bearer abcdef.0123456789abcdef' },
  { authorization: `Bearer ${'x'.repeat(8000)}` },
  { 'sec-websocket-protocol': 'base64url.bearer.authorization.k8s.io._w, base64url.bearer.authorization.k8s.io.' },
  { expect: '100-continue' },
  { upgrade: 'SPDY/3.1', connection: 'Upgrade' },
];

/** The requests may delete namespaces, but never the one that contains the test's own objects. */
const toKind: fc.Arbitrary<HostileRequest> = fc.constantFrom(...kinds).chain((kind) =>
  targetOf(kind).chain((target) =>
    fc
      .tuple(query, bodyFor(kind, target), acceptHeader, fc.constantFrom(...OTHER_HEADERS), oddName)
      .map(([parameters, { type, bytes }, accept, others, odd]) => ({
        method: target.method,
        path: `${target.path}${parameters}`,
        headers: { accept, 'content-type': odd.length % 11 === 1 ? odd : type, ...others },
        body: bytes.toString('latin1'),
      })),
  ),
);

const ROOTS =
  'api apis openapi healthz livez readyz version metrics .well-known openid openid-configuration jwks v1 v2 v3 namespaces'.split(
    ' ',
  );
const toAnywhere: fc.Arbitrary<HostileRequest> = fc
  .record({ method: fc.constantFrom(...METHODS), path: fc.array(segment(ROOTS), { maxLength: 6 }), query })
  .map(({ method, path, query: parameters }) => ({
    method,
    path: `/${path.join('/')}${parameters}`,
    headers: {},
    body: '',
  }));

export const hostileRequest: fc.Arbitrary<HostileRequest> = fc.oneof(
  { weight: 12, arbitrary: toKind },
  { weight: 1, arbitrary: toAnywhere },
);

const GET = 'GET /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: a\r\n';
const POST = GET.replace('GET', 'POST');
/** The bytes that a client sends on a connection before it closes the connection, as one character per byte (latin1). */
export const hostileBytes: fc.Arbitrary<string> = damaged(
  fc
    .constantFrom(
      `${GET}\r\n`.repeat(20),
      `${GET}${'X: y\r\n'.repeat(3000)}\r\n`,
      `${GET}X: ${'y'.repeat(100_000)}\r\n\r\n`,
      `${POST}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`,
      `${POST}Content-Length: -1\r\n\r\n{}`,
      `${POST}Content-Length: 99999999999999999999\r\n\r\n{}`,
      `${POST}Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n${GET}\r\n`,
      `${POST}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}\r\n0\r\n\r\n`,
      `${POST}Transfer-Encoding: chunked\r\n\r\n2;${'x'.repeat(20_000)}\r\n{}\r\n0\r\nA: b\r\n\r\n`,
      `${POST}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}`,
      `${GET}Upgrade: h2c, websocket\r\nConnection: Upgrade\r\n\r\n`,
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      'GET http://a/api HTTP/1.0\r\n\r\n',
      'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n',
      `GET /${'a'.repeat(70_000)} HTTP/1.1\r\n\r\n`,
    )
    .map((text) => Buffer.from(text)),
).map((bytes) => bytes.toString('latin1'));
