/**
 * Finds the token in a request. A browser cannot set the header Authorization for a WebSocket, and sends the token in a subprotocol.
 * Source: RFC 6750, and k8s.io/apiserver/pkg/authentication/request/{bearertoken,websocket} of v1.33 (behavior and wording).
 */
import type { IncomingMessage } from 'node:http';
import { upgradeKind } from '../../streaming/upgrading-connection.ts';
import { CredentialError, type RequestAuthenticator, type TokenAuthenticator } from './credentials.ts';

/** Node.js has the same limit for all headers of a request together. */
const MAX_TOKEN_CHARS = 16 * 1024;
const SUBPROTOCOL = 'base64url.bearer.authorization.k8s.io.';
const PROTOCOLS = 'sec-websocket-protocol';

export function bearerToken(header: string | undefined): string | undefined {
  const [scheme = '', token = ''] = (header ?? '').trim().split(' ', 2);
  return scheme.toLowerCase() === 'bearer' && token !== '' ? token : undefined;
}

export const bearerTokens = (tokens: TokenAuthenticator, audiences: readonly string[]): RequestAuthenticator => {
  return ({ headers }) => {
    const token = bearerToken(headers.authorization);
    return token === undefined ? undefined : authenticateToken(tokens, token, audiences);
  };
};

export async function authenticateToken(tokens: TokenAuthenticator, token: string, audiences: readonly string[]) {
  const found = token.length > MAX_TOKEN_CHARS ? undefined : await tokens(token, audiences);
  if (found === undefined) throw new CredentialError('invalid bearer token');
  return found;
}

/** takeTokenProtocols() must have been called for the request. */
export const webSocketTokens = (tokens: TokenAuthenticator, audiences: readonly string[]): RequestAuthenticator => {
  return (request) => {
    const token = upgradeKind(request) === 'websocket' ? webSocketToken(taken.get(request)) : undefined;
    return token === undefined ? undefined : authenticateToken(tokens, token, audiences);
  };
};

interface Protocols {
  encoded: string[];
  others: string[];
}
const taken = new WeakMap<IncomingMessage, Protocols>();

/**
 * Removes the subprotocols that contain tokens, valid or not, from the headers of the request, so that they are neither negotiated nor
 * forwarded to a Pod.
 */
export function takeTokenProtocols(request: IncomingMessage): void {
  const { headers } = request;
  const header = headers[PROTOCOLS];
  if (header === undefined || !header.includes(SUBPROTOCOL)) return;
  const offered = header.split(',').map((name) => name.trim());
  const others = offered.filter((name) => !name.startsWith(SUBPROTOCOL));
  const encoded = offered.filter((name) => name.startsWith(SUBPROTOCOL)).map((name) => name.slice(SUBPROTOCOL.length));
  taken.set(request, { encoded, others });
  headers[PROTOCOLS] = others.join(', ');
  // Node.js computes headersDistinct when code first reads it, so do this only for the few requests with a token in a subprotocol.
  const { headersDistinct } = request;
  headersDistinct[PROTOCOLS] = [others.join(', ')];
  if (others.length > 0) return;
  delete headers[PROTOCOLS];
  delete headersDistinct[PROTOCOLS];
}

function webSocketToken(protocols: Protocols | undefined): string | undefined {
  if (protocols === undefined) return undefined;
  const [encoded = '', ...more] = protocols.encoded;
  if (more.length > 0) throw new CredentialError('multiple base64.bearer.authorization tokens specified');
  if (protocols.others.length === 0) throw new CredentialError('missing additional subprotocol');
  if (encoded === '') throw new CredentialError('empty base64url.bearer.authorization token');
  const malformed = new CredentialError('invalid base64url.bearer.authorization token encoding');
  if (!/^[\w-]+$/.test(encoded)) throw malformed;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(encoded, 'base64url'));
  } catch {
    throw malformed;
  }
}
