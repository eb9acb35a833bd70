/**
 * An OpenID Connect issuer on loopback, over HTTPS with an authority of its own: the server of the package oidc-provider. It accepts any
 * account name, without a password. The account `jane.team-a.admins` is in the groups team-a and admins. Accounts have the claim `tenant`,
 * except `stranger`. The tokens of `hasty` are valid for one second.
 */
import { createPrivateKey } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { exportJWK, generateKeyPair } from 'jose';
// @ts-expect-error The package has no types.
import Provider from 'oidc-provider';
// @ts-expect-error The package has no types.
import { createMemoryAdapter } from 'oidc-provider/lib/adapters/memory_adapter.js';
import { makeAuthority, makeLeaf } from '../../src/apiserver/pki/certificates.ts';
import { CLIENT_SECRET, logIn, REDIRECT_URI } from './oidc-login.ts';

export interface OidcServer {
  url: string;
  /** In PEM. */
  caPem: string;
  /** While `isUp` is false, the server ends all connections at once. */
  isUp: boolean;
  /** The server must be up. */
  logIn(account: string, clientId: string): Promise<string>;
  /** Replaces the key that signs tokens. The server then has only the new key. */
  rotateKey(): Promise<void>;
  close(): void;
}

interface Context {
  oidc: { account: { accountId: string }; client: { clientId: string } };
}

interface ProviderServer {
  callback(): (request: IncomingMessage, response: ServerResponse) => void;
  interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<{ params: Record<string, unknown> }>;
  interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>;
  Grant: new (
    of: object,
  ) => {
    addOIDCScope(scope: string): void;
    save(): Promise<string>;
  };
}

const claimsOf = (account: string) => ({
  sub: account,
  groups: account.split('.').slice(1),
  ...(account === 'stranger' ? {} : { tenant: 'lifepod' }),
});

async function newProvider(url: string, kid: string, clientIds: readonly string[]): Promise<ProviderServer> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const provider: ProviderServer = new Provider(url, {
    clients: clientIds.map((client_id) => ({ client_id, client_secret: CLIENT_SECRET, redirect_uris: [REDIRECT_URI] })),
    jwks: { keys: [{ ...(await exportJWK(privateKey)), kid, use: 'sig', alg: 'RS256' }] },
    // This is also the default adapter, but the package warns if the option is missing.
    adapter: createMemoryAdapter(0),
    cookies: { keys: ['the key of the cookies'] },
    claims: { openid: ['sub', 'groups', 'tenant'] },
    conformIdTokenClaims: false,
    findAccount: (_: unknown, accountId: string) => ({ accountId, claims: () => claimsOf(accountId) }),
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/login/${uid}` },
    async loadExistingGrant({ oidc: { account, client } }: Context) {
      const grant = new provider.Grant({ accountId: account.accountId, clientId: client.clientId });
      grant.addOIDCScope('openid');
      await grant.save();
      return grant;
    },
    ttl: {
      AccessToken: 60,
      Grant: 60,
      IdToken: ({ oidc: { account } }: Context) => (account.accountId === 'hasty' ? 1 : 3600),
      Interaction: 60,
      Session: 60,
    },
  });
  return provider;
}

export async function startOidcServer(clientIds: readonly string[]): Promise<OidcServer> {
  const authority = await makeAuthority('authority of the issuer', Date.now());
  const leaf = await makeLeaf(
    { certificate: authority.certificate, key: createPrivateKey(authority.key) },
    { commonName: 'issuer', usage: 'server', ips: ['127.0.0.1'] },
    Date.now(),
  );
  let provider: ProviderServer;
  const serve = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (!incoming.url?.startsWith('/login/')) return void provider.callback()(incoming, response);
    const { params } = await provider.interactionDetails(incoming, response);
    const login = { accountId: String(params['login_hint']) };
    await provider.interactionFinished(incoming, response, { login });
  };
  const server = createServer({ cert: leaf.certificate, key: leaf.key }, (incoming, response) => {
    serve(incoming, response).catch((error: Error) => response.writeHead(500).end(error.message));
  });
  server.on('connection', (socket: Socket) => {
    if (!self.isUp) socket.destroy();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let keys = 0;
  const self: OidcServer = {
    url,
    caPem: authority.certificate,
    isUp: true,
    logIn: (account, clientId) => logIn({ issuer: url, clientId, account, caPem: authority.certificate }),
    async rotateKey() {
      provider = await newProvider(url, `key-${keys++}`, clientIds);
    },
    close: () => void server.close().closeAllConnections(),
  };
  await self.rotateKey();
  return self;
}
