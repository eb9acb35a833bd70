/**
 * Completes and validates image references. The defaults are the domain docker.io, the path prefix library/ (only for docker.io) and, for a
 * reference without a digest, the tag latest.
 * Source: github.com/distribution/reference, "familiar" and normalized names, and its grammar.
 */

/** Example: busybox:1.28 -> docker.io/library/busybox:1.28. */
export function normalizeReference(reference: string): string {
  const { domain, rest } = split(reference);
  return `${domain}/${/[:@]/.test(rest) ? rest : `${rest}:latest`}`;
}

function split(reference: string): { domain: string; rest: string } {
  const slash = reference.indexOf('/');
  const first = slash === -1 ? '' : reference.slice(0, slash);
  const isHost = /[.:]/.test(first) || first === 'localhost' || first !== first.toLowerCase();
  let [domain, rest] = isHost ? [first, reference.slice(slash + 1)] : ['docker.io', reference];
  if (domain === 'index.docker.io') domain = 'docker.io';
  if (domain === 'docker.io' && !rest.includes('/')) rest = `library/${rest}`;
  return { domain, rest };
}

/** Without tag and digest: busybox:1.28 -> docker.io/library/busybox. */
export function repositoryOf(reference: string): string {
  const { domain, rest } = split(reference);
  const end = rest.search(/[:@]/);
  return `${domain}/${end === -1 ? rest : rest.slice(0, end)}`;
}

/**
 * Returns the name under which a runtime stores the image: the complete reference, without the tag if there is a digest. References with
 * the same stored name refer to the same image.
 */
export function storedName(reference: string): string {
  const complete = normalizeReference(reference);
  const digest = complete.indexOf('@');
  return digest === -1 ? complete : `${repositoryOf(reference)}${complete.slice(digest)}`;
}

/** Returns the reference without the defaults for the domain and path, if this means the same: docker.io/library/busybox:1 -> busybox:1. */
export function familiarName(reference: string): string {
  const short = reference.replace(/^docker\.io\/(?:library\/)?/, '');
  return storedName(short) === storedName(reference) ? short : reference;
}

const COMPONENT = '[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?';
const DOMAIN = `(?:${COMPONENT}(?:\\.${COMPONENT})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?`;
const PATH = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*';
const DIGEST = '[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9A-Fa-f]{32,}';
const REFERENCE = new RegExp(`^(${DOMAIN}/${PATH}(?:/${PATH})*)(?::\\w[\\w.-]{0,127})?(?:@(${DIGEST}))?$`);
const BARE_ID = /^[a-f0-9]{64}$/;
const MAX_NAME_LENGTH = 255;
const DIGEST_LENGTHS: Readonly<Record<string, number>> = { sha256: 64, sha384: 96, sha512: 128 };

/** Returns a sentence with the rule that the invalid reference violates. */
export function imageNameRule(reference: string): string {
  if (BARE_ID.test(reference))
    return `64 hexadecimal digits alone are not an image name: write sha256:${reference} for the image with this ID`;
  const digest = reference.indexOf('@');
  return digest !== -1 && referenceError(`i${reference.slice(digest)}`) !== undefined
    ? 'an image digest is @sha256: with 64 hexadecimal digits'
    : 'an image name is [REGISTRY/]PATH[:TAG] with a PATH in lower case, such as registry.example/team/app:1.2';
}

/** Returns why runtimes reject the reference, in upstream's words; undefined if the reference is well formed. */
export function referenceError(reference: string): string | undefined {
  if (BARE_ID.test(reference))
    return `invalid repository name (${reference}), cannot specify 64-byte hexadecimal strings`;
  const { domain, rest } = split(reference);
  const colon = rest.indexOf(':');
  const remote = colon === -1 ? rest : rest.slice(0, colon);
  if (remote !== remote.toLowerCase()) return `invalid reference format: repository name (${remote}) must be lowercase`;
  const [, name, digest] = REFERENCE.exec(`${domain}/${rest}`) ?? [];
  if (name === undefined) return 'invalid reference format';
  if (name.length > MAX_NAME_LENGTH) return `repository name must not be more than ${MAX_NAME_LENGTH} characters`;
  if (digest === undefined) return undefined;
  const [algorithm = '', hex = ''] = digest.split(':');
  const length = DIGEST_LENGTHS[algorithm];
  if (length === undefined) return 'unsupported digest algorithm';
  return hex.length === length ? undefined : 'invalid checksum digest length';
}

/** Returns whether the reference reads like the ID of an image, whole or as programs shorten it. Such a name is valid, too. */
export const readsLikeId = (reference: string): boolean =>
  /^(?:[a-f0-9]{12,63}|sha256:[a-f0-9]{12,64})$/.test(reference);
