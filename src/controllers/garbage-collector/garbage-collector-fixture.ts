/** Creates objects with owners in a registry, and a garbage collector that may die between two writes. */
import { createCatalog, type KindCatalog } from '../../api/catalog.ts';
import { kinds } from '../../api/kinds.ts';
import { CONFIG_MAPS } from '../../api/resources.ts';
import { withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import type { KubeObject, ObjectMeta, OwnerReference } from '../../machinery/meta.ts';
import { uidOf } from '../../machinery/meta.ts';
import { serviceUnavailable } from '../../machinery/status.ts';
import type { Timers } from '../../platform/platform.ts';
import { silentLog } from '../../platform/silent-log.ts';
import type { ResourceApi } from '../../ports/backend.ts';
import { startGarbageCollector } from './garbage-collector.ts';

export const ownedBy = (owner: KubeObject, changes: Partial<OwnerReference> = {}): OwnerReference => ({
  apiVersion: owner.apiVersion,
  kind: owner.kind,
  name: owner.metadata.name,
  uid: uidOf(owner),
  ...changes,
});

export const configMap = (
  backend: ResourceApi,
  name: string,
  ownerReferences: OwnerReference[] = [],
  metadata: Partial<ObjectMeta> = {},
): Promise<KubeObject> => {
  const namespace = metadata.namespace ?? 'a';
  const made = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace, ownerReferences, ...metadata } };
  return backend.create(CONFIG_MAPS, namespace, made);
};

export interface Collector {
  /** Resolves once the collector has started. Rejects if the collector dies before. */
  started: Promise<void>;
  kill(): void;
}

export interface CollectorOptions {
  timers: Timers;
  /**
   * The number of writes after which the collector dies instead of making the next write. From then on, its gets, patches and deletes fail.
   * Default: the collector does not die.
   */
  writes?: number;
  died?: () => void;
  beforeDelete?: (ref: Parameters<ResourceApi['delete']>[0], namespace: string | undefined, name: string) => void;
  catalog?: KindCatalog;
}

export function startCollector(backend: ResourceApi, options: CollectorOptions): Collector {
  const { timers, catalog = createCatalog(kinds), writes = Number.POSITIVE_INFINITY } = options;
  const stop = new AbortController();
  let left = writes;
  const write = (): void => {
    if (!stop.signal.aborted && left-- <= 0) {
      stop.abort();
      options.died?.();
    }
    live();
  };
  const live = (): void => {
    if (stop.signal.aborted) throw serviceUnavailable('the collector is dead');
  };
  const api: ResourceApi = {
    ...backend,
    async get(...args) {
      live();
      return backend.get(...args);
    },
    async patch(...args) {
      write();
      return backend.patch(...args);
    },
    async delete(ref, namespace, name, given) {
      write();
      options.beforeDelete?.(ref, namespace, name);
      return backend.delete(ref, namespace, name, given);
    },
  };
  const parts = withInformers({ client: clientOf(api), timers, log: silentLog, signal: stop.signal });
  return { started: startGarbageCollector({ ...parts, catalog }), kill: () => stop.abort() };
}
