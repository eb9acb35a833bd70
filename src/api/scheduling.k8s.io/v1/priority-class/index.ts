/** The PriorityClass: defines the priority of the Pods that name it. Source: pkg/apis/scheduling of v1.33 (bounds, wording). */
import { type FieldError, forbidden, notSupported } from '../../../../machinery/field-error.ts';
import { systemPriorities } from '../../../core/v1/pod/admission.ts';
import { kind } from '../../../declaration.ts';
import type { PriorityClass } from '../../../generated/types.ts';
import { immutable, onCreate } from '../../../rules.ts';
import { ageColumn, column, nameColumn } from '../../../table.ts';

const SYSTEM_PREFIX = 'system-';
const HIGHEST_OF_USERS = 1_000_000_000;
const POLICIES = ['PreemptLowerPriority', 'Never'];

/** The built-in classes, which cannot be deleted. */
export const systemPriorityClasses: readonly PriorityClass[] = Object.entries(systemPriorities).map(
  ([name, value]) => ({
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name },
    value,
    description: name.includes('node')
      ? 'For Pods that this very node cannot do without.'
      : 'For Pods that the cluster cannot do without, on whichever node.',
  }),
);

function validate({ metadata, value = 0, globalDefault, preemptionPolicy }: PriorityClass): FieldError[] {
  const errors: FieldError[] = [];
  if (metadata.name.startsWith(SYSTEM_PREFIX)) {
    const refuse = (cause: string) =>
      forbidden(
        'metadata.name',
        `priority class names with '${SYSTEM_PREFIX}' prefix are reserved for system use only. error: ${cause}`,
      );
    const known = systemPriorities[metadata.name];
    if (known === undefined) errors.push(refuse(`${metadata.name} is not a known system priority class`));
    else if (known !== value) errors.push(refuse(`value of ${metadata.name} PriorityClass must be ${known}`));
    else if (globalDefault === true)
      errors.push(refuse(`globalDefault of ${metadata.name} PriorityClass must be false`));
  } else if (value > HIGHEST_OF_USERS) {
    errors.push(forbidden('value', `maximum allowed value of a user defined priority is ${HIGHEST_OF_USERS}`));
  }
  if (preemptionPolicy !== undefined && !POLICIES.includes(preemptionPolicy))
    errors.push(notSupported('preemptionPolicy', preemptionPolicy, POLICIES));
  return errors;
}

export const priorityClassKind = kind<PriorityClass>('scheduling.k8s.io/v1', 'PriorityClass', {
  scope: 'Cluster',
  shortNames: ['pc'],
  defaults(priorityClass) {
    // In Go, an omitted integer is 0.
    priorityClass.value ??= 0;
    priorityClass.preemptionPolicy ??= 'PreemptLowerPriority';
  },
  rules: [onCreate(validate), immutable('value', 'may not be changed in an update.'), immutable('preemptionPolicy')],
  columns: [
    nameColumn,
    column('Value', 'The priority of the Pods. Higher values are more important.', ({ value = 0 }) => value),
    column('Global-Default', 'Whether Pods without a priorityClassName get this class.', ({ globalDefault }) =>
      String(globalDefault ?? false),
    ),
    ageColumn,
    column(
      'PreemptionPolicy',
      'Whether Pods of the class may preempt Pods of lower priority.',
      ({ preemptionPolicy }) => preemptionPolicy ?? '',
    ),
  ],
});
