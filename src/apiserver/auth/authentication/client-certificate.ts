/**
 * Authenticates users by client certificate: the common name (CN) is the user name, and each organization (O) is a group.
 * Source: k8s.io/apiserver/pkg/authentication/request/x509 of v1.33.
 */
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Millis } from '../../../machinery/time.ts';
import type { UserInfo } from '../../../ports/request.ts';
import { tlsConnectionOf } from '../../http/http2/stream-connection.ts';
import {
  AUTHENTICATED_GROUP,
  type Authenticated,
  CREDENTIAL_ID,
  CredentialError,
  type RequestAuthenticator,
} from './credentials.ts';

interface Known extends Authenticated {
  expiresAt: Millis;
}

/** Caches users, because parsing a certificate takes longer than handling a small request. */
const known = new WeakMap<TLSSocket, Known>();

/** TLS verifies a certificate only when a session begins, so the end of its validity is checked for each request. */
export const clientCertificates =
  (now: () => Millis): RequestAuthenticator =>
  ({ socket }) => {
    const connection = tlsConnectionOf(socket);
    const found = known.get(connection) ?? userOf(connection);
    if (found === undefined) return undefined;
    known.set(connection, found);
    if (isOver(found, now())) throw new CredentialError('verifying certificate failed: CERT_HAS_EXPIRED');
    return found;
  };

const isOver = ({ expiresAt }: Known, now: Millis): boolean => now > expiresAt;

/**
 * Returns the user of a connection that an earlier request has authenticated; undefined if there is none, or if the certificate has
 * expired. `socket`: the socket of a request.
 */
export function knownUser(socket: Socket, now: Millis): UserInfo | undefined {
  const found = known.get(tlsConnectionOf(socket));
  return found === undefined || isOver(found, now) ? undefined : found.user;
}

function userOf(socket: TLSSocket): Known | undefined {
  const certificate = socket.getPeerCertificate();
  if (certificate?.subject === undefined) return undefined;
  // TLS sets `authorized` if the certificate is valid and comes from lifepod's authority.
  if (!socket.authorized) throw new CredentialError(`verifying certificate failed: ${socket.authorizationError}`);
  const subject: Record<string, string | string[] | undefined> = { ...certificate.subject };
  const name = subject['CN'];
  if (typeof name !== 'string' || name === '') return undefined;
  const organizations = subject['O'] ?? [];
  const groups = Array.isArray(organizations) ? organizations : [organizations];
  const fingerprint = certificate.fingerprint256.replaceAll(':', '').toLowerCase();
  return {
    expiresAt: Date.parse(certificate.valid_to),
    user: {
      name,
      // Add the group here, so that all requests of the connection share one user object.
      groups: groups.includes(AUTHENTICATED_GROUP) ? groups : [...groups, AUTHENTICATED_GROUP],
      extra: { [CREDENTIAL_ID]: [`X509SHA256=${fingerprint}`] },
    },
  };
}
