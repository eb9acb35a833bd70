/** Always for the tag latest, explicit (even with a digest) or implied; IfNotPresent for other tags and for digests. Source: v1.33. */
export function pullPolicyOf(image: string): 'Always' | 'IfNotPresent' {
  if (image === '') return 'IfNotPresent';
  const [name = '', digest] = image.split('@');
  const lastPart = name.slice(name.lastIndexOf('/') + 1);
  const colon = lastPart.indexOf(':');
  const tag = colon === -1 ? (digest === undefined ? 'latest' : '') : lastPart.slice(colon + 1);
  return tag === 'latest' ? 'Always' : 'IfNotPresent';
}
