/** A small OpenID Connect issuer on loopback: it serves its configuration and its key over HTTPS, and signs ID tokens. */
import { createPrivateKey, type webcrypto } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { makeAuthority, makeLeaf } from '../../src/apiserver/pki/certificates.ts';

export interface OidcIssuer {
  url: string;
  /** In PEM. */
  caPem: string;
  publicKey: webcrypto.CryptoKey;
  /** The documents of the issuer by path; other paths get 404. A test may change them. */
  documents: Record<string, unknown>;
  requests: string[];
  /** By default, the key of the issuer signs the token. */
  sign(claims: JWTPayload, header?: object, key?: webcrypto.CryptoKey): Promise<string>;
  close(): void;
}

export async function startOidcIssuer(): Promise<OidcIssuer> {
  const authority = await makeAuthority('authority of the issuer', Date.now());
  const leaf = await makeLeaf(
    { certificate: authority.certificate, key: createPrivateKey(authority.key) },
    { commonName: 'issuer', usage: 'server', ips: ['127.0.0.1'] },
    Date.now(),
  );
  const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true });
  const server = createServer({ cert: leaf.certificate, key: leaf.key }, (request, response) => {
    const path = request.url ?? '';
    issuer.requests.push(path);
    const document = issuer.documents[path];
    response.statusCode = document === undefined ? 404 : 200;
    response.end(JSON.stringify(document ?? {}));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const issuer: OidcIssuer = {
    url,
    caPem: authority.certificate,
    publicKey,
    documents: {
      '/.well-known/openid-configuration': { issuer: url, jwks_uri: `${url}/keys` },
      '/keys': { keys: [{ ...(await exportJWK(publicKey)), kid: 'one', alg: 'RS256', use: 'sig' }] },
    },
    requests: [],
    sign: (claims, header = {}, key = privateKey) =>
      new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'one', ...header }).sign(key),
    close: () => void server.close().closeAllConnections(),
  };
  return issuer;
}
