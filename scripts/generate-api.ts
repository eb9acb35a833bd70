/**
 * Generates src/api/generated/ from the facts about the types (src/api/facts):
 *
 * types.ts   TypeScript interfaces of all types reachable from ROOTS
 * docs.json  their descriptions, for OpenAPI and `kubectl explain`: those of the models of @kubernetes/client-node, and lifepod's own
 *
 * The output is not committed because the descriptions are derived from a package; `npm run setup` generates it.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type FieldFacts,
  type JsonForm,
  jsonFields,
  jsonForms,
  META,
  type Scalar,
  typeFacts,
} from '../src/api/facts/facts.ts';
import { ownFacts } from '../src/api/facts/own.ts';
import { modelName, readModel } from './facts/models.ts';
import { OWN_DESCRIPTIONS } from './own-descriptions.ts';
import { REFERENCE_DESCRIPTIONS } from './reference-descriptions.ts';

const outDir = join(dirname(fileURLToPath(import.meta.url)), '../src/api/generated');

/** lifepod serves or reads these types. Types that they refer to are included automatically. */
const ROOTS = [
  ...[
    'core.v1.Binding',
    'core.v1.ComponentStatus',
    'core.v1.ConfigMap',
    'core.v1.Endpoints',
    'core.v1.Event',
    'core.v1.LimitRange',
    'core.v1.Namespace',
    'core.v1.Node',
    'core.v1.PersistentVolume',
    'core.v1.PersistentVolumeClaim',
    'core.v1.Pod',
    'core.v1.PodTemplate',
    'core.v1.ReplicationController',
    'core.v1.ResourceQuota',
    'core.v1.Secret',
    'core.v1.Service',
    'core.v1.ServiceAccount',
    'apps.v1.ControllerRevision',
    'apps.v1.DaemonSet',
    'apps.v1.Deployment',
    'apps.v1.ReplicaSet',
    'apps.v1.StatefulSet',
    'authentication.v1.SelfSubjectReview',
    'authentication.v1.TokenRequest',
    'authentication.v1.TokenReview',
    'authorization.v1.LocalSubjectAccessReview',
    'authorization.v1.SelfSubjectAccessReview',
    'authorization.v1.SelfSubjectRulesReview',
    'authorization.v1.SubjectAccessReview',
    'autoscaling.v1.HorizontalPodAutoscaler',
    'autoscaling.v1.Scale',
    'autoscaling.v2.HorizontalPodAutoscaler',
    'batch.v1.CronJob',
    'batch.v1.Job',
    'certificates.v1.CertificateSigningRequest',
    'coordination.v1.Lease',
    'discovery.v1.EndpointSlice',
    'events.v1.Event',
    'networking.v1.IPAddress',
    'networking.v1.Ingress',
    'networking.v1.IngressClass',
    'networking.v1.NetworkPolicy',
    'networking.v1.ServiceCIDR',
    'node.v1.RuntimeClass',
    'policy.v1.Eviction',
    'policy.v1.PodDisruptionBudget',
    'rbac.v1.ClusterRole',
    'rbac.v1.ClusterRoleBinding',
    'rbac.v1.Role',
    'rbac.v1.RoleBinding',
    'scheduling.v1.PriorityClass',
    'storage.v1.StorageClass',
  ].map((type) => `io.k8s.api.${type}`),
  ...['Status', 'DeleteOptions', 'ListMeta'].map((type) => `${META}.${type}`),
  ...Object.values(ownFacts).flatMap(({ path, types }) => Object.keys(types).map((type) => `${path}.${type}`)),
];

/** Types of the upstream package meta/v1 that src/machinery declares. types.ts re-exports them. */
const MACHINERY = new Set([
  'ObjectMeta',
  'OwnerReference',
  'ManagedFieldsEntry',
  'ListMeta',
  'Status',
  'StatusDetails',
  'StatusCause',
]);

/** The name of its model without V1, or the last part of the type's name if it has no model. */
const publicName = (type: string): string =>
  (modelName(type) ?? type.slice(type.lastIndexOf('.') + 1)).replace(/^V1(?=[A-Z])/, '');

