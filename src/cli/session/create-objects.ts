/** Checks the objects of a session by dry runs, and creates them. */
import type { Client } from '../../client/client.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { type ApiError, isApiError } from '../../machinery/status.ts';
import { UserError } from '../../platform/files.ts';
import type { FindKind } from './discovery.ts';
import type { Manifest } from './manifests.ts';
import {
  fullNameOf,
  inOrder,
  markedObject,
  nameOf,
  needsOthers,
  type PlannedObject,
  requireDistinct,
  titleOf,
} from './plan.ts';
import type { OwnRecord, RecordedObject } from './session-records.ts';

const CLAIMS = { group: '', version: 'v1', resource: 'persistentvolumeclaims', kind: 'PersistentVolumeClaim' };
/** Unknown and duplicate fields are errors, as with kubectl. */
const WRITE = { fieldManager: 'lifepod', fieldValidation: 'Strict' } as const;

/**
 * Returns the plan for an object; undefined if the server does not have its kind. Throws a UserError if an object without a namespace names
 * one.
 */
async function planFor(
  { object, source }: Manifest,
  findKind: FindKind,
  byDefault: string,
): Promise<PlannedObject | undefined> {
  const info = await findKind(object.apiVersion, object.kind);
  if (info === undefined) return undefined;
  const named = object.metadata.namespace;
  if (!info.namespaced && named !== undefined) {
    throw new UserError(
      `${source}: ${titleOf(info.kind, object.metadata)} cannot have a namespace: omit metadata.namespace`,
    );
  }
  return { object, source, info, namespace: info.namespaced ? named || byDefault : undefined };
}

const unknownKind = ({ object: { apiVersion, kind }, source }: Manifest): UserError =>
  new UserError(`${source}: the server has no kind ${kind} in ${apiVersion}: correct apiVersion and kind`);

/**
 * Returns the objects of the manifests in the order in which the session creates them. Rejects with a UserError if the server does not have a
 * kind, or if an object is defined twice.
 */
export async function planObjects(
  manifests: readonly Manifest[],
  findKind: FindKind,
  namespace: string,
): Promise<PlannedObject[]> {
  const plans: PlannedObject[] = [];
  for (const manifest of manifests) {
    const plan = await planFor(manifest, findKind, namespace);
    if (plan === undefined) throw unknownKind(manifest);
    plans.push(plan);
  }
  requireDistinct(plans);
  return inOrder(plans);
}

export interface Creation {
  client: Client;
  record: OwnRecord;
  /** `title` is for example `pod/web`, with the name that the server has chosen if the manifest has none. */
  created(object: KubeObject, title: string): void;
  warn(text: string): void;
  signal: AbortSignal;
}

/**
 * Creates the objects in order. Every object is checked by a dry run before the first one is created, except those that need others to
 * exist; these are checked when the others exist. Rejects with a UserError that names all objects that the server refuses, and with the
 * reason of the signal. The record names everything that may have been created.
 */
export async function createObjects(objects: readonly PlannedObject[], creation: Creation): Promise<void> {
  const later = objects.filter((each) => needsOthers(each, objects));
  const now = objects.filter((each) => !later.includes(each));
  await check(now, creation);
  creation.record.write(recordedObjects(objects));
  const first = now.filter((each) => isNeeded(each, later));
  await create(first, creation);
  await check(later, creation);
  await create(
    objects.filter((each) => !first.includes(each)),
    creation,
  );
}

async function check(objects: readonly PlannedObject[], { client, record, warn, signal }: Creation): Promise<void> {
  const problems: string[] = [];
  for (const each of objects) {
    signal.throwIfAborted();
    const onWarning = (text: string): void => warn(`${nameOf(each)}: ${text}`);
    await send(client, each, record.id, { dryRun: true, onWarning }).catch((error: unknown) => {
      problems.push(problemOf(error, each));
    });
  }
  if (problems.length > 0) throw new UserError(problems.join('\n'));
}

async function create(objects: readonly PlannedObject[], { client, record, created, signal }: Creation): Promise<void> {
  for (const each of objects) {
    signal.throwIfAborted();
    const made = await send(client, each, record.id, {}).catch((error: unknown) => {
      throw new UserError(problemOf(error, each));
    });
    created(made, titleOf(each.info.kind, made.metadata));
  }
}

const isNeeded = (planned: PlannedObject, later: readonly PlannedObject[]): boolean =>
  later.some((each) => needsOthers(each, [planned]));

function recordedObjects(objects: readonly PlannedObject[]): RecordedObject[] {
  return objects.flatMap(({ info, namespace, object }) => {
    const { group, version, resource, kind } = info;
    const own: RecordedObject = { group, version, resource, kind, namespace, name: object.metadata.name };
    // The claims of a StatefulSet have the label of the session.
    return kind === 'StatefulSet' ? [{ ...CLAIMS, namespace }, own] : [own];
  });
}

const send = (
  client: Client,
  planned: PlannedObject,
  id: string,
  options: { dryRun?: boolean; onWarning?: (text: string) => void },
): Promise<KubeObject> =>
  client.api.create(planned.info, planned.namespace, markedObject(planned, id), { ...WRITE, ...options });

/** Returns a sentence about an object that the server refused. Throws the error if it is not one of the API. */
function problemOf(error: unknown, planned: PlannedObject): string {
  if (!isApiError(error)) throw error;
  const reason = reasonOf(error, planned);
  return planned.source === '' ? reason : `${planned.source}: ${reason}`;
}

function reasonOf(error: ApiError, planned: PlannedObject): string {
  const name = fullNameOf(planned);
  if (error.reason === 'AlreadyExists') {
    return `${name} exists already, and a session changes no object that it has not created: delete it or choose another name`;
  }
  if (error.reason === 'NotFound' && error.status.details?.kind === 'namespaces') {
    const missing = `the namespace ${planned.namespace} of ${nameOf(planned)} does not exist`;
    return planned.source === ''
      ? `${missing}: give another --namespace, or use 'lifepod up FILE' with a manifest of the Namespace and of the Pod`
      : `${missing}: create it, or add it to the manifests`;
  }
  return `${name}: ${error.message}`;
}
