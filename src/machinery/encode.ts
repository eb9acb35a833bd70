/** The JSON text of immutable objects, encoded once for all clients that read the object. */

const texts = new WeakMap<object, string>();

/** Returns JSON.stringify(object), cached until the object is garbage-collected. The object must be immutable. */
export function encodeOnce(object: object): string {
  const known = texts.get(object);
  if (known !== undefined) return known;
  const text = JSON.stringify(object);
  texts.set(object, text);
  return text;
}