const SCALARS: Readonly<Record<Scalar, string>> = {
  string: 'string',
  bytes: 'string',
  bool: 'boolean',
  int32: 'number',
  int64: 'number',
  double: 'number',
  any: 'unknown',
};
const FORMS: Readonly<Record<JsonForm, string>> = {
  time: 'string',
  microTime: 'string',
  duration: 'string',
  quantity: 'string',
  intOrString: 'number | string',
  raw: 'unknown',
};

function elementType({ ref, scalar = 'any' }: FieldFacts): string {
  if (ref === undefined) return SCALARS[scalar];
  const form = jsonForms.get(ref);
  if (form !== undefined) return FORMS[form];
  const items = typeFacts(ref)?.items;
  return items === undefined ? publicName(ref) : tsType(items);
}

function tsType(field: FieldFacts): string {
  const element = elementType(field);
  if (field.container === undefined) return element;
  return field.container === 'list' ? `Array<${element}>` : `Record<string, ${element}>`;
}

function declaration(type: string): string {
  const fields = jsonFields(type);
  const isKind = fields.has('apiVersion') && fields.has('metadata');
  const lines = [...fields.values()].map((field) => {
    const mandatory = field.required || (isKind && ['apiVersion', 'kind', 'metadata'].includes(field.json));
    const key = /^\w+$/.test(field.json) ? field.json : `'${field.json}'`;
    return `  ${key}${mandatory ? '' : '?'}: ${tsType(field)};`;
  });
  return `export interface ${publicName(type)} {\n${lines.join('\n')}\n}`;
}

/** lifepod's own descriptions override those of the model, which override those of embedded types. */
function fieldDescriptions(type: string): Record<string, string> {
  const model = modelName(type);
  const embedded = (typeFacts(type)?.fields ?? []).filter(({ inline }) => inline);
  const found: Record<string, string> = Object.assign({}, ...embedded.map(({ ref = '' }) => fieldDescriptions(ref)));
  if (model !== undefined) for (const [name, { description }] of readModel(model).fields) found[name] = description;
  return { ...found, ...OWN_DESCRIPTIONS[type]?.fields };
}

function typeDescription(type: string): string {
  const model = modelName(type);
  return OWN_DESCRIPTIONS[type]?.description ?? (model === undefined ? '' : readModel(model).description);
}

/** For fields without an entry in fieldDescriptions(). Returns the empty text if there is no description. */
function referenceDescription(type: string, { json, ref }: FieldFacts): string {
  const name = type.slice(type.lastIndexOf('.') + 1);
  const text = REFERENCE_DESCRIPTIONS[`${name}.${json}`] ?? REFERENCE_DESCRIPTIONS[json];
  return text ?? (ref === undefined ? '' : typeDescription(ref));
}

function docsOf(type: string): { description: string; fields: Record<string, string> } {
  const texts = { ...KIND_FIELDS, ...fieldDescriptions(type) };
  const listed = [...jsonFields(type).values()].filter(({ unlisted }) => !unlisted);
  return {
    description: typeDescription(type),
    fields: Object.fromEntries(
      listed.map((field) => [field.json, texts[field.json] || referenceDescription(type, field)]),
    ),
  };
}

const KIND_FIELDS = Object.fromEntries(
  Object.entries(fieldDescriptions('io.k8s.api.core.v1.Pod')).filter(([name]) =>
    ['apiVersion', 'kind', 'metadata'].includes(name),
  ),
);

const lines: string[] = [
  '// Generated by scripts/generate-api.ts; do not edit, do not commit.',
  `import type { ${[...MACHINERY].join(', ')} } from '../../machinery/meta.ts';`,
  `export type { ${[...MACHINERY].join(', ')} };`,
];
const docs: Record<string, ReturnType<typeof docsOf>> = {};
const seen = new Set(ROOTS);
// The loop also visits the types that it adds to the set.
for (const type of seen) {
  docs[type] = docsOf(type);
  if (!MACHINERY.has(publicName(type))) lines.push(declaration(type));
  for (const { ref } of jsonFields(type).values())
    if (ref !== undefined && !jsonForms.has(ref) && typeFacts(ref)?.items === undefined) seen.add(ref);
}

mkdirSync(outDir, { recursive: true });
writeFileSync(join(outDir, 'types.ts'), `${lines.join('\n')}\n`);
writeFileSync(join(outDir, 'docs.json'), JSON.stringify(docs));
console.log(`generated ${seen.size} types in src/api/generated`);
