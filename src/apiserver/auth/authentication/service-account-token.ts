/**
 * Authenticates ServiceAccounts by the tokens of TokenRequests. The objects to which a token is bound are read for each request, so that a
 * token is refused once one of them no longer exists.
 * Source: pkg/serviceaccount/claims.go and k8s.io/apiserver/pkg/authentication/serviceaccount of v1.33 (behavior and wording).
 */
import type { JWTPayload } from 'jose';
import { NODES, PODS, SECRETS, SERVICE_ACCOUNTS } from '../../../api/resources.ts';
import type { KubeObject, ResourceRef } from '../../../machinery/meta.ts';
import { notFound } from '../../../machinery/status.ts';
import type { Millis } from '../../../machinery/time.ts';
import type { UserInfo } from '../../../ports/request.ts';
import { CREDENTIAL_ID, CredentialError, type ReadObject, type TokenAuthenticator } from './credentials.ts';
import { commonAudiences, type VerifyToken } from './signed-tokens.ts';

/** By how much the clocks of the server and the issuer may differ. Source: the default leeway of go-jose. */
const LEEWAY_MILLIS = 60_000;
const PREFIX = 'authentication.kubernetes.io';

interface BoundObject {
  name?: string;
  uid?: string;
}

interface BoundClaims {
  namespace?: string;
  serviceaccount?: BoundObject;
  pod?: BoundObject;
  secret?: BoundObject;
  node?: BoundObject;
}

export interface ServiceAccountTokenOptions {
  verify: VerifyToken;
  issuer: string;
  audiences: readonly string[];
  read: ReadObject;
  now: () => Millis;
}

export function serviceAccountTokens(options: ServiceAccountTokenOptions): TokenAuthenticator {
  return async (token, requested) => {
    const payload = await options.verify(token, options.issuer);
    if (payload === undefined) return undefined;
    const audiences = commonAudiences(payload, requested, options.audiences);
    checkTimes(payload, options.now());
    return { user: await boundUser(payload, options), audiences };
  };
}

function checkTimes({ exp, nbf, iat }: JWTPayload, now: Millis): void {
  const at = (seconds: number): Millis => seconds * 1000;
  if (nbf !== undefined && now + LEEWAY_MILLIS < at(nbf)) {
    throw new CredentialError('service account token is not valid yet');
  }
  if (exp !== undefined && now - LEEWAY_MILLIS > at(exp))
    throw new CredentialError('service account token has expired');
  if (iat !== undefined && now + LEEWAY_MILLIS < at(iat)) {
    throw new CredentialError('service account token is issued in the future');
  }
}

async function boundUser(payload: JWTPayload, options: ServiceAccountTokenOptions): Promise<UserInfo> {
  const claims = (payload['kubernetes.io'] ?? {}) as BoundClaims;
  const { namespace = '', serviceaccount = {}, pod, secret, node } = claims;
  const { name = '', uid = '' } = serviceaccount;
  const account = await options.read(SERVICE_ACCOUNTS, namespace, name);
  if (account === undefined) throw new CredentialError(notFound(SERVICE_ACCOUNTS, name).message);
  if (isDeleted(account, options.now())) {
    throw new CredentialError(`service account ${namespace}/${name} has been deleted`);
  }
  if (account.metadata.uid !== uid) {
    throw new CredentialError(`service account UID (${account.metadata.uid}) does not match claim (${uid})`);
  }
  const check = async (resource: ResourceRef, within: string | undefined, kind: string, bound: BoundObject) => {
    const object = await options.read(resource, within, bound.name ?? '');
    if (object === undefined || isDeleted(object, options.now())) {
      throw new CredentialError('service account token has been invalidated');
    }
    if (object.metadata.uid === bound.uid) return;
    const found = `${kind} UID (${object.metadata.uid})`;
    throw new CredentialError(`${found} does not match service account ${kind} ref claim (${bound.uid ?? ''})`);
  };
  if (secret !== undefined) await check(SECRETS, namespace, 'secret', secret);
  if (pod !== undefined) await check(PODS, namespace, 'pod', pod);
  // If the token is bound to a Pod, the claim `node` only says where the Pod runs, and is not checked.
  if (node !== undefined && pod === undefined) await check(NODES, undefined, 'node', node);
  return { ...serviceAccountUser(namespace, name, uid), extra: extraOf(payload.jti, pod, node) };
}

/** An object counts as existing until LEEWAY_MILLIS after its deletionTimestamp. */
const isDeleted = ({ metadata }: KubeObject, now: Millis): boolean =>
  metadata.deletionTimestamp !== undefined && Date.parse(metadata.deletionTimestamp) < now - LEEWAY_MILLIS;

export const serviceAccountUser = (namespace: string, name: string, uid: string): UserInfo => ({
  name: `system:serviceaccount:${namespace}:${name}`,
  uid,
  groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`],
});

function extraOf(id: string | undefined, pod: BoundObject = {}, node: BoundObject = {}): UserInfo['extra'] {
  const values = {
    [CREDENTIAL_ID]: id && `JTI=${id}`,
    [`${PREFIX}/pod-name`]: pod.name,
    [`${PREFIX}/pod-uid`]: pod.uid,
    [`${PREFIX}/node-name`]: node.name,
    [`${PREFIX}/node-uid`]: node.uid,
  };
  const present = Object.entries(values).flatMap(([key, value]) => (value ? [[key, [value]] as const] : []));
  return Object.fromEntries(present);
}
