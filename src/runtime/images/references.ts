/**
 * Image references as the ecosystem completes them: docker.io and library where nothing is said, the tag latest.
 * Source: github.com/distribution/reference, "familiar" and normalized names.
 */

/** busybox:1.28 -> docker.io/library/busybox:1.28; what is complete stays as it is. */
export function normalizeReference(reference: string): string {
  const slash = reference.indexOf('/');
  const first = slash === -1 ? '' : reference.slice(0, slash);
  const isHost = /[.:]/.test(first) || first === 'localhost' || first !== first.toLowerCase();
  let [domain, rest] = isHost ? [first, reference.slice(slash + 1)] : ['docker.io', reference];
  if (domain === 'index.docker.io') domain = 'docker.io';
  if (domain === 'docker.io' && !rest.includes('/')) rest = `library/${rest}`;
  return `${domain}/${/[:@]/.test(rest) ? rest : `${rest}:latest`}`;
}
