import { type FieldFacts, jsonFields, jsonForms, type Scalar, typeFacts } from '../../api/facts/facts.ts';
import type { KindDefinition } from '../../api/kind.ts';
import { META_PREFIX, SCALAR_COMPONENTS } from './names.ts';

export type Descriptions = Readonly<Record<string, { description: string; fields: Readonly<Record<string, string>> }>>;
export type Schema = Record<string, unknown>;

export const componentRef = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });

const SCALARS: Readonly<Record<Scalar, Schema>> = {
  string: { type: 'string' },
  bool: { type: 'boolean' },
  int32: { type: 'integer', format: 'int32' },
  int64: { type: 'integer', format: 'int64' },
  double: { type: 'number', format: 'double' },
  bytes: { type: 'string', format: 'byte' },
  any: {},
};

/**
 * Returns the schema of a value of the field or, if the field is a list or map, of an element. Calls `uses` with the type to which the
 * schema refers.
 */
function elementSchema({ ref, scalar = 'any' }: FieldFacts, uses: (type: string) => void): Schema {
  if (ref === undefined) return { ...SCALARS[scalar] };
  const items = typeFacts(ref)?.items;
  if (items !== undefined) return fieldSchema(items, uses);
  uses(ref);
  return componentRef(ref);
}

/** The values that Go gives to absent fields. */
const ZERO_VALUES: Readonly<Partial<Record<Scalar, unknown>>> = {
  string: '',
  bool: false,
  int32: 0,
  int64: 0,
  double: 0,
};

/**
 * Returns the default of a value that Go always writes. As in upstream, a struct is {}, and a type with a JSON form of its own has no
 * default.
 */
function zeroValue({ ref, scalar = 'any' }: FieldFacts): unknown {
  if (ref === undefined) return ZERO_VALUES[scalar];
  return jsonForms.has(ref) || typeFacts(ref)?.items !== undefined ? undefined : {};
}

/** Omits annotations that are undefined. OpenAPI v3 ignores properties next to a $ref, so the reference is wrapped in allOf. */
function annotated(schema: Schema, annotations: Schema): Schema {
  const given = Object.entries(annotations).filter(([, value]) => value !== undefined);
  if (given.length === 0) return schema;
  return { ...Object.fromEntries(given), ...('$ref' in schema ? { allOf: [schema] } : schema) };
}

function fieldSchema(field: FieldFacts, uses: (type: string) => void): Schema {
  const element = elementSchema(field, uses);
  if (field.container === undefined) return element;
  const inside = annotated(element, { default: zeroValue(field) });
  return field.container === 'list'
    ? { type: 'array', items: inside }
    : { type: 'object', additionalProperties: inside };
}

/** Describes how patches and server-side apply merge the field. As in upstream, omits extensions without a value in the facts. */
function extensions({ atomic, listType, mapKeys, mergeKey, patchStrategy }: FieldFacts): Schema {
  return {
    ...(atomic ? { 'x-kubernetes-map-type': 'atomic' } : {}),
    ...(listType === undefined ? {} : { 'x-kubernetes-list-type': listType }),
    ...(mapKeys === undefined ? {} : { 'x-kubernetes-list-map-keys': mapKeys }),
    ...(mergeKey === undefined ? {} : { 'x-kubernetes-patch-merge-key': mergeKey }),
    ...(patchStrategy === undefined ? {} : { 'x-kubernetes-patch-strategy': patchStrategy }),
  };
}

/** Source: openapi-gen of k8s.io/kube-openapi. */
function defaultOf(field: FieldFacts): unknown {
  if (field.default !== undefined) return field.default;
  if (field.container !== undefined || field.pointer || (field.omitempty && field.ref === undefined)) return undefined;
  return zeroValue(field);
}

function propertySchema(field: FieldFacts, text: string, uses: (type: string) => void): Schema {
  const description = text === '' ? undefined : text;
  return annotated(fieldSchema(field, uses), { description, default: defaultOf(field), ...extensions(field) });
}

function typeSchema(type: string, descriptions: Descriptions, uses: (type: string) => void): Schema {
  const listed = [...jsonFields(type).values()].filter(({ unlisted }) => !unlisted);
  const required = listed.filter((field) => field.required).map(({ json }) => json);
  const { description = '', fields = {} } = descriptions[type] ?? {};
  return {
    ...(description === '' ? {} : { description }),
    type: 'object',
    ...(required.length === 0 ? {} : { required }),
    properties: Object.fromEntries(
      listed.map((field) => [field.json, propertySchema(field, fields[field.json] ?? '', uses)]),
    ),
    ...(typeFacts(type)?.atomic === true ? { 'x-kubernetes-map-type': 'atomic' } : {}),
  };
}

export const groupVersionKind = (of: { group: string; version: string; kind: string }) => ({
  group: of.group,
  version: of.version,
  kind: of.kind,
});

const GVK = 'x-kubernetes-group-version-kind';

export const listComponentName = (kind: KindDefinition): string => `${kind.schema}List`;

function listSchema(kind: KindDefinition): Schema {
  return {
    description: `${kind.kind}List is a list of ${kind.plural}.`,
    type: 'object',
    required: ['items'],
    properties: {
      apiVersion: { type: 'string' },
      items: { type: 'array', items: componentRef(kind.schema) },
      kind: { type: 'string' },
      metadata: { allOf: [componentRef(`${META_PREFIX}.ListMeta`)] },
    },
    [GVK]: [{ ...groupVersionKind(kind), kind: `${kind.kind}List` }],
  };
}

/** Returns all schemas to which the paths of the kinds refer, directly or through other schemas, in alphabetical order. */
export function componentSchemas(kinds: readonly KindDefinition[], descriptions: Descriptions): Record<string, Schema> {
  const schemas: Record<string, Schema> = {};
  const queue: string[] = ['Status', 'DeleteOptions', 'ListMeta'].map((name) => `${META_PREFIX}.${name}`);
  const uses = (type: string): void => void queue.push(type);
  for (const kind of kinds) {
    uses(kind.schema);
    for (const { bodyKind } of Object.values(kind.subresources)) if (bodyKind !== undefined) uses(bodyKind.schema);
  }
  const seen = new Set<string>();
  for (let type = queue.shift(); type !== undefined; type = queue.shift()) {
    if (seen.has(type)) continue;
    seen.add(type);
    schemas[type] = { ...(SCALAR_COMPONENTS.get(type) ?? typeSchema(type, descriptions, uses)) };
  }
  const mark = (name: string, of: { group: string; version: string; kind: string }): void => {
    const schema = schemas[name];
    if (schema !== undefined) schema[GVK] = [groupVersionKind(of)];
  };
  mark(`${META_PREFIX}.Status`, { group: '', version: 'v1', kind: 'Status' });
  mark(`${META_PREFIX}.DeleteOptions`, { group: '', version: 'v1', kind: 'DeleteOptions' });
  for (const kind of kinds) {
    mark(kind.schema, kind);
    for (const { bodyKind } of Object.values(kind.subresources)) {
      if (bodyKind !== undefined) mark(bodyKind.schema, bodyKind);
    }
    if (kind.createOnly === undefined) schemas[listComponentName(kind)] = listSchema(kind);
  }
  return Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1)));
}
