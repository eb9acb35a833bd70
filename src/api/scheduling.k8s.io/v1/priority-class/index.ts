/** The PriorityClass: defines the priority of the Pods that name it. Source: pkg/apis/scheduling of v1.33 (bounds, wording). */
import { type FieldError, forbidden, invalid, notSupported } from '../../../../machinery/field-error.ts';
import { dns1123SubdomainErrors } from '../../../../machinery/names.ts';
import { IMMUTABLE_TEXT, validateObjectMeta, validateObjectMetaUpdate } from '../../../../machinery/object-meta.ts';
import { systemPriorities } from '../../../core/v1/pod/admission.ts';
import type { PriorityClass } from '../../../generated/types.ts';
import type { KindDefinition } from '../../../kind.ts';
import { ageCell, ageColumn, column, nameColumn } from '../../../table.ts';

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

export const priorityClassKind: KindDefinition<PriorityClass> = {
  group: 'scheduling.k8s.io',
  version: 'v1',
  kind: 'PriorityClass',
  plural: 'priorityclasses',
  singular: 'priorityclass',
  shortNames: ['pc'],
  categories: [],
  namespaced: false,
  schema: 'PriorityClass',
  defaults(priorityClass) {
    // In Go, an omitted integer is 0.
    priorityClass.value ??= 0;
    priorityClass.preemptionPolicy ??= 'PreemptLowerPriority';
  },
  validateCreate: (priorityClass) => [
    ...validateObjectMeta(priorityClass.metadata, { namespaced: false, nameErrors: dns1123SubdomainErrors }),
    ...validate(priorityClass),
  ],
  validateUpdate: (priorityClass, old) => [
    ...validateObjectMetaUpdate(priorityClass.metadata, old.metadata),
    ...(priorityClass.value === old.value ? [] : [forbidden('value', 'may not be changed in an update.')]),
    ...(priorityClass.preemptionPolicy === old.preemptionPolicy
      ? []
      : [invalid('preemptionPolicy', priorityClass.preemptionPolicy, IMMUTABLE_TEXT)]),
  ],
  subresources: {},
  columns: [
    nameColumn,
    column('Value', 'The priority of the Pods. Higher values are more important.'),
    column('Global-Default', 'Whether Pods without a priorityClassName get this class.'),
    ageColumn,
    column('PreemptionPolicy', 'Whether Pods of the class may preempt Pods of lower priority.'),
  ],
  row: ({ metadata, value = 0, globalDefault, preemptionPolicy }, { now }) => [
    metadata.name,
    value,
    String(globalDefault ?? false),
    ageCell(metadata.creationTimestamp, now),
    preemptionPolicy ?? '',
  ],
};
