/** The kinds by group, version and plural, and the conversion of their objects between the stored and the served form. */
import type { KindDefinition } from '../../api/kind.ts';
import type { KubeObject, ResourceRef } from '../../machinery/meta.ts';
import { type GroupResource, pathNotFound } from '../../machinery/status.ts';
import { resourcePrefix } from '../cache/keys.ts';

export interface Resource {
  kind: KindDefinition;
  groupResource: GroupResource;
  /** `v1`, `events.k8s.io/v1` */
  apiVersion: string;
  /** The prefix of its keys in the store. */
  prefix: string;
  /** Converts a cached object to this kind's form; returns the same object each time. */
  fromStored(object: KubeObject): KubeObject;
  toStored(object: KubeObject): KubeObject;
  /** The cached result of fromStored(), if it was called for the object. */
  served(object: KubeObject): KubeObject | undefined;
}

export interface ResourceIndex {
  /** Key prefixes of the uncached resources. */
  readonly uncached: ReadonlySet<string>;
  /** Throws 404 if the resource does not exist. */
  find(ref: ResourceRef): Resource;
  /** The forms in which an object of this prefix has been served. */
  served(prefix: string, object: KubeObject): KubeObject[];
}

export const apiVersionOf = (group: string, version: string): string =>
  group === '' ? version : `${group}/${version}`;

/** Another form of a stored kind; each object is converted once. */
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
