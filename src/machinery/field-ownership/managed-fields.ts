/**
 * Who owns which fields of an object: metadata.managedFields, kept at each write.
 *
 * Boundary: plain objects in, entries out. Ownership is kept from the first server-side apply of an object on: what it has
 * by then belongs to kubectl-client-side-apply, as far as that wrote it, and else to before-first-apply.
 * Source: Server-Side Apply (v1.33); sigs.k8s.io/structured-merge-diff and apimachinery's managedfields (behaviour and
 * wording), which began so for objects older than the feature.
 */
import { isJsonObject, type JsonObject, jsonEqual } from '../json-value.ts';
import type { KubeObject, ManagedFieldsEntry } from '../meta.ts';
import { changes, compare } from './comparison.ts';
import { refuseConflicts } from './conflicts.ts';
import { difference, type FieldSet, intersection, isFieldSet, union, unknownTo, without } from './field-set.ts';
import { type FieldType, fieldSetOf, merge, removeFields } from './typed-value.ts';

/** The writer of one change, and when. */
export interface FieldWriter {
  manager: string;
  apiVersion: string;
  subresource: string | undefined;
  /** RFC 3339 */
  time: string;
}

/** Fields that belong to nobody: the system sets them. */
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

const isOf = (
  entry: ManagedFieldsEntry,
  { manager, apiVersion, subresource }: FieldWriter,
  operation: 'Apply' | 'Update',
): boolean =>
  entry.manager === manager &&
  entry.operation === operation &&
  entry.apiVersion === apiVersion &&
  (entry.subresource ?? '') === (subresource ?? '');

/** The writer's entry with this set; none where it is empty. Its time stays where neither it nor the object changed. */
function entryOf(
  writer: FieldWriter,
  operation: 'Apply' | 'Update',
  set: FieldSet,
  before: ManagedFieldsEntry | undefined,
  changed: boolean,
): ManagedFieldsEntry[] {
  if (set === undefined) return [];
  const { manager, apiVersion, subresource } = writer;
  const kept = before !== undefined && !changed && jsonEqual(owned(before), set);
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

/** Appliers first, then by time and name. */
function sorted(entries: readonly ManagedFieldsEntry[]): ManagedFieldsEntry[] {
  const rank = ({ operation = '', time = '', manager = '', subresource = '' }: ManagedFieldsEntry): string =>
    [operation, time, manager, subresource].join('\n');
  return [...entries].sort((a, b) => (rank(a) < rank(b) ? -1 : 1));
}

/** The limit of an object's Update managers. The oldest of more than these are merged. Source: upstream's capManagers (behaviour). */
const MAX_UPDATERS = 10;
const ANCIENT_CHANGES = 'ancient-changes';

/** The entries, those of the oldest updaters of an API version united until there are few enough. */
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
  const gone = new Set([...united.values()].filter(({ length }) => length > 1).flat());
  const ancient = [...united.values()]
    .filter(({ length }) => length > 1)
    .flatMap((old): ManagedFieldsEntry[] => {
      const { subresource: _, ...newest } = old.at(-1) as ManagedFieldsEntry;
      return withSet({ ...newest, manager: ANCIENT_CHANGES }, union(...old.map(owned)));
    });
  return sorted([...entries.filter((entry) => !gone.has(entry)), ...ancient]);
}

/** Long work in steps: others may have their turn after each. */
export type Steps<T> = Generator<void, T>;

/** The entries after a write that was no apply: the writer owns what it changed, and nobody what is gone. */
export function* entriesAfterUpdate(
  entries: readonly ManagedFieldsEntry[],
  old: KubeObject,
  now: KubeObject,
  type: FieldType,
  writer: FieldWriter,
): Steps<ManagedFieldsEntry[]> {
  const comparison = compare(asJson(old), asJson(now), type);
  yield;
  const changed = without(changes(comparison), SYSTEM_FIELDS);
  const removed = without(comparison.removed, SYSTEM_FIELDS);
  if (changed === undefined && removed === undefined) return withFewUpdaters(entries);
  const own = entries.find((entry) => isOf(entry, writer, 'Update'));
  const others = entries.filter((entry) => entry !== own);
  const ownSet = difference(union(own === undefined ? undefined : owned(own), changed), removed);
  const left: ManagedFieldsEntry[] = [];
  for (const entry of others) {
    yield;
    left.push(...withSet(entry, difference(difference(owned(entry), changed), removed)));
  }
  yield;
  return withFewUpdaters(sorted([...left, ...entryOf(writer, 'Update', ownSet, own, changed !== undefined)]));
}

