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

/** The field manager of components of lifepod, and of clients that send neither a field manager nor a User-Agent. */
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

/** Finds the other versions of a kind by their apiVersion. Owners may have written the object in such a version. */
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

export function setOwners({ metadata }: KubeObject, entries: readonly ManagedFieldsEntry[]): void {
  if (entries.length === 0) delete metadata.managedFields;
  else metadata.managedFields = [...entries];
}

/**
 * Computes the managedFields after a write other than an apply. Ownership is tracked from the first server-side apply on: before, the
 * result is empty. `given`: the managedFields that the client sent, as kubectl does to migrate from client-side apply. Valid entries
 * replace the old ones; a single empty entry removes all entries.
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
