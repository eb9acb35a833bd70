/**
 * Tracks which manager owns which fields of an object: computes the entries of metadata.managedFields after each write.
 *
 * The ownership of an object's fields is tracked from the first server-side apply on. The fields that the object already has at that time
 * are owned by kubectl-client-side-apply if they are in client-side apply's annotation, or are defaults of what is in it, and otherwise by
 * before-first-apply. Upstream tracks ownership from the creation of the object on; if an object nevertheless lacks managedFields at an
 * apply, upstream makes before-first-apply the owner of all its fields.
 * Source: Server-Side Apply (v1.33); sigs.k8s.io/structured-merge-diff and apimachinery's managedfields (behavior and
 * wording).
 */
import { isJsonObject, type JsonObject, jsonEqual } from '../json-value.ts';
import type { KubeObject, ManagedFieldsEntry } from '../meta.ts';
import { changes, compare } from './comparison.ts';
import { refuseConflicts } from './conflicts.ts';
import { difference, type FieldSet, intersection, isFieldSet, union, without } from './field-set.ts';
import { type FieldType, fieldSetOf, merge } from './typed-value.ts';
import { effectsOf, type OtherVersions, withoutDropped } from './versions.ts';

/** The manager that makes a change, and the properties of its request for its entry in managedFields. */
export interface FieldWriter {
  manager: string;
  apiVersion: string;
  /** Undefined if the request is for the main resource. */
  subresource: string | undefined;
  /** The time of the change, as an RFC 3339 string. */
  time: string;
}

/** Fields without an owner, because the API server sets them or because they identify the object. */
const SYSTEM_FIELDS: FieldSet = {
  'f:apiVersion': {},
  'f:kind': {},
  'f:metadata': Object.fromEntries(
    [
      'creationTimestamp',
      'deletionGracePeriodSeconds',
      'deletionTimestamp',
      'generation',
      'managedFields',
      'name',
      'namespace',
      'resourceVersion',
      'selfLink',
      'uid',
    ].map((name) => [`f:${name}`, {}]),
  ),
};

const asJson = (object: KubeObject): JsonObject => object as unknown as JsonObject;
const owned = ({ fieldsV1 }: ManagedFieldsEntry): FieldSet => {
  const set = fieldsV1 as FieldSet;
  return set === undefined || Object.keys(set).length === 0 ? undefined : set;
};

/** For each subresource and for the main resource, an applier has one entry, and an updater has one entry per version. */
const isOf = (
  entry: ManagedFieldsEntry,
  { manager, apiVersion, subresource }: FieldWriter,
  operation: 'Apply' | 'Update',
): boolean =>
  entry.manager === manager &&
  entry.operation === operation &&
  (operation === 'Apply' || entry.apiVersion === apiVersion) &&
  (entry.subresource ?? '') === (subresource ?? '');

/**
 * Returns a list with the writer's entry; an empty list if the set is empty. `before`: the writer's previous entry. The entry keeps the
 * time of `before` if nothing changes.
 */
function entryOf(
  writer: FieldWriter,
  operation: 'Apply' | 'Update',
  set: FieldSet,
  before: ManagedFieldsEntry | undefined,
  changed: boolean,
): ManagedFieldsEntry[] {
  if (set === undefined) return [];
  const { manager, apiVersion, subresource } = writer;
  const kept = before !== undefined && !changed && before.apiVersion === apiVersion && jsonEqual(owned(before), set);
  return [
    {
      manager,
      operation,
      apiVersion,
      time: kept ? before.time : writer.time,
      fieldsType: 'FieldsV1',
      fieldsV1: set,
      ...(subresource === undefined ? {} : { subresource }),
    },
  ];
}

const withSet = (entry: ManagedFieldsEntry, set: FieldSet): ManagedFieldsEntry[] =>
  set === undefined ? [] : [{ ...entry, fieldsV1: set }];

/** Sort order: Apply before Update, then by time, manager and subresource. */
function sorted(entries: readonly ManagedFieldsEntry[]): ManagedFieldsEntry[] {
  const rank = ({ operation = '', time = '', manager = '', subresource = '' }: ManagedFieldsEntry): string =>
    [operation, time, manager, subresource].join('\n');
  return [...entries].sort((a, b) => (rank(a) < rank(b) ? -1 : 1));
}

