/** The container that a probe or hook is for, and its address. */
import type { Container, HTTPGetAction, Pod } from '../../api/generated/types.ts';
import type { HttpRequest } from './http.ts';

export interface HandlerTarget {
  pod: Pod;
  container: Container;
  containerId: string;
  /** The Pod's primary address (the node's, with host network); empty while it has none. */
  podIp: string;
}

/**
 * Resolves a port number, or a name in the container's ports. Throws if the container has no port of that name, or the number is out
 * of range. Source: pkg/probe ResolveContainerPort of v1.33.
 */
export function resolvePort(port: number | string, { ports }: Container): number {
  const named = typeof port === 'number' ? undefined : ports?.find(({ name }) => name === port)?.containerPort;
  // A string of digits is a port number unless a port has it as its name.
  if (typeof port === 'string' && named === undefined && !/^[+-]?\d+$/.test(port))
    throw new Error(`strconv.Atoi: parsing ${JSON.stringify(port)}: invalid syntax`);
  const number = named ?? Number(port);
  if (!(number > 0 && number < 65536)) throw new Error(`invalid port number: ${number}`);
  return number;
}

/** The host of the handler, else the Pod's address. Throws if there is neither. */
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

/** The Kubernetes release whose behavior this follows; part of the User-Agent. */
export const KUBERNETES_MINOR = '1.33';
