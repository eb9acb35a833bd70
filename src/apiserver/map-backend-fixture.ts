/** For the tests of the API server: a small in-memory backend that records its calls. */
import { EventEmitter, once } from 'node:events';
import type { KubeList, KubeObject, ResourceRef } from '../machinery/meta.ts';
import { alreadyExists, notFound } from '../machinery/status.ts';
import type { ResourceBackend, WatchEvent } from '../ports/backend.ts';

export interface MapBackend extends ResourceBackend {
  /** All calls: verb and arguments. */
  readonly calls: { verb: string; arguments: unknown[] }[];
  /** The number of running watches. */
  watches(): number;
  /** Resolves when the next watch has ended. */
  watchEnded(): Promise<void>;
  emit(event: WatchEvent): void;
}

const keyOf = (ref: ResourceRef, namespace: string | undefined, name: string): string =>
  `${ref.resource}/${namespace ?? ''}/${name}`;

/** The objects of a MapBackend and its running watches, which get all changes. */
class MapObjects {
  readonly sinks = new Set<(event: WatchEvent) => void>();
  readonly #objects = new Map<string, KubeObject>();
  #revision = 0;

  emit(event: WatchEvent): void {
    for (const sink of this.sinks) sink(event);
  }

  has(ref: ResourceRef, namespace: string | undefined, name: string): boolean {
    return this.#objects.has(keyOf(ref, namespace, name));
  }

  /** Throws 404 NotFound. */
  find(ref: ResourceRef, namespace: string | undefined, name: string): KubeObject {
    const found = this.#objects.get(keyOf(ref, namespace, name));
    if (found === undefined) throw notFound(ref, name);
    return found;
  }

  put(ref: ResourceRef, object: KubeObject, type: 'ADDED' | 'MODIFIED'): KubeObject {
    this.#revision += 1;
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#revision) } };
    this.#objects.set(keyOf(ref, object.metadata.namespace, object.metadata.name), stored);
    this.emit({ type, object: stored });
    return stored;
  }

  /** Throws 404 NotFound. */
  delete(ref: ResourceRef, namespace: string | undefined, name: string): void {
    const object = this.find(ref, namespace, name);
    this.#objects.delete(keyOf(ref, namespace, name));
    this.emit({ type: 'DELETED', object });
  }

  list(ref: ResourceRef, namespace: string | undefined): KubeList {
    const prefix = `${ref.resource}/${namespace === undefined ? '' : `${namespace}/`}`;
    const items = [...this.#objects].filter(([each]) => each.startsWith(prefix)).map(([, object]) => object);
    return { kind: 'ConfigMapList', apiVersion: 'v1', metadata: { resourceVersion: String(this.#revision) }, items };
  }

  all(): Iterable<KubeObject> {
    return this.#objects.values();
  }
}

export function mapBackend(): MapBackend {
  const objects = new MapObjects();
  const calls: MapBackend['calls'] = [];
  const endings = new EventEmitter();
  const record = (verb: string, ...rest: unknown[]): void => void calls.push({ verb, arguments: rest });
  return {
    calls,
    emit: (event) => objects.emit(event),
    watches: () => objects.sinks.size,
    watchEnded: async () => void (await once(endings, 'ended')),
    async get(ref, namespace, name) {
      return objects.find(ref, namespace, name);
    },
    async list(ref, options) {
      record('list', ref, options);
      return objects.list(ref, options.namespace);
    },
    async watch(ref, options, sink, signal) {
      record('watch', ref, options);
      objects.sinks.add(sink);
      for (const object of objects.all()) sink({ type: 'ADDED', object });
      if (!signal.aborted) await once(signal, 'abort');
      objects.sinks.delete(sink);
      endings.emit('ended');
    },
    async create(ref, namespace, object, options) {
      record('create', ref, namespace, object, options);
      if (options?.subresource !== undefined) return { ...object, apiVersion: 'v1', kind: 'Status' };
      options?.onWarning?.('metadata.name: this is only a "test"');
      if (objects.has(ref, namespace, object.metadata.name)) throw alreadyExists(ref, object.metadata.name);
      const metadata = { ...object.metadata, ...(namespace === undefined ? {} : { namespace }) };
      return objects.put(ref, { ...object, metadata }, 'ADDED');
    },
    async update(ref, object, options) {
      record('update', ref, object, options);
      objects.find(ref, object.metadata.namespace, object.metadata.name);
      return objects.put(ref, object, 'MODIFIED');
    },
    async patch(ref, namespace, name, type, body, options) {
      record('patch', ref, namespace, name, type, body, options);
      return objects.put(ref, { ...objects.find(ref, namespace, name), ...(body as object) }, 'MODIFIED');
    },
    async delete(ref, namespace, name, options) {
      record('delete', ref, namespace, name, options);
      objects.delete(ref, namespace, name);
      return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' };
    },
    async deleteCollection(ref, options) {
      record('deleteCollection', ref, options);
      return { kind: 'ConfigMapList', apiVersion: 'v1', metadata: {}, items: [] };
    },
  };
}
