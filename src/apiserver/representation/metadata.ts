/**
 * Represents objects with only their metadata, as PartialObjectMetadata.
 * Source: meta/v1 PartialObjectMetadata of v1.33, and "Receiving resources as Tables" (metadata-only requests).
 */
import type { KubeList, KubeObject, Status } from '../../machinery/meta.ts';
import type { WatchEvent } from '../../ports/backend.ts';
import type { Representation } from './representation.ts';

const API_VERSION = 'meta.k8s.io/v1';

const partials = new WeakMap<KubeObject, KubeObject>();

/** The object must be immutable. Always returns the same result for the same object, so that the result is encoded only once. */
export function partialMetadata(object: KubeObject): KubeObject {
  let partial = partials.get(object);
  if (partial === undefined) {
    partial = { kind: 'PartialObjectMetadata', apiVersion: API_VERSION, metadata: object.metadata };
    partials.set(object, partial);
  }
  return partial;
}

const partialEvents = new WeakMap<WatchEvent, WatchEvent>();

/** The watches share the returned event, so that it is encoded only once. */
function partialEvent(event: WatchEvent): WatchEvent {
  if (event.type === 'ERROR') return event;
  let partial = partialEvents.get(event);
  if (partial === undefined) {
    partial = { type: event.type, object: partialMetadata(event.object) };
    partialEvents.set(event, partial);
  }
  return partial;
}

const isObject = (object: KubeObject | Status): object is KubeObject =>
  object.kind !== 'Status' || object.apiVersion !== 'v1';

/** Encodes the metadata of objects as `base` encodes objects. A Status is not changed. */
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
  event: (event: WatchEvent) => base.event(partialEvent(event)),
  message: base.message,
});