/** The maximum number of Update entries of an object. Source: upstream's capManagers. */
const MAX_UPDATERS = 10;
const ANCIENT_CHANGES = 'ancient-changes';

/** Merges the oldest Update entries of the same API version until at most MAX_UPDATERS are left, if possible. */
function withFewUpdaters(entries: readonly ManagedFieldsEntry[]): ManagedFieldsEntry[] {
  const updaters = entries.filter(({ operation }) => operation === 'Update');
  let excess = updaters.length - MAX_UPDATERS;
  if (excess <= 0) return [...entries];
  const age = ({ time = '', manager = '', subresource = '' }: ManagedFieldsEntry): string =>
    [manager === ANCIENT_CHANGES ? '' : time, manager, subresource].join('\n');
  updaters.sort((a, b) => (age(a) < age(b) ? -1 : 1));
  const united = new Map<string | undefined, ManagedFieldsEntry[]>();
  for (const entry of updaters) {
    const ofVersion = united.get(entry.apiVersion);
    if (ofVersion === undefined) united.set(entry.apiVersion, [entry]);
    else if (excess > 0) {
      ofVersion.push(entry);
      excess--;
    }
  }
  const merged = new Set([...united.values()].filter(({ length }) => length > 1).flat());
  const ancient = [...united.values()]
    .filter(({ length }) => length > 1)
    .flatMap((old): ManagedFieldsEntry[] => {
      const { subresource: _, ...newest } = old.at(-1) as ManagedFieldsEntry;
      return withSet({ ...newest, manager: ANCIENT_CHANGES }, union(...old.map(owned)));
    });
  return sorted([...entries.filter((entry) => !merged.has(entry)), ...ancient]);
}

/** A long computation that yields between its steps, so that its caller can let the event loop run other work. */
export type Steps<T> = Generator<void, T>;

/**
 * Returns the entries after a write other than an apply. The writer becomes the only owner of the fields that it added or modified, except
 * SYSTEM_FIELDS. Removed fields lose their owners. `versions`: the other versions of the kind; absent if there are none.
 */
export function* entriesAfterUpdate(
  entries: readonly ManagedFieldsEntry[],
  old: KubeObject,
  now: KubeObject,
  type: FieldType,
  writer: FieldWriter,
  versions?: OtherVersions,
): Steps<ManagedFieldsEntry[]> {
  const comparison = compare(asJson(old), asJson(now), type);
  yield;
  const changed = without(changes(comparison), SYSTEM_FIELDS);
  const removed = without(comparison.removed, SYSTEM_FIELDS);
  if (changed === undefined && removed === undefined) return withFewUpdaters(entries);
  const own = entries.find((entry) => isOf(entry, writer, 'Update'));
  const others = entries.filter((entry) => entry !== own);
  const ownSet = difference(union(own === undefined ? undefined : owned(own), changed), removed);
  const effectOn = effectsOf({ changed, removed }, old, now, SYSTEM_FIELDS, versions);
  const left: ManagedFieldsEntry[] = [];
  for (const entry of others) {
    yield;
    const effect = effectOn(entry);
    left.push(...withSet(entry, difference(difference(owned(entry), effect.changed), effect.removed)));
  }
  yield;
  return withFewUpdaters(sorted([...left, ...entryOf(writer, 'Update', ownSet, own, changed !== undefined)]));
}

export interface Applied {
  object: JsonObject;
  entries: ManagedFieldsEntry[];
}

export interface ApplyRequest {
  config: JsonObject;
  writer: FieldWriter;
  /** Whether the applier takes over fields of other owners. If false, changing such a field is a conflict. */
  force: boolean;
  /** Fields that the request's endpoint does not write, such as the status. The applier does not become their owner. */
  ignored: FieldSet;
  versions?: OtherVersions | undefined;
}

/**
 * Applies the config to `live`, which is undefined if the object does not exist yet. A field that the applier no longer applies is removed
 * unless another manager owns the field or a part of it. Throws 409 Conflict if a field of another owner would change, unless `force` is
 * set.
 */
