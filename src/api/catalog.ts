/**
 * The catalog of the served kinds, which can change while the server runs. Everything that depends on the kinds (routes, discovery,
 * OpenAPI, the resources of the registry, …) is a view of the catalog, or asks the catalog for each request.
 *
 * Invariants:
 *  1. A path (group, version and plural) and a name (group, version and kind) belong to at most one kind.
 *  2. A kind that is stored as another kind is served only while this other kind is served.
 *  3. When add() or remove() has returned, every view has the new kinds.
 */
import type { KubeObject, ResourceRef } from '../machinery/meta.ts';
import { addTypes } from './facts/facts.ts';
import type { KindDefinition } from './kind.ts';

export interface KindCatalog {
  /** The served kinds, in the order in which they were added. The array is never changed; a new one replaces it. */
  readonly kinds: readonly KindDefinition[];
  /** Returns the kind of a resource such as `pods`; undefined if the resource is not served. */
  find(ref: ResourceRef): KindDefinition | undefined;
  /** Returns the kind with a name such as `Pod`; undefined if the kind is not served. */
  named(group: string, version: string, kind: string): KindDefinition | undefined;
  /** Returns the kind as which objects of `kind` are stored: `kind` itself, or the kind that its `storage` names. */
  storedAs(kind: KindDefinition): KindDefinition;
  /**
   * Adds the kinds. Throws an Error, and adds none of them, if one has the path or name of another kind, is stored as a kind that is not
   * served, is uncached (the watch cache must know the uncached kinds before it loads the objects), or has types that are invalid or differ
   * from the types of another kind of the group and version.
   */
  add(...kinds: readonly KindDefinition[]): void;
  /** Does nothing if the kind is not served. Throws an Error if another kind is stored as this one. */
  remove(kind: KindDefinition): void;
  /** Returns a function that returns `build(kinds)`, computed at its first call and again at the first call after a change. */
  view<T>(build: (kinds: readonly KindDefinition[]) => T): () => T;
  /** Calls the listener after kinds were added. Returns a function that removes the listener. */
  onAdd(listener: () => void): () => void;
  /**
   * Calls the listener after a kind was removed, while the facts still have its types, so that the listener can encode the last objects.
   * Returns a function that removes the listener.
   */
  onRemove(listener: (kind: KindDefinition) => void): () => void;
}

const pathOf = ({ group, version, plural }: KindDefinition): string => `${group}/${version}/${plural}`;
const packageOf = ({ schema }: KindDefinition): string => schema.slice(0, schema.lastIndexOf('.'));
const nameOf = ({ group, version, kind }: KindDefinition): string => `${group}/${version}/${kind}`;

/** Removes the object type from a definition. This is safe, because a definition is only called with objects of its own kind. */
export const anyKind = <T extends KubeObject>(kind: KindDefinition<T>): KindDefinition =>
  kind as unknown as KindDefinition;

export function createCatalog(initial: readonly KindDefinition[]): KindCatalog {
  let index = indexOf(initial);
  const typesOf = new Map<KindDefinition, () => void>();
  const addTypesOf = (kinds: readonly KindDefinition[]): void => {
    const added: [KindDefinition, () => void][] = [];
    try {
      for (const kind of kinds) if (kind.types !== undefined) added.push([kind, addTypes(packageOf(kind), kind.types)]);
    } catch (error) {
      for (const [, remove] of added) remove();
      throw error;
    }
    for (const [kind, remove] of added) typesOf.set(kind, remove);
  };
  addTypesOf(initial);
  const listeners = new Set<(kind: KindDefinition) => void>();
  const addListeners = new Set<() => void>();
  const find = ({ group, version, resource }: ResourceRef) => index.byPath.get(`${group}/${version}/${resource}`);
  return {
    get kinds() {
      return index.kinds;
    },
    find,
    named: (group, version, kind) => index.byName.get(`${group}/${version}/${kind}`),
    storedAs: (kind) => (kind.storage === undefined ? kind : (find(kind.storage.resource) as KindDefinition)),
    add(...kinds) {
      const uncached = kinds.find((kind) => kind.uncached === true);
      if (uncached !== undefined) throw new Error(`${nameOf(uncached)}: an uncached kind cannot be added later`);
      const next = indexOf([...index.kinds, ...kinds]);
      addTypesOf(kinds);
      index = next;
      for (const listener of [...addListeners]) listener();
    },
    remove(kind) {
      const left = index.kinds.filter((other) => other !== kind);
      if (left.length === index.kinds.length) return;
      index = indexOf(left);
      const removeTypes = typesOf.get(kind);
      typesOf.delete(kind);
      try {
        for (const listener of [...listeners]) listener(kind);
      } finally {
        removeTypes?.();
      }
    },
    view(build) {
      let of: readonly KindDefinition[] | undefined;
      let built: ReturnType<typeof build>;
      return () => {
        if (of !== index.kinds) {
          built = build(index.kinds);
          of = index.kinds;
        }
        return built;
      };
    },
    onAdd(listener) {
      addListeners.add(listener);
      return () => addListeners.delete(listener);
    },
    onRemove(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

interface Index {
  kinds: readonly KindDefinition[];
  byPath: ReadonlyMap<string, KindDefinition>;
  byName: ReadonlyMap<string, KindDefinition>;
}

/** Throws an Error if the kinds violate the first or the second invariant. */
function indexOf(kinds: readonly KindDefinition[]): Index {
  const byPath = new Map<string, KindDefinition>();
  const byName = new Map<string, KindDefinition>();
  for (const kind of kinds) {
    if (byPath.has(pathOf(kind))) throw new Error(`two kinds have the path ${pathOf(kind)}`);
    if (byName.has(nameOf(kind))) throw new Error(`two kinds have the name ${nameOf(kind)}`);
    byPath.set(pathOf(kind), kind);
    byName.set(nameOf(kind), kind);
  }
  for (const { storage, ...kind } of kinds) {
    if (storage === undefined) continue;
    const { group, version, resource } = storage.resource;
    const stored = byPath.get(`${group}/${version}/${resource}`);
    if (stored === undefined || stored.storage !== undefined)
      throw new Error(`${nameOf(kind)}: no kind stores ${group}/${version}/${resource}`);
  }
  return { kinds: [...kinds], byPath, byName };
}
