/**
 * What a probe or hook finds wrong, in upstream's words: those of Go's net and net/http, which the kubelet shows.
 * Every other error is the node's own and says nothing of the container.
 */
import { isIPv6 } from 'node:net';

/** The container did not answer as it should. */
export class HandlerFailure extends Error {
  override readonly name = 'HandlerFailure';
}

/** The reason with which a handler's signal aborts when its time is up. */
export class DeadlineExceeded extends Error {
  override readonly name = 'DeadlineExceeded';
  constructor() {
    super('context deadline exceeded');
  }
}

/** An error as Node.js's sockets give it; with several where a name had several addresses. */
export type SocketError = NodeJS.ErrnoException & { errors?: readonly NodeJS.ErrnoException[] };

/** The two ends of a connection, as `address:port`. */
export interface Ends {
  local: string;
  remote: string;
}

export const joinHostPort = (host: string, port: number): string =>
  isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;

/** strerror(3) of what a network says of a peer. */
const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset by peer',
  ECONNABORTED: 'software caused connection abort',
  EHOSTUNREACH: 'no route to host',
  EHOSTDOWN: 'host is down',
  ENETUNREACH: 'network is unreachable',
  ETIMEDOUT: 'connection timed out',
  EPIPE: 'broken pipe',
  EACCES: 'permission denied',
  EINVAL: 'invalid argument',
};

/** Of a connection that could not be opened; undefined where the node itself is short of something. */
export function dialFailure(error: SocketError, host: string, port: number): string | undefined {
  const first = error.errors?.[0] ?? error;
  if (first.code === 'ENOTFOUND') return `dial tcp: lookup ${host}: no such host`;
  if (first.code === 'EAI_AGAIN') return `dial tcp: lookup ${host}: Temporary failure in name resolution`;
  const reason = REASONS[first.code ?? ''];
  const address = (first as { address?: string }).address ?? host;
  return reason === undefined ? undefined : `dial tcp ${joinHostPort(address, port)}: connect: ${reason}`;
}

/** Of a connection that was open; undefined where the error is none of the network's. */
export function transferFailure(error: SocketError, ends: Ends): string | undefined {
  const reason = REASONS[error.code ?? ''];
  const call = error.syscall;
  return reason === undefined || (call !== 'read' && call !== 'write')
    ? undefined
    : `${call} tcp ${ends.local}->${ends.remote}: ${call}: ${reason}`;
}
