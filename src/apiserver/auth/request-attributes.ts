/**
 * Determines the attributes of a request whether or not the server serves the path. So a user who may not read a resource gets the same
 * response whether or not the resource exists.
 * Source: RequestInfo of k8s.io/apiserver/pkg/endpoints/request of v1.33 (behavior).
 */
import { type FieldRequirement, parseFieldSelector } from '../../machinery/field-selector.ts';
import type { ResourceRef } from '../../machinery/meta.ts';
import { pathSegmentErrors } from '../../machinery/names.ts';
import type { PathAttributes, ResourceAttributes } from '../../ports/authorizer.ts';
import type { UserInfo } from '../../ports/request.ts';
import { flag } from '../http/query.ts';

const VERBS: Readonly<Record<string, string>> = {
  POST: 'create',
  GET: 'get',
  HEAD: 'get',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

/** A path can contain these verbs before its resource. */
const VERBS_IN_PATHS = ['watch', 'proxy'];

/** /namespaces/NAME/status is a subresource, but /namespaces/NAME/pods is a list. */
const NAMESPACE_SUBRESOURCES = ['status', 'finalize'];

interface Request {
  method: string;
  query: URLSearchParams;
}

type WithoutUser<T> = Omit<T, 'user'>;

/** `segments`: the decoded segments of the path. */
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
  const fieldSelector = given ? undefined : selectedFields(query.get('fieldSelector'));
  return {
    verb,
    group,
    resource,
    subresource: verbInPath === 'proxy' ? undefined : subresource,
    namespace,
    name: given || (isListed ? selectedName(fieldSelector) : undefined),
    fieldSelector,
  };
}

function verbOf(method: string, name: string | undefined, query: URLSearchParams): string {
  const verb = VERBS[method] ?? '';
  if (name !== undefined && name !== '') return verb;
  if (verb === 'get') return flag(query, 'watch') ? 'watch' : 'list';
  return verb === 'delete' ? 'deletecollection' : verb;
}

interface ResourceRequest {
  user: UserInfo;
  verb: string;
  ref: Pick<ResourceRef, 'group' | 'resource'>;
  subresource?: string | undefined;
  namespace?: string | undefined;
  name?: string | undefined;
}

export function attributesOf(request: ResourceRequest, selector: string | null | undefined): ResourceAttributes {
  const { user, verb, ref, subresource, namespace, name } = request;
  const { group, resource } = ref;
  const fieldSelector = name === undefined ? selectedFields(selector) : undefined;
  const isNamespace = group === '' && resource === 'namespaces';
  const isListed = verb === 'list' || verb === 'watch';
  return {
    user,
    verb,
    group,
    resource,
    subresource,
    // As upstream, a Role in a namespace can also grant rights to the Namespace itself.
    namespace: isNamespace ? name : namespace,
    name: name ?? (isListed ? selectedName(fieldSelector) : undefined),
    fieldSelector,
  };
}

/** Returns undefined if there is no selector, or if the server will refuse the selector as invalid. */
function selectedFields(selector: string | null | undefined): FieldRequirement[] | undefined {
  if (!selector) return undefined;
  try {
    return parseFieldSelector(selector);
  } catch {
    return undefined;
  }
}

/**
 * Returns the one name that the selector of a list or watch selects, so that a rule for single objects can allow the request. Returns
 * undefined if the selector does not require a valid name.
 */
function selectedName(requirements: readonly FieldRequirement[] = []): string | undefined {
  const only = requirements.find(({ field, op }) => field === 'metadata.name' && op === '=')?.value;
  return only && pathSegmentErrors(only).length === 0 ? only : undefined;
}
