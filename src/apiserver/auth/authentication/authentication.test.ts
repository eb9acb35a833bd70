import { createPrivateKey, createPublicKey, createSecretKey, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TokenReview } from '../../../api/generated/types.ts';
import { NODES, PODS, SECRETS, SERVICE_ACCOUNTS } from '../../../api/resources.ts';
import { makeAuthority, makeLeaf } from '../../pki/certificates.ts';
import { createTokenIssuer, LEGACY_CLAIMS, LEGACY_ISSUER, TOKEN_ISSUER, tokenKeyOf } from '../../pki/tokens.ts';
import { pod } from '../../registry/testing.ts';
import { startTestServer, type TestServer } from '../../server-fixture.ts';

const LIST = '/api/v1/namespaces/default/secrets';
const GROUPS = ['system:serviceaccounts', 'system:serviceaccounts:default', 'system:authenticated'];
const FILE_USER = { name: 'of-the-file', uid: '7', groups: ['readers'] };

let at: TestServer;
let account: { name: string; uid: string };
beforeAll(async () => {
  at = await startTestServer({
    authentication: { tokenFile: (token) => (token === 'from-the-file' ? FILE_USER : undefined) },
  });
  account = await uidOf(SERVICE_ACCOUNTS, 'default', 'default');
});
afterAll(() => at[Symbol.asyncDispose]());

async function uidOf(resource: typeof PODS, namespace: string | undefined, name: string) {
  const { metadata } = await at.api.get(resource, namespace, name);
  return { name, uid: metadata.uid ?? '' };
}

const issuer = (offsetSeconds = 0) => createTokenIssuer(at.pki, TOKEN_ISSUER, () => Date.now() + offsetSeconds * 1000);
const tokenOf = async (...options: Parameters<ReturnType<typeof issuer>['issue']>[2][]): Promise<string> =>
  (await issuer().issue('default', account, ...options)).status.token;

const as = (token: string, path = LIST) =>
  at.call('GET', path, { agent: at.anonymous, headers: { authorization: `Bearer ${token}` } });
const codeOf = async (token: string): Promise<number> => (await as(token)).code;

async function reviewed(token: string, audiences?: string[]): Promise<TokenReview['status']> {
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token, audiences } };
  const path = '/apis/authentication.k8s.io/v1/tokenreviews';
  const { code, json } = await at.call('POST', path, {
    body: JSON.stringify(review),
    headers: { 'content-type': 'application/json' },
  });
  expect(code).toBe(201);
  return json.status;
}

