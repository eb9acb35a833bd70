/** Authentication by client certificate: CN is the user, O the groups. Source: v1.33 X.509 client certificates. */
import type { TLSSocket } from 'node:tls';
import type { UserInfo } from '../../ports/backend.ts';

/** Returns the user, or undefined if the client presents no certificate of lifepod's authority. */
export function authenticate(socket: TLSSocket): UserInfo | undefined {
  // TLS verified the chain against lifepod's authority only. authorized is also false without a certificate.
  if (!socket.authorized) return undefined;
  const subject: Record<string, string | string[] | undefined> = { ...socket.getPeerCertificate().subject };
  const name = subject['CN'];
  if (typeof name !== 'string' || name === '') return undefined;
  const organizations = subject['O'];
  const groups = organizations === undefined ? [] : Array.isArray(organizations) ? organizations : [organizations];
  return { name, groups: [...groups, 'system:authenticated'] };
}
