/**
 * Authenticates users by ID tokens of an OpenID Connect issuer. The issuer is asked for its configuration when its first token arrives, so
 * that the API server can start and serve other users while the issuer does not respond.
 * Source: k8s.io/apiserver/plugin/pkg/authenticator/token/oidc of v1.33 (behavior and wording); OpenID Connect Discovery 1.0.
 */
import { createRemoteJWKSet, customFetch, errors, type JWTPayload, jwtVerify, type RemoteJWKSet } from 'jose';
import type { Millis } from '../../../machinery/time.ts';
import type { Log } from '../../../platform/platform.ts';
import type { UserInfo } from '../../../ports/request.ts';
import { CREDENTIAL_ID, CredentialError } from './credentials.ts';
import { type FetchOptions, fetchFromIssuer } from './issuer-client.ts';
import type { OidcOptions } from './oidc-options.ts';
import { unverified } from './signed-tokens.ts';

/** How far in the future the validity of a token (nbf) may begin. Source: go-oidc. */
const NOT_BEFORE_LEEWAY_SECONDS = 300;
/**
 * After a failure, the configuration of the issuer is requested again only when a token arrives after this time. It is also the time limit
 * of a request. Source: the interval of v1.33.
 */
const RETRY_MILLIS = 10_000;
/**
 * The shortest time between two requests for the keys of the issuer. Any client can send tokens with an unknown key, each of which would
 * cause a request.
 */
const KEYS_INTERVAL_MILLIS = 1000;

/**
 * The returned function resolves to undefined if the token is not from this issuer. It rejects with a CredentialError if the token is not
 * valid, or if the configuration of the issuer is not available.
 */
export function oidcTokens(options: OidcOptions, { now, log }: { now: () => Millis; log: Log }) {
  const keys = issuerKeys(options, now, log);
  return async (token: string): Promise<UserInfo | undefined> => {
    const { payload: claimed } = unverified(token) ?? {};
    if (claimed?.iss !== options.issuerUrl) return undefined;
    const claims = await verified(token, await keys(), options, now());
    return userOf(claims, options);
  };
}

async function verified(token: string, keys: RemoteJWKSet, options: OidcOptions, now: Millis): Promise<JWTPayload> {
  const { issuerUrl, clientId, signingAlgorithms } = options;
  const time = Math.floor(now / 1000);
  try {
    const { payload } = await jwtVerify(token, keys, {
      issuer: issuerUrl,
      audience: clientId,
      algorithms: [...signingAlgorithms],
      requiredClaims: ['exp'],
      currentDate: new Date(now),
      // jose has one tolerance for all times; the expiration is checked below without it.
      clockTolerance: NOT_BEFORE_LEEWAY_SECONDS,
    });
    if (Number(payload.exp) <= time) throw new CredentialError(`oidc: verify token: oidc: token is expired`);
    return payload;
  } catch (error) {
    if (error instanceof CredentialError) throw error;
    if (error instanceof errors.JWTExpired) throw new CredentialError('oidc: verify token: oidc: token is expired');
    const text = error instanceof errors.JOSEError ? error.message : 'failed to fetch the keys of the issuer';
    throw new CredentialError(`oidc: verify token: ${text}`);
  }
}

export function userOf(claims: JWTPayload, options: OidcOptions): UserInfo {
  const { usernameClaim, usernamePrefix, requiredClaims } = options;
  const name = claims[usernameClaim];
  if (typeof name !== 'string' || name === '') {
    throw new CredentialError(`oidc: parse username claims ${JSON.stringify(usernameClaim)}: claim not present`);
  }
  if (usernameClaim === 'email' && claims['email_verified'] !== undefined && claims['email_verified'] !== true) {
    throw new CredentialError('oidc: email not verified');
  }
  const groups = groupsIn(claims, options);
  for (const [claim, wanted] of Object.entries(requiredClaims)) {
    const value = claims[claim];
    if (value === undefined) throw new CredentialError(`oidc: required claim ${claim} not present in ID token`);
    if (typeof value !== 'string') throw new CredentialError(`oidc: parse claim ${claim}: the value must be a string`);
    if (value === wanted) continue;
    throw new CredentialError(`oidc: required claim ${claim} value does not match. Got = ${value}, want = ${wanted}`);
  }
  const user = { name: `${usernamePrefix}${name}`, groups };
  return claims.jti === undefined ? user : { ...user, extra: { [CREDENTIAL_ID]: [`JTI=${claims.jti}`] } };
}

function groupsIn(claims: JWTPayload, { groupsClaim, groupsPrefix }: OidcOptions): string[] {
  const value = groupsClaim === undefined ? undefined : claims[groupsClaim];
  if (value === undefined) return [];
  const groups: unknown[] = Array.isArray(value) ? value : [value];
  if (!groups.every((group) => typeof group === 'string')) {
    throw new CredentialError(`oidc: parse groups claim ${JSON.stringify(groupsClaim)}: groups must be strings`);
  }
  return groups.map((group) => `${groupsPrefix}${group}`);
}

function issuerKeys({ issuerUrl, caPem }: OidcOptions, now: () => Millis, log: Log): () => Promise<RemoteJWKSet> {
  let found: Promise<RemoteJWKSet> | undefined;
  let retryAt: Millis = Number.NEGATIVE_INFINITY;
  const unavailable = () => new CredentialError('oidc: authenticator not initialized');
  return async () => {
    if (found === undefined && now() < retryAt) throw unavailable();
    found ??= discover(issuerUrl, { caPem });
    try {
      return await found;
    } catch (error) {
      if (now() >= retryAt)
        log.warn('cannot read the configuration of the OIDC issuer', { issuerUrl, error: String(error) });
      found = undefined;
      retryAt = now() + RETRY_MILLIS;
      throw unavailable();
    }
  };
}

async function discover(issuerUrl: string, options: FetchOptions): Promise<RemoteJWKSet> {
  const signal = AbortSignal.timeout(RETRY_MILLIS);
  const url = `${issuerUrl.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const response = await fetchFromIssuer(url, { ...options, signal });
  if (response.status !== 200) throw new Error(`${url} responded with ${response.status}`);
  const { issuer, jwks_uri: keys } = (await response.json()) as { issuer?: unknown; jwks_uri?: unknown };
  if (issuer !== issuerUrl) throw new Error(`${url} is the configuration of another issuer, ${JSON.stringify(issuer)}`);
  // As upstream, known keys stay valid while the issuer does not respond.
  return createRemoteJWKSet(new URL(String(keys)), {
    cacheMaxAge: Number.POSITIVE_INFINITY,
    cooldownDuration: KEYS_INTERVAL_MILLIS,
    [customFetch]: (address, { signal: ended }) => fetchFromIssuer(address, { ...options, signal: ended }),
  });
}
