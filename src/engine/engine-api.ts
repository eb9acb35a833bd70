/** Opens the store and the registry of API objects, and starts the HTTPS server of the API. */
import { join } from 'node:path';
import { createCatalog, type KindCatalog } from '../api/catalog.ts';
import { kinds } from '../api/kinds.ts';
import { kubernetesServiceAddress } from '../apiserver/admission/service-range.ts';
import { ensureRoles } from '../apiserver/auth/authorization/bootstrap/ensure-roles.ts';
import { writeKubeconfig } from '../apiserver/pki/kubeconfig.ts';
import { loadOrCreatePki, type Pki } from '../apiserver/pki/pki.ts';
import { createTokenIssuer, TOKEN_ISSUER, type TokenIssuer } from '../apiserver/pki/tokens.ts';
import { bootstrap } from '../apiserver/registry/bootstrap.ts';
import { createRegistry, type Registry } from '../apiserver/registry/registry.ts';
import { startApiServer } from '../apiserver/server.ts';
import type { Metrics } from '../platform/metrics.ts';
import type { Platform } from '../platform/platform.ts';
import { apiFor } from '../ports/api-for.ts';
import { openLmdbStore } from '../store/lmdb/lmdb-store.ts';
import { measuredStore } from '../store/measured-store.ts';
import { authenticationSettings } from './authentication/authentication-settings.ts';
import { type LateAuthorizer, lateAuthorizer } from './authorization/late-authorizer.ts';
import { addStorageMetrics, type EngineMetrics } from './engine-metrics.ts';
import type { LateNode } from './node-placeholder.ts';
import { kubeconfigPath, recordOf, type Settings, writeEngineRecord } from './settings.ts';
import { together } from './settle-all.ts';
import { API_SERVER } from './users.ts';
import { LIFEPOD_VERSION } from './version.ts';

export const HOST = '127.0.0.1';
export const CLUSTER_DOMAIN = 'cluster.local';

export interface OpenRegistry {
  registry: Registry;
  /** The kinds that the registry and the API server serve. */
  catalog: KindCatalog;
  pki: Pki;
  /** Issues the tokens of ServiceAccounts. */
  tokens: TokenIssuer;
  /** Decides what the users of the API may do, once it is connected. */
  authorization: LateAuthorizer;
}

/** Opens the store and the registry, and adds the functions that close them to `closers`. Reads or creates the certificates. */
export async function openRegistry(
  settings: Settings,
  { timers, log }: Platform,
  closers: AsyncDisposableStack,
  metrics: Metrics,
): Promise<OpenRegistry> {
  const { dataDir, serviceCidr, nodeName } = settings;
  const [store, pki] = await together([
    openLmdbStore({ directory: join(dataDir, 'store'), log }).then((opened) => {
      closers.defer(() => opened.close());
      return opened;
    }),
    loadOrCreatePki(dataDir, {
      hostnames: [nodeName],
      ips: [kubernetesServiceAddress(serviceCidr)],
      now: timers.now(),
    }),
  ]);
  const tokens = createTokenIssuer(pki, TOKEN_ISSUER, timers.now);
  const measured = measuredStore(store, metrics);
  const catalog = createCatalog(kinds);
  const { issue: issueToken } = tokens;
  const authorization = lateAuthorizer();
  const { authorizer } = authorization;
  const services = { store: measured, catalog, timers, log, serviceCidr };
  const registry = await createRegistry({ ...services, issueToken, authorizer });
  closers.defer(() => registry.close());
  return { registry, catalog, pki, tokens, authorization };
}

interface ServerParts {
  nodes: LateNode;
  metrics: EngineMetrics;
}

/**
 * Starts the API server, creates the system objects, writes the kubeconfig and the engine record, and resolves with the port of the server.
 * Adds the function that stops the server to `closers`.
 */
export async function serveApi(
  settings: Settings,
  { timers, log }: Platform,
  closers: AsyncDisposableStack,
  { registry, catalog, pki, authorization, nodes, metrics }: OpenRegistry & ServerParts,
): Promise<number> {
  const { dataDir, serviceCidr } = settings;
  addStorageMetrics(metrics.all, registry, catalog, dataDir);
  const api = await startApiServer({
    backend: registry,
    catalog,
    nodes,
    pki,
    authorizer: authorization.authorizer,
    authentication: authenticationSettings(settings),
    host: HOST,
    port: settings.port,
    version: LIFEPOD_VERSION,
    timers,
    log,
    metrics: metrics.all,
  });
  closers.defer(() => api.close());
  const client = apiFor(registry, API_SERVER);
  await bootstrap(client, { serviceCidr, apiServerPort: api.port });
  // A full disk must not prevent the start. Members of system:masters need no roles.
  await ensureRoles(client).catch((error: Error) => log.error('cannot create all roles', { error: error.message }));
  writeKubeconfig(kubeconfigPath(dataDir), { server: `https://${HOST}:${api.port}`, pki });
  writeEngineRecord(dataDir, recordOf(settings, api.port));
  return api.port;
}
