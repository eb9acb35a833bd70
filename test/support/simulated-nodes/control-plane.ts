/** The real API server, scheduler and controllers of a simulated cluster. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createCatalog } from '../../../src/api/catalog.ts';
import { kinds } from '../../../src/api/kinds.ts';
import { dnsServiceAddress, kubernetesServiceAddress } from '../../../src/apiserver/admission/service-range.ts';
import { privilegedOr } from '../../../src/apiserver/auth/authorization/authorizer.ts';
import { ensureRoles } from '../../../src/apiserver/auth/authorization/bootstrap/ensure-roles.ts';
import { authorizedBackend, type OnRefusal } from '../../../src/apiserver/auth/authorized-backend.ts';
import { createAuthority } from '../../../src/apiserver/pki/authority.ts';
import { writeKubeconfig } from '../../../src/apiserver/pki/kubeconfig.ts';
import { loadOrCreatePki, type Pki } from '../../../src/apiserver/pki/pki.ts';
import { createTokenIssuer, TOKEN_ISSUER } from '../../../src/apiserver/pki/tokens.ts';
import { DEFAULT_LIFETIME_MILLIS } from '../../../src/apiserver/pki/validity.ts';
import { bootstrap } from '../../../src/apiserver/registry/bootstrap.ts';
import { createRegistry } from '../../../src/apiserver/registry/registry.ts';
import { type ApiServerOptions, startApiServer } from '../../../src/apiserver/server.ts';
import { createSharedInformers, type SharedInformers } from '../../../src/client/shared-informers.ts';
import type { ControllerName, ControllerOptions } from '../../../src/controllers/controller.ts';
import { startControllers } from '../../../src/controllers/controllers.ts';
import { createAuthorizers } from '../../../src/engine/authorization/authorizers.ts';
import { isOfGonePod } from '../../../src/engine/authorization/components.ts';
import { informersOfUser } from '../../../src/engine/authorization/informers-of-user.ts';
import { lateAuthorizers } from '../../../src/engine/authorization/late-authorizer.ts';
import {
  DEFAULT_RECORD_AGE,
  DEFAULT_RECORD_SIZE,
  parseRecordLimits,
} from '../../../src/engine/options/record-settings.ts';
import { CONTROLLER_MANAGER, clientFor, controllerUser, SCHEDULER } from '../../../src/engine/users.ts';
import { LIFEPOD_VERSION } from '../../../src/engine/version.ts';
import { createLocalFolders } from '../../../src/node/volumes/local-folders.ts';
import type { Platform } from '../../../src/platform/platform.ts';
import { apiFor } from '../../../src/ports/api-for.ts';
import type { ResourceBackend } from '../../../src/ports/backend.ts';
import type { NodeConnection } from '../../../src/ports/node-connection.ts';
import type { NodeReports } from '../../../src/ports/node-reports.ts';
import { API_SERVER, type UserInfo } from '../../../src/ports/request.ts';
import { startScheduler } from '../../../src/scheduler/scheduler.ts';
import { openLmdbStore } from '../../../src/store/lmdb/lmdb-store.ts';
import { createMemoryStore } from '../../../src/store/memory/memory-store.ts';
import { countedBackend } from './counted-backend.ts';

const HOST = '127.0.0.1';
const SERVICE_CIDR = '10.96.0.0/16';
export const CLUSTER_DOMAIN = 'cluster.local';
export const CLUSTER_DNS = dnsServiceAddress(SERVICE_CIDR);

export interface ControlPlane {
  registry: ResourceBackend;
  informers: SharedInformers;
  informersOf(user: UserInfo): SharedInformers;
  /** The requests of components that were refused because the component's role lacks a right. */
  refusals: readonly string[];
  /** The path of the administrator's kubeconfig; undefined without the HTTPS server. */
  kubeconfig: string | undefined;
  startLoops(options: { controllers: boolean }): Promise<void>;
}

export interface ControlPlaneOptions extends Platform {
  folder: string;
  store: 'memory' | 'lmdb';
  https: boolean;
  nodes: NodeConnection & NodeReports;
  signal: AbortSignal;
}

