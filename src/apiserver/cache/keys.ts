/**
 * The keys of objects in the store: /registry/<group or core>/<plural>/<namespace, if it has one>/<name>.
 */

export const REGISTRY_PREFIX = '/registry/';

/** `/registry/core/pods/` */
export const resourcePrefix = (group: string, plural: string): string =>
  `${REGISTRY_PREFIX}${group === '' ? 'core' : group}/${plural}/`;

/** The key of one object; `namespace` is undefined for kinds without one. */
export const objectKey = (prefix: string, namespace: string | undefined, name: string): string =>
  namespace === undefined ? `${prefix}${name}` : `${prefix}${namespace}/${name}`;

export interface KeyParts {
  /** `/registry/core/pods/` */
  prefix: string;
  /** '' for kinds without one. */
  namespace: string;
  name: string;
}

/** The parts of a key, or undefined if it is not the key of an object. */
export function parseKey(key: string): KeyParts | undefined {
  const match = /^(\/registry\/[^/]+\/[^/]+\/)(?:([^/]+)\/)?([^/]+)$/.exec(key);
  if (match === null) return undefined;
  return { prefix: match[1] as string, namespace: match[2] ?? '', name: match[3] as string };
}
