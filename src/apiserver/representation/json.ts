import { encodeOnce } from '../../machinery/encode.ts';
import type { KubeList, KubeObject } from '../../machinery/meta.ts';
import { sharedBytes } from './recent-bytes.ts';
import type { Representation } from './representation.ts';

export const JSON_TYPE = 'application/json';

/** The text of each object is a separate part, so that it is not copied. */
export function* listTexts(
  { items, ...head }: KubeList,
  textOf: (object: KubeObject) => string = encodeOnce,
): Generator<string> {
  yield `${JSON.stringify(head).slice(0, -1)},"items":[`;
  for (const [index, item] of items.entries()) {
    if (index > 0) yield ',';
    yield textOf(item);
  }
  yield ']}\n';
}

export const jsonMessage = (line: Uint8Array): string => (line as Buffer).toString();

export const eventLine = (type: string, objectText: string): Buffer =>
  Buffer.from(`{"type":"${type}","object":${objectText}}\n`);

export const jsonRepresentation: Representation = {
  contentType: JSON_TYPE,
  watchContentType: JSON_TYPE,
  object: (object) => [encodeOnce(object), '\n'],
  list: (list) => listTexts(list),
  event: sharedBytes((event) => eventLine(event.type, encodeOnce(event.object))),
  message: jsonMessage,
};
