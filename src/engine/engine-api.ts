/** Opens the store and the registry of API objects, and starts the HTTPS server of the API. */
import { join } from 'node:path';
import { createCatalog, type KindCatalog } from '../api/catalog.ts';
import { kinds } from '../api/kinds.ts';
import type { Audit } from '../apiserver/audit/audit.ts';
import { ensureRoles } from '../apiserver/auth/authorization/bootstrap/ensure-roles.ts';
import { authorizedBackend, type OnRefusal } from '../apiserver/auth/authorized-backend.ts';
import { UnreadableValueError } from '../apiserver/encryption/encrypted-store.ts';
import { openEncryptedStore } from '../apiserver/encryption/encryption.ts';
import { DEFAULT_LIMITS } from '../apiserver/http/bounds/limits.ts';
import type { Pki } from '../apiserver/pki/pki.ts';
import { createTokenIssuer, TOKEN_ISSUER, type TokenIssuer } from '../apiserver/pki/tokens.ts';
import { bootstrap } from '../apiserver/registry/bootstrap.ts';
import { createRegistry, type Registry } from '../apiserver/registry/registry.ts';
import { ensureKubernetesEndpoints } from '../apiserver/registry/system-endpoints/kubernetes-endpoints.ts';
import type { EndWorkloads } from '../apiserver/serve-end-workloads.ts';
import { startApiServer } from '../apiserver/server.ts';
import type { Metrics } from '../platform/metrics.ts';
import { machineClock } from '../platform/node-js.ts';
import type { Platform } from '../platform/platform.ts';
import { together } from '../platform/settle.ts';
import { apiFor } from '../ports/api-for.ts';
import { API_SERVER } from '../ports/request.ts';
import { copyLmdbFile } from '../store/lmdb/copy-file.ts';
import type { FileStore } from '../store/lmdb/file-store.ts';
import { openLmdbStore } from '../store/lmdb/lmdb-store.ts';
import { measuredStore } from '../store/measured-store.ts';
import { openAuditLog } from './audit/audit-log.ts';
import { authenticationSettings } from './authentication/authentication-settings.ts';
import { reportRefusals } from './authorization/components.ts';
import { type LateAuthorizers, lateAuthorizers } from './authorization/late-authorizer.ts';
import { loadCertificates, publishCertificates } from './certificates/certificates.ts';
import { recordStarted } from './data-folder/lock-line.ts';
import { removeAbandonedCopy, storeCopier } from './data-folder/store-copy.ts';
import { addStorageMetrics, type EngineMetrics } from './engine-metrics.ts';
import type { LateNode } from './node-placeholder.ts';
import { addressForPods, listenAddresses, requestsInFlight } from './options/api-settings.ts';
import type { Settings } from './settings.ts';
import { type StartProgress, settledByWrites } from './start/first-start.ts';
import { buildDate, gitCommit, SERVED_VERSION } from './version.ts';

export const CLUSTER_DOMAIN = 'cluster.local';

export interface OpenRegistry {
  /** Authorizes the calls of components, and records them in the audit log. */
  registry: Registry;
  /** The same registry for the API server, which records the requests of its clients itself. */
  served: Registry;
  audit?: Audit | undefined;
  catalog: KindCatalog;
  pki: Pki;
  tokens: TokenIssuer;
  /** Decisions wait until connect() is called. */
  authorization: LateAuthorizers;
  onRefusal: OnRefusal;
  /** Resolves with the number of values that are encrypted with the new key. */
  rotateKey: () => Promise<number>;
  copyStore: () => Promise<void>;
}

