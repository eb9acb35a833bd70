/**
 * Update and patch, except server-side apply (apply.ts), for objects and for subresources stored in them, such as status.
 * Source: upstream's rest.BeforeUpdate, generic registry and patch handler (behavior and wording).
 */
import type { SubresourceDefinition } from '../../api/kind.ts';
import { strategyFor } from '../../api/patch-strategy.ts';
import { firstErrors, invalid } from '../../machinery/field-error.ts';
import { goText, isJsonObject, jsonEqual } from '../../machinery/json-value.ts';
import type { KubeObject, ManagedFieldsEntry, ObjectMeta } from '../../machinery/meta.ts';
import { applyPatch, type PatchType } from '../../machinery/patch/patch.ts';
import {
  type ApiError,
  badRequest,
  conflict,
  invalidObject,
  methodNotAllowed,
  objectModified,
  pathNotFound,
} from '../../machinery/status.ts';
import { type BetweenSteps, runInTurns } from '../../platform/work-in-turns.ts';
import type { WriteOptions } from '../../ports/backend.ts';
import type { AdmissionChain } from '../admission/chain.ts';
import { admissionRequest } from './admit.ts';
import { checkSamePlace, decodeBody } from './body.ts';
import { type Change, modify, refuseManyValues, type Steps } from './commit.ts';
import type { RegistryContext, Sent } from './context.ts';
import { deletionAlongside } from './delete.ts';
import { recordEvents } from './events.ts';
import { ownersAfterUpdate, setOwners, writerOf } from './field-owners.ts';
import { keyOf } from './reads/list.ts';
import type { Resource } from './resources.ts';

export type UpdateOptions = Sent<WriteOptions>;

interface Request {
  context: RegistryContext;
  resource: Resource;
  key: string;
  namespace: string | undefined;
  name: string;
  options: UpdateOptions;
  subresource: SubresourceDefinition | undefined;
  refuse?: (cause: string) => ApiError;
  /** Undefined if no admission plugin handles the request. */
  chain: AdmissionChain | undefined;
  /** Ends the reservations that admission plugins have made for the current attempt to write. */
  release: () => void;
}

/**
 * Returns undefined if `name` is empty or absent. Throws 404 if the kind has no such subresource, and 405 if the subresource does not
 * support the verb.
 */
export function findSubresource(
  { kind }: Resource,
  name: string | undefined,
  verb: 'update' | 'patch' | 'create',
): SubresourceDefinition | undefined {
  if (name === undefined || name === '') return undefined;
  const subresource = kind.subresources[name];
  if (subresource === undefined) throw pathNotFound();
  if (!subresource.verbs.includes(verb)) throw methodNotAllowed();
  return subresource;
}

export async function updateObject(
  context: RegistryContext,
  resource: Resource,
  body: KubeObject,
  options: UpdateOptions,
): Promise<KubeObject> {
  if (resource.kind.createOnly) throw methodNotAllowed();
  const subresource = findSubresource(resource, options.request.subresource, 'update');
  const { name, namespace } = body.metadata;
  if (!name) throw badRequest('name must be provided');
  const target = { context, resource, namespace, name, options, subresource };
  const object = await changeObject(target, () => ({ body, isWhole: true }));
  return subresource?.document?.read(object) ?? subresource?.response?.(object, body) ?? object;
}

export async function patchObject(
  context: RegistryContext,
  resource: Resource,
  at: { namespace: string | undefined; name: string },
  patch: { type: Exclude<PatchType, 'application/apply-patch+yaml'>; body: unknown },
  options: UpdateOptions,
): Promise<KubeObject> {
  if (resource.kind.createOnly) throw methodNotAllowed();
  const { type, body } = patch;
  const subresource = findSubresource(resource, options.request.subresource, 'patch');
  // As in upstream, the error message shows a patch that is a JSON object in the notation of a Go map.
  const shown = (): string => (isJsonObject(body) ? goText(body) : JSON.stringify(body));
  const refuse = (cause: string) => invalidObject({ group: '', kind: '' }, '', [invalid('patch', shown(), cause)]);
  const document = subresource?.document;
  const { schema } = (document === undefined ? undefined : subresource?.bodyKind) ?? resource.kind;
  const object = await changeObject({ context, resource, ...at, options, subresource, refuse }, (old) => {
    const current = document?.read(old) ?? old;
    const patched = applyPatch(type, current, body, strategyFor(schema)) as unknown as KubeObject;
    checkSamePlace(patched, at);
    return { body: patched };
  });
  return document?.read(object) ?? object;
}

