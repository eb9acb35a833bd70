/** Finds kinds by group, version and plural name, and converts objects between the kind that is stored and the kind that is served. */
import type { KindCatalog } from '../../api/catalog.ts';
import type { KindDefinition } from '../../api/kind.ts';
import type { KubeObject, ResourceRef } from '../../machinery/meta.ts';
import { type GroupResource, pathNotFound } from '../../machinery/status.ts';
import { resourcePrefix } from '../cache/keys.ts';

export interface Resource {
  kind: KindDefinition;
  groupResource: GroupResource;
  /** The group and version, such as `v1` or `events.k8s.io/v1`. */
  apiVersion: string;
  prefix: string;
  /** Always returns the same object for the same stored object. */
  fromStored(object: KubeObject): KubeObject;
  toStored(object: KubeObject): KubeObject;
  /** Returns fromStored(object) if the object has already been converted or needs no conversion; otherwise undefined. */
  served(object: KubeObject): KubeObject | undefined;
  /**
   * Returns the resource of another version of the kind, which has the same stored objects; undefined if no other version has this
   * apiVersion.
   */
  otherVersion(apiVersion: string): Resource | undefined;
  /**
   * Calls the listener when the kind is removed from the catalog, or at once if the kind has already been removed. Returns a function that
   * removes the listener.
   */
  onRemove(listener: () => void): () => void;
}

export interface ResourceIndex {
  readonly uncached: ReadonlySet<string>;
  /** Throws 404 NotFound if the resource is not served, or if its objects are computed and not stored. */
  find(ref: ResourceRef): Resource;
  /** Returns the results of Resource.served() that exist, from all resources with this key prefix. */
  served(prefix: string, object: KubeObject): KubeObject[];
}

export const apiVersionOf = (group: string, version: string): string =>
  group === '' ? version : `${group}/${version}`;

/** Converts each stored object only once, so that all readers share the converted object. */
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

/** Follows the changes of the catalog. A kind has the same Resource as long as it is in the catalog. */
export function indexResources(catalog: KindCatalog): ResourceIndex {
  const known = new WeakMap<KindDefinition, Resource & { removed(): void }>();
  const resourceOf = (kind: KindDefinition): Resource => {
    let resource = known.get(kind);
    if (resource === undefined) {
      resource = createResource(kind, catalog.storedAs(kind), (prefix) => byPrefix().get(prefix) ?? []);
      known.set(kind, resource);
    }
    return resource;
  };
  const all = catalog.view((kinds) => kinds.filter(({ computed }) => computed === undefined).map(resourceOf));
  const byPrefix = catalog.view(() => Map.groupBy(all(), ({ prefix }) => prefix));
  catalog.onRemove((kind) => {
    const resource = known.get(kind);
    known.delete(kind);
    resource?.removed();
  });
  return {
    uncached: new Set(all().flatMap(({ kind, prefix }) => (kind.uncached === true ? prefix : []))),
    served: (prefix, object) => (byPrefix().get(prefix) ?? []).flatMap((resource) => resource.served(object) ?? []),
    find(ref) {
      const kind = catalog.find(ref);
      if (kind === undefined || kind.computed !== undefined) throw pathNotFound();
      return resourceOf(kind);
    },
  };
}

function createResource(
  kind: KindDefinition,
  stored: KindDefinition,
  withPrefix: (prefix: string) => readonly Resource[],
): Resource & { removed(): void } {
  const listeners = new Set<() => void>();
  let isRemoved = false;
  const { storage } = kind;
  const own = apiVersionOf(kind.group, kind.version);
  const prefix = resourcePrefix(stored.group, stored.plural);
  return {
    kind,
    groupResource: { group: kind.group, resource: kind.plural },
    apiVersion: own,
    prefix,
    otherVersion: (apiVersion) =>
      apiVersion === own ? undefined : withPrefix(prefix).find((other) => other.apiVersion === apiVersion),
    ...(storage === undefined ? UNCONVERTED : { ...memoized(storage.fromStored), toStored: storage.toStored }),
    onRemove(listener) {
      if (isRemoved) listener();
      else listeners.add(listener);
      return () => listeners.delete(listener);
    },
    removed: () => {
      isRemoved = true;
      for (const listener of [...listeners]) listener();
    },
  };
}
