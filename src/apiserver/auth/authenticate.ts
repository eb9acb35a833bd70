/** Who asks: the client certificate says it, CN the user, O the groups. Source: v1.33 X.509 client certificates. */
import type { TLSSocket } from 'node:tls';
import type { UserInfo } from '../../ports/backend.ts';

/** The user, or undefined where the client shows no certificate of our authority. */
export function authenticate(socket: TLSSocket): UserInfo | undefined {
  // TLS has verified the chain against our authority alone; authorized is false without a certificate, too.
  if (!socket.authorized) return undefined;
  const subject: Record<string, string | string[] | undefined> = { ...socket.getPeerCertificate().subject };
  const name = subject['CN'];
  if (typeof name !== 'string' || name === '') return undefined;
  const organizations = subject['O'];
  const groups = organizations === undefined ? [] : Array.isArray(organizations) ? organizations : [organizations];
  return { name, groups: [...groups, 'system:authenticated'] };
}