/** Adds the functions that close the store and the registry to `closers`. */
export async function openRegistry(
  settings: Settings,
  { timers, log }: Platform,
  closers: AsyncDisposableStack,
  metrics: Metrics,
  { formerKeys, writing }: Pick<StartProgress, 'formerKeys' | 'writing'>,
): Promise<OpenRegistry> {
  const { dataDir, serviceCidr, encryptionProviderConfig: configFile } = settings;
  const directory = join(dataDir, 'store');
  removeAbandonedCopy(dataDir);
  let file: FileStore | undefined;
  const [{ store, rotateKey, explain }, pki] = await together([
    openEncryptedStore({
      dataDir,
      configFile,
      formerFile: formerKeys,
      beforeWrite: writing,
      openStore: async () => {
        file = await openLmdbStore({ directory, log });
        return file;
      },
      copyFile: () => copyLmdbFile(directory),
      log,
    }).then((opened) => {
      closers.defer(() => opened.store.close());
      return opened;
    }),
    loadCertificates(settings, timers.now()),
  ]);
  const tokens = createTokenIssuer(pki, TOKEN_ISSUER, timers.now);
  const catalog = createCatalog(kinds);
  const { issue: issueToken } = tokens;
  const authorization = lateAuthorizers();
  const services = { store: measuredStore(store, metrics), catalog, timers, log, serviceCidr };
  const served = await createRegistry({ ...services, issueToken, authorizer: authorization.clients }).catch(
    async (error: unknown) => {
      throw error instanceof UnreadableValueError ? await explain(error) : error;
    },
  );
  writing();
  closers.defer(() => served.close());
  const onRefusal = reportRefusals({ timers, log }, metrics);
  const { audit, record } = await openAuditLog(settings, { timers, log }, metrics);
  closers.defer(() => audit?.close());
  const authorized = authorizedBackend(served, authorization.components, onRefusal);
  const copy = storeCopier(() => file as FileStore, dataDir);
  const registry = record(authorized);
  return { registry, served, audit, catalog, pki, tokens, authorization, onRefusal, rotateKey, copyStore: copy };
}

interface ServerParts {
  nodes: LateNode;
  metrics: EngineMetrics;
  /** Absent: nothing is recorded. */
  progress?: Pick<StartProgress, 'listening' | 'settle'>;
  /** Called when clients can use the API. */
  listening?(): void;
  /**
   * Adds the port of the API to the rules of the network, and resolves when they are in effect. Before that, the API server listens only on
   * its first address. Absent: there is no network of Pods, and the API server never listens on other addresses.
   */
  protect?: (port: number) => Promise<void>;
  /** Absent: no client can end the workloads. */
  endWorkloads?: EndWorkloads;
}

/** Starts the API server, creates the system objects and writes the kubeconfig. Resolves with the port of the server. */
export async function serveApi(
  settings: Settings,
  { timers, log }: Platform,
  closers: AsyncDisposableStack,
  {
    registry,
    served,
    audit,
    catalog,
    pki,
    authorization,
    rotateKey,
    copyStore: copy,
    nodes,
    metrics,
    progress,
    listening,
    protect,
    endWorkloads,
  }: OpenRegistry & ServerParts,
): Promise<number> {
  const { dataDir, serviceCidr } = settings;
  addStorageMetrics(metrics.all, served, catalog, dataDir);
  const [host, ...others] = listenAddresses(settings);
  const api = await startApiServer({
    backend: progress === undefined ? served : settledByWrites(served, progress.settle),
    audit,
    catalog,
    nodes,
    pki,
    authorizer: authorization.clients,
    rotateKey,
    copyStore: copy,
    endWorkloads,
    authentication: authenticationSettings(settings),
    host,
    port: settings.port,
    version: SERVED_VERSION,
    gitCommit: gitCommit(),
    buildDate: buildDate(),
    timers,
    clock: machineClock,
    log,
    metrics: metrics.all,
    limits: { ...DEFAULT_LIMITS, inFlight: requestsInFlight(settings) },
    http2: settings.disableHttp2Serving !== 'true',
  });
  closers.defer(() => api.close());
  if (protect !== undefined) {
    await protect(api.port);
    for (const other of others) await api.listenOn(other);
  }
  const client = apiFor(registry, API_SERVER);
  await bootstrap(client, { serviceCidr, apiServerPort: api.port });
  // The start continues if roles cannot be created, for example because the disk is full. Members of system:masters need no roles.
  await ensureRoles(client).catch((error: Error) => log.error('cannot create all roles', { error: error.message }));
  // Containers wait for the first rules for Services, which must lead to the API. If this write fails, a controller repeats it.
  await ensureKubernetesEndpoints(client, { ip: addressForPods(settings), port: api.port }).catch((error: Error) =>
    log.error('cannot write the endpoints of the Service kubernetes', { error: error.message }),
  );
  publishCertificates(settings, { timers, log }, closers, { api, pki });
  progress?.listening(api.port);
  recordStarted(dataDir);
  listening?.();
  return api.port;
}
