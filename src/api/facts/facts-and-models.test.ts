/** The models of @kubernetes/client-node are generated from upstream's OpenAPI document. */
import { expect, test } from 'vitest';
import { type Model, modelName, readModel } from '../../../scripts/facts/models.ts';
import { type FieldFacts, jsonFields, jsonForms, typeFacts, typeNames } from './facts.ts';
import { ownFacts } from './own.ts';

/** Fields of the models that are newer than v1.33. */
const NEWER: Readonly<Record<string, readonly string[]>> = {
  'core.v1.Container': ['restartPolicyRules'],
  'core.v1.EnvVarSource': ['fileKeyRef'],
  'core.v1.EphemeralContainer': ['restartPolicyRules'],
  'core.v1.NodeStatus': ['declaredFeatures'],
  'core.v1.PodSpec': ['hostnameOverride', 'schedulingGroup'],
  'core.v1.PodStatus': [
    'allocatedResources',
    'extendedResourceClaimStatus',
    'nodeAllocatableResourceClaimStatuses',
    'resources',
  ],
  'core.v1.ResourceHealth': ['message'],
  'core.v1.VolumeMountStatus': ['volumeStatus'],
  'core.v1.VolumeProjection': ['podCertificate'],
  'meta.v1.ListMeta': ['shardInfo'],
  'storage.v1.CSIDriverSpec': ['preventPodSchedulingIfMissing', 'serviceAccountTokenInSecrets'],
};

/** Packages that have changed since v1.33, because their versions are alpha or beta. */
const CHANGED_PACKAGES = /^resource\.v1(alpha3|beta1|beta2)\./;

/** Fields that upstream has marked as required or as optional since v1.33. */
const CHANGED_MARKERS: readonly string[] = [
  'admissionregistration.v1.ValidatingAdmissionPolicyBinding.spec',
  'admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec.policyName',
  'admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec.validationActions',
  'admissionregistration.v1alpha1.ValidatingAdmissionPolicyBindingList.items',
  'admissionregistration.v1alpha1.ValidatingAdmissionPolicyList.items',
  'apiserverinternal.v1alpha1.ServerStorageVersion.apiServerID',
  'apiserverinternal.v1alpha1.ServerStorageVersion.decodableVersions',
  'apiserverinternal.v1alpha1.ServerStorageVersion.encodingVersion',
  'apiserverinternal.v1alpha1.StorageVersion.metadata',
  'apiserverinternal.v1alpha1.StorageVersion.status',
  'authentication.v1.TokenRequest.spec',
  'authentication.v1.TokenRequestSpec.audiences',
  'authentication.v1.TokenRequestStatus.expirationTimestamp',
  'authentication.v1.TokenRequestStatus.token',
  'authentication.v1.TokenReviewSpec.token',
  'autoscaling.v1.HorizontalPodAutoscaler.spec',
  'autoscaling.v2.HorizontalPodAutoscaler.spec',
  'batch.v1.CronJob.spec',
  'batch.v1.PodFailurePolicyOnPodConditionsPattern.status',
  'coordination.v1alpha2.LeaseCandidate.spec',
  'coordination.v1beta1.LeaseCandidate.spec',
  'discovery.v1.EndpointSlice.endpoints',
  'networking.v1.IPAddress.spec',
  'networking.v1.NetworkPolicySpec.podSelector',
  'networking.v1beta1.IPAddress.spec',
  'policy.v1.PodDisruptionBudgetStatus.currentHealthy',
  'policy.v1.PodDisruptionBudgetStatus.desiredHealthy',
  'policy.v1.PodDisruptionBudgetStatus.disruptionsAllowed',
  'policy.v1.PodDisruptionBudgetStatus.expectedPods',
  'rbac.v1.RoleRef.apiGroup',
  'scheduling.v1.PriorityClass.value',
];

const OTHER_DIFFERENCES: Readonly<Record<string, string>> = {
  'apiserverinternal.v1alpha1.StorageVersion.spec':
    'StorageVersionSpec has no fields, so that the generator of the models takes it for any value',
  'core.v1.Preconditions.resourceVersion': 'the model is the one of meta/v1; nothing uses the type of core/v1',
};

const SCALARS = { string: 'string', bool: 'boolean', int32: 'number', int64: 'number', double: 'number' } as const;
const FORMS = {
  time: 'Date',
  microTime: 'V1MicroTime',
  duration: 'string',
  quantity: 'string',
  intOrString: 'IntOrString',
  raw: 'any',
} as const;

