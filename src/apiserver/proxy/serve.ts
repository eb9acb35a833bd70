/** Source: ProxyREST of v1.33, and k8s.io/apimachinery/pkg/util/proxy (behavior). */
import type { SubresourceDefinition } from '../../api/kind.ts';
import { notFound } from '../../machinery/status.ts';
import type { ServerContext } from '../http/context.ts';
import { type Exchange, requestContext, startAnswer } from '../http/exchange.ts';
import type { ResourceRoute } from '../http/routes.ts';
import { forward } from './forward.ts';
import { locateNode, locatePod, locateService, type NodeLocation, type Read } from './locations.ts';
import { serveNodeDocument } from './node-documents.ts';

export type ProxyOperation = 'proxyToPod' | 'proxyToService' | 'proxyToNode';

export const isProxy = (operation: SubresourceDefinition['operation']): operation is ProxyOperation =>
  operation?.startsWith('proxy') === true;

function locate(operation: ProxyOperation, { request }: Exchange, name: string, read: Read): Promise<NodeLocation> {
  if (operation === 'proxyToNode') return locateNode(name, read, request.socket.localPort);
  return operation === 'proxyToPod' ? locatePod(name, read) : locateService(name, read);
}

/** Returns the path of the proxy, such as /api/v1/nodes/NAME/proxy. The first segment is the empty text before the first slash. */
const prefixOf = (path: string, { namespace }: ResourceRoute): string =>
  path
    .split('/')
    .slice(0, namespace === undefined ? 6 : 8)
    .join('/');

export async function serveProxy(
  server: ServerContext,
  exchange: Exchange,
  route: ResourceRoute,
  operation: ProxyOperation,
): Promise<void> {
  const { name, ref, subpath = [] } = route;
  if (name === undefined) throw notFound(ref, '');
  const read: Read = (resource, named) =>
    server.backend.get(requestContext(exchange, route, { verb: 'get', resource, subresource: undefined, name: named }));
  const location = await locate(operation, exchange, name, read);
  const { request, response, method, path } = exchange;
  const query = (request.url ?? '').slice(path.length);
  const prefix = prefixOf(path, route);
  const rest = path.slice(prefix.length);
  if (rest === '' && exchange.upgrade === undefined && (method === 'GET' || method === 'HEAD')) {
    // Without a slash at the end, relative links in the page would replace the last segment of the path.
    startAnswer(exchange, 301, { Location: `${path}/${query}` });
    response.end();
    return;
  }
  return server.streams.within(exchange.user, () =>
    'node' in location
      ? serveNodeDocument(server, exchange, location.node, `/${subpath.join('/')}`)
      : forward({ exchange, timers: server.timers, location, prefix, rest: `${rest}${query}` }),
  );
}
