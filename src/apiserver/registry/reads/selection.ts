/** Combines the label selector and the field selector of a list or watch into one predicate. */
import type { KindDefinition } from '../../../api/kind.ts';
import {
  checkFieldLabels,
  type FieldRequirement,
  matchesFields,
  parseFieldSelector,
} from '../../../machinery/field-selector.ts';
import { parseLabelSelector } from '../../../machinery/labels.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import type { FieldValue, IndexedField } from '../../cache/field-index.ts';

export interface Selection {
  /** Undefined if there are no selectors, so that all objects match. */
  matches: ((object: KubeObject) => boolean) | undefined;
  /** The only name that a matching object can have; undefined if the field selector requires no name. */
  name: string | undefined;
  /** The only namespace that a matching object can have; undefined if the field selector requires none or the kind is cluster-scoped. */
  namespace: string | undefined;
  /** A value of an indexed field that all matching objects have; undefined if the field selector requires none. */
  indexed: FieldValue | undefined;
}

const fieldsOf = (kind: KindDefinition, object: KubeObject): Record<string, string> => ({
  'metadata.name': object.metadata.name,
  ...(kind.namespaced ? { 'metadata.namespace': object.metadata.namespace ?? '' } : {}),
  ...kind.selectableFields?.(object),
});

/** An object without content is enough to list the names of the fields. */
const fieldLabels = (kind: KindDefinition): string[] =>
  Object.keys(fieldsOf(kind, { apiVersion: '', kind: kind.kind, metadata: { name: '' } }));

const indexedFields = new WeakMap<KindDefinition, IndexedField[]>();

/**
 * Always returns the same objects for the same kind. The cache indexes objects in their stored form, so kinds whose objects are stored as
 * another kind have no indexed fields.
 */
function indexedFieldsOf(kind: KindDefinition): IndexedField[] {
  let fields = indexedFields.get(kind);
  if (fields === undefined) {
    const names = kind.storage === undefined ? (kind.indexedFields ?? []) : [];
    fields = names.map((field) => ({ field, valueOf: (object) => kind.selectableFields?.(object)[field] ?? '' }));
    indexedFields.set(kind, fields);
  }
  return fields;
}

/** Returns the first indexed field for which the selector requires a nonempty value; undefined if there is none. */
function indexedValue(kind: KindDefinition, requirements: readonly FieldRequirement[]): FieldValue | undefined {
  for (const by of requirements.length === 0 ? [] : indexedFieldsOf(kind)) {
    const exact = requirements.find(({ field, op, value }) => field === by.field && op === '=' && value !== '');
    if (exact !== undefined) return { by, value: exact.value };
  }
  return undefined;
}

/**
 * An absent or empty selector selects all objects. Throws 400 BadRequest if a selector is invalid or uses a field that the kind does not
 * support.
 */
export function parseSelection(
  kind: KindDefinition,
  options: { labelSelector?: string; fieldSelector?: string },
): Selection {
  const labels = options.labelSelector ? parseLabelSelector(options.labelSelector) : undefined;
  const requirements = options.fieldSelector ? parseFieldSelector(options.fieldSelector) : [];
  if (requirements.length > 0) checkFieldLabels(requirements, fieldLabels(kind));
  const only = (field: string): string | undefined =>
    requirements.find((requirement) => requirement.field === field && requirement.op === '=')?.value;
  const matches = (object: KubeObject): boolean =>
    (labels === undefined || labels(object.metadata.labels)) &&
    (requirements.length === 0 || matchesFields(requirements, fieldsOf(kind, object)));
  return {
    matches: labels === undefined && requirements.length === 0 ? undefined : matches,
    name: only('metadata.name'),
    namespace: kind.namespaced ? only('metadata.namespace') : undefined,
    indexed: indexedValue(kind, requirements),
  };
}
