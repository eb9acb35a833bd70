/**
 * Converts the ownership of fields between an object and a document that is a subresource of the object, such as its Scale, so that a
 * server-side apply of the document and one of the object see each other's owners.
 * Source: ScaleHandler of k8s.io/apimachinery/pkg/util/managedfields of v1.33 (behavior).
 */
import { difference, type FieldSet, intersection, union } from '../../machinery/field-ownership/field-set.ts';
import type { JsonObject } from '../../machinery/json-value.ts';
import type { ManagedFieldsEntry } from '../../machinery/meta.ts';

const setOf = ({ fieldsV1 }: ManagedFieldsEntry): FieldSet => fieldsV1 as FieldSet;

const withFields = (entry: ManagedFieldsEntry, set: FieldSet): ManagedFieldsEntry[] =>
  set === undefined || Object.keys(set).length === 0 ? [] : [{ ...entry, fieldsV1: set }];

/**
 * Returns the managedFields entries of the document: the object's entries, reduced to `fields`, the fields that the object and the document
 * have in common. `apiVersion`: the version of the document.
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
 * Returns the managedFields entries of the object after a write of the document. The owners of `fields`, the fields that the object and the
 * document have in common, are those in `ofDocument`; all other fields keep their owners in `entries`. `apiVersion`: the version of the
 * object.
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
