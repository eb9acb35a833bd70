/**
 * Converts the ownership of fields between an object and its document, such as its Scale, so that a server-side apply of one respects the
 * owners of the other.
 * Source: ScaleHandler of k8s.io/apimachinery/pkg/util/managedfields of v1.33 (behavior).
 */
import { difference, type FieldSet, intersection, union } from '../../machinery/field-ownership/field-set.ts';
import type { JsonObject } from '../../machinery/json-value.ts';
import type { ManagedFieldsEntry } from '../../machinery/meta.ts';

const setOf = ({ fieldsV1 }: ManagedFieldsEntry): FieldSet => fieldsV1 as FieldSet;

const withFields = (entry: ManagedFieldsEntry, set: FieldSet): ManagedFieldsEntry[] =>
  set === undefined || Object.keys(set).length === 0 ? [] : [{ ...entry, fieldsV1: set }];

/**
 * Returns the managedFields of the document. `fields`: the fields that the object and the document have in common. `apiVersion`: the
 * version of the document.
 */
export const ownersOfDocument = (
  entries: readonly ManagedFieldsEntry[],
  fields: JsonObject,
  apiVersion: string,
): ManagedFieldsEntry[] =>
  entries.flatMap((entry) => withFields({ ...entry, apiVersion }, intersection(setOf(entry), fields)));

const isSameManager = (a: ManagedFieldsEntry, b: ManagedFieldsEntry): boolean =>
  a.manager === b.manager && a.operation === b.operation && (a.subresource ?? '') === (b.subresource ?? '');

/**
 * Returns the managedFields of the object after a write of the document. `entries`: those before the write; what they say about `fields` is
 * replaced by `ofDocument`. `ofDocument`: the managedFields of the document after the write. `fields`: the fields that the object and the
 * document have in common. `apiVersion`: the version of the object.
 */
export function ownersOfObject(
  entries: readonly ManagedFieldsEntry[],
  ofDocument: readonly ManagedFieldsEntry[],
  fields: JsonObject,
  apiVersion: string,
): ManagedFieldsEntry[] {
  const kept = entries.flatMap((entry) => {
    const shared = ofDocument.find((other) => isSameManager(entry, other));
    const own = difference(setOf(entry), fields);
    if (shared === undefined) return withFields(entry, own);
    return withFields({ ...entry, time: shared.time }, union(own, setOf(shared)));
  });
  const added = ofDocument
    .filter((other) => !entries.some((entry) => isSameManager(entry, other)))
    .map((other) => ({ ...other, apiVersion }));
  return [...kept, ...added];
}
