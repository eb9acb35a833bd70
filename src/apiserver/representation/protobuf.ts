import { perType } from '../../api/facts/facts.ts';
import type { KubeList, KubeObject } from '../../machinery/meta.ts';
import { workInTurns } from '../../platform/work-in-turns.ts';
import {
  EVENT_LENGTH_BYTES,
  encodeEvent,
  encodeFields,
  encodeListMeta,
  encodeProtobuf,
  envelopeOf,
  itemStart,
} from '../protobuf/encode.ts';
import { PROTOBUF_TYPE } from '../protobuf/envelope.ts';
import { sharedBytes } from './recent-bytes.ts';
import type { Representation } from './representation.ts';

/** The lengths of encoded immutable objects, by apiVersion and kind. They are forgotten when the types of a kind change. */
const lengthsOf = perType((_apiVersionAndKind) => new WeakMap<KubeObject, number>());

function lengthOf(object: KubeObject): number {
  const lengths = lengthsOf(`${object.apiVersion} ${object.kind}`);
  let length = lengths.get(object);
  if (length === undefined) {
    length = encodeFields(object).length;
    lengths.set(object, length);
  }
  return length;
}

/**
 * The envelope contains the length of the list, so the objects are encoded twice: first to add up their lengths, in turns with other work,
 * and again when their parts are requested. Keeping the bytes instead would take memory for the whole list for each client.
 */
async function listParts(list: KubeList): Promise<Iterable<Uint8Array>> {
  const { metadata, items } = list;
  const head = encodeListMeta(metadata);
  const betweenSteps = workInTurns();
  let bytes = head.length;
  for (const item of items) {
    const length = lengthOf(item);
    bytes += itemStart(length).length + length;
    await betweenSteps();
  }
  return (function* () {
    yield envelopeOf(list, bytes);
    yield head;
    for (const item of items) {
      yield itemStart(lengthOf(item));
      yield encodeFields(item);
    }
  })();
}

export const protobufRepresentation: Representation = {
  contentType: PROTOBUF_TYPE,
  watchContentType: `${PROTOBUF_TYPE};stream=watch`,
  object: (object) => [encodeProtobuf(object)],
  list: listParts,
  event: sharedBytes(({ type, object }) => encodeEvent(type, object)),
  message: (event) => event.subarray(EVENT_LENGTH_BYTES),
};