describe('tokens of ServiceAccounts', () => {
  test('a token authenticates its ServiceAccount', async () => {
    const token = await tokenOf();
    const { code, json } = await as(token);
    expect(code).toBe(403);
    expect(json.message).toContain('User "system:serviceaccount:default:default" cannot list resource "secrets"');
    expect(await reviewed(token)).toEqual({
      authenticated: true,
      user: {
        username: 'system:serviceaccount:default:default',
        uid: account.uid,
        groups: GROUPS,
        extra: { 'authentication.kubernetes.io/credential-id': [expect.stringMatching(/^JTI=[0-9a-f-]{36}$/)] },
      },
      audiences: [TOKEN_ISSUER],
    });
  });

  test('a token that is bound to a Pod names the Pod and its node, and is refused as soon as the Pod is deleted', async () => {
    await at.api.create(PODS, 'default', pod('bound'));
    const bound = await uidOf(PODS, 'default', 'bound');
    const token = await tokenOf({ pod: bound, node: { name: 'n1', uid: 'u1' } });
    expect((await reviewed(token))?.user?.extra).toMatchObject({
      'authentication.kubernetes.io/pod-name': ['bound'],
      'authentication.kubernetes.io/pod-uid': [bound.uid],
      'authentication.kubernetes.io/node-name': ['n1'],
      'authentication.kubernetes.io/node-uid': ['u1'],
    });
    expect(await codeOf(token)).toBe(403);
    await at.api.delete(PODS, 'default', 'bound', { gracePeriodSeconds: 0 });
    expect(await codeOf(token)).toBe(401);
    expect(await reviewed(token)).toEqual({ user: {}, error: 'service account token has been invalidated' });
    await at.api.create(PODS, 'default', pod('bound'));
    expect(await codeOf(token)).toBe(401);
    expect((await reviewed(token))?.error).toMatch(/^pod UID \(.+\) does not match service account pod ref claim/);
  });

  test('a token that is bound to a Node or a Secret is refused as soon as this object is deleted', async () => {
    await at.api.create(NODES, undefined, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n2' } });
    await at.api.create(SECRETS, 'default', { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's1' } });
    const ofNode = await tokenOf({ node: await uidOf(NODES, undefined, 'n2') });
    const ofSecret = await tokenOf({ secret: await uidOf(SECRETS, 'default', 's1') });
    expect([await codeOf(ofNode), await codeOf(ofSecret)]).toEqual([403, 403]);
    await at.api.delete(NODES, undefined, 'n2');
    expect([await codeOf(ofNode), await codeOf(ofSecret)]).toEqual([401, 403]);
    await at.api.delete(SECRETS, 'default', 's1');
    expect([await codeOf(ofNode), await codeOf(ofSecret)]).toEqual([401, 401]);
  });

  test('a token is refused when its ServiceAccount is deleted, and stays refused when another has the name', async () => {
    const made = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'short' } };
    await at.api.create(SERVICE_ACCOUNTS, 'default', made);
    const { status } = await issuer().issue('default', await uidOf(SERVICE_ACCOUNTS, 'default', 'short'));
    expect(await codeOf(status.token)).toBe(403);
    await at.api.delete(SERVICE_ACCOUNTS, 'default', 'short');
    expect(await codeOf(status.token)).toBe(401);
    expect((await reviewed(status.token))?.error).toBe('serviceaccounts "short" not found');
    await at.api.create(SERVICE_ACCOUNTS, 'default', made);
    expect((await reviewed(status.token))?.error).toMatch(/^service account UID \(.+\) does not match claim/);
  });

  test('a token is valid from a minute before its beginning until a minute after its end', async () => {
    const at600 = async (offsetSeconds: number) =>
      (await issuer(offsetSeconds).issue('default', account, { expirationSeconds: 600 })).status.token;
    expect(await codeOf(await at600(-655))).toBe(403);
    expect(await codeOf(await at600(55))).toBe(403);
    expect((await reviewed(await at600(-665)))?.error).toBe('service account token has expired');
    expect((await reviewed(await at600(65)))?.error).toBe('service account token is not valid yet');
    expect(await codeOf(await at600(-665))).toBe(401);
  });

  test('a token is valid for its audiences only', async () => {
    const token = await tokenOf({ audiences: ['vault', 'other'] });
    expect(await codeOf(token)).toBe(401);
    expect(await reviewed(token, ['vault', 'x'])).toMatchObject({ authenticated: true, audiences: ['vault'] });
    expect(await reviewed(token)).toEqual({
      user: {},
      error: `token audiences ["vault" "other"] is invalid for the target audiences ["${TOKEN_ISSUER}"]`,
    });
    expect((await reviewed('from-the-file', ['vault']))?.error).toBe('invalid bearer token');
  });

  test('the token in a Secret is valid as long as the Secret contains it', async () => {
    const token = await issuer().issueLegacy('default', account, 'legacy');
    expect((await reviewed(token))?.error).toBe('Token has been invalidated');
    const write = (text: string) =>
      at.api.set(SECRETS, {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: {
          name: 'legacy',
          namespace: 'default',
          annotations: { 'kubernetes.io/service-account.name': 'default' },
        },
        type: 'kubernetes.io/service-account-token',
        data: { token: Buffer.from(text).toString('base64') },
      } as never);
    await write(token);
    expect(await reviewed(token)).toEqual({
      authenticated: true,
      user: { username: 'system:serviceaccount:default:default', uid: account.uid, groups: GROUPS },
      audiences: [TOKEN_ISSUER],
    });
    const labels = async () => (await at.api.get(SECRETS, 'default', 'legacy')).metadata.labels;
    const today = new Date().toISOString().slice(0, 10);
    await expect.poll(labels).toEqual({ 'kubernetes.io/legacy-token-last-used': today });
    const marked = { metadata: { labels: { 'kubernetes.io/legacy-token-invalid-since': today } } };
    await at.api.patch(SECRETS, 'default', 'legacy', 'application/merge-patch+json', marked);
    expect((await reviewed(token))?.error).toMatch(
      /^the token in secret default\/legacy for service account default\/default has been marked invalid\. /,
    );
    await write('another');
    expect((await reviewed(token))?.error).toBe("Token does not match server's copy");
  });
});

