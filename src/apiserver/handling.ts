import { createMetrics, type Metrics } from '../platform/metrics.ts';
import type { Audit } from './audit/audit.ts';
import { createAuthentication } from './auth/authentication/authenticate.ts';
import { createObjectReader, createSecretLabeler } from './auth/authentication/bound-objects.ts';
import { privilegedOr } from './auth/authorization/authorizer.ts';
import { issuerDocuments, type ServeIssuer } from './discovery/token-issuer.ts';
import { bodyReader } from './http/body-reader.ts';
import { type EnterFlight, requestsInFlight } from './http/bounds/in-flight.ts';
import { DEFAULT_LIMITS, limitedWaits, places } from './http/bounds/limits.ts';
import type { OutgoingBudget } from './http/bounds/outgoing.ts';
import { unfinishedParts } from './http/bounds/unfinished.ts';
import type { ServerContext } from './http/context.ts';
import type { HealthChecks } from './http/health.ts';
import { createRequestMetrics, type RequestMetrics } from './http/request-metrics.ts';
import { versionInfo } from './http/version.ts';
import { type OpenApi, openApi } from './openapi/openapi.ts';
import { TOKEN_ISSUER, tokenKeyOf } from './pki/tokens.ts';
import type { EndWorkloads } from './serve-end-workloads.ts';
import type { ApiServerOptions } from './server.ts';
import { createStreamRoom } from './streaming/spdy/stream-limit.ts';

export interface Handling extends ServerContext {
  documents: OpenApi;
  outgoing: OutgoingBudget;
  version: Record<string, string>;
  serveIssuer: ServeIssuer;
  metrics: Metrics;
  measure: RequestMetrics;
  enterFlight: EnterFlight;
  audit?: Audit | undefined;
  rotateKey?: (() => Promise<number>) | undefined;
  copyStore?: (() => Promise<void>) | undefined;
  endWorkloads?: EndWorkloads | undefined;
  liveChecks: HealthChecks;
  readyChecks: HealthChecks;
}

/** `readyChecks`: the checks of /readyz in addition to ping. */
export function createHandling(
  options: ApiServerOptions,
  outgoing: OutgoingBudget,
  readyChecks: HealthChecks,
): Handling {
  const limits = options.limits ?? DEFAULT_LIMITS;
  const unfinished = unfinishedParts();
  const ping = () => undefined;
  const metrics = options.metrics ?? createMetrics();
  const measure = createRequestMetrics(metrics);
  return {
    ...options,
    metrics,
    measure,
    enterFlight: requestsInFlight(limits, options.timers, measure),
    authorizer: privilegedOr(options.authorizer),
    documents: openApi(options.catalog, options.version),
    version: versionInfo(options.version, options.gitCommit, options.buildDate),
    serveIssuer: issuerDocuments(options.pki, TOKEN_ISSUER),
    outgoing,
    watches: places(limits.watches),
    streams: places(limits.streams),
    forwarded: createStreamRoom(limits.forwarded),
    unfinished,
    bodies: bodyReader(unfinished),
    waits: limitedWaits(limits.waiting),
    authentication: createAuthentication({
      ...options.authentication,
      tokenKey: tokenKeyOf(options.pki),
      issuer: TOKEN_ISSUER,
      read: createObjectReader(options.backend),
      labelSecret: createSecretLabeler(options.backend, options.log),
      now: options.timers.now,
      certificateNow: (options.clock ?? options.timers).now,
      log: options.log,
    }),
    liveChecks: { ping },
    readyChecks: { ping, ...readyChecks },
  };
}
