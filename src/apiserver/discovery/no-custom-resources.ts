/**
 * lifepod does not support CustomResourceDefinitions. Before kubectl reports that a kind is unknown, it requests the list of
 * CustomResourceDefinitions. If this request fails, kubectl reports that failure instead.
 * Source: CRDFinder in k8s.io/cli-runtime/pkg/resource of v1.33.
 */
import { sendJson } from '../http/answers.ts';
import type { Exchange } from '../http/exchange.ts';

export const isCustomResourcesPath = (segments: readonly string[]): boolean =>
  segments.join('/') === 'apis/apiextensions.k8s.io/v1/customresourcedefinitions';

export const serveNoCustomResources = (exchange: Exchange): Promise<void> =>
  sendJson(exchange, 200, {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinitionList',
    metadata: { resourceVersion: '' },
    items: [],
  });