describe('hostile tokens', () => {
  /** These claims would be valid with a valid signature. */
  const claims = () => ({
    iss: TOKEN_ISSUER,
    sub: 'system:serviceaccount:default:default',
    aud: TOKEN_ISSUER,
    exp: Math.floor(Date.now() / 1000) + 3600,
    'kubernetes.io': { namespace: 'default', serviceaccount: account },
  });
  const spki = () => createPublicKey(at.pki.serviceAccountKey).export({ type: 'spki', format: 'pem' }) as string;

  test('a token with another signature, algorithm, key or form gets 401, and nothing is logged', async () => {
    const { keyId } = tokenKeyOf(at.pki);
    const other = await generateKeyPair('ES256', { extractable: true });
    const sign = (header: object) =>
      new SignJWT(claims()).setProtectedHeader({ alg: 'ES256', ...header }).sign(other.privateKey);
    const own = await tokenOf();
    const [head, body, signature] = own.split('.') as [string, string, string];
    const hs256 = (key: Uint8Array | string) =>
      new SignJWT(claims()).setProtectedHeader({ alg: 'HS256', kid: keyId }).sign(createSecretKey(Buffer.from(key)));
    const secret = at.pki.serviceAccountKey;
    const tokens = [
      new UnsecuredJWT(claims()).encode(),
      `${Buffer.from('{"alg":"none"}').toString('base64url')}.${body}.`,
      await hs256(spki()),
      await hs256(createPublicKey(secret).export({ type: 'spki', format: 'der' })),
      await sign({}),
      await sign({ kid: keyId }),
      await sign({ kid: 'unknown' }),
      await sign({ kid: '../../../../dev/null' }),
      await sign({ jwk: await exportJWK(other.publicKey) }),
      await new SignJWT({ ...claims(), iss: LEGACY_ISSUER, [LEGACY_CLAIMS.namespace]: 'default' })
        .setProtectedHeader({ alg: 'ES256' })
        .sign(secret),
      `${head}.${body}.`,
      `${head}.${body}.${signature.slice(2)}AA`,
      `${head}.${Buffer.from(JSON.stringify(claims())).toString('base64url')}.${signature}`,
      `${own}.${signature}`,
      `${head}..${signature}`,
      '..',
      '.',
      'x'.repeat(15_000),
      `${head}.${'A'.repeat(12_000)}.${signature}`,
      `{"payload":"${body}","protected":"${head}","signature":"${signature}"}`,
      'abcdef.0123456789abcdef',
      randomUUID(),
      '%00%ff',
      '__proto__',
      'null',
    ];
    for (const token of tokens) {
      const { code, json } = await as(token);
      expect([token.slice(0, 40), code]).toEqual([token.slice(0, 40), 401]);
      expect(json).toMatchObject({ kind: 'Status', reason: 'Unauthorized', message: 'Unauthorized' });
      expect((await as(token, '/healthz')).code).toBe(401);
    }
    for (const token of tokens) expect((await reviewed(token))?.authenticated).toBeUndefined();
    expect(at.errors).toEqual([]);
  });

  test('claims of an unexpected form get 401', async () => {
    const sign = (payload: object) =>
      new SignJWT({ ...payload }).setProtectedHeader({ alg: 'ES256' }).sign(at.pki.serviceAccountKey);
    for (const payload of [
      { ...claims(), 'kubernetes.io': null },
      { ...claims(), 'kubernetes.io': 'x' },
      { ...claims(), 'kubernetes.io': { namespace: 'default' } },
      { ...claims(), 'kubernetes.io': { namespace: '../kube-system', serviceaccount: { name: '..', uid: '' } } },
      { ...claims(), aud: [] as string[], 'kubernetes.io': { namespace: 'default', serviceaccount: { name: 'x' } } },
      { iss: LEGACY_ISSUER },
    ]) {
      expect(await codeOf(await sign(payload))).toBe(401);
    }
    expect(at.errors).toEqual([]);
  });

  test('a token that is too long for a header gets 401 in a review', async () => {
    expect((await reviewed('x'.repeat(1_000_000)))?.error).toBe('invalid bearer token');
    expect((await as('x'.repeat(20_000))).code).toBe(431);
  });

  test('other forms of the header are not bearer tokens, and the first of several headers counts', async () => {
    const token = await tokenOf();
    const send = async (authorization: string, path = LIST) =>
      (await at.call('GET', path, { agent: at.anonymous, headers: { authorization } })).code;
    for (const header of ['', 'Bearer', 'Bearer ', `Bearer  ${token}`, `Basic ${token}`, token, `Bearer,${token}`]) {
      expect([header.slice(0, 10), await send(header)]).toEqual([header.slice(0, 10), 401]);
      expect(await send(header, '/healthz')).toBe(200);
    }
    expect(await send(`bearer ${token}`)).toBe(403);
    expect(await send(`BEARER ${token} more`)).toBe(403);
    const codes = async (...values: string[]) => {
      const { host, port } = at.server;
      const sent = request({ host, port, path: LIST, agent: at.anonymous });
      sent.setHeader('Authorization', values);
      sent.end();
      const [response] = await once(sent, 'response');
      response.resume();
      return response.statusCode;
    };
    expect(await codes(`Bearer ${token}`, 'Bearer garbage')).toBe(403);
    expect(await codes('Bearer garbage', `Bearer ${token}`)).toBe(401);
  });
});

