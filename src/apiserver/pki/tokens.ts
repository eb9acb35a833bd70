/**
 * Issues ServiceAccount tokens, which are JWTs.
 * Source: KEP-1205 (bound tokens), the TokenRequest API and pkg/serviceaccount of v1.33.
 */
import { createHash, createPublicKey, type KeyObject, randomUUID } from 'node:crypto';
import { exportJWK, type JWTPayload, SignJWT } from 'jose';
import { formatTime, type Millis } from '../../machinery/time.ts';
import type { Pki } from './pki.ts';

/** The issuer is also the audience of the API: the address at which Pods reach the API. */
export const TOKEN_ISSUER = 'https://kubernetes.default.svc.cluster.local';
export const DEFAULT_EXPIRATION_SECONDS = 3600;
const ALGORITHM = 'ES256';

/** The issuer of tokens in Secrets, which do not expire. */
export const LEGACY_ISSUER = 'kubernetes/serviceaccount';
const LEGACY_PREFIX = 'kubernetes.io/serviceaccount';
export const LEGACY_CLAIMS = {
  namespace: `${LEGACY_PREFIX}/namespace`,
  name: `${LEGACY_PREFIX}/service-account.name`,
  uid: `${LEGACY_PREFIX}/service-account.uid`,
  secret: `${LEGACY_PREFIX}/secret.name`,
};

export interface BoundReference {
  name: string;
  uid?: string;
}

/**
 * VOLUME_TOKEN_SECONDS: the lifetime of the tokens that nodes request for the volumes of Pods. EXTENDED_SECONDS: how long such a token is
 * accepted if its only audience is the API, because old clients do not read the file with the token again. Source:
 * WarnOnlyBoundTokenExpirationPeriod and ExpirationExtensionSeconds of v1.33.
 */
const VOLUME_TOKEN_SECONDS = 3607;
const EXTENDED_SECONDS = 365 * 24 * 3600;

export interface TokenOptions {
  /** If empty or absent, the only audience is the issuer. */
  audiences?: readonly string[];
  /** The default is DEFAULT_EXPIRATION_SECONDS. */
  expirationSeconds?: number;
  pod?: BoundReference;
  secret?: BoundReference;
  node?: BoundReference;
}

export interface IssuedToken {
  /** The jti claim. */
  id: string;
  audiences: readonly string[];
  expirationSeconds: number;
  /** The status of a TokenRequest. `expirationTimestamp`: in RFC 3339 format. */
  status: { token: string; expirationTimestamp: string };
}

export interface TokenIssuer {
  /**
   * Signs a token. If the token is for a volume of a Pod, and its only audience is the API, it is valid for longer than its status says.
   */
  issue(namespace: string, serviceAccount: BoundReference, options?: TokenOptions): Promise<IssuedToken>;
  /** Signs a token for a Secret of the type kubernetes.io/service-account-token. The token does not expire. */
  issueLegacy(namespace: string, serviceAccount: BoundReference, secretName: string): Promise<string>;
  /** The iss claim of the tokens, and their default audience. */
  readonly issuer: string;
}

export function tokenKeyOf({ serviceAccountKey }: Pick<Pki, 'serviceAccountKey'>): {
  publicKey: KeyObject;
  keyId: string;
  algorithm: string;
} {
  const publicKey = createPublicKey(serviceAccountKey);
  const der = publicKey.export({ type: 'spki', format: 'der' });
  return { publicKey, keyId: createHash('sha256').update(der).digest('base64url'), algorithm: ALGORITHM };
}

/** Resolves to a JSON Web Key Set. Source: RFC 7517, and pkg/serviceaccount/openidmetadata.go of v1.33. */
export async function publicKeySet(pki: Pick<Pki, 'serviceAccountKey'>): Promise<object> {
  const { publicKey, keyId, algorithm } = tokenKeyOf(pki);
  return { keys: [{ use: 'sig', kid: keyId, alg: algorithm, ...(await exportJWK(publicKey)) }] };
}

/** `issuer`: the iss claim, an https URL. */
export function createTokenIssuer(pki: Pick<Pki, 'serviceAccountKey'>, issuer: string, now: () => Millis): TokenIssuer {
  const { keyId } = tokenKeyOf(pki);
  const sign = (claims: JWTPayload): Promise<string> =>
    new SignJWT(claims).setProtectedHeader({ alg: ALGORITHM, kid: keyId }).sign(pki.serviceAccountKey);
  return {
    issuer,
    async issue(namespace, { name, uid }, options = {}) {
      const issuedAt = Math.floor(now() / 1000);
      const { expirationSeconds = DEFAULT_EXPIRATION_SECONDS, node, pod, secret } = options;
      const audiences = options.audiences?.length ? [...options.audiences] : [issuer];
      const isExtended =
        pod !== undefined && expirationSeconds === VOLUME_TOKEN_SECONDS && audiences.every((each) => each === issuer);
      const warnafter = isExtended ? issuedAt + expirationSeconds : undefined;
      const id = randomUUID();
      const token = await sign({
        iss: issuer,
        sub: subjectOf(namespace, name),
        aud: audiences,
        iat: issuedAt,
        nbf: issuedAt,
        exp: issuedAt + (isExtended ? EXTENDED_SECONDS : expirationSeconds),
        jti: id,
        'kubernetes.io': { namespace, node, pod, secret, serviceaccount: { name, uid }, warnafter },
      });
      const expirationTimestamp = formatTime((issuedAt + expirationSeconds) * 1000);
      return { id, audiences, expirationSeconds, status: { token, expirationTimestamp } };
    },
    issueLegacy: (namespace, { name, uid }, secretName) =>
      sign({
        iss: LEGACY_ISSUER,
        sub: subjectOf(namespace, name),
        [LEGACY_CLAIMS.namespace]: namespace,
        [LEGACY_CLAIMS.secret]: secretName,
        [LEGACY_CLAIMS.name]: name,
        [LEGACY_CLAIMS.uid]: uid,
      }),
  };
}

const subjectOf = (namespace: string, name: string): string => `system:serviceaccount:${namespace}:${name}`;