export function* applyConfig(
  live: KubeObject | undefined,
  entries: readonly ManagedFieldsEntry[],
  type: FieldType,
  { config, writer, force, ignored, versions }: ApplyRequest,
): Steps<Applied> {
  const unowned = union(SYSTEM_FIELDS, ignored);
  const set = without(fieldSetOf(config, type), unowned);
  yield;
  const own = entries.find((entry) => isOf(entry, writer, 'Apply'));
  const others = entries.filter((entry) => entry !== own);
  const merged = live === undefined ? config : (merge(asJson(live), config, type) as JsonObject);
  yield;
  const object = yield* withoutDropped(
    merged,
    type,
    own,
    [...entryOf(writer, 'Apply', set, own, true), ...others],
    versions,
  );
  yield;
  const comparison = compare(live === undefined ? undefined : asJson(live), object, type);
  yield;
  const changed = without(changes(comparison), unowned);
  const effectOn = effectsOf(
    { changed, removed: comparison.removed },
    live,
    object as unknown as KubeObject,
    unowned,
    versions,
  );
  const taken: { entry: ManagedFieldsEntry; fields: FieldSet }[] = [];
  for (const entry of others) {
    yield;
    taken.push({ entry, fields: intersection(owned(entry), effectOn(entry).changed) });
  }
  if (!force) refuseConflicts(taken);
  const left: ManagedFieldsEntry[] = [];
  for (const { entry, fields } of taken) {
    yield;
    left.push(...withSet(entry, difference(difference(owned(entry), fields), effectOn(entry).removed)));
  }
  yield;
  const isChange = changed !== undefined || comparison.removed !== undefined;
  return { object, entries: sorted([...left, ...entryOf(writer, 'Apply', set, own, isChange)]) };
}

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/**
 * Returns the entries of an object before its first server-side apply. `ignored`: as in ApplyRequest. `withDefaults`: adds to the
 * configuration in client-side apply's annotation the defaults that the API server adds. If these had another owner, a list element of the
 * configuration could not be removed, because its defaults would remain.
 */
export function firstEntries(
  live: KubeObject,
  type: FieldType,
  apiVersion: string,
  ignored: FieldSet,
  withDefaults: (config: JsonObject) => JsonObject = (config) => config,
): ManagedFieldsEntry[] {
  const unowned = union(SYSTEM_FIELDS, ignored);
  const all = without(fieldSetOf(asJson(live), type), unowned);
  const clientSide = intersection(lastApplied(asJson(live), type, withDefaults), all);
  const time = live.metadata.creationTimestamp ?? '';
  const writer = { apiVersion, subresource: undefined, time };
  return sorted([
    ...entryOf({ ...writer, manager: 'kubectl-client-side-apply' }, 'Update', clientSide, undefined, true),
    ...entryOf({ ...writer, manager: 'before-first-apply' }, 'Update', difference(all, clientSide), undefined, true),
  ]);
}

/** Returns the fields in the annotation of client-side apply, and the annotation itself; undefined if the object lacks the annotation. */
function lastApplied(live: JsonObject, type: FieldType, withDefaults: (config: JsonObject) => JsonObject): FieldSet {
  const text = (live as unknown as KubeObject).metadata.annotations?.[LAST_APPLIED];
  if (text === undefined) return undefined;
  const annotation: FieldSet = { 'f:metadata': { 'f:annotations': { [`f:${LAST_APPLIED}`]: {} } } };
  try {
    const config: unknown = JSON.parse(text);
    if (!isJsonObject(config)) return annotation;
    const defaulted = withDefaults(config);
    // A field that differs from its default was written by another client.
    const defaults = difference(fieldSetOf(defaulted, type), changes(compare(defaulted, live, type)));
    return union(union(fieldSetOf(config, type), defaults), annotation);
  } catch {
    return annotation;
  }
}

/**
 * Returns the managedFields that a client sent; undefined if they are absent, empty or invalid; an empty list if the client asks to delete
 * all entries.
 */
export function givenEntries(given: readonly ManagedFieldsEntry[] | undefined): ManagedFieldsEntry[] | undefined {
  if (given === undefined || given.length === 0) return undefined;
  // A client sends a single empty entry to delete all entries.
  if (given.length === 1 && Object.keys(given[0] ?? {}).length === 0) return [];
  const readable = given.every(
    ({ operation, fieldsType, fieldsV1 }) =>
      (operation === 'Apply' || operation === 'Update') && fieldsType === 'FieldsV1' && isFieldSet(fieldsV1),
  );
  return readable ? [...given] : undefined;
}
