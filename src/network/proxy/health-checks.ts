/**
 * Answers health checks of load balancers: a Service with externalTrafficPolicy Local has a port at which this node reports whether it has
 * endpoints of the Service. The ports are open on all addresses of the node, so the number of connections is limited.
 * Source: pkg/proxy/healthcheck of v1.33 (paths, status codes, headers and body).
 */
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Service } from '../../api/generated/types.ts';
import { createServer } from '../../platform/builtins/http.ts';

export interface HealthChecks {
  /** Opens, updates or closes the port of the Service with the key. `service`: undefined if the Service does not exist. */
  update(key: string, service: Service | undefined, localEndpoints: number): void;
  /** Sets whether the last change of the rules has succeeded. */
  setHealthy(isHealthy: boolean): void;
  close(): void;
}

/** The limits of one port, and of all ports. Further connections are closed. */
const MOST_CONNECTIONS = 64;
const MOST_CONNECTIONS_IN_TOTAL = 512;
/** The limit for the headers of a request, and for the whole request. */
const REQUEST_MILLIS = 5000;
const CHECKING_MILLIS = 1000;
const LIMITS = {
  headersTimeout: REQUEST_MILLIS,
  requestTimeout: REQUEST_MILLIS,
  connectionsCheckingInterval: CHECKING_MILLIS,
};

interface Check {
  service: Service;
  port: number;
  localEndpoints: number;
  server: Server;
}

function limitTotal(): (socket: Socket) => void {
  let count = 0;
  return (socket) => {
    if (count >= MOST_CONNECTIONS_IN_TOTAL) {
      socket.destroy();
      return;
    }
    count += 1;
    socket.once('close', () => {
      count -= 1;
    });
  };
}

function answer(response: ServerResponse, { service, localEndpoints }: Check, isHealthy: boolean): void {
  const { namespace, name } = service.metadata;
  response.writeHead(localEndpoints > 0 && isHealthy ? 200 : 503, {
    connection: 'close',
    'content-type': 'application/json',
    'x-content-type-options': 'nosniff',
    'x-load-balancing-endpoint-weight': String(localEndpoints),
  });
  const body = { service: { namespace, name }, localEndpoints, serviceProxyHealthy: isHealthy };
  response.end(JSON.stringify(body, null, '\t'));
}

/**
 * Calls `failed` if a port cannot be opened; the next update of the Service tries again. A Service waits while another Service has its
 * port.
 */
export function createHealthChecks(failed: (service: Service, port: number, error: Error) => void): HealthChecks {
  const checks = new Map<string, Check>();
  const waiting = new Map<string, { service: Service; localEndpoints: number }>();
  const limit = limitTotal();
  let isHealthy = true;

  const open = (key: string, service: Service, port: number, localEndpoints: number): void => {
    const server = createServer(LIMITS, (_, response) => answer(response, check, isHealthy));
    const check: Check = { service, port, localEndpoints, server };
    server.on('error', (error) => {
      if (checks.get(key) === check) checks.delete(key);
      failed(check.service, port, error);
    });
    server.maxConnections = MOST_CONNECTIONS;
    server.prependListener('connection', limit);
    server.listen(port);
    // An open port must not keep the process alive after all its other work has ended.
    server.unref();
    checks.set(key, check);
  };

  const openOrWait = (key: string, service: Service, localEndpoints: number): void => {
    const port = portOf(service);
    if ([...checks.values()].some((check) => check.port === port)) waiting.set(key, { service, localEndpoints });
    else open(key, service, port, localEndpoints);
  };

  const close = (key: string): void => {
    const check = checks.get(key);
    if (check === undefined) return;
    checks.delete(key);
    check.server.close();
    check.server.closeAllConnections();
    for (const [other, { service, localEndpoints }] of waiting) {
      if (portOf(service) !== check.port) continue;
      waiting.delete(other);
      openOrWait(other, service, localEndpoints);
    }
  };

  return {
    update(key, service, localEndpoints) {
      const port = service === undefined ? 0 : portOf(service);
      const check = checks.get(key);
      waiting.delete(key);
      if (check !== undefined && check.port !== port) close(key);
      if (service === undefined || port === 0) return;
      if (check?.port === port) Object.assign(check, { service, localEndpoints });
      else openOrWait(key, service, localEndpoints);
    },
    setHealthy(healthy) {
      isHealthy = healthy;
    },
    close() {
      waiting.clear();
      [...checks.keys()].forEach(close);
    },
  };
}

/** Returns the port for health checks of the Service; 0 if it has none. */
const portOf = ({ spec }: Service): number =>
  spec?.externalTrafficPolicy === 'Local' && spec.type === 'LoadBalancer' ? (spec.healthCheckNodePort ?? 0) : 0;
