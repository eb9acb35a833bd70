/** Tracks the ownership of fields: computes how the registry's writes change metadata.managedFields. */
import { fieldTypeOf } from '../../api/field-types.ts';
import {
  entriesAfterUpdate,
  type FieldWriter,
  givenEntries,
  type Steps,
} from '../../machinery/field-ownership/managed-fields.ts';
import type { OtherVersions } from '../../machinery/field-ownership/versions.ts';
import type { KubeObject, ManagedFieldsEntry } from '../../machinery/meta.ts';
import { formatTime } from '../../machinery/time.ts';
import type { WriteOptions } from '../../ports/backend.ts';
import type { RegistryContext } from './context.ts';
import type { Resource } from './resources.ts';

/**
 * The field manager for writes without one: writes of components of lifepod, which call the registry in process, and of clients that
 * send neither a field manager nor a User-Agent.
 */
const OWN_MANAGER = 'lifepod';

export const writerOf = (
  { timers }: RegistryContext,
  { apiVersion }: Resource,
  { fieldManager }: WriteOptions,
  subresource: string | undefined,
): FieldWriter => ({
  manager: fieldManager ?? OWN_MANAGER,
  apiVersion,
  subresource: subresource || undefined,
  time: formatTime(timers.now()),
});

/**
 * Returns a function that finds another version of the resource's kind by its apiVersion. Owners may have written the object in that
 * version.
 */
export const versionsOf =
  (resource: Resource): OtherVersions =>
  (apiVersion) => {
    const other = resource.otherVersion(apiVersion);
    return (
      other && {
        type: fieldTypeOf(other.kind.schema),
        from: (object) => other.fromStored(resource.toStored(object)),
        back: (object) => resource.fromStored(other.toStored(object)),
      }
    );
  };

/** Sets managedFields in the metadata of the object, or deletes the field if there are no entries. Modifies the object. */
export function setOwners({ metadata }: KubeObject, entries: readonly ManagedFieldsEntry[]): void {
  if (entries.length === 0) delete metadata.managedFields;
  else metadata.managedFields = [...entries];
}

/**
 * Computes the entries of managedFields after a write other than an apply. The result is empty if there are no entries yet, because
 * ownership is tracked from the first server-side apply on. `given`: the managedFields that the client sent, which replace the old entries
 * if they are valid and not empty; a single empty entry removes all entries. kubectl sends managedFields to migrate fields from client-side
 * apply.
 */
export function* ownersAfterUpdate(
  resource: Resource,
  old: KubeObject,
  object: KubeObject,
  writer: FieldWriter,
  given?: readonly ManagedFieldsEntry[],
): Steps<ManagedFieldsEntry[]> {
  const entries = givenEntries(given) ?? old.metadata.managedFields ?? [];
  if (entries.length === 0) return [];
  const type = fieldTypeOf(resource.kind.schema);
  return yield* entriesAfterUpdate(entries, old, object, type, writer, versionsOf(resource));
}
