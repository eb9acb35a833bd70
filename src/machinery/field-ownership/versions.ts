/**
 * Tracks the owners of fields across the versions of a kind. The fields of an entry of managedFields belong to the entry's version.
 * Therefore the objects are converted to this version to find how a write affects the entry.
 * Source: merge/update.go of sigs.k8s.io/structured-merge-diff (behavior).
 */
import type { JsonObject } from '../json-value.ts';
import type { KubeObject, ManagedFieldsEntry } from '../meta.ts';
import { changes, compare } from './comparison.ts';
import { type FieldSet, union, unknownTo, without } from './field-set.ts';
import type { Steps } from './managed-fields.ts';
import { type FieldType, removeFields } from './typed-value.ts';

/** Another version of the kind of the written object. The functions must not modify their arguments. */
export interface ObjectVersion {
  type: FieldType;
  /** Converts from the version of the write to this version. */
  from(object: KubeObject): KubeObject;
  /** Converts from this version to the version of the write. */
  back(object: KubeObject): KubeObject;
}

/** Returns undefined for the version of the write, and for a version that the kind does not have. */
export type OtherVersions = (apiVersion: string) => ObjectVersion | undefined;

export interface Effect {
  changed: FieldSet;
  removed: FieldSet;
}

const asJson = (object: KubeObject): JsonObject => object as unknown as JsonObject;

const versionOf = ({ apiVersion }: ManagedFieldsEntry, versions: OtherVersions | undefined) =>
  apiVersion === undefined ? undefined : versions?.(apiVersion);

/**
 * Returns a function that computes the effect of the write from `old` to `now` in the version of an entry. `own`: the effect in the version
 * of the write. `unowned`: the fields without owners.
 */
export function effectsOf(
  own: Effect,
  old: KubeObject | undefined,
  now: KubeObject,
  unowned: FieldSet,
  versions: OtherVersions | undefined,
): (entry: ManagedFieldsEntry) => Effect {
  const known = new Map<string | undefined, Effect>();
  return (entry) => {
    const version = versionOf(entry, versions);
    if (version === undefined) return own;
    let effect = known.get(entry.apiVersion);
    if (effect === undefined) {
      const comparison = compare(old && asJson(version.from(old)), asJson(version.from(now)), version.type);
      effect = { changed: without(changes(comparison), unowned), removed: without(comparison.removed, unowned) };
      known.set(entry.apiVersion, effect);
    }
    return effect;
  };
}

const setOf = ({ fieldsV1 }: ManagedFieldsEntry): FieldSet => fieldsV1 as FieldSet;

const pruned = (object: JsonObject, dropped: FieldSet, type: FieldType): JsonObject =>
  (removeFields(object, dropped, type) ?? {}) as JsonObject;

/**
 * Removes the fields of `before`, the applier's previous entry, unless they or parts of them are in the set of one of the `owners`, which
 * include the applier's new entry.
 */
export function* withoutDropped(
  object: JsonObject,
  type: FieldType,
  before: ManagedFieldsEntry | undefined,
  owners: readonly ManagedFieldsEntry[],
  versions: OtherVersions | undefined,
): Steps<JsonObject> {
  if (before === undefined || setOf(before) === undefined) return object;
  const last = versionOf(before, versions);
  const groups = Map.groupBy(owners, (owner) => versionOf(owner, versions) && owner.apiVersion);
  const ownedIn = (apiVersion: string | undefined) => union(...(groups.get(apiVersion) ?? []).map(setOf));
  const home = last && before.apiVersion;
  const stillOwned = ownedIn(home);
  yield;
  const dropped = unknownTo(setOf(before), stillOwned);
  yield;
  if (dropped === undefined) return object;
  if (last === undefined && groups.size <= (groups.has(undefined) ? 1 : 0)) return pruned(object, dropped, type);
  const kube = (value: JsonObject) => value as unknown as KubeObject;
  const full = last === undefined ? object : asJson(last.from(kube(object)));
  let left = pruned(full, dropped, last?.type ?? type);
  const toWrite = (value: JsonObject) => (last === undefined ? value : asJson(last.back(kube(value))));
  // Add back the removed fields that managers own in the other versions.
  for (const apiVersion of groups.keys()) {
    if (apiVersion === home) continue;
    yield;
    const version = apiVersion === undefined ? undefined : versions?.(apiVersion);
    const to = (value: JsonObject) => (version === undefined ? value : asJson(version.from(kube(value))));
    const from = (value: JsonObject) => (version === undefined ? value : asJson(version.back(kube(value))));
    const versionType = version?.type ?? type;
    const [whole, rest] = [to(toWrite(full)), to(toWrite(left))];
    // A conversion may set defaults, so a lost field may have another value instead of none.
    const lost = changes(compare(rest, whole, versionType));
    const kept = pruned(whole, unknownTo(lost, ownedIn(apiVersion)), versionType);
    const written = from(kept);
    left = last === undefined ? written : asJson(last.from(kube(written)));
  }
  return toWrite(left);
}
