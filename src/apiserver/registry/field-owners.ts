/** Field ownership: how the registry's writes change metadata.managedFields. */
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

/** The manager of lifepod's own parts, which write in process and give no name. */
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

/** Sets or clears metadata.managedFields of an object that the caller may modify. */
export function setOwners({ metadata }: KubeObject, entries: readonly ManagedFieldsEntry[]): void {
  if (entries.length === 0) delete metadata.managedFields;
  else metadata.managedFields = [...entries];
}

/**
 * Yields the owners after a write other than apply: none as long as the object was never applied server-side. `given` is the
 * managedFields that the client sent, which kubectl uses to migrate fields from client-side apply.
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
