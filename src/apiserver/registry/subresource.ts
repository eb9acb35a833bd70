/** create on a subresource: binding, token, and whatever else a kind's definition applies to the object. */
import type { AuthenticationV1TokenRequest, Binding, Pod, ServiceAccount } from '../../api/generated/types.ts';
import type { SubresourceDefinition } from '../../api/kind.ts';
import type { WriteOptions } from '../../machinery/backend.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import {
  badRequest,
  conflict,
  invalidObject,
  methodNotAllowed,
  notFound,
  serviceUnavailable,
} from '../../machinery/status.ts';
import { formatTime } from '../../machinery/time.ts';
import { objectKey, resourcePrefix } from '../cache/keys.ts';
import { decodeBody } from './body.ts';
import { modify } from './commit.ts';
import type { RegistryContext } from './context.ts';
import { getObject, keyOf } from './list.ts';
import type { Resource } from './resources.ts';
import { findSubresource } from './update.ts';

const PODS = { group: '', version: 'v1', resource: 'pods' };
const PODS_PREFIX = resourcePrefix('', 'pods');

export interface SubresourceTarget {
  namespace: string | undefined;
  name: string | undefined;
  subresource: string;
}

export async function createSubresource(
  context: RegistryContext,
  resource: Resource,
  target: SubresourceTarget,
  body: KubeObject,
  options: WriteOptions,
): Promise<KubeObject> {
  const definition = findSubresource(resource, target.subresource, 'create');
  if (definition === undefined) throw methodNotAllowed();
  const { namespace, name } = target;
  if (!name) throw badRequest('name must be provided');
  const own = decodeBody(resource, body, { ...options, subresource: definition });
  if (definition.bodyKind?.kind === 'TokenRequest') {
    const account = getObject(context, resource, namespace, name) as ServiceAccount;
    return issueToken(context, account, own as AuthenticationV1TokenRequest);
  }
  await applyTo(context, resource, { namespace, name }, definition, own, options);
  return created();
}

/** POST of a Binding: the binding subresource of the Pod that it names. */
export function createBinding(
  context: RegistryContext,
  namespace: string | undefined,
  body: KubeObject,
  options: WriteOptions,
): Promise<KubeObject> {
  const { name } = (body as Binding).metadata;
  const target = { namespace: namespace ?? body.metadata.namespace, name, subresource: 'binding' };
  return createSubresource(context, context.resources.find(PODS), target, body, options);
}

async function applyTo(
  context: RegistryContext,
  resource: Resource,
  { namespace, name }: { namespace: string | undefined; name: string },
  definition: SubresourceDefinition,
  body: KubeObject,
  options: WriteOptions,
): Promise<void> {
  const { apply, validate } = definition;
  if (apply === undefined) throw methodNotAllowed();
  const at = { key: keyOf(resource, namespace, name), name, dryRun: options.dryRun };
  await modify(context, resource, at, (old) => {
    const object = apply(old, body, { now: context.timers.now() });
    const errors = validate?.(object, old) ?? [];
    if (errors.length > 0) throw invalidObject(resource.kind, name, errors);
    return { action: 'put', object };
  });
}

/** What upstream answers to a Binding. */
const created = (): KubeObject =>
  ({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }) as unknown as KubeObject;

/** Source: pkg/registry/core/serviceaccount/storage/token.go of v1.33 (behaviour and wording). */
async function issueToken(
  context: RegistryContext,
  account: ServiceAccount,
  request: AuthenticationV1TokenRequest,
): Promise<KubeObject> {
  if (context.issueToken === undefined) throw serviceUnavailable('this server issues no tokens');
  const { namespace = '', name, uid = '' } = account.metadata;
  const { audiences, expirationSeconds, boundObjectRef } = request.spec ?? {};
  const pod = boundObjectRef === undefined ? undefined : boundPod(context, account, boundObjectRef);
  const status = await context.issueToken(
    namespace,
    { name, uid },
    {
      ...(audiences === undefined ? {} : { audiences }),
      ...(expirationSeconds === undefined ? {} : { expirationSeconds }),
      ...(pod === undefined ? {} : { pod: { name: pod.metadata.name, uid: pod.metadata.uid ?? '' } }),
      ...(pod?.spec?.nodeName ? { node: { name: pod.spec.nodeName } } : {}),
    },
  );
  const metadata = { name, namespace, creationTimestamp: formatTime(context.timers.now()) };
  return { ...request, metadata, status } as KubeObject;
}

interface BoundObject {
  apiVersion?: string;
  kind?: string;
  name?: string;
  uid?: string;
}

/** The Pod that the token is to live as long as. Throws 400, 404, 409 or 422. */
function boundPod({ cache }: RegistryContext, account: ServiceAccount, bound: BoundObject): Pod {
  const { namespace, name: accountName } = account.metadata;
  if (bound.kind !== 'Pod' || bound.apiVersion !== 'v1') {
    throw badRequest(`cannot bind token to object of type ${bound.apiVersion ?? ''}, Kind=${bound.kind ?? ''}`);
  }
  const name = bound.name ?? '';
  const pod = cache.get(objectKey(PODS_PREFIX, namespace, name)) as Pod | undefined;
  if (pod === undefined) throw notFound({ group: '', resource: 'pods' }, name);
  if (pod.spec?.serviceAccountName !== accountName) {
    const text = `cannot bind token for serviceaccount "${accountName}" to pod running with different serviceaccount name.`;
    throw badRequest(text);
  }
  if (bound.uid && bound.uid !== pod.metadata.uid) {
    const text = `the UID in the bound object reference (${bound.uid}) does not match the UID in record. The object might have been deleted and then recreated`;
    throw conflict({ group: '', resource: 'pods' }, name, text);
  }
  return pod;
}
