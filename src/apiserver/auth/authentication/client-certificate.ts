/**
 * Authenticates users by client certificate: the common name (CN) is the user name, and each organization (O) is a group.
 * Source: k8s.io/apiserver/pkg/authentication/request/x509 of v1.33.
 */
import type { TLSSocket } from 'node:tls';
import {
  AUTHENTICATED_GROUP,
  type Authenticated,
  CREDENTIAL_ID,
  CredentialError,
  type RequestAuthenticator,
} from './credentials.ts';

/** The users of connections, because parsing a certificate takes longer than a small request. */
const known = new WeakMap<TLSSocket, Authenticated>();

/**
 * Returns undefined if the client presents no certificate, or if the subject of the certificate does not have exactly one common name.
 * Throws a CredentialError if the certificate is not a valid one of lifepod's authority.
 */
export const clientCertificate: RequestAuthenticator = ({ socket }) => {
  const connection = socket as TLSSocket;
  const found = known.get(connection) ?? userOf(connection);
  if (found !== undefined) known.set(connection, found);
  return found;
};

function userOf(socket: TLSSocket): Authenticated | undefined {
  const certificate = socket.getPeerCertificate();
  if (certificate?.subject === undefined) return undefined;
  // `authorized` is true only if TLS has verified that the certificate comes from lifepod's authority.
  if (!socket.authorized) throw new CredentialError(`verifying certificate failed: ${socket.authorizationError}`);
  const subject: Record<string, string | string[] | undefined> = { ...certificate.subject };
  const name = subject['CN'];
  if (typeof name !== 'string' || name === '') return undefined;
  const organizations = subject['O'] ?? [];
  const groups = Array.isArray(organizations) ? organizations : [organizations];
  const fingerprint = certificate.fingerprint256.replaceAll(':', '').toLowerCase();
  return {
    user: {
      name,
      // With this group, requests of the connection share one user.
      groups: groups.includes(AUTHENTICATED_GROUP) ? groups : [...groups, AUTHENTICATED_GROUP],
      extra: { [CREDENTIAL_ID]: [`X509SHA256=${fingerprint}`] },
    },
  };
}
