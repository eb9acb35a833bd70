import { createSecretKey } from 'node:crypto';
import { exportJWK, exportSPKI, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { type OidcIssuer, startOidcIssuer } from '../../../../test/support/oidc-issuer.ts';
import { silentLog } from '../../../platform/silent-log.ts';
import { oidcTokens } from './oidc.ts';
import type { OidcOptions } from './oidc-options.ts';

let issuer: OidcIssuer;
let options: OidcOptions;

beforeAll(async () => {
  issuer = await startOidcIssuer();
  options = {
    issuerUrl: issuer.url,
    clientId: 'lifepod',
    usernameClaim: 'sub',
    usernamePrefix: 'oidc:',
    groupsClaim: 'groups',
    groupsPrefix: 'oidc-',
    requiredClaims: {},
    caPem: issuer.caPem,
    signingAlgorithms: ['RS256'],
  };
});
afterAll(() => issuer.close());

const claims = (more: JWTPayload = {}): JWTPayload => ({
  iss: options.issuerUrl,
  aud: 'lifepod',
  sub: 'jane',
  exp: Math.floor(Date.now() / 1000) + 60,
  ...more,
});
const sign: OidcIssuer['sign'] = (...given) => issuer.sign(...given);
const authenticator = (more: Partial<OidcOptions> = {}, now = Date.now) =>
  oidcTokens({ ...options, ...more }, { now, log: silentLog });
const failure = async (token: Promise<string> | string, more: Partial<OidcOptions> = {}): Promise<string> =>
  authenticator(more)(await token).then(
    (user) => `authenticated: ${JSON.stringify(user)}`,
    (error: Error) => error.message,
  );

test('an ID token authenticates its user with the prefixed name and groups', async () => {
  const user = authenticator();
  expect(await user(await sign(claims()))).toEqual({ name: 'oidc:jane', groups: [] });
  expect(await user(await sign(claims({ groups: ['a', 'b'], jti: 'x', aud: ['other', 'lifepod'] })))).toEqual({
    name: 'oidc:jane',
    groups: ['oidc-a', 'oidc-b'],
    extra: { 'authentication.kubernetes.io/credential-id': ['JTI=x'] },
  });
  expect(await user(await sign(claims({ groups: 'only' })))).toMatchObject({ groups: ['oidc-only'] });
  const byEmail = authenticator({ usernameClaim: 'email', usernamePrefix: '' });
  expect(await byEmail(await sign(claims({ email: 'j@x', email_verified: true })))).toMatchObject({ name: 'j@x' });
});

test('a token of another issuer is left to other authenticators', async () => {
  const user = authenticator();
  expect(await user(await sign(claims({ iss: 'https://other' })))).toBeUndefined();
  expect(await user('garbage')).toBeUndefined();
});

test('a token that is not for this client, has expired or lacks a claim is refused', async () => {
  const past = Math.floor(Date.now() / 1000) - 1;
  expect(await failure(sign(claims({ aud: 'other' })))).toMatch(/^oidc: verify token: .*"aud"/);
  expect(await failure(sign(claims({ exp: past })))).toBe('oidc: verify token: oidc: token is expired');
  expect(await failure(sign(claims({ exp: past - 1000 })))).toBe('oidc: verify token: oidc: token is expired');
  const { exp: _, ...forever } = claims();
  expect(await failure(sign(forever))).toMatch(/^oidc: verify token: .*"exp"/);
  expect(await failure(sign(claims({ nbf: past + 400 })))).toMatch(/^oidc: verify token: .*"nbf"/);
  expect(await failure(sign(claims({ sub: '' })))).toMatch(/^oidc: parse username claims "sub"/);
  expect(await failure(sign(claims()), { usernameClaim: 'email' })).toMatch(/^oidc: parse username claims "email"/);
  expect(await failure(sign(claims({ email: 'j@x', email_verified: false })), { usernameClaim: 'email' })).toBe(
    'oidc: email not verified',
  );
  expect(await failure(sign(claims({ groups: [1] })))).toMatch(/^oidc: parse groups claim "groups"/);
  const requiredClaims = { team: 'a' };
  expect(await failure(sign(claims()), { requiredClaims })).toBe('oidc: required claim team not present in ID token');
  expect(await failure(sign(claims({ team: 'b' })), { requiredClaims })).toBe(
    'oidc: required claim team value does not match. Got = b, want = a',
  );
  expect(await failure(sign(claims({ team: ['a'] })), { requiredClaims })).toMatch(/^oidc: parse claim team/);
  expect(await failure(sign(claims({ team: 'a' })), { requiredClaims })).toMatch(/^authenticated/);
});

test('a token with another key, algorithm or signature is refused', async () => {
  const other = await generateKeyPair('RS256');
  const ps256 = await generateKeyPair('PS256');
  const publicKey = createSecretKey(Buffer.from(await exportSPKI(issuer.publicKey)));
  const hs256 = new SignJWT(claims()).setProtectedHeader({ alg: 'HS256', kid: 'one' }).sign(publicKey);
  for (const token of [
    new UnsecuredJWT(claims()).encode(),
    hs256,
    sign(claims(), {}, other.privateKey),
    sign(claims(), { kid: 'unknown' }, other.privateKey),
    sign(claims(), { jwk: await exportJWK(other.publicKey) }, other.privateKey),
    sign(claims(), { alg: 'PS256' }, ps256.privateKey),
    sign(claims()).then((text) => `${text.slice(0, -4)}AAAA`),
  ]) {
    expect(await failure(token)).toMatch(/^oidc: verify token: /);
  }
});

test('an issuer that does not respond is asked again ten seconds later, and users are refused until then', async () => {
  let now = Date.now();
  const user = authenticator({}, () => now);
  const { documents } = issuer;
  issuer.documents = {};
  issuer.requests.length = 0;
  const token = await sign(claims());
  for (let attempt = 0; attempt < 3; attempt++) {
    await expect(user(token)).rejects.toThrow('oidc: authenticator not initialized');
  }
  expect(issuer.requests).toEqual(['/.well-known/openid-configuration']);
  issuer.documents = documents;
  await expect(user(token)).rejects.toThrow('oidc: authenticator not initialized');
  now += 10_000;
  expect(await user(token)).toMatchObject({ name: 'oidc:jane' });
});

test('a key that the issuer has just begun to use is requested, and known keys are not requested again', async () => {
  const user = authenticator();
  await user(await sign(claims()));
  const next = await generateKeyPair('RS256', { extractable: true });
  const { documents } = issuer;
  onTestFinished(() => {
    issuer.documents = documents;
    vi.useRealTimers();
  });
  const jwk = { ...(await exportJWK(next.publicKey)), kid: 'two', alg: 'RS256', use: 'sig' };
  issuer.documents = { ...documents, '/keys': { keys: [jwk] } };
  issuer.requests.length = 0;
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 1000 });
  const rotated = await sign(claims(), { kid: 'two' }, next.privateKey);
  expect(await Promise.all([user(rotated), user(rotated)])).toMatchObject([
    { name: 'oidc:jane' },
    { name: 'oidc:jane' },
  ]);
  expect(issuer.requests).toEqual(['/keys']);
  await expect(user(await sign(claims()))).rejects.toThrow('oidc: verify token: ');
  issuer.documents = {};
  vi.setSystemTime(Date.now() + 24 * 60 * 60 * 1000);
  expect(await user(await sign(claims(), { kid: 'two' }, next.privateKey))).toMatchObject({ name: 'oidc:jane' });
});

test('the certificate and the name of the issuer are checked', async () => {
  expect(await failure(sign(claims()), { caPem: undefined })).toBe('oidc: authenticator not initialized');
  const issuerUrl = options.issuerUrl.replace('127.0.0.1', 'localhost');
  expect(await failure(sign(claims({ iss: issuerUrl })), { issuerUrl })).toBe('oidc: authenticator not initialized');
});
