/** The proxy subresource of Nodes, which returns documents that the node serves. Source: v1.33 "Proxies", kubelet's HTTP endpoints. */
import { isApiError, notFound, serviceUnavailable } from '../../machinery/status.ts';
import { sendParts, sendText } from './answers.ts';
import type { ServerContext } from './context.ts';
import { type Exchange, requestContext } from './exchange.ts';
import type { ResourceRoute } from './routes.ts';

/**
 * Sends the node's document at the path, or the kubelet's 404 text if there is none. Rejects with 404 NotFound if there is no such
 * Node, and with 503 ServiceUnavailable if the node cannot be reached.
 */
export async function serveNodeProxy(server: ServerContext, exchange: Exchange, route: ResourceRoute): Promise<void> {
  const { ref, name, subpath = [] } = route;
  if (name === undefined) throw notFound(ref, '');
  await server.backend.get(requestContext(exchange, route));
  const document = await server.nodes
    .document(name, `/${subpath.join('/')}`, exchange.signal)
    .catch((error: unknown) => {
      throw isApiError(error, 'ServiceUnavailable')
        ? serviceUnavailable(`error trying to reach service: ${error.message}`)
        : error;
    });
  if (document === undefined) return sendText(exchange, 404, '404 page not found\n');
  return sendParts(exchange, 200, document.contentType, document.texts);
}
