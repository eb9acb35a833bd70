/** Validation of StatefulSets. Source: pkg/apis/apps/validation of v1.33 (behavior and wording). */
import { allErrors, type FieldError, forbidden, invalid, notSupported } from '../../../../machinery/field-error.ts';
import { dns1123LabelErrors } from '../../../../machinery/names.ts';
import { sameValue } from '../../../core/v1/pod/compare.ts';
import { deferFields } from '../../../core/v1/pod/compatibility/defer-settings.ts';
import { validateTemplate } from '../../../core/v1/pod-template/template.ts';
import type { PodTemplateSpec, StatefulSet, StatefulSetSpec, StatefulSetStatus } from '../../../generated/types.ts';
import { amountOf, intOrPercentErrors, percentLimitErrors } from '../../../int-or-percent.ts';
import { at, nonNegative, onCreate, valueAt } from '../../../rules.ts';
import {
  validateCollisions,
  validateLastingTemplate,
  validateRequiredSelector,
  validateTemplateLabels,
} from '../workload-rules.ts';

const RETENTION_POLICIES = ['Retain', 'Delete'];

function validateManagement({ podManagementPolicy: policy }: Partial<StatefulSetSpec>): FieldError[] {
  return policy === 'OrderedReady' || policy === 'Parallel'
    ? []
    : [invalid('spec.podManagementPolicy', policy, "must be 'OrderedReady' or 'Parallel'")];
}

const partition = at('spec.updateStrategy.rollingUpdate.partition', nonNegative);
const maxUnavailable = at('spec.updateStrategy.rollingUpdate.maxUnavailable', (value: number | string) => [
  ...intOrPercentErrors(value),
  ...(amountOf(value) === 0 ? ['cannot be 0'] : []),
  ...percentLimitErrors(value),
]);

function validateStrategy(set: StatefulSet): FieldError[] {
  const path = 'spec.updateStrategy';
  const strategy = set.spec?.updateStrategy;
  if (strategy?.type === 'RollingUpdate') return [...partition(set), ...maxUnavailable(set)];
  if (strategy?.type !== 'OnDelete') return [invalid(path, strategy, "must be 'RollingUpdate' or 'OnDelete'")];
  const { rollingUpdate } = strategy;
  return rollingUpdate === undefined
    ? []
    : [invalid(`${path}.rollingUpdate`, rollingUpdate, "only allowed for updateStrategy 'RollingUpdate'")];
}

const validateRetention = ({ persistentVolumeClaimRetentionPolicy: policy }: Partial<StatefulSetSpec>): FieldError[] =>
  (['whenDeleted', 'whenScaled'] as const)
    .filter((name) => !RETENTION_POLICIES.includes(policy?.[name] ?? ''))
    .map((name) =>
      notSupported(`spec.persistentVolumeClaimRetentionPolicy.${name}`, policy?.[name], RETENTION_POLICIES),
    );

/** Returns the template with a volume for each claim, and without the hostname and the subdomain, which the controller sets in each Pod. */
function podTemplateOf({ template = {}, volumeClaimTemplates = [] }: Partial<StatefulSetSpec>): PodTemplateSpec {
  if (template.spec === undefined) return template;
  const { subdomain: _, hostname: _hostname, volumes = [], ...rest } = template.spec;
  const names = [...new Set(volumeClaimTemplates.map(({ metadata }) => metadata.name))];
  const claimVolumes = names.map((name) => ({ name, persistentVolumeClaim: { claimName: name } }));
  const ownVolumes = volumes.filter(({ name }) => !names.includes(name));
  return { ...template, spec: { ...rest, volumes: [...claimVolumes, ...ownVolumes] } };
}

const VALIDATED = ['labels', 'annotations', ...deferFields.map((name) => `spec.${name}`)].map(
  (name) => `spec.template.${name}`,
);

/** v1.33 validates the other fields of the template only when the controller creates a Pod. */
const validatePodTemplate = (spec: Partial<StatefulSetSpec>, old: StatefulSet | undefined): FieldError[] =>
  validateTemplate(podTemplateOf(spec), old?.spec?.template, 'spec.template').filter(({ field }) =>
    VALIDATED.some((path) => field.startsWith(path)),
  );

const numbers = ['replicas', 'minReadySeconds', 'ordinals.start'].map((name) => at(`spec.${name}`, nonNegative));

/** Updates are not checked, because they cannot change the name. */
const serviceName = onCreate(at('spec.serviceName', (name: string) => (name === '' ? [] : dns1123LabelErrors(name))));

export function validateStatefulSet(set: StatefulSet, old?: StatefulSet): FieldError[] {
  const spec: Partial<StatefulSetSpec> = set.spec ?? {};
  return allErrors(
    validateManagement(spec),
    validateStrategy(set),
    validateRetention(spec),
    ...numbers.map((rule) => rule(set)),
    serviceName(set, old),
    validateRequiredSelector(spec.selector, 'statefulset'),
    validateTemplateLabels(spec.selector, spec.template),
    validatePodTemplate(spec, old),
    validateLastingTemplate(spec.template, 'StatefulSet'),
  );
}

const MUTABLE = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
] as const satisfies readonly (keyof StatefulSetSpec)[];

const fixedFields = (spec: StatefulSetSpec | undefined): object =>
  Object.fromEntries(Object.entries(spec ?? {}).filter(([name]) => !(MUTABLE as readonly string[]).includes(name)));

export function validateStatefulSetUpdate({ spec }: StatefulSet, { spec: oldSpec }: StatefulSet): FieldError[] {
  if (sameValue(fixedFields(spec), fixedFields(oldSpec))) return [];
  const names = MUTABLE.map((name) => `'${name}'`);
  const text = `updates to statefulset spec for fields other than ${names.slice(0, -1).join(', ')} and ${names.at(-1)} are forbidden`;
  return [forbidden('spec', text)];
}

const counts = [
  'replicas',
  'readyReplicas',
  'currentReplicas',
  'updatedReplicas',
  'availableReplicas',
  'observedGeneration',
  'collisionCount',
].map((name) => at(`status.${name}`, nonNegative));

const BOUNDS: readonly (readonly [keyof StatefulSetStatus, keyof StatefulSetStatus])[] = [
  ['readyReplicas', 'replicas'],
  ['currentReplicas', 'replicas'],
  ['updatedReplicas', 'replicas'],
  ['availableReplicas', 'replicas'],
  ['availableReplicas', 'readyReplicas'],
];

export function validateStatefulSetStatus(set: StatefulSet, old?: StatefulSet): FieldError[] {
  const number = (name: string): number => Number(valueAt(set, `status.${name}`) ?? 0);
  const isExceeded = ([small, large]: (typeof BOUNDS)[number]): boolean => number(small) > number(large);
  return allErrors(
    ...counts.map((rule) => rule(set)),
    BOUNDS.filter(isExceeded).map(([small, large]) =>
      invalid(`status.${small}`, number(small), `cannot be greater than status.${large}`),
    ),
    validateCollisions(set, old),
  );
}
