/** The RuntimeClass: the runtime handler for a Pod, its overhead and scheduling constraints. Source: pkg/apis/node of v1.33. */
import { allErrors, duplicate, type FieldError, invalid } from '../../../../machinery/field-error.ts';
import { dns1123LabelErrors } from '../../../../machinery/names.ts';
import { validateLabels } from '../../../../machinery/object-meta.ts';
import { validateTolerations } from '../../../core/v1/pod/validation/validate-placement.ts';
import { validateResourceList } from '../../../core/v1/pod/validation/validate-resources.ts';
import { kind } from '../../../declaration.ts';
import type { RuntimeClass, Toleration } from '../../../generated/types.ts';
import { immutable } from '../../../rules.ts';
import { ageColumn, column, nameColumn } from '../../../table.ts';

const validate = ({ handler = '', overhead, scheduling }: RuntimeClass): FieldError[] =>
  allErrors(
    dns1123LabelErrors(handler).map((text) => invalid('handler', handler, text)),
    validateResourceList(overhead?.podFixed, 'overhead.podFixed'),
    validateLabels(scheduling?.nodeSelector, 'scheduling.nodeSelector'),
    validateTolerations(scheduling?.tolerations, 'scheduling.tolerations'),
    repeated(scheduling?.tolerations, 'scheduling.tolerations'),
  );

/** Returns an error for each repeated toleration. Like upstream, compares all fields of tolerations except tolerationSeconds. */
function repeated(tolerations: readonly Toleration[] = [], path: string): FieldError[] {
  const seen = new Set<string>();
  return tolerations.flatMap((toleration, index) => {
    const { key = '', operator = '', value = '', effect = '' } = toleration;
    const same = JSON.stringify([key, operator, value, effect]);
    if (seen.has(same)) return [duplicate(`${path}[${index}]`, toleration)];
    seen.add(same);
    return [];
  });
}

export const runtimeClassKind = kind<RuntimeClass>('node.k8s.io/v1', 'RuntimeClass', {
  scope: 'Cluster',
  rules: [immutable('handler'), validate],
  columns: [
    nameColumn,
    column('Handler', 'The name of the handler in the runtime configuration.', ({ handler }) => handler ?? ''),
    ageColumn,
  ],
});
