/** The paths of the resources, made from the kinds: which kind, namespace, name, subresource and verb a request means. */
import type { KindDefinition } from '../../api/kind.ts';
import type { ResourceRef } from '../../machinery/meta.ts';
import { badRequest, methodNotAllowed, pathNotFound } from '../../machinery/status.ts';

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection';

export interface ResourceRoute {
  kind: KindDefinition;
  ref: ResourceRef;
  verb: Verb;
  namespace?: string;
  name?: string;
  subresource?: string;
}

/** A path below a group version, as /api/v1/pods: everything but the verb. */
export interface ResourcePath {
  kind: KindDefinition;
  namespace?: string;
  name?: string;
  subresource?: string;
}

const key = (group: string, version: string, plural: string): string => `${group}/${version}/${plural}`;

export type RouteIndex = ReadonlyMap<string, KindDefinition>;

export const routeIndex = (kinds: readonly KindDefinition[]): RouteIndex =>
  new Map(kinds.map((kind) => [key(kind.group, kind.version, kind.plural), kind]));

export function pathSegments(path: string): string[] {
  const segments = path.split('/').slice(1);
  if (segments.at(-1) === '') segments.pop();
  try {
    return segments.map(decodeURIComponent);
  } catch {
    throw badRequest(`the path ${JSON.stringify(path)} is not correctly percent-encoded`);
  }
}

/** Throws 404 NotFound where the path is none of a resource. */
export function findPath(index: RouteIndex, segments: readonly string[]): ResourcePath {
  const core = segments[0] === 'api';
  if (!core && segments[0] !== 'apis') throw pathNotFound();
  const [group, version, ...rest] = core ? ['', ...segments.slice(1)] : segments.slice(1);
  const find = (plural: string | undefined): KindDefinition | undefined =>
    index.get(key(group ?? '', version ?? '', plural ?? ''));
  // /namespaces/NAME and /namespaces/NAME/SUBRESOURCE mean the Namespace itself, a longer or other path its content.
  const inNamespace = rest[0] === 'namespaces' && rest.length >= 3 ? find(rest[2]) : undefined;
  const kind = inNamespace ?? find(rest[0]);
  const tail = inNamespace === undefined ? rest.slice(1) : rest.slice(3);
  const [name, subresource] = tail;
  if (kind === undefined || tail.length > 2 || tail.includes('')) throw pathNotFound();
  if (inNamespace !== undefined && (!kind.namespaced || rest[1] === '')) throw pathNotFound();
  if (inNamespace === undefined && kind.namespaced && name !== undefined) throw pathNotFound();
  if (subresource !== undefined && kind.subresources[subresource] === undefined) throw pathNotFound();
  const namespace = inNamespace === undefined ? undefined : rest[1];
  return {
    kind,
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    ...(subresource === undefined ? {} : { subresource }),
  };
}

/** The verbs of the kind's own paths, in the order that discovery shows them. */
export function verbsOf(kind: KindDefinition): Verb[] {
  if (kind.createOnly === true) return ['create'];
  // Deleting all Namespaces at once is no verb upstream either.
  const all: Verb[] = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];
  return kind.group === '' && kind.plural === 'namespaces' ? all.filter((verb) => verb !== 'deletecollection') : all;
}

const ITEM_VERBS: Readonly<Record<string, Verb>> = { GET: 'get', PUT: 'update', PATCH: 'patch', DELETE: 'delete' };
const COLLECTION_VERBS: Readonly<Record<string, Verb>> = { GET: 'list', POST: 'create', DELETE: 'deletecollection' };
const SUBRESOURCE_VERBS: Readonly<Record<string, Verb>> = {
  GET: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
};

/** Throws 405 MethodNotAllowed where the path does not know the method. */
export function findRoute(path: ResourcePath, method: string, watch: boolean): ResourceRoute {
  const { kind, namespace, name, subresource } = path;
  const ref = { group: kind.group, version: kind.version, resource: kind.plural };
  const verb = verbOf(path, method);
  const known =
    subresource === undefined ? verbsOf(kind) : ((kind.subresources[subresource]?.verbs ?? []) as readonly Verb[]);
  if (verb === undefined || !known.includes(verb)) throw methodNotAllowed();
  // Across all namespaces one can only look.
  if (kind.namespaced && namespace === undefined && verb !== 'list') throw methodNotAllowed();
  return {
    kind,
    ref,
    verb: verb === 'list' && watch ? 'watch' : verb,
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    ...(subresource === undefined ? {} : { subresource }),
  };
}

function verbOf(path: ResourcePath, method: string): Verb | undefined {
  if (path.subresource !== undefined) return SUBRESOURCE_VERBS[method];
  return path.name === undefined ? COLLECTION_VERBS[method] : ITEM_VERBS[method];
}
