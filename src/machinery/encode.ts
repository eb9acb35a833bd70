/** Encodes immutable objects as JSON. Each object is encoded once for all clients that read it. */

const texts = new WeakMap<object, string>();
/** The texts that the next call of encodeOnce() returns, and that are not kept. */
const given = new WeakMap<object, string>();

/**
 * Returns the JSON text of the object, and keeps the text until the object is garbage-collected, except a text of giveText(). The object
 * must be immutable.
 */
export function encodeOnce(object: object): string {
  const known = texts.get(object);
  if (known !== undefined) return known;
  const once = given.get(object);
  if (once !== undefined) {
    given.delete(object);
    return once;
  }
  const text = JSON.stringify(object);
  texts.set(object, text);
  return text;
}

/**
 * Makes the next call of encodeOnce() for the object return `text`, which must be JSON of the same value. The text is not kept for further
 * calls, because most objects that a client writes are not read soon. If there is no such call, dropText() must be called.
 */
export function giveText(object: object, text: string): void {
  if (!texts.has(object)) given.set(object, text);
}

/** Drops the text of giveText(), for example because the client has requested another representation than JSON. */
export const dropText = (object: object): void => void given.delete(object);
