import type { Container, HTTPGetAction, Pod } from '../../api/generated/types.ts';
import type { HttpRequest } from './http.ts';

export interface HandlerTarget {
  pod: Pod;
  container: Container;
  containerId: string;
  /** The Pod's primary IP address (with the host network, the node's); empty while the Pod has none. */
  podIp: string;
}

/**
 * `port`: a number, or the name of a port of the container. Throws if the container has no port of that name, or the number is out of
 * range. Source: pkg/probe ResolveContainerPort of v1.33.
 */
export function resolvePort(port: number | string, { ports }: Container): number {
  const named = typeof port === 'number' ? undefined : ports?.find(({ name }) => name === port)?.containerPort;
  // A string of digits is a port number, unless a port has these digits as its name.
  if (typeof port === 'string' && named === undefined && !/^[+-]?\d+$/.test(port))
    throw new Error(`strconv.Atoi: parsing ${JSON.stringify(port)}: invalid syntax`);
  const number = named ?? Number(port);
  if (!(number > 0 && number < 65536)) throw new Error(`invalid port number: ${number}`);
  return number;
}

/** Throws if there is neither a host nor an address of the Pod. */
export function resolveHost(host: string | undefined, { podIp }: HandlerTarget): string {
  const resolved = host || podIp;
  if (resolved === '') throw new Error('the Pod has no address yet');
  return resolved;
}

/** `purpose` becomes part of the User-Agent. */
export function httpRequest(target: HandlerTarget, action: HTTPGetAction, purpose: 'probe' | 'lifecycle'): HttpRequest {
  return {
    scheme: action.scheme?.toLowerCase() === 'https' ? 'https' : 'http',
    host: resolveHost(action.host, target),
    port: resolvePort(action.port, target.container),
    path: action.path ?? '',
    headers: action.httpHeaders ?? [],
    userAgent: `kube-${purpose}/${KUBERNETES_MINOR}`,
  };
}

/** The Kubernetes release whose behavior probes and hooks follow; part of the User-Agent. */
export const KUBERNETES_MINOR = '1.33';
