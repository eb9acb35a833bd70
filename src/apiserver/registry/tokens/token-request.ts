/**
 * Issues tokens for ServiceAccounts.
 * Source: pkg/registry/core/serviceaccount/storage/token.go and pkg/apis/authentication/validation of v1.33 (behavior and wording).
 */
import type { AuthenticationV1TokenRequest, Pod, ServiceAccount } from '../../../api/generated/types.ts';
import { NODES, PODS, SECRETS } from '../../../api/resources.ts';
import { type FieldError, invalid } from '../../../machinery/field-error.ts';
import { type KubeObject, type ResourceRef, uidOf } from '../../../machinery/meta.ts';
import {
  badRequest,
  conflict,
  invalidObject,
  isApiError,
  notFound,
  serviceUnavailable,
} from '../../../machinery/status.ts';
import { formatTime } from '../../../machinery/time.ts';
import type { RequestContext } from '../../../ports/request.ts';
import { type BoundReference, DEFAULT_EXPIRATION_SECONDS, type TokenOptions } from '../../pki/tokens.ts';
import type { RegistryContext } from '../context.ts';
import { getObject } from '../reads/list.ts';

const MIN_EXPIRATION_SECONDS = 600;
const MAX_EXPIRATION_SECONDS = 2 ** 32;
const KIND = { group: 'authentication.k8s.io', kind: 'TokenRequest' };

/** Throws 422 Invalid if expirationSeconds is out of range, or if the request contains another name or namespace than its URL. */
export function checkTokenRequest(
  request: AuthenticationV1TokenRequest,
  { namespace, name }: { namespace: string | undefined; name: string },
): void {
  const { name: given, namespace: within } = request.metadata ?? {};
  if (given && given !== name) {
    throw invalidObject(KIND, name, [
      invalid('metadata.name', given, 'must match the service account name if specified'),
    ]);
  }
  if (within && within !== namespace) {
    throw invalidObject(KIND, name, [
      invalid('metadata.namespace', within, 'must match the service account namespace if specified'),
    ]);
  }
  const errors = expirationErrors(request.spec?.expirationSeconds ?? DEFAULT_EXPIRATION_SECONDS);
  if (errors.length > 0) throw invalidObject(KIND, '', errors);
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

/**
 * Resolves to the request with a token in its status. Adds the ID of the token to the audit event. Rejects with 503 ServiceUnavailable if
 * this server issues no tokens, and with the errors of boundTo().
 */
export async function issueToken(
  context: RegistryContext,
  account: ServiceAccount,
  sent: AuthenticationV1TokenRequest,
  { audit }: RequestContext,
): Promise<KubeObject> {
  if (context.issueToken === undefined) throw serviceUnavailable('this server does not issue tokens');
  const { namespace = '', name } = account.metadata;
  const { spec } = sent;
  const bound = spec?.boundObjectRef && (await boundTo(context, account, spec.boundObjectRef));
  const issued = await context.issueToken(
    namespace,
    { name, uid: uidOf(account) },
    { audiences: spec?.audiences, expirationSeconds: spec?.expirationSeconds, ...bound },
  );
  audit.set('authentication.kubernetes.io/issued-credential-id', `JTI=${issued.id}`);
  const { audiences, expirationSeconds, status } = issued;
  const metadata = { name, namespace, creationTimestamp: formatTime(context.timers.now()) };
  return { ...sent, metadata, spec: { ...spec, audiences, expirationSeconds }, status } as unknown as KubeObject;
}

interface ObjectReference {
  apiVersion?: string;
  kind?: string;
  name?: string;
  uid?: string;
}

/**
 * Resolves to the references for the claims of a token that is bound to the object. Rejects with 404 if the object does not exist, 409 if
 * it has another UID, and 400 if the object is neither a Pod, a Node nor a Secret, or is a Pod with another ServiceAccount.
 */
async function boundTo(
  context: RegistryContext,
  account: ServiceAccount,
  bound: ObjectReference,
): Promise<Pick<TokenOptions, 'pod' | 'secret' | 'node'>> {
  const { namespace, name: accountName } = account.metadata;
  const { kind = '', apiVersion = '', name = '' } = bound;
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
  const read = async (resource: ResourceRef, within?: string): Promise<KubeObject> => {
    if (name === '') throw notFound(resource, name);
    return getObject(context, context.resources.find(resource), within, name);
  };
  const referenceTo = (object: KubeObject): BoundReference => {
    const uid = uidOf(object);
    if (!bound.uid || bound.uid === uid) return { name, uid };
    const text = `the UID in the bound object reference (${bound.uid}) does not match the UID in record. The object might have been deleted and then recreated`;
    throw conflict({ group, resource: kind }, name, text);
  };
  if (group === '' && kind === 'Pod') {
    const pod = (await read(PODS, namespace)) as Pod;
    if (pod.spec?.serviceAccountName !== accountName) {
      const text = `cannot bind token for serviceaccount ${JSON.stringify(accountName)} to pod running with different serviceaccount name.`;
      throw badRequest(text);
    }
    const nodeName = pod.spec?.nodeName;
    return { pod: referenceTo(pod), ...(nodeName ? { node: await nodeOf(context, nodeName) } : {}) };
  }
  if (group === '' && kind === 'Node') return { node: referenceTo(await read(NODES)) };
  if (group === '' && kind === 'Secret') return { secret: referenceTo(await read(SECRETS, namespace)) };
  const type = apiVersion.includes('/') ? apiVersion : `/${apiVersion}`;
  throw badRequest(`cannot bind token to object of type ${type}, Kind=${kind}`);
}

async function nodeOf(context: RegistryContext, name: string): Promise<BoundReference> {
  try {
    return { name, uid: uidOf(await getObject(context, context.resources.find(NODES), undefined, name)) };
  } catch (error) {
    if (isApiError(error, 'NotFound')) return { name };
    throw error;
  }
}
