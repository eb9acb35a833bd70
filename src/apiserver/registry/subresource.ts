/**
 * The verb create on subresources, such as token, eviction and binding. Also creates Bindings, which clients may send without a
 * subresource.
 */

import type { AuthenticationV1TokenRequest, Eviction, ServiceAccount } from '../../api/generated/types.ts';
import type { SubresourceDefinition } from '../../api/kind.ts';
import { firstErrors } from '../../machinery/field-error.ts';
import type { KubeObject, ResourceRef } from '../../machinery/meta.ts';
import { badRequest, invalidObject, methodNotAllowed } from '../../machinery/status.ts';
import { runInTurns } from '../../platform/work-in-turns.ts';
import type { WriteOptions } from '../../ports/backend.ts';
import type { Alongside } from '../admission/plugin.ts';
import { admissionRequest } from './admit.ts';
import { decodeBody } from './body.ts';
import { modify } from './commit.ts';
import type { RegistryContext, Sent } from './context.ts';
import { evict } from './evictions/evict.ts';
import { ownersAfterUpdate, setOwners, writerOf } from './field-owners.ts';
import { getObject, keyOf } from './reads/list.ts';
import type { Resource } from './resources.ts';
import { checkTokenRequest, issueToken } from './tokens/token-request.ts';
import { findSubresource } from './update.ts';

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
  options: Sent<WriteOptions>,
): Promise<KubeObject> {
  const definition = findSubresource(resource, target.subresource, 'create');
  if (definition === undefined) throw methodNotAllowed();
  const { namespace, name } = target;
  if (!name) throw badRequest('name must be provided');
  const own = decodeBody(resource, body, { ...options, subresource: definition });
  const { subresource } = target;
  if (definition.operation === 'issueToken')
    checkTokenRequest(own as AuthenticationV1TokenRequest, { namespace, name });
  const chain = context.admission.chainFor(resource.kind, subresource, 'CREATE');
  if (chain !== undefined) {
    const admitted = admissionRequest(
      resource,
      { operation: 'CREATE', subresource, namespace, name, object: own },
      options,
    );
    await chain.admit(admitted, (waiting) => waiting);
    await chain.validate(admitted, (waiting) => waiting);
  }
  if (definition.operation === 'issueToken') {
    const account = (await getObject(context, resource, namespace, name)) as ServiceAccount;
    return issueToken(context, account, own as AuthenticationV1TokenRequest, options.request);
  }
  if (definition.operation === 'evict') {
    const at = { ...target, name };
    await evict(context, {
      resource,
      namespace,
      name,
      eviction: own as Eviction,
      options,
      mark: definition.apply ?? ((old) => old),
      change: ({ apply, alongside, dryRun }) =>
        applyTo(context, resource, at, { ...definition, apply }, own, { ...options, dryRun }, alongside),
    });
    return created();
  }
  await applyTo(context, resource, { ...target, name }, definition, own, options);
  return created();
}

/** Handles a create of a kind that is never stored, such as Binding, like a POST to the subresource of the object with the same name. */
export function createForSubresource(
  context: RegistryContext,
  { resource, subresource }: { resource: ResourceRef; subresource: string },
  body: KubeObject,
  options: Sent<WriteOptions>,
): Promise<KubeObject> {
  const { name } = body.metadata;
  const namespace = options.request.namespace ?? body.metadata.namespace;
  const request = { ...options.request, resource, subresource, namespace, name };
  const target = { namespace, name, subresource };
  return createSubresource(context, context.resources.find(resource), target, body, { ...options, request });
}

/**
 * Writes the object that the definition's apply() computes from `body`. `alongside` is called after apply(), and returns other objects that
 * are written in the same transaction.
 */
async function applyTo(
  context: RegistryContext,
  resource: Resource,
  { namespace, name, subresource }: SubresourceTarget & { name: string },
  definition: SubresourceDefinition,
  body: KubeObject,
  options: Sent<WriteOptions>,
  alongside?: () => Alongside[],
): Promise<KubeObject> {
  const { apply, validate, ends } = definition;
  if (apply === undefined) throw methodNotAllowed();
  const at = {
    key: keyOf(resource, namespace, name),
    name,
    dryRun: options.dryRun,
    sender: ends ? undefined : options.request,
    signal: options.request.signal,
  };
  const { object: written } = await modify(context, resource, at, async (old, { betweenSteps }) => {
    const applied = apply(old, body, { now: context.timers.now() });
    const object = { ...applied, metadata: { ...applied.metadata } };
    const errors = firstErrors(() => validate?.(object, old) ?? []);
    if (errors.length > 0) throw invalidObject(resource.kind, name, errors);
    const writer = writerOf(context, resource, options, subresource);
    setOwners(object, await runInTurns(ownersAfterUpdate(resource, old, object, writer), betweenSteps));
    return { action: 'put', object, alongside };
  });
  return written;
}

/** The answer to a Binding or an Eviction, as upstream. */
const created = (): KubeObject =>
  ({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }) as unknown as KubeObject;
