/** The JSON text of immutable objects, encoded once for all clients that read the object. */

const texts = new WeakMap<object, string>();

/** JSON.stringify(object), cached as long as the object is alive. The object must be immutable. */
export function encodeOnce(object: object): string {
  const known = texts.get(object);
  if (known !== undefined) return known;
  const text = JSON.stringify(object);
  texts.set(object, text);
  return text;
}
