/**
 * Verifies signatures of ServiceAccount tokens. The payload of a token with a valid signature never changes, so the payload is kept. The
 * callers check what can change, such as the time and the objects that the payload names.
 */
import { createHash, type KeyObject } from 'node:crypto';
import { compactVerify, decodeJwt, decodeProtectedHeader, type JWTPayload } from 'jose';
import { CredentialError } from './credentials.ts';

const MAX_VERIFIED = 1024;

export interface TokenKey {
  publicKey: KeyObject;
  /** The `kid` in the header of the tokens. */
  keyId: string;
  algorithm: string;
}

/**
 * Resolves to the payload; undefined if the token is not a JWT, or has another issuer or algorithm. Rejects with a CredentialError if the
 * token names another key, or if its signature is not valid.
 */
export type VerifyToken = (token: string, issuer: string) => Promise<JWTPayload | undefined>;

/** Source: JWTTokenAuthenticator of pkg/serviceaccount/jwt.go of v1.33 (behavior and wording). */
export function tokenVerifier({ publicKey, keyId, algorithm }: TokenKey): VerifyToken {
  const verified = new Map<string, JWTPayload>();
  return async (token, issuer) => {
    const { header, payload } = unverified(token) ?? {};
    if (payload?.iss !== issuer || header?.alg !== algorithm) return undefined;
    const hash = createHash('sha256').update(token).digest('base64');
    const before = verified.get(hash);
    if (before !== undefined) return before;
    if (header.kid && header.kid !== keyId) throw new CredentialError('invalid signature, no keys found');
    await compactVerify(token, publicKey, { algorithms: [algorithm] }).catch(() => {
      throw new CredentialError('go-jose/go-jose: error in cryptographic primitive');
    });
    verified.set(hash, payload);
    const [oldest] = verified.keys();
    if (verified.size > MAX_VERIFIED && oldest !== undefined) verified.delete(oldest);
    return payload;
  };
}

export function unverified(token: string) {
  try {
    return { header: decodeProtectedHeader(token), payload: decodeJwt(token) };
  } catch {
    return undefined;
  }
}

/**
 * Returns the audiences of the token that are also requested. A token without audiences is valid for `ofApi`, the audiences of the API.
 * Throws a CredentialError if the token has no requested audience.
 */
export function commonAudiences(
  { aud = [] }: JWTPayload,
  requested: readonly string[],
  ofApi: readonly string[],
): readonly string[] {
  const named = typeof aud === 'string' ? [aud] : aud;
  const own = named.length === 0 ? ofApi : named;
  const common = own.filter((each) => requested.includes(each));
  if (common.length > 0) return common;
  throw new CredentialError(`token audiences ${listed(own)} is invalid for the target audiences ${listed(requested)}`);
}

/** Formats the texts as Go's %q. */
const listed = (texts: readonly string[]): string => `[${texts.map((text) => JSON.stringify(text)).join(' ')}]`;