interface NewBody {
  body: KubeObject;
  /** If absent, the managedFields are computed as after any update. */
  owners?: readonly ManagedFieldsEntry[];
  /** Whether a client sent the whole object (PUT), so that fields that the client does not know may be missing. */
  isWhole?: boolean;
}

/**
 * Updates the object with the body that `bodyFor` creates from the object's current state. Calls `bodyFor` again if the update starts over,
 * for example after a conflict with another writer. Resolves to the object after the update.
 */
export async function changeObject(
  target: Omit<Request, 'key' | 'chain' | 'release'>,
  bodyFor: (old: KubeObject, betweenSteps: BetweenSteps) => NewBody | Promise<NewBody>,
): Promise<KubeObject> {
  const { context, resource, namespace, name } = target;
  const options = { ...target.options, onWarning: onceEach(target.options.onWarning) };
  const chain = context.admission.chainFor(resource.kind, options.request.subresource, 'UPDATE');
  const request: Request = { ...target, options, chain, key: keyOf(resource, namespace, name), release: () => {} };
  const sender = target.subresource?.ends ? undefined : options.request;
  const at = { key: request.key, name, dryRun: options.dryRun, sender, signal: options.request.signal };
  let replaced: KubeObject | undefined;
  const { action, object } = await modify(
    context,
    resource,
    at,
    async (old, steps) => {
      replaced = old;
      const body = await bodyFor(old, steps.betweenSteps);
      await steps.betweenSteps();
      return changeOf(request, body, old, steps);
    },
    () => {
      request.release();
      request.release = () => {};
    },
  );
  if (action === 'put' && replaced !== undefined && !options.dryRun) {
    const drafts = target.subresource?.events?.(object, replaced, options.request.user.name) ?? [];
    await recordEvents(context, object, drafts, options.request);
  }
  return object;
}

/** Passes each warning on only once, because every attempt to write the object produces the same warnings. */
function onceEach(onWarning: ((text: string) => void) | undefined): (text: string) => void {
  const seen = new Set<string>();
  return (text) => {
    if (!seen.has(text)) onWarning?.(text);
    seen.add(text);
  };
}

async function changeOf(
  request: Request,
  { body, owners, isWhole }: NewBody,
  old: KubeObject,
  steps: Steps,
): Promise<Change> {
  const { resource, options, subresource, context, refuse } = request;
  const { betweenSteps } = steps;
  const own = decodeBody(resource, body, { ...options, subresource, refuse });
  await betweenSteps();
  checkPreconditions(request, own.metadata, old.metadata);
  const managedFields = subresource?.document === undefined ? own.metadata.managedFields : undefined;
  if (subresource === undefined) {
    if (isWhole) resource.kind.keepUnsent?.(own, old);
    resource.kind.defaults?.(own, old);
    refuseManyValues(own, old, options.request);
    await betweenSteps();
  }
  const object = await (subresource === undefined
    ? replaced(request, own, old, steps)
    : applied(request, subresource, own, old, steps));
  await betweenSteps();
  const writer = writerOf(context, resource, options, options.request.subresource);
  setOwners(
    object,
    owners ?? (await runInTurns(ownersAfterUpdate(resource, old, object, writer, managedFields), betweenSteps)),
  );
  await betweenSteps();
  await request.chain?.validate(admissionOf(request, object, old), steps.outside);
  if (removedByUpdate(resource, object, old, context.timers.now())) {
    return deletionAlongside(context, resource, request, old, options);
  }
  const isSame = jsonEqual(object, old);
  await betweenSteps();
  if (isSame) return { action: 'keep' };
  return { action: 'put', object, alongside: () => request.chain?.alongside(admissionOf(request, object, old)) ?? [] };
}