describe('other credentials', () => {
  test('without credentials, only health and version are served', async () => {
    for (const path of ['/healthz', '/livez', '/readyz', '/version']) {
      expect((await at.call('GET', path, { agent: at.anonymous })).code).toBe(200);
    }
    for (const path of ['/version/x', '/livez/ping', '/api', '/metrics', '/.well-known/openid-configuration', LIST]) {
      expect((await at.call('GET', path, { agent: at.anonymous })).code).toBe(401);
    }
  });

  test('a certificate of another authority gets 401, also for health, unless there is a valid token', async () => {
    const authority = await makeAuthority('another', Date.now());
    const leaf = await makeLeaf(
      { certificate: authority.certificate, key: createPrivateKey(authority.key) },
      { commonName: 'kubernetes-admin', organization: 'system:masters', usage: 'client' },
      Date.now(),
    );
    const agent = new Agent({ ca: at.pki.caCertificate, cert: leaf.certificate, key: leaf.key });
    expect((await at.call('GET', '/healthz', { agent })).code).toBe(401);
    const headers = { authorization: `Bearer ${await tokenOf()}` };
    expect((await at.call('GET', '/healthz', { agent, headers })).code).toBe(200);
    agent.destroy();
  });

  test('a client certificate takes precedence over a token, and its fingerprint identifies the credential', async () => {
    const headers = { authorization: `Bearer ${await tokenOf()}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' });
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
    const { code, json } = await at.call('POST', path, { body, headers });
    expect(code).toBe(201);
    expect(json).toEqual({
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'SelfSubjectReview',
      metadata: { creationTimestamp: expect.any(String) },
      status: {
        userInfo: {
          username: 'kubernetes-admin',
          groups: ['system:masters', 'system:authenticated'],
          extra: {
            'authentication.kubernetes.io/credential-id': [expect.stringMatching(/^X509SHA256=[0-9a-f]{64}$/)],
          },
        },
      },
    });
  });

  test('users of the token file are authenticated', async () => {
    expect(await reviewed('from-the-file')).toEqual({
      authenticated: true,
      user: { username: 'of-the-file', uid: '7', groups: ['readers', 'system:authenticated'] },
      audiences: [TOKEN_ISSUER],
    });
    expect(await codeOf('from-the-file')).toBe(403);
  });

  test('a WebSocket may send its token as a subprotocol', async () => {
    const token = Buffer.from(await tokenOf()).toString('base64url');
    const open = async (protocols: string): Promise<number | undefined> => {
      const { host, port } = at.server;
      const headers = {
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-key': Buffer.alloc(16).toString('base64'),
        'sec-websocket-version': '13',
        'sec-websocket-protocol': protocols,
      };
      const path = '/api/v1/namespaces/default/pods/none/exec?command=true';
      const sent = request({ host, port, path, ca: at.pki.caCertificate, agent: false, headers });
      sent.end();
      const [response] = await once(sent, 'response');
      response.resume();
      return response.statusCode;
    };
    const prefix = 'base64url.bearer.authorization.k8s.io.';
    expect(await open('v4.channel.k8s.io')).toBe(401);
    expect(await open(`${prefix}${token}, v4.channel.k8s.io`)).toBe(403);
    expect(await open(`v4.channel.k8s.io,${prefix}${token}`)).toBe(403);
    for (const protocols of [
      `${prefix}${token}`,
      `${prefix}${token}, ${prefix}${token}, v4.channel.k8s.io`,
      `${prefix}, v4.channel.k8s.io`,
      `${prefix}!, v4.channel.k8s.io`,
      `${prefix}_w, v4.channel.k8s.io`,
    ]) {
      expect([protocols.slice(-60), await open(protocols)]).toEqual([protocols.slice(-60), 401]);
    }
    expect(at.errors).toEqual([]);
  });
});

test('the API server serves its issuer and the key of its tokens to users who may read them', async () => {
  const configuration = await at.call('GET', '/.well-known/openid-configuration');
  expect(configuration.json).toEqual({
    issuer: TOKEN_ISSUER,
    jwks_uri: `${TOKEN_ISSUER}/openid/v1/jwks`,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
  });
  const keys = await at.call('GET', '/openid/v1/jwks');
  expect(keys.headers).toMatchObject({
    'content-type': 'application/jwk-set+json',
    'cache-control': 'public, max-age=3600',
  });
  const own = createPublicKey(readFileSync(join(at.dataDir, 'pki/sa.key')));
  expect(JSON.parse(keys.text)).toEqual({
    keys: [{ use: 'sig', kid: tokenKeyOf(at.pki).keyId, alg: 'ES256', ...(await exportJWK(own)) }],
  });
  expect((await at.call('POST', '/openid/v1/jwks')).code).toBe(405);
});
