/**
 * The keys of objects in the store: /registry/GROUP/PLURAL/NAMESPACE/NAME, or /registry/GROUP/PLURAL/NAME for cluster-scoped kinds. GROUP
 * is "core" for the core group.
 */

export const REGISTRY_PREFIX = '/registry/';

export const resourcePrefix = (group: string, plural: string): string =>
  `${REGISTRY_PREFIX}${group === '' ? 'core' : group}/${plural}/`;

/** `prefix` comes from resourcePrefix(); `namespace` is undefined for cluster-scoped kinds. */
export const objectKey = (prefix: string, namespace: string | undefined, name: string): string =>
  namespace === undefined ? `${prefix}${name}` : `${prefix}${namespace}/${name}`;

/** Returns the resourcePrefix() of an object's key. If `key` is not the key of an object, the result is not the prefix of any resource. */
export const prefixOf = (key: string): string =>
  key.slice(0, key.indexOf('/', key.indexOf('/', REGISTRY_PREFIX.length) + 1) + 1);

export interface KeyParts {
  prefix: string;
  /** '' for cluster-scoped kinds. */
  namespace: string;
  name: string;
}

/** Returns undefined if `key` is not the key of an object. */
export function parseKey(key: string): KeyParts | undefined {
  const match = /^(\/registry\/[^/]+\/[^/]+\/)(?:([^/]+)\/)?([^/]+)$/.exec(key);
  if (match === null) return undefined;
  return { prefix: match[1] as string, namespace: match[2] ?? '', name: match[3] as string };
}
