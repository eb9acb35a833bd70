/**
 * The attributes of a request by its method and path alone, whether or not the server serves the path. A user who may not read a
 * resource gets the same response whether or not it exists.
 * Source: RequestInfo of k8s.io/apiserver/pkg/endpoints/request of v1.33 (behavior).
 */
import { parseFieldSelector } from '../../machinery/field-selector.ts';
import { pathSegmentErrors } from '../../machinery/names.ts';
import type { PathAttributes, ResourceAttributes } from '../../ports/authorizer.ts';
import { flag } from '../http/query.ts';

const VERBS: Readonly<Record<string, string>> = {
  POST: 'create',
  GET: 'get',
  HEAD: 'get',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

/** The verbs that a path can contain before its resource: that of the deprecated watches, and that of proxies, which are no longer served. */
const VERBS_IN_PATHS = ['watch', 'proxy'];

/** The subresources of Namespaces, by which /namespaces/NAME/SUBRESOURCE differs from /namespaces/NAME/PLURAL. */
const NAMESPACE_SUBRESOURCES = ['status', 'finalize'];

interface Request {
  method: string;
  query: URLSearchParams;
}

type WithoutUser<T> = Omit<T, 'user'>;

/** `segments`: those of the path, decoded. */
export function requestAttributes(
  { method, query }: Request,
  segments: readonly string[],
): WithoutUser<ResourceAttributes> | WithoutUser<PathAttributes> {
  const [root = '', ...rest] = segments;
  const group = root === 'apis' ? rest.shift() : '';
  const parts = rest.slice(1);
  if ((root !== 'api' && root !== 'apis') || group === undefined || parts.length === 0)
    return { verb: method.toLowerCase(), path: `/${segments.join('/')}` };
  const verbInPath = parts.length > 1 && VERBS_IN_PATHS.includes(parts[0] ?? '') ? parts.shift() : undefined;
  const namespace = parts[0] === 'namespaces' ? parts[1] : undefined;
  if (parts[0] === 'namespaces' && parts.length > 2 && !NAMESPACE_SUBRESOURCES.includes(parts[2] ?? ''))
    parts.splice(0, 2);
  const [resource = '', given, subresource] = parts;
  const verb = verbInPath ?? verbOf(method, given, query);
  const isListed = verb === 'list' || verb === 'watch';
  return {
    verb,
    group,
    resource,
    subresource: verbInPath === 'proxy' ? undefined : subresource,
    namespace,
    name: given || (isListed ? selectedName(query) : undefined),
  };
}

function verbOf(method: string, name: string | undefined, query: URLSearchParams): string {
  const verb = VERBS[method] ?? '';
  if (name !== undefined && name !== '') return verb;
  if (verb === 'get') return flag(query, 'watch') ? 'watch' : 'list';
  return verb === 'delete' ? 'deletecollection' : verb;
}

/**
 * Returns the only name that the field selector of a list or watch selects, so that a rule with resourceNames can allow the request;
 * undefined if there is none or the selector is invalid.
 */
export function selectedName(query: URLSearchParams): string | undefined {
  const selector = query.get('fieldSelector');
  if (selector === null || !selector.includes('metadata.name')) return undefined;
  try {
    const only = parseFieldSelector(selector).find(({ field, op }) => field === 'metadata.name' && op === '=')?.value;
    return only && pathSegmentErrors(only).length === 0 ? only : undefined;
  } catch {
    return undefined;
  }
}
