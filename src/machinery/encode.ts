/**
 * The JSON text of an object that does not change any more, made once however many clients read it.
 */

const texts = new WeakMap<object, string>();

/** JSON.stringify(object), remembered while the object lives. The object must be immutable. */
export function encodeOnce(object: object): string {
  const known = texts.get(object);
  if (known !== undefined) return known;
  const text = JSON.stringify(object);
  texts.set(object, text);
  return text;
}
