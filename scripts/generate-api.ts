/**
 * Generates src/api/generated/ from the models of @kubernetes/client-node, with the types and fields that own-api.ts and own-kinds.ts
 * add, and without the fields that own-api.ts excludes. The files are:
 *
 *   types.ts     TypeScript interfaces of all types reachable from ROOTS
 *   schema.json  the field table: for each type, the JSON name and the shape of each field, whether the field is required, and
 *                whether OpenAPI and `kubectl explain` omit it
 *   docs.json    descriptions of types and fields, for OpenAPI and `kubectl explain`
 *
 * The output is not committed because it is derived from a package; `npm run setup` generates it.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NEWER_FIELDS, OWN_DESCRIPTIONS, OWN_FIELDS, OWN_TYPES } from './own-api.ts';
import { METRICS_TYPES, RECORD_TYPES } from './own-kinds.ts';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const modelsDir = join(root, 'node_modules/@kubernetes/client-node/dist/gen/models');
const outDir = join(root, 'src/api/generated');

/** The models that lifepod serves or reads. Models that these refer to are included automatically. */
const ROOTS = [
  'V1Pod',
  'V1PodTemplate',
  'V1Node',
  'V1Namespace',
  'V1Service',
  'V1ServiceAccount',
  'V1ConfigMap',
  'V1Secret',
  'V1PersistentVolume',
  'V1PersistentVolumeClaim',
  'V1StorageClass',
  'V1RuntimeClass',
  'V1PriorityClass',
  'CoreV1Event',
  'EventsV1Event',
  'V1Lease',
  'V1Binding',
  'V1Eviction',
  'V1Status',
  'V1DeleteOptions',
  'V1ListMeta',
  'AuthenticationV1TokenRequest',
];

/** Fields that contain resource quantities. The models declare them as strings or maps of strings, but numbers are valid too. */
const QUANTITIES = new Set([
  'ResourceRequirements.limits',
  'ResourceRequirements.requests',
  'VolumeResourceRequirements.limits',
  'VolumeResourceRequirements.requests',
  'ContainerStatus.allocatedResources',
  'PodStatus.allocatedResources',
  'PodSpec.overhead',
  'Overhead.podFixed',
  'NodeStatus.capacity',
  'NodeStatus.allocatable',
  'EmptyDirVolumeSource.sizeLimit',
  'PersistentVolumeSpec.capacity',
  'PersistentVolumeClaimStatus.allocatedResources',
  'PersistentVolumeClaimStatus.capacity',
  'ResourceFieldSelector.divisor',
]);

/** Types of the upstream package meta/v1 that src/machinery declares. types.ts re-exports them instead of declaring them. */
const MACHINERY = new Set([
  'ObjectMeta',
  'OwnerReference',
  'ManagedFieldsEntry',
  'ListMeta',
  'Status',
  'StatusDetails',
  'StatusCause',
]);

interface Attribute {
  name: string;
  baseName: string;
  type: string;
  format: string;
}

/** The shape of a field, as stored in schema.json. */
type Shape =
  | 'string'
  | 'integer'
  | 'number'
  | 'boolean'
  | 'time'
  | 'microtime'
  | 'bytes'
  | 'quantity'
  | 'intOrString'
  | 'any'
  | { ref: string }
  | { array: Shape }
  | { map: Shape };

const publicName = (model: string): string => model.replace(/^V1(?=[A-Z])/, '');

function shapeOf(type: string, format: string, path: string): Shape {
  const array = /^Array<(.+)>$/.exec(type);
  if (array) return { array: shapeOf(array[1] ?? '', format, path) };
  const map = /^\{ \[key: string\]: (.+); \}$/.exec(type);
  if (map) return { map: shapeOf(map[1] ?? '', format, path) };
  if (QUANTITIES.has(path)) return 'quantity';
  if (type === 'string') return format === 'byte' ? 'bytes' : 'string';
  if (type === 'number') return format.startsWith('int') ? 'integer' : 'number';
  if (type === 'boolean') return 'boolean';
  if (type === 'Date') return 'time';
  if (type === 'V1MicroTime') return 'microtime';
  if (type === 'IntOrString') return 'intOrString';
  if (type === 'any') return 'any';
  return { ref: type };
}

function tsType(shape: Shape): string {
  if (typeof shape !== 'string') {
    if ('array' in shape) return `Array<${tsType(shape.array)}>`;
    if ('map' in shape) return `Record<string, ${tsType(shape.map)}>`;
    return publicName(shape.ref);
  }
  switch (shape) {
    case 'integer':
    case 'number':
      return 'number';
    case 'boolean':
      return 'boolean';
    case 'intOrString':
      return 'number | string';
    case 'any':
      return 'unknown';
    default:
      return 'string';
  }
}

