/**
 * Returns the default pull policy: Always if the tag is latest (even with a digest), or if there is neither a tag nor a digest;
 * IfNotPresent for other images, and if there is no image. Source: v1.33.
 */
export function pullPolicyOf(image: string): 'Always' | 'IfNotPresent' {
  if (image === '') return 'IfNotPresent';
  const [name = '', digest] = image.split('@');
  const lastPart = name.slice(name.lastIndexOf('/') + 1);
  const colon = lastPart.indexOf(':');
  const tag = colon === -1 ? (digest === undefined ? 'latest' : '') : lastPart.slice(colon + 1);
  return tag === 'latest' ? 'Always' : 'IfNotPresent';
}
