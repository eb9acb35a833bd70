/**
 * Issues ServiceAccount tokens: JWTs that are bound to a ServiceAccount and optionally to a Pod and its node.
 * Source: KEP-1205 (bound tokens), the TokenRequest API of v1.33.
 */
import { createHash, createPublicKey, randomUUID } from 'node:crypto';
import { type JWTPayload, SignJWT } from 'jose';
import { type FieldError, invalid } from '../../machinery/field-error.ts';
import { invalidObject } from '../../machinery/status.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';
import type { Pki } from './pki.ts';

const MIN_EXPIRATION_SECONDS = 600;
const MAX_EXPIRATION_SECONDS = 2 ** 32;
const DEFAULT_EXPIRATION_SECONDS = 3600;

export interface TokenOptions {
  /** The audiences of the token. If empty or absent, the only audience is the issuer. */
  audiences?: readonly string[];
  /** The lifetime of the token in seconds: at least 600, at most 2^32. The default is 3600. */
  expirationSeconds?: number;
  pod?: { name: string; uid: string };
  node?: { name: string; uid?: string };
}

/** The fields of the status of a TokenRequest. */
export interface IssuedToken {
  token: string;
  /** The time at which the token expires, in RFC 3339 format. */
  expirationTimestamp: string;
}

export interface TokenIssuer {
  /** Signs a token for the ServiceAccount. Rejects with 422 Invalid if expirationSeconds is out of range. */
  issue(namespace: string, serviceAccount: { name: string; uid: string }, options?: TokenOptions): Promise<IssuedToken>;
  /** The issuer (iss claim) of the tokens, which is also their default audience. */
  readonly issuer: string;
}

function expirationErrors(seconds: number): FieldError[] {
  const field = 'spec.expirationSeconds';
  if (seconds < MIN_EXPIRATION_SECONDS)
    return [invalid(field, seconds, 'may not specify a duration less than 10 minutes')];
  if (seconds > MAX_EXPIRATION_SECONDS) {
    return [invalid(field, seconds, 'may not specify a duration larger than 2^32 seconds')];
  }
  return [];
}

/** Creates an issuer that signs tokens with the installation's ServiceAccount key. `issuer` is the iss claim, an https URL. */
export function createTokenIssuer(pki: Pick<Pki, 'serviceAccountKey'>, issuer: string, now: () => Millis): TokenIssuer {
  const key = pki.serviceAccountKey;
  const publicDer = createPublicKey(key).export({ type: 'spki', format: 'der' });
  const keyId = createHash('sha256').update(publicDer).digest('base64url');
  return {
    issuer,
    async issue(namespace, serviceAccount, options = {}) {
      const expirationSeconds = options.expirationSeconds ?? DEFAULT_EXPIRATION_SECONDS;
      const errors = expirationErrors(expirationSeconds);
      if (errors.length > 0) throw invalidObject({ group: 'authentication.k8s.io', kind: 'TokenRequest' }, '', errors);
      const issuedAt = Math.floor(now() / 1000);
      const claims: JWTPayload = {
        iss: issuer,
        sub: `system:serviceaccount:${namespace}:${serviceAccount.name}`,
        aud: options.audiences?.length ? [...options.audiences] : [issuer],
        iat: issuedAt,
        nbf: issuedAt,
        exp: issuedAt + expirationSeconds,
        jti: randomUUID(),
        'kubernetes.io': {
          namespace,
          node: options.node,
          pod: options.pod,
          serviceaccount: { name: serviceAccount.name, uid: serviceAccount.uid },
        },
      };
      const token = await new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: keyId }).sign(key);
      return { token, expirationTimestamp: formatTime((issuedAt + expirationSeconds) * 1000) };
    },
  };
}
