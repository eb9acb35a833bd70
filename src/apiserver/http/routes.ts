import type { KindCatalog } from '../../api/catalog.ts';
import type { KindDefinition } from '../../api/kind.ts';
import type { ResourceRef } from '../../machinery/meta.ts';
import { badRequest, methodNotAllowed, pathNotFound } from '../../machinery/status.ts';
import type { Verb } from '../../ports/request.ts';

export interface ResourceRoute {
  kind: KindDefinition;
  ref: ResourceRef;
  verb: Verb;
  namespace?: string;
  name?: string;
  subresource?: string;
  /** The decoded segments of the path after a proxy subresource, such as ['stats', 'summary']. Undefined for other paths. */
  subpath?: readonly string[];
}

export interface ResourcePath {
  kind: KindDefinition;
  namespace?: string;
  name?: string;
  subresource?: string;
  subpath?: readonly string[];
  /** Whether this is a deprecated path for watches, such as /api/v1/watch/pods. */
  watch?: boolean;
}

export function pathSegments(path: string): string[] {
  const segments = path.split('/').slice(1);
  if (segments.at(-1) === '') segments.pop();
  if (!path.includes('%')) return segments;
  try {
    return segments.map(decodeURIComponent);
  } catch {
    throw badRequest(`the path ${JSON.stringify(path)} is not correctly percent-encoded`);
  }
}

/** Throws 404 NotFound if `segments` is not the path of a known resource. */
export function findPath(catalog: Pick<KindCatalog, 'find'>, segments: readonly string[]): ResourcePath {
  const core = segments[0] === 'api';
  if (!core && segments[0] !== 'apis') throw pathNotFound();
  const group = core ? '' : (segments[1] ?? '');
  const version = segments[core ? 1 : 2] ?? '';
  const afterVersion = core ? 2 : 3;
  const watch = segments[afterVersion] === 'watch';
  // Use indexes instead of copies of parts of the array, because this function runs for each request.
  const first = watch ? afterVersion + 1 : afterVersion;
  const find = (resource = ''): KindDefinition | undefined => catalog.find({ group, version, resource });
  // The path /namespaces/NAME/PLURAL addresses objects in the Namespace if PLURAL names a kind. Otherwise, /namespaces/NAME and
  // /namespaces/NAME/SUBRESOURCE address the Namespace itself.
  const inNamespace =
    segments[first] === 'namespaces' && segments.length >= first + 3 ? find(segments[first + 2]) : undefined;
  const kind = inNamespace ?? find(segments[first]);
  const last = inNamespace === undefined ? first : first + 2;
  const name = segments[last + 1];
  const subresource = segments[last + 2];
  const subpathAt = last + 3;
  if (kind === undefined || name === '' || subresource === '') throw pathNotFound();
  if (inNamespace !== undefined && (!kind.namespaced || segments[first + 1] === '')) throw pathNotFound();
  if (inNamespace === undefined && kind.namespaced && name !== undefined) throw pathNotFound();
  const known = subresource !== undefined && Object.hasOwn(kind.subresources, subresource);
  const definition = known ? kind.subresources[subresource] : undefined;
  if (subresource !== undefined && (definition === undefined || watch)) throw pathNotFound();
  if (segments.length > subpathAt && definition?.subpaths !== true) throw pathNotFound();
  const namespace = inNamespace === undefined ? undefined : segments[first + 1];
  return {
    kind,
    namespace,
    name,
    subresource,
    subpath: definition?.subpaths === true ? segments.slice(subpathAt) : undefined,
    watch,
  };
}

const ALL_VERBS: readonly Verb[] = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];
const CREATE_ONLY: readonly Verb[] = ['create'];
const COMPUTED: readonly Verb[] = ['get', 'list'];

/** Returns the verbs of paths without a subresource, in the order of the discovery documents. */
export function verbsOf(kind: KindDefinition): readonly Verb[] {
  if (kind.createOnly !== undefined) return CREATE_ONLY;
  if (kind.computed !== undefined) return COMPUTED;
  const { withoutVerbs } = kind;
  return withoutVerbs === undefined ? ALL_VERBS : ALL_VERBS.filter((verb) => !withoutVerbs.includes(verb));
}

const ITEM_VERBS: Readonly<Record<string, Verb>> = { GET: 'get', PUT: 'update', PATCH: 'patch', DELETE: 'delete' };
const COLLECTION_VERBS: Readonly<Record<string, Verb>> = { GET: 'list', POST: 'create', DELETE: 'deletecollection' };
const SUBRESOURCE_VERBS: Readonly<Record<string, Verb>> = {
  GET: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
};
/** Source: RequestInfo of v1.33. OPTIONS has no verb there, and is authorized without one. */
const PROXY_VERBS: Readonly<Record<string, Verb>> = {
  ...SUBRESOURCE_VERBS,
  DELETE: 'delete',
  HEAD: 'get',
  OPTIONS: 'get',
};

/** `watch`: the value of the query parameter. Throws 405 MethodNotAllowed if the path does not support the method. */
export function findRoute(path: ResourcePath, method: string, watch: boolean): ResourceRoute {
  const { kind, namespace, name, subresource, subpath } = path;
  const ref = { group: kind.group, version: kind.version, resource: kind.plural };
  const requested = verbOf(path, method);
  const verb = requested === 'list' && watch ? 'watch' : requested;
  const known =
    subresource === undefined ? verbsOf(kind) : ((kind.subresources[subresource]?.verbs ?? []) as readonly Verb[]);
  if (verb === undefined || !known.includes(verb)) throw methodNotAllowed();
  // Without a namespace in the path, a namespaced kind supports only list and watch.
  if (kind.namespaced && namespace === undefined && verb !== 'list' && verb !== 'watch') throw methodNotAllowed();
  return {
    kind,
    ref,
    verb,
    namespace,
    name,
    subresource,
    subpath,
  };
}

/**
 * Whether the request may take as long as its client or a container wants. Source: BasicLongRunningRequestCheck of v1.33 with the verbs and
 * subresources of kube-apiserver.
 */
export function isLongRunning({ kind, verb, subresource }: ResourceRoute): boolean {
  const definition = subresource === undefined ? undefined : kind.subresources[subresource];
  const { operation, connects } = definition ?? {};
  return verb === 'watch' || operation === 'log' || operation?.startsWith('proxy') === true || connects !== undefined;
}

function verbOf(path: ResourcePath, method: string): Verb | undefined {
  if (path.watch === true) return method === 'GET' ? 'watch' : undefined;
  if (path.subresource !== undefined) {
    const { operation } = path.kind.subresources[path.subresource] ?? {};
    return (operation?.startsWith('proxy') === true ? PROXY_VERBS : SUBRESOURCE_VERBS)[method];
  }
  return path.name === undefined ? COLLECTION_VERBS[method] : ITEM_VERBS[method];
}
