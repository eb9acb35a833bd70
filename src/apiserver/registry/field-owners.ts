/** Whose fields are whose: what the registry's writes do to metadata.managedFields. */
import { fieldTypeOf } from '../../api/field-types.ts';
import {
  entriesAfterUpdate,
  type FieldWriter,
  givenEntries,
  type Steps,
} from '../../machinery/field-ownership/managed-fields.ts';
import type { KubeObject, ManagedFieldsEntry } from '../../machinery/meta.ts';
import { formatTime } from '../../machinery/time.ts';
import type { WriteOptions } from '../../ports/backend.ts';
import type { RegistryContext } from './context.ts';
import type { Resource } from './resources.ts';

/** Of the parts of lifepod, which write in process and give no name. */
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

/** Sets or clears metadata.managedFields of the (own) object. */
export function setOwners({ metadata }: KubeObject, entries: readonly ManagedFieldsEntry[]): void {
  if (entries.length === 0) delete metadata.managedFields;
  else metadata.managedFields = [...entries];
}

/**
 * The owners after a write that was no apply: none as long as nobody has applied the object on the server. `given` is
 * what the client sent as managedFields: kubectl moves the fields of client-side apply so.
 */
export function* ownersAfterUpdate(
  { kind }: Resource,
  old: KubeObject,
  object: KubeObject,
  writer: FieldWriter,
  given?: readonly ManagedFieldsEntry[],
): Steps<ManagedFieldsEntry[]> {
  const entries = givenEntries(given) ?? old.metadata.managedFields ?? [];
  return entries.length === 0 ? [] : yield* entriesAfterUpdate(entries, old, object, fieldTypeOf(kind.schema), writer);
}
