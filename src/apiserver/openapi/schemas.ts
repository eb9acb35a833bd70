/** Creates the OpenAPI v3 schemas of the types from the tables of fields and list keys, the descriptions and the patch strategies. */
import { listMapKeys } from '../../api/field-types.ts';
import type { KindDefinition } from '../../api/kind.ts';
import type { StrategyLookup } from '../../machinery/patch/strategic-merge-patch.ts';
import { componentName, META_PREFIX, SCALAR_COMPONENTS } from './names.ts';

export type Shape = string | { ref: string } | { array: Shape } | { map: Shape };
export type FieldTable = Readonly<
  Record<string, Readonly<Record<string, { shape: Shape; required?: boolean; unlisted?: boolean }>>>
>;
export type Descriptions = Readonly<Record<string, { description: string; fields: Readonly<Record<string, string>> }>>;
export type Schema = Record<string, unknown>;

export interface SchemaSources {
  fields: FieldTable;
  descriptions: Descriptions;
  /** Returns how strategic merge patch treats the fields of a type. */
  strategies(type: string): StrategyLookup;
}

export const componentRef = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });

const SCALARS: Readonly<Record<string, Schema>> = {
  string: { type: 'string' },
  integer: { type: 'integer' },
  number: { type: 'number', format: 'double' },
  boolean: { type: 'boolean' },
  bytes: { type: 'string', format: 'byte' },
};

function shapeSchema(shape: Shape, uses: (type: string) => void): Schema {
  if (typeof shape === 'string') {
    const component = SCALAR_COMPONENTS[shape];
    if (component === undefined) return { ...SCALARS[shape] };
    uses(shape);
    return componentRef(component.name);
  }
  if ('array' in shape) return { type: 'array', items: shapeSchema(shape.array, uses) };
  if ('map' in shape) return { type: 'object', additionalProperties: shapeSchema(shape.map, uses) };
  uses(shape.ref);
  return componentRef(componentName(shape.ref));
}

function listExtensions(type: string, field: string, lookup: StrategyLookup): Schema {
  const { strategy, mergeKey } = lookup(field) ?? {};
  if (strategy === undefined || !strategy.startsWith('merge')) return { 'x-kubernetes-list-type': 'atomic' };
  if (mergeKey === undefined) return { 'x-kubernetes-list-type': 'set', 'x-kubernetes-patch-strategy': strategy };
  return {
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': listMapKeys[`${type}.${field}`] ?? [mergeKey],
    'x-kubernetes-patch-merge-key': mergeKey,
    'x-kubernetes-patch-strategy': strategy,
  };
}

function propertySchema(type: string, field: string, sources: SchemaSources, uses: (type: string) => void): Schema {
  const shape = sources.fields[type]?.[field]?.shape ?? 'any';
  const text = sources.descriptions[type]?.fields[field] ?? '';
  const description = text === '' ? {} : { description: text };
  const lookup = sources.strategies(type);
  const schema = shapeSchema(shape, uses);
  if (typeof shape !== 'string' && 'array' in shape) {
    return { ...description, ...schema, ...listExtensions(type, field, lookup) };
  }
  const { strategy } = lookup(field) ?? {};
  const extensions = strategy === undefined ? {} : { 'x-kubernetes-patch-strategy': strategy };
  // OpenAPI v3 ignores properties next to a $ref, so the reference is wrapped in allOf.
  return '$ref' in schema
    ? { ...description, allOf: [schema], ...extensions }
    : { ...description, ...schema, ...extensions };
}

function typeSchema(type: string, sources: SchemaSources, uses: (type: string) => void): Schema {
  const fields = sources.fields[type];
  if (fields === undefined) throw new Error(`the field table has no type ${type}`);
  const listed = Object.keys(fields).filter((field) => fields[field]?.unlisted !== true);
  const required = listed.filter((field) => fields[field]?.required === true);
  const description = sources.descriptions[type]?.description ?? '';
  return {
    ...(description === '' ? {} : { description }),
    type: 'object',
    ...(required.length === 0 ? {} : { required }),
    properties: Object.fromEntries(listed.map((field) => [field, propertySchema(type, field, sources, uses)])),
  };
}

export const groupVersionKind = (of: { group: string; version: string; kind: string }) => ({
  group: of.group,
  version: of.version,
  kind: of.kind,
});

const GVK = 'x-kubernetes-group-version-kind';

export const listComponentName = (kind: KindDefinition): string => `${componentName(kind.schema)}List`;

function listSchema(kind: KindDefinition): Schema {
  return {
    description: `${kind.kind}List is a list of ${kind.plural}.`,
    type: 'object',
    required: ['items'],
    properties: {
      apiVersion: { type: 'string' },
      items: { type: 'array', items: componentRef(componentName(kind.schema)) },
      kind: { type: 'string' },
      metadata: { allOf: [componentRef(`${META_PREFIX}.ListMeta`)] },
    },
    [GVK]: [{ ...groupVersionKind(kind), kind: `${kind.kind}List` }],
  };
}

/** Returns all schemas to which the paths of the kinds refer, directly or through other schemas, sorted by name. */
export function componentSchemas(kinds: readonly KindDefinition[], sources: SchemaSources): Record<string, Schema> {
  const schemas: Record<string, Schema> = {};
  const queue: string[] = ['Status', 'DeleteOptions', 'ListMeta'];
  const uses = (type: string): void => void queue.push(type);
  for (const kind of kinds) {
    uses(kind.schema);
    for (const { bodyKind } of Object.values(kind.subresources)) if (bodyKind !== undefined) uses(bodyKind.schema);
  }
  const seen = new Set<string>();
  for (let type = queue.shift(); type !== undefined; type = queue.shift()) {
    if (seen.has(type)) continue;
    seen.add(type);
    const scalar = SCALAR_COMPONENTS[type];
    if (scalar !== undefined) schemas[scalar.name] = { ...scalar.schema };
    else schemas[componentName(type)] = typeSchema(type, sources, uses);
  }
  const mark = (name: string, of: { group: string; version: string; kind: string }): void => {
    const schema = schemas[name];
    if (schema !== undefined) schema[GVK] = [groupVersionKind(of)];
  };
  mark(`${META_PREFIX}.Status`, { group: '', version: 'v1', kind: 'Status' });
  mark(`${META_PREFIX}.DeleteOptions`, { group: '', version: 'v1', kind: 'DeleteOptions' });
  for (const kind of kinds) {
    mark(componentName(kind.schema), kind);
    for (const { bodyKind } of Object.values(kind.subresources)) {
      if (bodyKind !== undefined) mark(componentName(bodyKind.schema), bodyKind);
    }
    if (kind.createOnly !== true) schemas[listComponentName(kind)] = listSchema(kind);
  }
  return Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1)));
}
