/** Selects the objects of a list or watch: combines label and field selectors into one predicate. */
import type { KindDefinition } from '../../../api/kind.ts';
import { checkFieldLabels, matchesFields, parseFieldSelector } from '../../../machinery/field-selector.ts';
import { parseLabelSelector } from '../../../machinery/labels.ts';
import type { KubeObject } from '../../../machinery/meta.ts';

export interface Selection {
  /** Undefined if all objects match. */
  matches: ((object: KubeObject) => boolean) | undefined;
  /** The only name or namespace that a matching object can have. */
  name: string | undefined;
  namespace: string | undefined;
}

const fieldsOf = (kind: KindDefinition, object: KubeObject): Record<string, string> => ({
  'metadata.name': object.metadata.name,
  ...(kind.namespaced ? { 'metadata.namespace': object.metadata.namespace ?? '' } : {}),
  ...kind.selectableFields?.(object),
});

/** The kind's field labels, taken from an empty object. */
const fieldLabels = (kind: KindDefinition): string[] =>
  Object.keys(fieldsOf(kind, { apiVersion: '', kind: kind.kind, metadata: { name: '' } }));

/** Throws 400 BadRequest if a selector is invalid or uses a field that the kind does not support. */
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
