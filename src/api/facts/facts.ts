/**
 * The facts about the types of the API: fields, names in JSON, numbers in protobuf, list types, patch strategies. Everything that
 * depends on the shape of a type reads them here.
 *
 * facts.json contains the types of Kubernetes v1.33; scripts/facts/compile.ts compiles it from upstream's sources. own.ts contains
 * lifepod's own types and fields in the same form. The form is text, which takes little memory: a type is parsed when it is first used.
 * Types are named as in upstream's OpenAPI documents, such as io.k8s.api.core.v1.Pod.
 *
 * A package has its path (the start of the names of its types), its group, version and kinds, the structs that server-side apply
 * replaces as a whole (`atomic`), and its types. Each field of a type is a line of words:
 *
 *   NAME NUMBER TYPE WORDS…       containers 2 []Container list=map keys=name patch=merge merge=name
 *
 *   NAME     the name in JSON, followed by `?` if Go omits empty values; `...` for an embedded struct, whose fields belong to the type
 *            itself in JSON but not in protobuf; `[]` for the only field of a type that is a list in JSON and a message in protobuf
 *   NUMBER   the field number in protobuf; 0 for a field that protobuf does not have
 *   TYPE     a scalar, a type of the package, or the key of a package with a type of it, such as meta.v1.ObjectMeta; after `[]` for a
 *            list, `{}` for a map with strings as keys, or `*` for a pointer
 *   WORDS    optional and required (for OpenAPI, where they do not follow from NAME), list=TYPE, keys=NAMES, patch=STRATEGY,
 *            merge=KEY, atomic, default=JSON, go=NAME (Go's own type of the scalar), unlisted
 */
import type { JsonValue } from '../../machinery/json-value.ts';
import factsOfKubernetes from './facts.json' with { type: 'json' };
import { ownFacts } from './own.ts';

export type Scalar = 'string' | 'bool' | 'int32' | 'int64' | 'double' | 'bytes' | 'any';

/** How the value of a type with a JSON form of its own is written. `raw`: as any JSON value. */
export type JsonForm = 'time' | 'microTime' | 'duration' | 'quantity' | 'intOrString' | 'raw';

export interface FieldFacts {
  /** The name in JSON; empty if `inline` is set. */
  json: string;
  /** The field number in protobuf; 0 if protobuf does not have the field. */
  number: number;
  /** Whether the value is a list of, or a map from strings to, values of the type. */
  container?: 'list' | 'map';
  /** The scalar type; undefined if `ref` is set. */
  scalar?: Scalar;
  /** The full name of the type; undefined if `scalar` is set. */
  ref?: string;
  /** Whether Go distinguishes an absent value from an empty one. */
  pointer: boolean;
  /** Whether the fields of the type `ref` belong to this type in JSON. In protobuf they are a message of their own. */
  inline: boolean;
  /** Whether Go omits empty values in JSON. */
  omitempty: boolean;
  /** Whether OpenAPI lists the field as required. */
  required: boolean;
  listType?: 'atomic' | 'set' | 'map';
  /** The fields that identify an element of a list of listType map. */
  mapKeys?: readonly string[];
  patchStrategy?: string;
  mergeKey?: string;
  /** Whether server-side apply replaces the map or struct as a whole. */
  atomic: boolean;
  default?: JsonValue;
  /** The name of a Go type of its own for a scalar, with its package, such as v1.PodPhase. */
  goName?: string;
  /** Whether OpenAPI omits the field, because validation always rejects it. */
  unlisted: boolean;
}

export interface TypeFacts {
  name: string;
  fields: readonly FieldFacts[];
  /** For a type that is a list in JSON and a message in protobuf: the field of the message. `fields` is empty. */
  items?: FieldFacts;
  /** Whether server-side apply replaces values of the type as a whole. */
  atomic: boolean;
}

/** Types in the form that is described above. */
export interface PackageFacts {
  path: string;
  group?: string;
  version?: string;
  /** The names of the kinds, separated by spaces. */
  kinds?: string;
  atomic?: string;
  types: Readonly<Record<string, readonly string[]>>;
}

export const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';

/** The types with a JSON form of their own. They have no fields in JSON, and typeFacts() does not know them. */
export const jsonForms: ReadonlyMap<string, JsonForm> = new Map([
  [`${META}.Time`, 'time'],
  [`${META}.MicroTime`, 'microTime'],
  [`${META}.Duration`, 'duration'],
  [`${META}.FieldsV1`, 'raw'],
  ['io.k8s.apimachinery.pkg.api.resource.Quantity', 'quantity'],
  ['io.k8s.apimachinery.pkg.util.intstr.IntOrString', 'intOrString'],
  ['io.k8s.apimachinery.pkg.runtime.RawExtension', 'raw'],
]);

const SCALARS: ReadonlySet<string> = new Set(['string', 'bool', 'int32', 'int64', 'double', 'bytes', 'any']);

const upstream: Readonly<Record<string, PackageFacts>> = factsOfKubernetes;