const tidy = (text: string): string =>
  text
    .split('\n')
    .map((line) => line.replace(/^\s*\*?\s?/, '').trimEnd())
    .join(' ')
    .trim()
    .replace(/\\(['"])/g, '$1');

function descriptions(dts: string): { type: string; fields: Map<string, { text: string; required: boolean }> } {
  const type = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*export declare class/.exec(dts)?.[1] ?? '';
  const fields = new Map<string, { text: string; required: boolean }>();
  for (const match of dts.matchAll(/(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*)?^ {4}'(\w+)'(\??): /gm)) {
    fields.set(match[2] ?? '', { text: tidy(match[1] ?? ''), required: match[3] === '' });
  }
  return { type: tidy(type), fields };
}

const schema: Record<string, Record<string, { shape: Shape; required?: true; unlisted?: true }>> = {};
const docs: Record<string, { description: string; fields: Record<string, string> }> = {};
const lines: string[] = [
  '// Generated by scripts/generate-api.ts; do not edit, do not commit.',
  `import type { ${[...MACHINERY].join(', ')} } from '../../machinery/meta.ts';`,
  `export type { ${[...MACHINERY].join(', ')} };`,
];

const queue = [...ROOTS];
const seen = new Set(queue);
for (let model = queue.shift(); model !== undefined; model = queue.shift()) {
  const name = publicName(model);
  const js = readFileSync(join(modelsDir, `${model}.js`), 'utf8');
  const table = new RegExp(`${model}\\.attributeTypeMap = (\\[[\\s\\S]*?\\n\\]);`).exec(js)?.[1];
  if (table === undefined) throw new Error(`${model}: no attributeTypeMap in ${modelsDir}`);
  const attributes = JSON.parse(table) as Attribute[];
  const text = descriptions(readFileSync(join(modelsDir, `${model}.d.ts`), 'utf8'));

  schema[name] = {};
  docs[name] = { description: text.type, fields: {} };
  const body: string[] = [];
  const topLevel =
    attributes.some((attribute) => attribute.baseName === 'apiVersion') &&
    attributes.some((a) => a.baseName === 'metadata');
  for (const attribute of attributes) {
    if (NEWER_FIELDS[name]?.includes(attribute.baseName)) continue;
    let shape = shapeOf(attribute.type, attribute.format, `${name}.${attribute.baseName}`);
    for (
      let inner: Shape = shape;
      typeof inner !== 'string';
      inner = 'array' in inner ? inner.array : 'map' in inner ? inner.map : 'any'
    ) {
      if ('ref' in inner) {
        if (!seen.has(inner.ref)) queue.push(inner.ref);
        seen.add(inner.ref);
      }
    }
    const required = text.fields.get(attribute.name)?.required ?? false;
    shape = JSON.parse(JSON.stringify(shape), (key, value) =>
      key === 'ref' ? publicName(value as string) : value,
    ) as Shape;
    schema[name][attribute.baseName] = required ? { shape, required } : { shape };
    docs[name].fields[attribute.baseName] =
      OWN_DESCRIPTIONS[`${name}.${attribute.baseName}`] ?? text.fields.get(attribute.name)?.text ?? '';
    const mandatory = required || (topLevel && ['apiVersion', 'kind', 'metadata'].includes(attribute.baseName));
    const key = /^\w+$/.test(attribute.baseName) ? attribute.baseName : `'${attribute.baseName}'`;
    body.push(`  ${key}${mandatory ? '' : '?'}: ${tsType(shape)};`);
  }
  for (const [field, { shape, description }] of Object.entries(OWN_FIELDS[name] ?? {})) {
    schema[name][field] = { shape };
    docs[name].fields[field] = description;
    body.push(`  ${field}?: ${tsType(shape)};`);
  }
  if (!MACHINERY.has(name)) lines.push(`export interface ${name} {\n${body.join('\n')}\n}`);
}

/** The fields that objects of every kind have. types.ts declares them as required. */
const TOP_LEVEL: (typeof OWN_TYPES)[string]['fields'] = {
  apiVersion: { shape: 'string', description: docs['Pod']?.fields['apiVersion'] ?? '' },
  kind: { shape: 'string', description: docs['Pod']?.fields['kind'] ?? '' },
  metadata: { shape: { ref: 'ObjectMeta' }, description: docs['Pod']?.fields['metadata'] ?? '' },
};

for (const [name, own] of Object.entries({ ...OWN_TYPES, ...RECORD_TYPES, ...METRICS_TYPES })) {
  schema[name] = own.extends === undefined ? {} : { ...schema[own.extends] };
  docs[name] = {
    description: own.description,
    fields: own.extends === undefined ? {} : { ...docs[own.extends]?.fields },
  };
  const body: string[] = [];
  const fields = { ...(own.kind ? TOP_LEVEL : {}), ...own.fields };
  for (const [field, { shape, required, description }] of Object.entries(fields)) {
    schema[name][field] = required ? { shape, required } : { shape };
    docs[name].fields[field] = description;
    body.push(`  ${field}${required || field in TOP_LEVEL ? '' : '?'}: ${tsType(shape)};`);
  }
  for (const field of own.unlisted ?? []) {
    schema[name][field] = { ...(schema[name][field] ?? { shape: 'any' }), unlisted: true };
    delete docs[name].fields[field];
  }
  const base = own.extends === undefined ? '' : ` extends ${own.extends}`;
  lines.push(`export interface ${name}${base} {\n${body.join('\n')}\n}`);
}

mkdirSync(outDir, { recursive: true });
writeFileSync(join(outDir, 'types.ts'), `${lines.join('\n')}\n`);
writeFileSync(join(outDir, 'schema.json'), JSON.stringify(schema));
writeFileSync(join(outDir, 'docs.json'), JSON.stringify(docs));
console.log(`generated ${Object.keys(schema).length} types in src/api/generated`);
