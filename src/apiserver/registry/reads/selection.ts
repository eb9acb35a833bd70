/** Combines the label selector and the field selector of a list or watch into one predicate. */
import type { KindDefinition } from '../../../api/kind.ts';
import { checkFieldLabels, matchesFields, parseFieldSelector } from '../../../machinery/field-selector.ts';
import { parseLabelSelector } from '../../../machinery/labels.ts';
import type { KubeObject } from '../../../machinery/meta.ts';

export interface Selection {
  /** Returns whether the object matches; undefined if there are no selectors, so that all objects match. */
  matches: ((object: KubeObject) => boolean) | undefined;
  /** The only name that a matching object can have; undefined if the field selector requires no name. */
  name: string | undefined;
  /** The only namespace that a matching object can have; undefined if the field selector requires none or the kind is cluster-scoped. */
  namespace: string | undefined;
}

const fieldsOf = (kind: KindDefinition, object: KubeObject): Record<string, string> => ({
  'metadata.name': object.metadata.name,
  ...(kind.namespaced ? { 'metadata.namespace': object.metadata.namespace ?? '' } : {}),
  ...kind.selectableFields?.(object),
});

/** The names of the fields that field selectors of the kind may use. An object without content is enough to list them. */
const fieldLabels = (kind: KindDefinition): string[] =>
  Object.keys(fieldsOf(kind, { apiVersion: '', kind: kind.kind, metadata: { name: '' } }));

/**
 * Parses the selectors. An absent or empty selector selects all objects. Throws 400 BadRequest if a selector is invalid or uses a field
 * that the kind does not support.
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
  };
}
