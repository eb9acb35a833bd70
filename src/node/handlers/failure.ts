/**
 * The errors of probes and hooks, with the messages of Go's net and net/http, which the kubelet shows. Only a HandlerFailure makes a probe
 * fail; after any other error, for example of the node, its result is Unknown.
 */
import { isIPv6 } from 'node:net';

/** The container failed the probe or hook. */
export class HandlerFailure extends Error {
  override readonly name = 'HandlerFailure';
}

/** A handler's signal aborts with this reason when its timeout has expired. */
export class DeadlineExceeded extends Error {
  override readonly name = 'DeadlineExceeded';
  constructor() {
    super('context deadline exceeded');
  }
}

/** `errors`: one error per address if the host name resolves to several addresses. */
export type SocketError = NodeJS.ErrnoException & { errors?: readonly NodeJS.ErrnoException[] };

/** As `address:port`. */
export interface Ends {
  local: string;
  remote: string;
}

export const joinHostPort = (host: string, port: number): string =>
  isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;

/** Go's texts for the errors that the network or the peer can cause. */
const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset by peer',
  ECONNABORTED: 'software caused connection abort',
  EHOSTUNREACH: 'no route to host',
  EHOSTDOWN: 'host is down',
  ENETUNREACH: 'network is unreachable',
  ETIMEDOUT: 'connection timed out',
  EPIPE: 'broken pipe',
  EADDRNOTAVAIL: 'cannot assign requested address',
  EACCES: 'permission denied',
  EINVAL: 'invalid argument',
};

/** Returns undefined if the node caused the error, for example by a lack of file descriptors. */
export function dialFailure(error: SocketError, host: string, port: number): string | undefined {
  const first = error.errors?.[0] ?? error;
  if (first.code === 'ENOTFOUND') return `dial tcp: lookup ${host}: no such host`;
  if (first.code === 'EAI_AGAIN') return `dial tcp: lookup ${host}: Temporary failure in name resolution`;
  const reason = REASONS[first.code ?? ''];
  const address = (first as { address?: string }).address ?? host;
  return reason === undefined ? undefined : `dial tcp ${joinHostPort(address, port)}: connect: ${reason}`;
}

/** Returns undefined if neither the network nor the peer caused the error on the open connection. */
export function transferFailure(error: SocketError, ends: Ends): string | undefined {
  const reason = REASONS[error.code ?? ''];
  const call = error.syscall;
  return reason === undefined || (call !== 'read' && call !== 'write')
    ? undefined
    : `${call} tcp ${ends.local}->${ends.remote}: ${call}: ${reason}`;
}
