/** Serves the documents that the kubelet of a node would serve. Source: v1.33 "Proxies", kubelet's HTTP endpoints. */
import { isApiError, serviceUnavailable } from '../../machinery/status.ts';
import { sendParts, sendText } from '../http/answers.ts';
import type { ServerContext } from '../http/context.ts';
import type { Exchange } from '../http/exchange.ts';

const READS = ['GET', 'HEAD'];

/** Failures have the texts of the kubelet. Rejects with 503 ServiceUnavailable if the node cannot be reached. */
export async function serveNodeDocument(
  server: ServerContext,
  exchange: Exchange,
  node: string,
  path: string,
): Promise<void> {
  const document = await server.nodes.document(node, path, exchange.signal).catch((error: unknown) => {
    throw isApiError(error, 'ServiceUnavailable')
      ? serviceUnavailable(`error trying to reach service: ${error.message}`)
      : error;
  });
  if (document === undefined) return sendText(exchange, 404, '404 page not found\n');
  if (!READS.includes(exchange.method)) return sendText(exchange, 405, '405: Method Not Allowed');
  return sendParts(exchange, 200, document.contentType, document.texts);
}
