/**
 * Selects the representation of the objects in a response: JSON, protobuf, the Table that kubectl prints, or only their metadata. The
 * handlers of requests know only the interface.
 * Source: "Alternate representations of resources" and "Receiving resources as Tables" of v1.33.
 */
import type { KindDefinition } from '../../api/kind.ts';
import type { KubeList, KubeObject, Status } from '../../machinery/meta.ts';
import { ApiError, notAcceptable } from '../../machinery/status.ts';
import type { Millis } from '../../machinery/time.ts';
import type { WatchEvent } from '../../ports/backend.ts';
import { acceptedRanges, isJson, type MediaRange } from '../http/negotiate.ts';
import { hasProtobuf } from '../protobuf/encode.ts';
import { PROTOBUF_TYPE } from '../protobuf/envelope.ts';
import { jsonRepresentation } from './json.ts';
import { metadataRepresentation } from './metadata.ts';
import { protobufRepresentation } from './protobuf.ts';
import { includeObjectOf, tableRepresentation } from './table.ts';

/** The parts of one body are either all texts or all bytes. */
export type Part = string | Uint8Array;

export interface Representation {
  readonly contentType: string;
  readonly watchContentType: string;
  object(object: KubeObject | Status): Iterable<Part>;
  /** The parts of each object are created only when the iteration reaches them. */
  list(list: KubeList): Iterable<Part> | Promise<Iterable<Part>>;
  event(event: WatchEvent): Uint8Array;
  /** Returns the WebSocket message for an event. `event`: the bytes that event() has returned. */
  message(event: Uint8Array): string | Uint8Array;
}

export interface Requested {
  accept: string | undefined;
  query: URLSearchParams;
  kind: KindDefinition;
  isList: boolean;
  now: () => Millis;
}

type Transform = 'none' | 'Table' | 'PartialObjectMetadata' | 'PartialObjectMetadataList';

/** Returns undefined if the server does not support the requested transformation. */
function transformOf({ as, g, v }: MediaRange['parameters']): Transform | undefined {
  if (as === undefined) return 'none';
  if (g !== 'meta.k8s.io' || v !== 'v1') return undefined;
  return as === 'Table' || as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList' ? as : undefined;
}

const isProtobuf = ({ type }: MediaRange): boolean => type === PROTOBUF_TYPE;

const ACCEPTED = ['application/json', 'application/json;as=Table;v=v1;g=meta.k8s.io', PROTOBUF_TYPE];

/**
 * Returns the representation that the Accept header prefers. Throws 406 NotAcceptable if the server supports none of the accepted media
 * types, or if the header requests the metadata of a list for a single object, or the metadata of a single object for a list. Throws 400
 * BadRequest like includeObjectOf().
 */
export function representationFor(requested: Requested): Representation {
  const { group, version, kind } = requested.kind;
  for (const range of acceptedRanges(requested.accept)) {
    const base = isJson(range) ? jsonRepresentation : isProtobuf(range) ? protobufRepresentation : undefined;
    const transform = transformOf(range.parameters);
    if (base === undefined || transform === undefined) continue;
    if (transform === 'Table') {
      // A Table has no form in protobuf.
      if (base === protobufRepresentation) continue;
      const includeObject = includeObjectOf(requested.query.get('includeObject'));
      return tableRepresentation(requested.kind, includeObject, requested.now);
    }
    if (transform !== 'none') return metadataOf(requested, transform, base);
    if (base === jsonRepresentation || hasProtobuf(group, version, kind)) return base;
  }
  throw notAcceptable(ACCEPTED);
}

/** Like representationFor(), but with JSON instead of protobuf. For audit events. */
export const recordedRepresentation = (requested: Requested): Representation =>
  representationFor({ ...requested, accept: requested.accept?.replaceAll(PROTOBUF, 'application/json') });

const PROTOBUF = /application\/vnd\.kubernetes\.protobuf/gi;

export function failureRepresentation(accept: string | undefined): Representation {
  const preferred = acceptedRanges(accept).find((range) => isJson(range) || isProtobuf(range));
  return preferred !== undefined && isProtobuf(preferred) ? protobufRepresentation : jsonRepresentation;
}

function metadataOf({ isList }: Requested, transform: Transform, base: Representation): Representation {
  if (isList === (transform === 'PartialObjectMetadataList')) return metadataRepresentation(base);
  const problem = isList ? 'the requested object is a list' : 'the requested object is not a list';
  const { status } = notAcceptable([]);
  throw new ApiError({ ...status, message: `you requested ${transform}, but ${problem}` });
}
