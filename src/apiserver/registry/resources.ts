/**
 * Finds kinds by group, version and plural name, and converts objects between the kind that is stored and the kind that is served.
 */
import type { KindDefinition } from '../../api/kind.ts';
import type { KubeObject, ResourceRef } from '../../machinery/meta.ts';
import { type GroupResource, pathNotFound } from '../../machinery/status.ts';
import { resourcePrefix } from '../cache/keys.ts';

export interface Resource {
  kind: KindDefinition;
  groupResource: GroupResource;
  /** The group and version, such as `v1` or `events.k8s.io/v1`. */
  apiVersion: string;
  /** The prefix of the store keys of the objects. */
  prefix: string;
  /** Converts a stored object to this kind. For the same stored object, always returns the same object. */
  fromStored(object: KubeObject): KubeObject;
  toStored(object: KubeObject): KubeObject;
  /** Returns fromStored(object) if the object has already been converted or needs no conversion; otherwise undefined. */
  served(object: KubeObject): KubeObject | undefined;
}

export interface ResourceIndex {
  /** The key prefixes of the resources whose objects are not cached. */
  readonly uncached: ReadonlySet<string>;
  /** Returns the resource. Throws 404 NotFound if the resource is not served, or if its objects are computed and not stored. */
  find(ref: ResourceRef): Resource;
  /** Returns the results of Resource.served() for the stored object, from all resources with this key prefix, without undefined. */
  served(prefix: string, object: KubeObject): KubeObject[];
}

export const apiVersionOf = (group: string, version: string): string =>
  group === '' ? version : `${group}/${version}`;

/**
 * Returns a fromStored() that converts each stored object only once, so that all readers share the converted object, and the
 * served() that belongs to it.
 */
function memoized(convert: (object: KubeObject) => KubeObject): Pick<Resource, 'fromStored' | 'served'> {
  const known = new WeakMap<KubeObject, KubeObject>();
  return {
    served: (object) => known.get(object),
    fromStored(object) {
      let converted = known.get(object);
      if (converted === undefined) {
        converted = convert(object);
        known.set(object, converted);
      }
      return converted;
    },
  };
}

const same = (object: KubeObject): KubeObject => object;
const UNCONVERTED = { fromStored: same, toStored: same, served: same };

export function indexResources(kinds: readonly KindDefinition[]): ResourceIndex {
  const byRef = new Map<string, Resource>();
  for (const kind of kinds) {
    if (kind.computed !== undefined) continue;
    const { storage } = kind;
    const stored = storage === undefined ? kind : kinds.find((one) => one.plural === storage.plural && !one.storage);
    if (stored === undefined) throw new Error(`${kind.kind}: no kind stores ${storage?.plural}`);
    byRef.set(`${kind.group}/${kind.version}/${kind.plural}`, {
      kind,
      groupResource: { group: kind.group, resource: kind.plural },
      apiVersion: apiVersionOf(kind.group, kind.version),
      prefix: resourcePrefix(stored.group, stored.plural),
      ...(storage === undefined ? UNCONVERTED : { ...memoized(storage.fromStored), toStored: storage.toStored }),
    });
  }
  const byPrefix = Map.groupBy(byRef.values(), ({ prefix }) => prefix);
  return {
    uncached: new Set([...byRef.values()].filter(({ kind }) => kind.uncached === true).map(({ prefix }) => prefix)),
    served: (prefix, object) => (byPrefix.get(prefix) ?? []).flatMap((resource) => resource.served(object) ?? []),
    find(ref) {
      const resource = byRef.get(`${ref.group}/${ref.version}/${ref.resource}`);
      if (resource === undefined) throw pathNotFound();
      return resource;
    },
  };
}
