/** Encodes immutable objects as JSON, and keeps the texts, so that an object is not encoded again for each client that reads it. */

const texts = new WeakMap<object, string>();
/** Texts that the next call of encodeOnce() returns and drops. */
const given = new WeakMap<object, string>();

/**
 * Returns the JSON text of the object, which must be immutable. The text is kept until the object is garbage-collected, except a text of
 * giveText().
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
 * The next call of encodeOnce() for the object returns `text`, which must be JSON of the same value. The text is not kept longer, because
 * most objects that a client writes are not read soon. Call dropText() if encodeOnce() is not called.
 */
export function giveText(object: object, text: string): void {
  if (!texts.has(object)) given.set(object, text);
}

/** Drops the text of giveText(), for example because the client has requested another representation than JSON. */
export const dropText = (object: object): void => void given.delete(object);
