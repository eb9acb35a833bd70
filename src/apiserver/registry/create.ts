/** The verb create. Source: upstream's rest.BeforeCreate and generic registry (behavior). */

import { firstErrors } from '../../machinery/field-error.ts';
import type { KubeObject, ManagedFieldsEntry } from '../../machinery/meta.ts';
import { pathSegmentErrors, pathSegmentPrefixErrors } from '../../machinery/names.ts';
import { validateObjectMeta } from '../../machinery/object-meta.ts';
import { ApiError, alreadyExists, badRequest, invalidObject } from '../../machinery/status.ts';
import { formatTime } from '../../machinery/time.ts';
import { type LongWork, longWork, workInTurns } from '../../platform/work-in-turns.ts';
import type { WriteOptions } from '../../ports/backend.ts';
import type { AdmissionChain } from '../admission/chain.ts';
import type { AdmissionRequest, Alongside } from '../admission/plugin.ts';
import { admissionRequest } from './admit.ts';
import { decodeBody } from './body.ts';
import { changesObjects, insert, refuseManyValues } from './commit.ts';
import type { RegistryContext, Sent } from './context.ts';
import { setOwners } from './field-owners.ts';
import { generatedName, randomUid } from './random-names.ts';
import { untilCurrent } from './reads/freshness.ts';
import { keyOf, readCurrent } from './reads/list.ts';
import type { Resource } from './resources.ts';

const ANY_NAME = { nameErrors: pathSegmentErrors, generateNameErrors: pathSegmentPrefixErrors };

/** Source: upstream's RetryGenerateName. */
const GENERATE_ATTEMPTS = 8;

export async function createObject(
  context: RegistryContext,
  resource: Resource,
  namespace: string | undefined,
  body: KubeObject,
  options: Sent<WriteOptions>,
  owners: readonly ManagedFieldsEntry[] = [],
): Promise<KubeObject> {
  const { kind } = resource;
  // Each step takes long for a large object, so other requests may run between the steps.
  const turn = workInTurns();
  const object = decodeBody(resource, body, options);
  await turn();
  object.metadata.name ??= '';
  kind.defaults?.(object);
  refuseManyValues(object, undefined, options.request);
  placeInNamespace(resource, namespace, object);
  if (object.metadata.resourceVersion) throw resourceVersionOnCreate();
  setSystemFields(context, object);
  setOwners(object, owners);
  // Admission must see the objects that the client created before, such as the namespace.
  const behind = untilCurrent(context);
  if (behind !== undefined) await behind;
  const { name, namespace: placed } = object.metadata;
  const admitted = admissionRequest(resource, { operation: 'CREATE', namespace: placed, name, object }, options);
  const chain = context.admission.chainFor(kind, undefined, 'CREATE');
  // Begin long work after admission: a plugin may wait, for example for the ServiceAccount of a Pod, and must not occupy the slot of
  // longWork() meanwhile.
  await chain?.admit(admitted, (waiting) => waiting);
  if (object.metadata.name !== name || object.metadata.namespace !== placed)
    throw new Error('an admission plugin must not change the name or the namespace of an object');
  const work = longWork();
  try {
    return await createAdmitted(context, resource, { chain, admitted, object }, options, work);
  } finally {
    work.end();
  }
}

interface Admitted {
  chain: AdmissionChain | undefined;
  admitted: AdmissionRequest;
  object: KubeObject;
}

