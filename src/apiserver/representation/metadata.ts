/**
 * Represents objects with only their metadata, as PartialObjectMetadata.
 * Source: meta/v1 PartialObjectMetadata of v1.33, and "Receiving resources as Tables" (metadata-only requests).
 */
import type { KubeList, KubeObject, Status } from '../../machinery/meta.ts';
import type { WatchEvent } from '../../ports/backend.ts';
import type { Representation } from './representation.ts';

const API_VERSION = 'meta.k8s.io/v1';

export const partialMetadata = ({ metadata }: KubeObject): KubeObject => ({
  kind: 'PartialObjectMetadata',
  apiVersion: API_VERSION,
  metadata,
});

const isObject = (object: KubeObject | Status): object is KubeObject => object.kind !== 'Status';

/** Returns a representation that encodes the metadata of objects as `base` encodes objects. A Status is not changed. */
export const metadataRepresentation = (base: Representation): Representation => ({
  contentType: base.contentType,
  watchContentType: base.watchContentType,
  object: (object) => base.object(isObject(object) ? partialMetadata(object) : object),
  list: ({ metadata, items }: KubeList) =>
    base.list({
      apiVersion: API_VERSION,
      kind: 'PartialObjectMetadataList',
      metadata,
      items: items.map(partialMetadata),
    }),
  event: (event: WatchEvent) =>
    base.event(event.type === 'ERROR' ? event : { type: event.type, object: partialMetadata(event.object) }),
});
