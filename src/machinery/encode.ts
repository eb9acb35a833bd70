/** Encodes immutable objects as JSON. Each object is encoded once for all clients that read it. */

const texts = new WeakMap<object, string>();

/** Returns JSON.stringify(object), and caches the text until the object is garbage-collected. The object must be immutable. */
export function encodeOnce(object: object): string {
  const known = texts.get(object);
  if (known !== undefined) return known;
  const text = JSON.stringify(object);
  texts.set(object, text);
  return text;
}

/** Makes encodeOnce() return `text` for the object. The text must be JSON of the same value. */
export const shareText = (object: object, text: string): void => void texts.set(object, text);
