/**
 * Determines how server-side apply merges the fields of the served kinds. Combines the field table, the merge keys of strategic merge
 * patch, and the lists in this file. The OpenAPI documents contain the keys of lists as x-kubernetes-list-map-keys.
 * Source: the listMapKey, structType and mapType markers of the types of v1.33.
 */
import type { FieldType } from '../machinery/field-ownership/typed-value.ts';
import type { JsonObject } from '../machinery/json-value.ts';
import { strategyFor } from './patch-strategy.ts';
import { type Shape, schemaTypes } from './schema.ts';

/** The keys that identify an element of a list, for lists in which the merge key alone is not enough. Indexed by `Type.field`. */
export const listMapKeys: Readonly<Record<string, readonly string[]>> = {
  'Container.ports': ['containerPort', 'protocol'],
  'DeferContainer.ports': ['containerPort', 'protocol'],
  'EphemeralContainer.ports': ['containerPort', 'protocol'],
  'PodSpec.topologySpreadConstraints': ['topologyKey', 'whenUnsatisfiable'],
  'ServiceSpec.ports': ['port', 'protocol'],
};

/** The default value of a key, for elements that lack the key. */
const keyDefaults: JsonObject = { protocol: 'TCP' };

const atomicTypes: ReadonlySet<string> = new Set([
  'ConfigMapKeySelector',
  'LabelSelector',
  'LocalObjectReference',
  'NodeSelector',
  'NodeSelectorTerm',
  'ObjectFieldSelector',
  'ObjectReference',
  'OwnerReference',
  'ResourceFieldSelector',
  'SecretKeySelector',
  'SecretReference',
  'TypedLocalObjectReference',
]);

const atomicMaps: ReadonlySet<string> = new Set(['PodSpec.nodeSelector', 'ServiceSpec.selector']);

const atomic: FieldType = { kind: 'atomic' };
const structs = new Map<string, FieldType>();

/** Returns how a type in the generated schema is merged. Throws Error if there is no such type. */
export function fieldTypeOf(typeName: string): FieldType {
  const existing = structs.get(typeName);
  if (existing !== undefined) return existing;
  const table = schemaTypes[typeName];
  if (table === undefined) throw new Error(`type ${typeName} is not in the field table`);
  const fields = new Map<string, FieldType>();
  const type: FieldType = {
    kind: 'struct',
    field(name) {
      const known = fields.get(name);
      if (known !== undefined || !Object.hasOwn(table, name)) return known;
      const made = shapeType(table[name]?.shape ?? 'any', typeName, name);
      fields.set(name, made);
      return made;
    },
  };
  structs.set(typeName, type);
  return type;
}

const structOrAtomic = (ref: string): FieldType => (atomicTypes.has(ref) ? atomic : fieldTypeOf(ref));

function shapeType(shape: Shape, typeName: string, name: string): FieldType {
  const key = `${typeName}.${name}`;
  if (typeof shape !== 'object') return atomic;
  if ('ref' in shape) return structOrAtomic(shape.ref);
  if ('map' in shape) return atomicMaps.has(key) ? atomic : { kind: 'map', values: shapeType(shape.map, typeName, '') };
  const { strategy, mergeKey } = strategyFor(typeName)(name) ?? {};
  if (strategy === undefined || !strategy.startsWith('merge')) return atomic;
  if (mergeKey === undefined) return { kind: 'set' };
  const keys = listMapKeys[key] ?? [mergeKey];
  const items = typeof shape.array === 'object' && 'ref' in shape.array ? structOrAtomic(shape.array.ref) : atomic;
  const defaults = Object.fromEntries(Object.entries(keyDefaults).filter(([each]) => keys.includes(each)));
  return { kind: 'listMap', keys, defaults, items };
}
