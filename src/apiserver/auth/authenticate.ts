/**
 * Authenticates users by client certificate: the common name (CN) is the user name, and each organization (O) is a group. Each user
 * is also in the group system:authenticated.
 * Source: v1.33 X.509 client certificates.
 */
import type { TLSSocket } from 'node:tls';
import type { UserInfo } from '../../ports/request.ts';

/**
 * Returns the user. Returns undefined if the client presents no certificate from lifepod's authority, or if the subject of the
 * certificate does not have exactly one common name or the name is empty.
 */
export function authenticate(socket: TLSSocket): UserInfo | undefined {
  // `authorized` is true only if TLS has verified that the certificate comes from lifepod's authority.
  if (!socket.authorized) return undefined;
  const subject: Record<string, string | string[] | undefined> = { ...socket.getPeerCertificate().subject };
  const name = subject['CN'];
  if (typeof name !== 'string' || name === '') return undefined;
  const organizations = subject['O'];
  const groups = organizations === undefined ? [] : Array.isArray(organizations) ? organizations : [organizations];
  return { name, groups: [...groups, 'system:authenticated'] };
}
