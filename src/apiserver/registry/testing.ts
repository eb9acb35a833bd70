import { createCatalog } from '../../api/catalog.ts';
import type { Pod } from '../../api/generated/types.ts';
import { kinds } from '../../api/kinds.ts';
import type { KubeObject, ResourceRef } from '../../machinery/meta.ts';
import type { ApiError } from '../../machinery/status.ts';
import type { Log } from '../../platform/platform.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import { apiFor } from '../../ports/api-for.ts';
import type { ResourceApi, ResourceBackend } from '../../ports/backend.ts';
import type { RequestContext, UserInfo } from '../../ports/request.ts';
import { delayWatch } from '../../store/delayed-watch-fixture.ts';
import { createMemoryStore } from '../../store/memory/memory-store.ts';
import type { Store } from '../../store/store.ts';
import { bootstrap } from './bootstrap.ts';
import { createRegistry, type Registry, type RegistryOptions } from './registry.ts';

export const ref = (resource: string, group = ''): ResourceRef => ({ group, version: 'v1', resource });
export const PODS = ref('pods');
export const CONFIG_MAPS = ref('configmaps');
export const NAMESPACES = ref('namespaces');
export const SERVICES = ref('services');
export const SERVICE_ACCOUNTS = ref('serviceaccounts');

/** Fails the test on an error message. */
export const strictLog: Log = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: (message, fields) => {
    throw new Error(`${message} ${JSON.stringify(fields)}`);
  },
  child: () => strictLog,
};

export const SERVICE_CIDR = '10.96.0.0/24';

/** The groups permit every request, including the creation of mirror Pods, which only nodes may create. */
export const TEST_USER: UserInfo = { name: 'tester', groups: ['system:masters', 'system:nodes'] };

export interface Started {
  registry: ResourceApi & Pick<Registry, 'revision' | 'close'>;
  /** Like `registry`, but with the limits for clients, as over HTTPS. */
  client: ResourceApi;
  backend: Registry;
  store: Store;
  timers: VirtualTimers;
  /** Resolves once the watch cache contains all writes, and the running watches have got their events. */
  settled(): Promise<unknown>;
}

/** Whether the watch cache of each started registry lags behind its store. The vitest project `delayed` sets LIFEPOD_STORE. */
const isDelayed = process.env['LIFEPOD_STORE'] === 'delayed';

/** The registry contains the objects of bootstrap() and the ServiceAccount default/default. */
export async function startRegistry(options: Partial<RegistryOptions> = {}): Promise<Started> {
  const given = options.store ?? createMemoryStore();
  const store = isDelayed ? delayWatch(given) : given;
  const timers = createVirtualTimers(Date.UTC(2026, 0, 1));
  const { serviceCidr = SERVICE_CIDR } = options;
  const backend = await createRegistry({
    catalog: createCatalog(kinds),
    timers,
    log: strictLog,
    ...options,
    store,
    serviceCidr,
  });
  const { revision, close } = backend;
  const registry = { ...apiFor(backend, TEST_USER), revision, close };
  await bootstrap(registry, { serviceCidr, apiServerPort: 6443 });
  await registry.create(SERVICE_ACCOUNTS, 'default', object('ServiceAccount', 'default')).catch(() => {});
  // A list without a resourceVersion waits until the watch cache is current.
  const settled = () => registry.list(NAMESPACES, { limit: 1 });
  await settled();
  return { registry, client: asClient(backend), backend, store, timers, settled };
}

/** Returns the API with the limits for clients, as over HTTPS. */
export const asClient = (backend: ResourceBackend, user = TEST_USER): ResourceApi =>
  apiFor(
    new Proxy(backend, {
      get:
        (target, verb) =>
        (request: RequestContext, ...rest: unknown[]) =>
          Reflect.apply(Reflect.get(target, verb), target, [{ ...request, source: 'client' }, ...rest]),
    }),
    user,
  );

export const object = (kind: string, name: string, rest: object = {}, metadata: object = {}): KubeObject =>
  ({ apiVersion: 'v1', kind, metadata: { name, ...metadata }, ...rest }) as KubeObject;

export const configMap = (name: string, data: Record<string, string> = {}, metadata: object = {}): KubeObject =>
  object('ConfigMap', name, { data }, metadata);

export const pod = (name: string, spec: object = {}, metadata: object = {}): Pod =>
  object('Pod', name, { spec: { containers: [{ name: 'app', image: 'busybox' }], ...spec } }, metadata) as Pod;

export async function failure(promise: Promise<unknown>): Promise<{ code: number; reason: string; message: string }> {
  try {
    await promise;
  } catch (error) {
    const { code, reason, message } = error as ApiError;
    return { code, reason, message };
  }
  throw new Error('expected a failure');
}