/** The packages by the key that lines use. */
const packages = new Map<string, PackageFacts>([...Object.entries(upstream), ...Object.entries(ownFacts)]);
for (const [key, own] of Object.entries(ownFacts)) {
  const extended = upstream[key];
  if (extended !== undefined) packages.set(key, { ...extended, types: extendedTypes(extended.types, own.types) });
}
const byPath = new Map([...packages.values()].map((each) => [each.path, each]));
const kindTypes = new Map<string, string>();
for (const { path, group, version, kinds } of packages.values())
  for (const kind of kinds?.split(' ') ?? []) kindTypes.set(`${group}/${version}/${kind}`, `${path}.${kind}`);

/** Adds own types, and own fields at the end of types that both have. */
function extendedTypes(types: PackageFacts['types'], own: PackageFacts['types']): PackageFacts['types'] {
  const extended = { ...types };
  for (const [name, lines] of Object.entries(own)) extended[name] = [...(types[name] ?? []), ...lines];
  return extended;
}

function fullName(type: string, { path }: PackageFacts): string {
  const dot = type.lastIndexOf('.');
  if (dot < 0) return `${path}.${type}`;
  const other = packages.get(type.slice(0, dot));
  if (other === undefined) throw new Error(`no package of the facts has the type ${type}`);
  return `${other.path}${type.slice(dot)}`;
}

function parseType(text: string, home: PackageFacts): Pick<FieldFacts, 'container' | 'scalar' | 'ref' | 'pointer'> {
  const pointer = text.startsWith('*');
  const container = text.startsWith('[]') ? 'list' : text.startsWith('{}') ? 'map' : undefined;
  const type = text.replace(/^(\*|\[\]|\{\})/, '');
  return {
    pointer,
    ...(container === undefined ? {} : { container }),
    ...(SCALARS.has(type) ? { scalar: type as Scalar } : { ref: fullName(type, home) }),
  };
}

function parseLine(line: string, home: PackageFacts): FieldFacts {
  const [name = '', number, type = '', ...words] = line.split(' ');
  const inline = name === '...';
  const omitempty = name.endsWith('?');
  const field: FieldFacts = {
    json: inline ? '' : name.replace('?', ''),
    number: Number(number),
    ...parseType(type, home),
    inline,
    omitempty,
    required: !inline && (omitempty ? words.includes('required') : !words.includes('optional')),
    atomic: words.includes('atomic'),
    unlisted: words.includes('unlisted'),
  };
  for (const word of words) {
    const equals = word.indexOf('=');
    const value = word.slice(equals + 1);
    switch (word.slice(0, Math.max(equals, 0))) {
      case 'list':
        field.listType = value as 'atomic' | 'set' | 'map';
        break;
      case 'keys':
        field.mapKeys = value.split(',');
        break;
      case 'patch':
        field.patchStrategy = value;
        break;
      case 'merge':
        field.mergeKey = value;
        break;
      case 'default':
        field.default = JSON.parse(value) as JsonValue;
        break;
      case 'go':
        field.goName = value;
    }
  }
  return field;
}

const parsed = new Map<string, TypeFacts>();

/** Returns the facts about the type with the full name; undefined if there are none. */
export function typeFacts(name: string): TypeFacts | undefined {
  const known = parsed.get(name);
  if (known !== undefined) return known;
  const dot = name.lastIndexOf('.');
  const home = byPath.get(name.slice(0, dot));
  const short = name.slice(dot + 1);
  if (home === undefined || !Object.hasOwn(home.types, short)) return undefined;
  const fields = (home.types[short] ?? []).map((line) => parseLine(line, home));
  const atomic = home.atomic?.split(' ').includes(short) ?? false;
  const [first] = fields;
  const type: TypeFacts = first?.json === '[]' ? { name, fields: [], items: first, atomic } : { name, fields, atomic };
  parsed.set(name, type);
  return type;
}

const flattened = new Map<string, ReadonlyMap<string, FieldFacts>>();

/**
 * Returns the fields that a type has in JSON by name, including those of embedded structs. A field of the type itself hides a field of
 * an embedded struct. Throws an Error if there are no facts about the type.
 */
export function jsonFields(name: string): ReadonlyMap<string, FieldFacts> {
  const known = flattened.get(name);
  if (known !== undefined) return known;
  const type = typeFacts(name);
  if (type === undefined) throw new Error(`there are no facts about the type ${name}`);
  const own = new Map(type.fields.map((field) => [field.json, field]));
  const fields = new Map<string, FieldFacts>();
  for (const field of type.fields) {
    if (!field.inline) fields.set(field.json, field);
    else for (const [json, inner] of jsonFields(field.ref ?? '')) if (!own.has(json)) fields.set(json, inner);
  }
  flattened.set(name, fields);
  return fields;
}

/** Returns the full names of all types, sorted by package. */
export const typeNames = (): string[] =>
  [...packages.values()].flatMap(({ path, types }) => Object.keys(types).map((type) => `${path}.${type}`));

/**
 * Returns the full name of the type of a kind; undefined if there are no facts about the kind. The kinds of meta/v1, such as
 * DeleteOptions, belong to every group and version.
 */
export const typeOfKind = (group: string, version: string, kind: string): string | undefined =>
  kindTypes.get(`${group}/${version}/${kind}`) ?? kindTypes.get(`meta.k8s.io/v1/${kind}`);
