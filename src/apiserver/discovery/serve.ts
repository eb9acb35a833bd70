import { notAcceptable, pathNotFound } from '../../machinery/status.ts';
import { sendBody, sendJson } from '../http/answers.ts';
import type { ServerContext } from '../http/context.ts';
import type { Exchange } from '../http/exchange.ts';
import { acceptedRanges, isJson } from '../http/negotiate.ts';
import {
  type AggregatedVersion,
  aggregatedDiscovery,
  apiGroupDocument,
  apiGroupList,
  apiResourceList,
  apiVersions,
} from './discovery.ts';
import { isCustomResourcesPath, serveNoCustomResources } from './no-custom-resources.ts';

/** Returns undefined if the client prefers the unaggregated document. Throws 406 NotAcceptable if the client accepts neither. */
function aggregatedForm(accept: string | undefined): AggregatedVersion | undefined {
  for (const range of acceptedRanges(accept)) {
    if (!isJson(range)) continue;
    const { as, g, v } = range.parameters;
    if (as === undefined) return undefined;
    if (as === 'APIGroupDiscoveryList' && g === 'apidiscovery.k8s.io' && (v === 'v2' || v === 'v2beta1')) return v;
  }
  throw notAcceptable(['application/json', 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList']);
}

export const isDiscoveryPath = (segments: readonly string[]): boolean =>
  isCustomResourcesPath(segments) ||
  (segments[0] === 'api' ? segments.length <= 2 : segments[0] === 'apis' && segments.length <= 3);

/**
 * `segments`: the segments of the URL path. Rejects with 404 NotFound if the group or version is not served, and 406 NotAcceptable if the
 * client accepts no form of the document at /api or /apis.
 */
export async function serveDiscovery(
  server: ServerContext,
  exchange: Exchange,
  segments: readonly string[],
): Promise<void> {
  if (isCustomResourcesPath(segments)) return serveNoCustomResources(exchange);
  const { kinds } = server.catalog;
  const [root, group, version] = segments;
  const core = root === 'api';
  if (group === undefined) {
    const form = aggregatedForm(exchange.request.headers.accept);
    // HTTP caches must store the aggregated and the unaggregated document separately.
    exchange.response.setHeader('Vary', 'Accept');
    if (form === undefined) return sendJson(exchange, 200, core ? apiVersions(kinds) : apiGroupList(kinds));
    const type = `application/json;g=apidiscovery.k8s.io;v=${form};as=APIGroupDiscoveryList`;
    return sendBody(exchange, 200, type, `${JSON.stringify(aggregatedDiscovery(kinds, core, form))}\n`);
  }
  if (core) return sendJson(exchange, 200, apiResourceList(kinds, '', group));
  if (group === '') throw pathNotFound();
  if (version === undefined) return sendJson(exchange, 200, apiGroupDocument(kinds, group));
  return sendJson(exchange, 200, apiResourceList(kinds, group, version));
}