/** Clients verify dates with the machine's clock, even in virtual time. */
const openPki = (folder: string): Promise<Pki> =>
  loadOrCreatePki(folder, { hostnames: [], ips: [kubernetesServiceAddress(SERVICE_CIDR)], now: Date.now() });

/** Adds the functions that stop the store and the API to `closers`. */
export async function startControlPlane(
  options: ControlPlaneOptions,
  closers: AsyncDisposableStack,
): Promise<ControlPlane> {
  const { folder, timers, log, signal } = options;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const store =
    options.store === 'memory' ? createMemoryStore() : await openLmdbStore({ directory: join(folder, 'store'), log });
  closers.defer(() => store.close());
  const pki = await openPki(folder);
  const certificates = {
    authority: createAuthority(pki, DEFAULT_LIFETIME_MILLIS, Date.now),
    authorizer: privilegedOr(),
  };
  const { issue, issueLegacy } = createTokenIssuer(pki, TOKEN_ISSUER, timers.now);
  const catalog = createCatalog(kinds);
  const inner = await createRegistry({ store, catalog, timers, log, serviceCidr: SERVICE_CIDR, issueToken: issue });
  closers.defer(() => inner.close());
  const late = lateAuthorizers();
  const refusals: string[] = [];
  const onRefusal: OnRefusal = ({ user, verb, ...asked }, reason) => {
    if (!isOfGonePod(reason)) refusals.push(`${user.name} may not ${verb} ${JSON.stringify(asked)}: ${reason}`);
  };
  const { backend: registry, idle } = countedBackend(authorizedBackend(inner, late.components, onRefusal));
  closers.defer(idle);
  const { apiServerPort, kubeconfig } = await serve(options, { backend: registry, catalog, pki }, closers);
  const systemObjects = () => bootstrap(apiFor(registry, API_SERVER), { serviceCidr: SERVICE_CIDR, apiServerPort });
  await systemObjects();
  await ensureRoles(apiFor(registry, API_SERVER));
  const informers = createSharedInformers({ client: clientFor(registry, API_SERVER), timers, log });
  late.connect(createAuthorizers({ informers, signal }));
  const informersOf = (user: UserInfo): SharedInformers =>
    informersOfUser({ informers, authorizer: late.components, onRefusal, timers }, user);
  return {
    registry,
    informers,
    informersOf,
    refusals,
    kubeconfig,
    async startLoops({ controllers }) {
      const shared = { timers, log, signal };
      const readByAll = informersOf(CONTROLLER_MANAGER);
      const optionsOf = (name: ControllerName): ControllerOptions => ({
        ...shared,
        informers: readByAll,
        client: clientFor(registry, controllerUser(name)),
      });
      const scheduler = clientFor(registry, SCHEDULER);
      await Promise.all([
        startScheduler({
          ...shared,
          informers: informersOf(SCHEDULER),
          client: scheduler,
          schedulerName: 'default-scheduler',
        }),
        controllers &&
          startControllers({
            optionsOf,
            catalog,
            caPem: pki.caCertificate,
            issueLegacyToken: issueLegacy,
            bootstrap: systemObjects,
            recordLimits: parseRecordLimits(DEFAULT_RECORD_AGE, DEFAULT_RECORD_SIZE),
            folders: createLocalFolders(folder, 'node-1'),
            ...certificates,
          }),
      ]);
    },
  };
}

/**
 * Resolves with the server's port and the path of the administrator's kubeconfig. Without HTTPS, the port is 6443 and the path undefined.
 */
async function serve(
  { https, folder, nodes, timers, log }: ControlPlaneOptions,
  parts: Pick<ApiServerOptions, 'backend' | 'catalog' | 'pki'>,
  closers: AsyncDisposableStack,
): Promise<{ apiServerPort: number; kubeconfig: string | undefined }> {
  if (!https) return { apiServerPort: 6443, kubeconfig: undefined };
  const api = await startApiServer({ ...parts, nodes, host: HOST, port: 0, version: LIFEPOD_VERSION, timers, log });
  closers.defer(() => api.close());
  const kubeconfig = join(folder, 'kubeconfig');
  writeKubeconfig(kubeconfig, { server: `https://${HOST}:${api.port}`, pki: parts.pki });
  return { apiServerPort: api.port, kubeconfig };
}
