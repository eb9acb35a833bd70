/** Reads kinds whose objects are not stored: constants, and objects computed from stored objects and the resource usage of the node. */
import type { KindDefinition } from '../../api/kind.ts';
import type { KubeList, KubeObject } from '../../machinery/meta.ts';
import { isApiError, notFound } from '../../machinery/status.ts';
import type { ListOptions } from '../../ports/backend.ts';
import { parseSelection } from '../registry/reads/selection.ts';
import { apiVersionOf } from '../registry/resources.ts';
import type { ServerContext } from './context.ts';
import { type Exchange, requestContext } from './exchange.ts';
import type { ResourceRoute } from './routes.ts';

type Computed = NonNullable<KindDefinition['computed']>;

/** Rejects with 404 NotFound if the object does not exist, or the node reports no usage for the object from which it is computed. */
export async function getComputed(
  server: ServerContext,
  exchange: Exchange,
  route: ResourceRoute,
  computed: Computed,
): Promise<KubeObject> {
  const { ref, name = '' } = route;
  if ('objects' in computed) {
    const found = computed.objects.find(({ metadata }) => metadata.name === name);
    if (found === undefined) throw notFound(ref, name);
    return found;
  }
  const { from, make } = computed;
  const request = requestContext(exchange, route, { resource: from });
  const source = await server.backend.get(request).catch((error: unknown) => {
    throw isApiError(error, 'NotFound') ? notFound(ref, name) : error;
  });
  const object = make(source, await server.nodes.usage());
  if (object === undefined) throw notFound(ref, name);
  return object;
}

/**
 * Lists the objects that the selectors match. Omits objects for which the node reports no usage. Uses only the namespace and the selectors
 * of the options.
 */
export async function listComputed(
  server: ServerContext,
  exchange: Exchange,
  route: ResourceRoute,
  computed: Computed,
  { namespace, labelSelector = '', fieldSelector = '' }: ListOptions,
): Promise<KubeList> {
  const { kind } = route;
  const { matches } = parseSelection(kind, { labelSelector, fieldSelector });
  const all =
    'objects' in computed ? computed.objects : await madeObjects(server, exchange, route, computed, namespace);
  const items = all.filter((object) => matches?.(object) ?? true);
  return { apiVersion: apiVersionOf(kind.group, kind.version), kind: `${kind.kind}List`, metadata: {}, items };
}

async function madeObjects(
  server: ServerContext,
  exchange: Exchange,
  route: ResourceRoute,
  { from, make }: Exclude<Computed, { objects: unknown }>,
  namespace: string | undefined,
): Promise<KubeObject[]> {
  const request = requestContext(exchange, route, { resource: from });
  const [sources, usage] = await Promise.all([server.backend.list(request, { namespace }), server.nodes.usage()]);
  return sources.items.map((source) => make(source, usage)).filter((object) => object !== undefined);
}
