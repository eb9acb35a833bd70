/** Checks the objects of a session by dry runs, and creates them. */
import type { Client } from '../../client/client.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { type ApiError, isApiError } from '../../machinery/status.ts';
import { UserError } from '../../platform/files.ts';
import { untilAborted } from '../../platform/on-abort.ts';
import type { FindKind } from './discovery.ts';
import type { Manifest } from './manifests.ts';
import {
  duplicates,
  fullNameOf,
  inOrder,
  markedObject,
  mayBeCustom,
  nameOf,
  needsOthers,
  type PlannedObject,
  titleOf,
} from './plan.ts';
import type { OwnRecord, RecordedObject } from './session-records.ts';

const CLAIMS = { group: '', version: 'v1', resource: 'persistentvolumeclaims', kind: 'PersistentVolumeClaim' };
/** Unknown and duplicate fields are errors, as with kubectl. */
const WRITE = { fieldManager: 'lifepod', fieldValidation: 'Strict' } as const;

async function planFor(manifest: Manifest, findKind: FindKind, byDefault: string): Promise<PlannedObject> {
  const { object, source } = manifest;
  const info = await findKind(object.apiVersion, object.kind);
  if (info === undefined) throw unknownKind(manifest);
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

export interface Planning {
  client: Client;
  findKind: FindKind;
  /** The namespace of objects that name none. */
  namespace: string;
  signal: AbortSignal;
  sessionOf?: SessionOf;
}

export type SessionOf = (object: RecordedObject) => number | undefined;

/**
 * Resolves with the objects of the manifests in the order in which the session creates them. Rejects with a UserError about wrong kinds,
 * wrong namespaces and duplicates; the error then also names the objects that the server refuses.
 */
export async function planObjects(manifests: readonly Manifest[], planning: Planning): Promise<PlannedObject[]> {
  const { plans, problems } = await planAll(manifests, planning);
  if (problems.length === 0) return inOrder(plans);
  throw new UserError([...problems, ...(await ownProblems(plans, planning))].join('\n'));
}

/** Resolves with a sentence for each object that is wrong even if unreadable files of the session define further kinds and namespaces. */
export async function problemsOfSome(manifests: readonly Manifest[], planning: Planning): Promise<string[]> {
  const known = manifests.filter(({ object }) => !mayBeCustom(object.apiVersion));
  const { plans, problems } = await planAll(known, planning);
  return [...problems, ...(await ownProblems(plans, planning))];
}

async function planAll(
  manifests: readonly Manifest[],
  { findKind, namespace }: Planning,
): Promise<{ plans: PlannedObject[]; problems: string[] }> {
  const plans: PlannedObject[] = [];
  const problems: string[] = [];
  for (const manifest of manifests) {
    await planFor(manifest, findKind, namespace).then(
      (plan) => plans.push(plan),
      (error: unknown) => {
        if (!(error instanceof UserError)) throw error;
        problems.push(error.message);
      },
    );
  }
  return { plans, problems: [...problems, ...duplicates(plans)] };
}

/** The reasons of errors that the absence of another object cannot cause. */
const OWN_REASONS: readonly string[] = ['Invalid', 'BadRequest', 'AlreadyExists'];

/** Resolves with a sentence for each object that the server refuses, in a dry run, for a reason in the object itself. */
async function ownProblems(
  plans: readonly PlannedObject[],
  { client, signal, sessionOf }: Planning,
): Promise<string[]> {
  const problems: string[] = [];
  for (const each of plans.filter((plan) => !needsOthers(plan, plans))) {
    signal.throwIfAborted();
    await send(client, each, 'check', { dryRun: true }).catch(async (error: unknown) => {
      const problem = await problemOf(error, each, sessionOf);
      if (isApiError(error) && OWN_REASONS.includes(error.reason)) problems.push(problem);
    });
  }
  return problems;
}

export interface Creation {
  client: Client;
  record: OwnRecord;
  /** `title`: for example `pod/web`, with the name that the server has chosen if the manifest has none. */
  created(object: KubeObject, title: string): void;
  warn(text: string): void;
  signal: AbortSignal;
  sessionOf?: SessionOf;
}

/**
 * Creates the objects in order. Before it creates anything, checks by dry runs the objects that need no other object of the session.
 * Rejects with a UserError about the objects that the server refuses, or with the reason of the signal.
 */
export async function createObjects(objects: readonly PlannedObject[], creation: Creation): Promise<void> {
  const isReady = (each: PlannedObject, left: readonly PlannedObject[]): boolean => !needsOthers(each, left);
  let left = objects;
  let ready = left.filter((each) => isReady(each, left));
  await untilAborted(creation.signal, check(ready, creation));
  creation.record.write(recordedObjects(objects));
  // A Pod may need a ServiceAccount that needs a Namespace, so objects are created in several rounds before the others can be checked.
  for (;;) {
    const later = left.filter((each) => !ready.includes(each));
    const needed = ready.filter((each) => isNeeded(each, later));
    if (needed.length === 0) break;
    await create(needed, creation);
    left = left.filter((each) => !needed.includes(each));
    const more = later.filter((each) => isReady(each, left));
    await check(more, creation);
    ready = [...ready.filter((each) => left.includes(each)), ...more];
  }
  await create(left, creation);
}

async function check(objects: readonly PlannedObject[], creation: Creation): Promise<void> {
  const { client, record, warn, signal, sessionOf } = creation;
  const problems: string[] = [];
  for (const each of objects) {
    signal.throwIfAborted();
    const onWarning = (text: string): void => warn(`${nameOf(each)}: ${text}`);
    await send(client, each, record.id, { dryRun: true, onWarning }).catch(async (error: unknown) => {
      problems.push(await problemOf(error, each, sessionOf));
    });
  }
  if (problems.length > 0) throw new UserError(problems.join('\n'));
}

async function create(objects: readonly PlannedObject[], creation: Creation): Promise<void> {
  const { client, record, created, signal, sessionOf } = creation;
  for (const each of objects) {
    signal.throwIfAborted();
    const made = await send(client, each, record.id, {}).catch(async (error: unknown) => {
      throw new UserError(await problemOf(error, each, sessionOf));
    });
    created(made, titleOf(each.info.kind, made.metadata));
  }
}

const isNeeded = (planned: PlannedObject, later: readonly PlannedObject[]): boolean =>
  later.some((each) => needsOthers(each, [planned]));

function recordedObjects(objects: readonly PlannedObject[]): RecordedObject[] {
  return objects.flatMap((planned) => {
    const own = recordedObject(planned);
    // The claims of a StatefulSet have the label of the session, too, so the record also names their kind.
    return own.kind === 'StatefulSet' ? [{ ...CLAIMS, namespace: own.namespace }, own] : [own];
  });
}

const recordedObject = ({ info, namespace, object }: PlannedObject): RecordedObject => {
  const { group, version, resource, kind } = info;
  return { group, version, resource, kind, namespace, name: object.metadata.name };
};

const send = (
  client: Client,
  planned: PlannedObject,
  id: string,
  options: { dryRun?: boolean; onWarning?: (text: string) => void },
): Promise<KubeObject> =>
  client.api.create(planned.info, planned.namespace, markedObject(planned, id), { ...WRITE, ...options });

async function problemOf(
  error: unknown,
  planned: PlannedObject,
  sessionOf: SessionOf = () => undefined,
): Promise<string> {
  if (!isApiError(error)) throw error;
  const reason =
    error.reason === 'BadRequest' ? await badRequestOf(error, planned) : reasonOf(error, planned, sessionOf);
  return planned.source === '' ? reason : `${planned.source}: ${reason}`;
}

function reasonOf(error: ApiError, planned: PlannedObject, sessionOf: SessionOf): string {
  const name = fullNameOf(planned);
  if (error.reason === 'AlreadyExists') {
    const pid = sessionOf(recordedObject(planned));
    if (pid !== undefined)
      return `${name} exists already, because another session has created it (PID ${pid}): wait until that session has ended, or choose another name`;
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

/**
 * Resolves with the server's message. Some of upstream's messages, such as those about quantities, name no field: then decodes the object
 * again to name the field and its value.
 */
async function badRequestOf({ message }: ApiError, planned: PlannedObject): Promise<string> {
  const { object, info } = planned;
  // These modules are large, and only this error needs them.
  const [{ kinds }, { decode }] = await Promise.all([import('../../api/kinds.ts'), import('../../api/schema.ts')]);
  const kind = kinds.find(
    (each) => each.group === info.group && each.version === info.version && each.kind === info.kind,
  );
  const decoded = kind && decode(kind.schema, object);
  const { unnamed, typeErrors: [cause] = [] } = decoded ?? {};
  const isUnnamed = unnamed !== undefined && cause !== undefined && message.endsWith(cause);
  const text = isUnnamed ? `${unnamed.path}: Invalid value: ${JSON.stringify(unnamed.value)}: ${cause}` : message;
  return `${fullNameOf(planned)}: ${text}`;
}
