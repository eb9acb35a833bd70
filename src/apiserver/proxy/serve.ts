/** Serves the proxy subresources of Pods and Services. Source: ProxyREST of v1.33, and k8s.io/apimachinery/pkg/util/proxy (behavior). */
import { notFound } from '../../machinery/status.ts';
import type { ServerContext } from '../http/context.ts';
import { type Exchange, requestContext, startAnswer } from '../http/exchange.ts';
import type { ResourceRoute } from '../http/routes.ts';
import { forward } from './forward.ts';
import { locatePod, locateService, type Read } from './locations.ts';

const LOCATE = { proxyToPod: locatePod, proxyToService: locateService };

/**
 * The number of segments in front of the rest of the path, with the empty one before the first slash:
 * /api/v1/namespaces/NAMESPACE/PLURAL/NAME/proxy.
 */
const SEGMENTS = 8;

export async function serveProxy(
  server: ServerContext,
  exchange: Exchange,
  route: ResourceRoute,
  operation: keyof typeof LOCATE,
): Promise<void> {
  const { name, ref } = route;
  if (name === undefined) throw notFound(ref, '');
  const read: Read = (resource, named) =>
    server.backend.get(requestContext(exchange, route, { verb: 'get', resource, subresource: undefined, name: named }));
  const location = await LOCATE[operation](name, read);
  const { request, response, method, path } = exchange;
  const query = (request.url ?? '').slice(path.length);
  const segments = path.split('/');
  const prefix = segments.slice(0, SEGMENTS).join('/');
  const rest = path.slice(prefix.length);
  if (rest === '' && exchange.upgrade === undefined && (method === 'GET' || method === 'HEAD')) {
    // Links relative to the page would otherwise replace the last segment of the path.
    startAnswer(exchange, 301, { Location: `${path}/${query}` });
    response.end();
    return;
  }
  return forward({ exchange, timers: server.timers, location, prefix, rest: `${rest}${query}` });
}