/** Returns the type that a model declares for the field, or for its elements and values, with the format of integers and bytes. */
function elementType({ ref, scalar = 'any' }: FieldFacts): { type: string; format: string } {
  const items = typeFacts(ref ?? '')?.items;
  if (items !== undefined) return modelType(items);
  const form = jsonForms.get(ref ?? '');
  if (form !== undefined) return { type: FORMS[form], format: '' };
  if (ref !== undefined) return { type: modelName(ref) ?? ref, format: '' };
  if (scalar === 'bytes') return { type: 'string', format: 'byte' };
  if (scalar === 'any') return { type: 'any', format: '' };
  return { type: SCALARS[scalar], format: scalar.startsWith('int') ? scalar : '' };
}

function modelType(field: FieldFacts): { type: string; format: string } {
  const { type, format } = elementType(field);
  if (field.container === undefined) return { type, format };
  return { type: field.container === 'list' ? `Array<${type}>` : `{ [key: string]: ${type}; }`, format };
}

const shortName = (type: string): string => type.replace(/^io\.k8s\.(api|apimachinery\.pkg\.apis)\./, '');

function ownFields(type: string): Set<string> {
  const [key, name = ''] = [shortName(type).replace(/\.\w+$/, ''), type.replace(/.*\./, '')];
  const lines = ownFacts[key]?.types[name] ?? [];
  const inline = lines.filter((line) => line.startsWith('... ')).map((line) => line.split(' ')[2] ?? '');
  return new Set([
    ...lines.map((line) => (line.split(' ')[0] ?? '').replace('?', '')),
    ...inline.flatMap((each) => [...ownFields(`io.k8s.api.${key}.${each}`)]),
  ]);
}

const isFormat = (format: string): boolean => /^(int\d+|byte)$/.test(format);

function fieldDifference(field: FieldFacts, model: Model): string | undefined {
  const given = model.fields.get(field.json);
  if (given === undefined) return 'is only in the facts';
  const { type, format } = modelType(field);
  if (type !== given.type) return `is ${type} in the facts, ${given.type} in the model`;
  if ((isFormat(format) || isFormat(given.format)) && format !== given.format)
    return `has the format ${format} in the facts, ${given.format} in the model`;
  if (field.required !== given.required) return `is ${field.required ? '' : 'not '}required in the facts`;
  return undefined;
}

/** Returns the differences between the facts and the model of a type that no newer field explains, by `package.Type.field`. */
function differences(type: string, model: Model): [string, string][] {
  const found: [string, string][] = [];
  const [fields, own, short] = [jsonFields(type), ownFields(type), shortName(type)];
  for (const [name, field] of fields) {
    const text = own.has(name) ? undefined : fieldDifference(field, model);
    if (text !== undefined) found.push([`${short}.${name}`, text]);
  }
  for (const name of model.fields.keys())
    if (!fields.has(name) && NEWER[short]?.includes(name) !== true)
      found.push([`${short}.${name}`, 'is only in the model']);
  return found;
}

const compared = typeNames().flatMap((type) => {
  const model = modelName(type);
  return model === undefined || CHANGED_PACKAGES.test(shortName(type)) ? [] : [{ type, model: readModel(model) }];
});

test('the facts have the fields, types and required fields of the models, except for the differences that are listed', () => {
  expect(compared.length).toBeGreaterThan(550);
  const found = compared.flatMap(({ type, model }) => differences(type, model));
  const explained = new Set([...CHANGED_MARKERS, ...Object.keys(OTHER_DIFFERENCES)]);
  expect(found.filter(([field]) => !explained.has(field))).toEqual([]);
  const remaining = found.filter(([, text]) => !text.endsWith('required in the facts')).map(([field]) => field);
  expect(remaining.sort()).toEqual(Object.keys(OTHER_DIFFERENCES).sort());
  expect(found.map(([field]) => field)).toEqual(expect.arrayContaining([...explained]));
});

test('every listed newer field is in a model and not in the facts', () => {
  const listed = Object.entries(NEWER).flatMap(([type, names]) => names.map((name) => `${type}.${name}`));
  const newer = compared.flatMap(({ type, model }) =>
    [...model.fields.keys()].filter((name) => !jsonFields(type).has(name)).map((name) => `${shortName(type)}.${name}`),
  );
  expect(newer).toEqual(expect.arrayContaining(listed));
});