async function createAdmitted(
  context: RegistryContext,
  resource: Resource,
  created: Admitted,
  options: Sent<WriteOptions>,
  work: LongWork,
): Promise<KubeObject> {
  const { kind } = resource;
  const { chain, admitted, object } = created;
  const { betweenSteps } = work;
  const generated = !object.metadata.name && object.metadata.generateName;
  const generateName = (prefix: string): void => {
    object.metadata.name = generatedName(prefix, context.randomBytes);
    admitted.name = object.metadata.name;
  };
  if (generated) generateName(generated);

  const now = context.timers.now();
  kind.prepareForCreate?.(object, { now, warn: options.onWarning });
  await betweenSteps();
  let errors = firstErrors(() => kind.validateCreate(object));
  await betweenSteps();
  // Kinds with few validation rules, such as Events, still need valid metadata, for example a name that is valid in a URL path. As in
  // upstream, the metadata is checked after the rules of the kind, because the errors of the kind are more specific.
  const rules = { ...ANY_NAME, namespaced: kind.namespaced };
  if (errors.length === 0) errors = firstErrors(() => validateObjectMeta(object.metadata, rules));
  if (errors.length > 0) throw invalidObject(kind, object.metadata.name, errors);
  await betweenSteps();
  for (const warning of kind.warnings?.(object) ?? []) options.onWarning?.(warning);
  kind.canonicalize?.(object);
  await betweenSteps();

  const release = chain?.allocate(admitted);
  try {
    await chain?.validate(admitted, work.outside);
    for (let attempt = 1; ; attempt++) {
      const stored = await insertNew(context, resource, created, options);
      if (stored !== undefined) return stored;
      if (!generated) throw await nameTaken(context, resource, object);
      if (attempt === GENERATE_ATTEMPTS) throw generatedNameTaken(resource, object.metadata.name);
      generateName(generated);
    }
  } finally {
    release?.();
  }
}

/** Resolves to undefined if the name is in use. */
async function insertNew(
  context: RegistryContext,
  resource: Resource,
  { chain, admitted, object }: Admitted,
  options: Sent<WriteOptions>,
): Promise<KubeObject | undefined> {
  const { namespace, name } = object.metadata;
  const key = keyOf(resource, namespace, name);
  const alongside = (): Alongside[] => chain?.alongside(admitted) ?? [];
  const tryInsert = async (others: Alongside[]): Promise<KubeObject | undefined> => {
    const guards = [...(chain?.guards(admitted) ?? []), ...others];
    return options.dryRun ? object : insert(context, resource, key, object, guards, options.request);
  };
  for (;;) {
    if ((await readCurrent(context, resource, key)) !== undefined) return undefined;
    const others = alongside();
    const created = await (changesObjects(others)
      ? context.takingTurns(namespace ?? '', () => tryInsert(alongside()))
      : tryInsert(others));
    if (created !== undefined) return created;
  }
}

/**
 * Sets the namespace of the object if the kind is namespaced, and deletes it otherwise. Throws 400 BadRequest if the kind is namespaced,
 * and the namespaces of the object and the request differ or both are absent.
 * Source: upstream's EnsureObjectNamespaceMatchesRequestNamespace (behavior and wording).
 */
function placeInNamespace({ kind }: Resource, requested: string | undefined, { metadata }: KubeObject): void {
  if (!kind.namespaced) {
    delete metadata.namespace;
    return;
  }
  if (!requested && !metadata.namespace) throw badRequest('an empty namespace may not be set during creation');
  if (requested && metadata.namespace && metadata.namespace !== requested) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
  metadata.namespace ||= requested;
}

function setSystemFields({ timers, randomBytes }: RegistryContext, { metadata }: KubeObject): void {
  metadata.uid = randomUid(randomBytes);
  metadata.creationTimestamp = formatTime(timers.now());
  delete metadata.resourceVersion;
  delete metadata.deletionTimestamp;
  delete metadata.deletionGracePeriodSeconds;
  delete metadata.selfLink;
}

/** As in upstream, this error has the code 500 and no reason. */
const resourceVersionOnCreate = (): ApiError =>
  new ApiError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'resourceVersion should not be set on objects to be created',
    code: 500,
  });

/**
 * Resolves to the error for a name that is in use. If the existing object is being deleted, the message says so, because a later attempt
 * can then succeed. Source: the generic registry's Create of v1.33.
 */
async function nameTaken(context: RegistryContext, resource: Resource, { metadata }: KubeObject): Promise<ApiError> {
  const { status } = alreadyExists(resource.groupResource, metadata.name);
  const taken = await readCurrent(context, resource, keyOf(resource, metadata.namespace, metadata.name));
  if (taken?.metadata.deletionTimestamp === undefined) return new ApiError(status);
  return new ApiError({ ...status, message: `object is being deleted: ${status.message}` });
}

function generatedNameTaken({ groupResource }: Resource, name: string): ApiError {
  const { status } = alreadyExists(groupResource, name);
  return new ApiError({
    ...status,
    message: `${status.message}, the server was not able to generate a unique name for the object`,
    details: { ...status.details, retryAfterSeconds: 1 },
  });
}