export interface Applied {
  object: JsonObject;
  entries: ManagedFieldsEntry[];
}

export interface ApplyRequest {
  /** What is applied: the fields that the client gave, and no others. */
  config: JsonObject;
  writer: FieldWriter;
  /** Takes fields from their owners. */
  force: boolean;
  /** Fields that this path does not write. */
  ignored: FieldSet;
}

/**
 * The object with the config applied, and who owns its fields then: fields that the applier had applied before, does not
 * apply any more and nobody else owns are gone. `live` undefined: there is none yet. Throws 409 where others own what
 * would change.
 */
export function* applyConfig(
  live: KubeObject | undefined,
  entries: readonly ManagedFieldsEntry[],
  type: FieldType,
  { config, writer, force, ignored }: ApplyRequest,
): Steps<Applied> {
  const unowned = union(SYSTEM_FIELDS, ignored);
  const set = without(fieldSetOf(config, type), unowned);
  yield;
  const own = entries.find((entry) => isOf(entry, writer, 'Apply'));
  const others = entries.filter((entry) => entry !== own);
  const merged = live === undefined ? config : (merge(asJson(live), config, type) as JsonObject);
  yield;
  const object = yield* withoutDropped(merged, type, own && owned(own), [set, ...others.map(owned)]);
  yield;
  const comparison = compare(live === undefined ? undefined : asJson(live), object, type);
  yield;
  const changed = without(changes(comparison), unowned);
  const taken: { entry: ManagedFieldsEntry; fields: FieldSet }[] = [];
  for (const entry of others) {
    yield;
    taken.push({ entry, fields: intersection(owned(entry), changed) });
  }
  if (!force) refuseConflicts(taken);
  const left: ManagedFieldsEntry[] = [];
  for (const { entry, fields } of taken) {
    yield;
    left.push(...withSet(entry, difference(difference(owned(entry), fields), comparison.removed)));
  }
  yield;
  const isChange = changed !== undefined || comparison.removed !== undefined;
  return { object, entries: sorted([...left, ...entryOf(writer, 'Apply', set, own, isChange)]) };
}

/** The object without what its applier had applied before and nobody owns any more. */
function* withoutDropped(object: JsonObject, type: FieldType, before: FieldSet, owners: FieldSet[]): Steps<JsonObject> {
  if (before === undefined) return object;
  const stillOwned = union(...owners);
  yield;
  const dropped = unknownTo(before, stillOwned);
  yield;
  return (removeFields(object, dropped, type) ?? {}) as JsonObject;
}

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/** Who owns the fields of an object that nobody has applied on the server so far. */
export function firstEntries(
  live: KubeObject,
  type: FieldType,
  apiVersion: string,
  ignored: FieldSet,
): ManagedFieldsEntry[] {
  const unowned = union(SYSTEM_FIELDS, ignored);
  const all = without(fieldSetOf(asJson(live), type), unowned);
  const clientSide = intersection(lastApplied(live, type), all);
  const time = live.metadata.creationTimestamp ?? '';
  const writer = { apiVersion, subresource: undefined, time };
  return sorted([
    ...entryOf({ ...writer, manager: 'kubectl-client-side-apply' }, 'Update', clientSide, undefined, true),
    ...entryOf({ ...writer, manager: 'before-first-apply' }, 'Update', difference(all, clientSide), undefined, true),
  ]);
}

/** What client-side apply wrote, as its annotation says, and the annotation itself. */
function lastApplied({ metadata }: KubeObject, type: FieldType): FieldSet {
  const text = metadata.annotations?.[LAST_APPLIED];
  if (text === undefined) return undefined;
  const annotation: FieldSet = { 'f:metadata': { 'f:annotations': { [`f:${LAST_APPLIED}`]: {} } } };
  try {
    const config: unknown = JSON.parse(text);
    return isJsonObject(config) ? union(fieldSetOf(config, type), annotation) : annotation;
  } catch {
    return annotation;
  }
}

/** What a client writes as managedFields, where it can be read: then it counts. Undefined where it says nothing. */
export function givenEntries(given: readonly ManagedFieldsEntry[] | undefined): ManagedFieldsEntry[] | undefined {
  if (given === undefined || given.length === 0) return undefined;
  // One empty entry takes all ownership back.
  if (given.length === 1 && Object.keys(given[0] ?? {}).length === 0) return [];
  const readable = given.every(
    ({ operation, fieldsType, fieldsV1 }) =>
      (operation === 'Apply' || operation === 'Update') && fieldsType === 'FieldsV1' && isFieldSet(fieldsV1),
  );
  return readable ? [...given] : undefined;
}
