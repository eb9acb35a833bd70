/**
 * Authenticates ServiceAccounts by the tokens in Secrets of the type kubernetes.io/service-account-token. Such a token does not expire.
 * Source: pkg/serviceaccount/legacy.go of v1.33 (behavior and wording).
 */
import { timingSafeEqual } from 'node:crypto';
import type { Secret } from '../../../api/generated/types.ts';
import { SECRETS, SERVICE_ACCOUNTS } from '../../../api/resources.ts';
import { formatTime } from '../../../machinery/time.ts';
import { LEGACY_CLAIMS, LEGACY_ISSUER } from '../../pki/tokens.ts';
import { CredentialError, type TokenAuthenticator } from './credentials.ts';
import { type ServiceAccountTokenOptions, serviceAccountUser } from './service-account-token.ts';
import { commonAudiences } from './signed-tokens.ts';

const INVALIDATED = 'Token has been invalidated';
const INVALID_SINCE = 'kubernetes.io/legacy-token-invalid-since';
const LAST_USED = 'kubernetes.io/legacy-token-last-used';
const ADVICE = `Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the '${INVALID_SINCE}' label from the secret to temporarily allow use of this token`;

export type LabelSecret = (namespace: string, name: string, label: string, value: string) => void;

export interface LegacyTokenOptions extends Omit<ServiceAccountTokenOptions, 'issuer'> {
  labelSecret: LabelSecret;
}

export function legacyTokens({
  verify,
  audiences: ofApi,
  read,
  now,
  labelSecret,
}: LegacyTokenOptions): TokenAuthenticator {
  return async (token, requested) => {
    const payload = await verify(token, LEGACY_ISSUER);
    if (payload === undefined) return undefined;
    const audiences = commonAudiences(payload, requested, ofApi);
    const claim = (key: string): string => String(payload[key] ?? '');
    const namespace = claim(LEGACY_CLAIMS.namespace);
    const name = claim(LEGACY_CLAIMS.name);
    const uid = claim(LEGACY_CLAIMS.uid);
    const secretName = claim(LEGACY_CLAIMS.secret);
    const user = serviceAccountUser(namespace, name, uid);
    if (payload.sub !== user.name) throw new CredentialError('sub claim is invalid');
    const secret = (await read(SECRETS, namespace, secretName)) as Secret | undefined;
    if (secret === undefined || secret.metadata.deletionTimestamp !== undefined) throw new CredentialError(INVALIDATED);
    const stored = Buffer.from(secret.data?.['token'] ?? '', 'base64');
    const sent = Buffer.from(token);
    if (stored.length !== sent.length || !timingSafeEqual(stored, sent)) {
      throw new CredentialError("Token does not match server's copy");
    }
    const account = await read(SERVICE_ACCOUNTS, namespace, name);
    if (account === undefined || account.metadata.deletionTimestamp !== undefined) {
      throw new CredentialError(`ServiceAccount ${namespace}/${name} has been deleted`);
    }
    if (account.metadata.uid !== uid) {
      throw new CredentialError(`ServiceAccount UID (${account.metadata.uid}) does not match claim (${uid})`);
    }
    const labels = secret.metadata.labels ?? {};
    const today = formatTime(now()).slice(0, 'YYYY-MM-DD'.length);
    // The value of the label is a date, so that a token in constant use causes only one write a day.
    if (labels[LAST_USED] !== today) labelSecret(namespace, secretName, LAST_USED, today);
    if (labels[INVALID_SINCE]) {
      const which = `the token in secret ${namespace}/${secretName} for service account ${namespace}/${name}`;
      throw new CredentialError(`${which} has been marked invalid. ${ADVICE}`);
    }
    return { user, audiences };
  };
}
