/** Each call for exec, attach and port-forward resolves with the URL at which the runtime serves the streams. */
import { isIPv4 } from 'node:net';
import type { StreamSelection } from '../../ports/node-connection.ts';
import type { ContainerStreams } from '../runtime.ts';
import type { Connection } from './connection.ts';

const SERVICE = 'runtime.v1.RuntimeService';

export function streamCalls(connection: Connection): ContainerStreams {
  const urlFrom = async (method: string, request: object, signal: AbortSignal): Promise<string> => {
    const { url } = await connection.unary<{ url: string }>(`${SERVICE}/${method}`, request, signal);
    return requireLoopback(url);
  };
  const streams = ({ stdin, stdout, stderr, tty }: StreamSelection): StreamSelection => ({
    stdin,
    stdout,
    stderr,
    tty,
  });
  return {
    exec: (id, command, wanted, signal) =>
      urlFrom('Exec', { containerId: id, cmd: command, ...streams(wanted) }, signal),
    attach: (id, wanted, signal) => urlFrom('Attach', { containerId: id, ...streams(wanted) }, signal),
    portForward: (sandboxId, ports, signal) => urlFrom('PortForward', { podSandboxId: sandboxId, port: ports }, signal),
  };
}

/** Returns `url` unchanged. Throws if it is not an http URL on loopback: other machines must not have access to the unencrypted streams. */
export function requireLoopback(url: string): string {
  const { protocol, hostname } = new URL(url);
  const loopback =
    hostname === 'localhost' || hostname === '[::1]' || (isIPv4(hostname) && hostname.startsWith('127.'));
  if (protocol === 'http:' && loopback) return url;
  throw new Error(
    `the container runtime serves its streams at ${protocol}//${hostname}, not with http on loopback: set its stream address to 127.0.0.1, without TLS`,
  );
}