const admissionOf = ({ resource, namespace, name, options }: Request, object: KubeObject, old: KubeObject) => {
  const { subresource } = options.request;
  return admissionRequest(resource, { operation: 'UPDATE', subresource, namespace, name, object, old }, options);
};

function checkPreconditions({ resource, key, name }: Request, sent: ObjectMeta, old: ObjectMeta): void {
  if (sent.uid && sent.uid !== old.uid) {
    const text = `Precondition failed: UID in precondition: ${sent.uid}, UID in object meta: ${old.uid}`;
    const cause = `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ${text}`;
    throw conflict(resource.groupResource, name, cause);
  }
  const { resourceVersion } = sent;
  if (resourceVersion && resourceVersion !== '0' && resourceVersion !== old.resourceVersion) {
    throw objectModified(resource.groupResource, name);
  }
}

/**
 * Copies from `old` the fields that no update may change. setOwners() sets managedFields later. Like upstream, deletes the empty list that
 * remains when a patch removes the last finalizer or owner.
 */
function keepSystemFields(metadata: ObjectMeta, old: ObjectMeta): void {
  metadata.name = old.name;
  metadata.resourceVersion = old.resourceVersion;
  for (const field of ['namespace', 'uid', 'creationTimestamp', 'deletionTimestamp'] as const) {
    if (old[field] === undefined) delete metadata[field];
    else metadata[field] = old[field];
  }
  if (old.deletionGracePeriodSeconds === undefined) delete metadata.deletionGracePeriodSeconds;
  else metadata.deletionGracePeriodSeconds = old.deletionGracePeriodSeconds;
  delete metadata.selfLink;
  delete metadata.managedFields;
  for (const field of ['finalizers', 'ownerReferences'] as const)
    if (metadata[field]?.length === 0) delete metadata[field];
}

async function replaced(
  request: Request,
  object: KubeObject,
  old: KubeObject,
  { betweenSteps, outside }: Steps,
): Promise<KubeObject> {
  const { context, resource, options, chain } = request;
  const { kind } = resource;
  await chain?.admit(admissionOf(request, object, old), outside);
  keepSystemFields(object.metadata, old.metadata);
  if (old.metadata.generation === undefined) delete object.metadata.generation;
  else object.metadata.generation = old.metadata.generation;
  kind.prepareForUpdate?.(object, old, { now: context.timers.now() });
  await betweenSteps();
  const errors = firstErrors(() => kind.validateUpdate(object, old));
  await betweenSteps();
  if (errors.length > 0) throw invalidObject(kind, object.metadata.name, errors);
  for (const warning of kind.warnings?.(object, old) ?? []) options.onWarning?.(warning);
  kind.canonicalize?.(object);
  request.release = chain?.allocate(admissionOf(request, object, old)) ?? request.release;
  return object;
}

async function applied(
  request: Request,
  subresource: SubresourceDefinition,
  body: KubeObject,
  old: KubeObject,
  { betweenSteps, outside }: Steps,
): Promise<KubeObject> {
  const { context, resource } = request;
  if (subresource.apply === undefined) throw methodNotAllowed();
  const result = subresource.apply(old, body, { now: context.timers.now() });
  // A plugin may change the object: copy all of it, because it shares parts with the old object.
  const object = request.chain?.changes ? structuredClone(result) : { ...result, metadata: { ...result.metadata } };
  await request.chain?.admit(admissionOf(request, object, old), outside);
  keepSystemFields(object.metadata, old.metadata);
  await betweenSteps();
  const errors = firstErrors(() => subresource.validate?.(object, old) ?? []);
  if (errors.length > 0) throw invalidObject(resource.kind, object.metadata.name, errors);
  return object;
}

/** Whether the update deletes the object. Source: upstream's ShouldDeleteDuringUpdate. */
function removedByUpdate({ kind }: Resource, object: KubeObject, old: KubeObject, now: number): boolean {
  if ((object.metadata.finalizers ?? []).length > 0) return false;
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = old.metadata;
  if (deletionTimestamp === undefined || deletionGracePeriodSeconds !== 0) return false;
  return kind.deletion?.(object, { gracePeriodSeconds: 0 }, { now }).now ?? true;
}
