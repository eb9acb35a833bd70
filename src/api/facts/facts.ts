/**
 * The facts about the types of the API: fields, names in JSON, numbers in protobuf, list types, patch strategies.
 *
 * facts.json contains the types of Kubernetes v1.33; scripts/facts/compile.ts compiles it from upstream's sources. own.ts contains
 * lifepod's own types and fields in the same form, and kinds that are added at run time bring theirs. The form (see field-line.ts) is text,
 * which takes little memory: a type is parsed when it is first used. Types are named as in upstream's OpenAPI documents, such as
 * io.k8s.api.core.v1.Pod.
 *
 * Invariants:
 *  1. A type of Kubernetes or of lifepod never changes: types that are added later have other names.
 *  2. A type is added twice only with the same lines, so that no kind changes the types of another kind.
 *  3. Values that perType() has derived from types are discarded when types are added or removed.
 */
import { jsonEqual } from '../../machinery/json-value.ts';
import factsOfKubernetes from './facts.json' with { type: 'json' };
import { type FieldFacts, parseLine } from './field-line.ts';
import { ownFacts } from './own.ts';

export type { FieldFacts, Scalar } from './field-line.ts';

/** How the value of a type with a JSON form of its own is written. `raw`: as any JSON value. */
export type JsonForm = 'time' | 'microTime' | 'duration' | 'quantity' | 'intOrString' | 'raw';

export interface TypeFacts {
  name: string;
  fields: readonly FieldFacts[];
  /** For a type that is a list in JSON and a message in protobuf: the field of the message. `fields` is empty. */
  items?: FieldFacts;
  /** Whether server-side apply replaces values of the type as a whole. */
  atomic: boolean;
}

/** The lines of the fields of types, by the name of the type in its package. */
export type TypeLines = Readonly<Record<string, readonly string[]>>;

export interface PackageFacts {
  /** The start of the full names of the types, such as io.k8s.api.core.v1. */
  path: string;
  group?: string;
  version?: string;
  /** The names of the kinds, separated by spaces. */
  kinds?: string;
  /** The names of the structs that server-side apply replaces as a whole, separated by spaces. */
  atomic?: string;
  types: TypeLines;
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

const upstream: Readonly<Record<string, PackageFacts>> = factsOfKubernetes;

/** By the key with which lines name a package, such as core.v1. */
const packages = new Map<string, PackageFacts>([...Object.entries(upstream), ...Object.entries(ownFacts)]);
for (const [key, own] of Object.entries(ownFacts)) {
  const extended = upstream[key];
  if (extended !== undefined) packages.set(key, { ...extended, types: extendedTypes(extended.types, own.types) });
}
const byPath = new Map([...packages.values()].map((each) => [each.path, each]));
const kindTypes = new Map<string, string>();
for (const { path, group, version, kinds } of packages.values())
  for (const kind of kinds?.split(' ') ?? []) kindTypes.set(`${group}/${version}/${kind}`, `${path}.${kind}`);

/** Returns `types` with the types of `own` added. A type that is in both has the fields of `own` at its end. */
function extendedTypes(types: TypeLines, own: TypeLines): TypeLines {
  const extended: Record<string, readonly string[]> = { ...types };
  for (const [name, lines] of Object.entries(own)) extended[name] = [...(types[name] ?? []), ...lines];
  return extended;
}

function fullName(type: string, path: string): string {
  const dot = type.lastIndexOf('.');
  if (dot < 0) return `${path}.${type}`;
  const other = packages.get(type.slice(0, dot));
  if (other === undefined) throw new Error(`no package of the facts has the type ${type}`);
  return `${other.path}${type.slice(dot)}`;
}

/** The types that kinds have brought, with the path of their package. Kinds of one package may bring the same type. */
let added: readonly { path: string; types: TypeLines }[] = [];

function linesOf(path: string, name: string): readonly string[] | undefined {
  const { types } =
    byPath.get(path) ?? added.find((each) => each.path === path && Object.hasOwn(each.types, name)) ?? {};
  return types !== undefined && Object.hasOwn(types, name) ? types[name] : undefined;
}

const caches = new Set<Map<string, unknown>>();

/**
 * Returns a function that computes a value from the name of a type once, and again after types were added or removed. A result of undefined
 * is not kept.
 */
export function perType<T>(compute: (type: string) => T): (type: string) => T {
  const cache = new Map<string, T>();
  caches.add(cache);
  return (type) => {
    const known = cache.get(type);
    if (known !== undefined) return known;
    const value = compute(type);
    if (value !== undefined) cache.set(type, value);
    return value;
  };
}

/**
 * Adds types to the package with the path, which must be none of Kubernetes or lifepod. Returns a function that removes them. Throws an
 * Error, and adds nothing, if a line cannot be parsed, refers to an unknown type, or has the number or the name of another field, or if the
 * package already has a type of the same name with other lines.
 */
export function addTypes(path: string, types: TypeLines): () => void {
  if (byPath.has(path)) throw new Error(`the types of the package ${path} cannot be changed`);
  const names = (type: string): string => fullName(type, path);
  for (const [type, lines] of Object.entries(types)) {
    const known = linesOf(path, type);
    if (known !== undefined && !jsonEqual(known, lines))
      throw new Error(
        `${path}.${type}: another kind has this type with other fields: give one of the types another name`,
      );
    checkFields(
      `${path}.${type}`,
      lines.map((line) => parseLine(line, names)),
      (ref) => Object.keys(types).some((each) => `${path}.${each}` === ref) || typeFacts(ref) !== undefined,
    );
  }
  const entry = { path, types };
  const change = (next: typeof added): void => {
    added = next;
    for (const cache of caches) cache.clear();
  };
  change([...added, entry]);
  return () => change(added.filter((each) => each !== entry));
}

function checkFields(type: string, fields: readonly FieldFacts[], isKnown: (ref: string) => boolean): void {
  const seen = new Set<string | number>();
  for (const { json, inline, number, scalar, ref = '' } of fields) {
    const name = `${type}.${json}`;
    if (!inline && json === '') throw new Error(`${name}: a field has no name`);
    if (!Number.isInteger(number) || number < 0) throw new Error(`${name}: the field number is not an integer`);
    if (scalar === undefined && !jsonForms.has(ref) && !isKnown(ref))
      throw new Error(`${name}: no type ${ref} is known`);
    for (const key of [...(number === 0 ? [] : [number]), ...(inline ? [] : [json])]) {
      if (seen.has(key)) throw new Error(`${name}: another field has the name or number ${key}`);
      seen.add(key);
    }
  }
}

/** Returns undefined if there are no facts about the type with the full name. */
export const typeFacts = perType((name: string): TypeFacts | undefined => {
  const dot = name.lastIndexOf('.');
  const [path, short] = [name.slice(0, Math.max(dot, 0)), name.slice(dot + 1)];
  const lines = linesOf(path, short);
  if (lines === undefined) return undefined;
  const fields = lines.map((line) => parseLine(line, (type) => fullName(type, path)));
  const atomic = byPath.get(path)?.atomic?.split(' ').includes(short) ?? false;
  const [first] = fields;
  return first?.json === '[]' ? { name, fields: [], items: first, atomic } : { name, fields, atomic };
});

/**
 * Returns the fields that a type has in JSON by name, including the fields of embedded structs. A field of the type itself hides a field of
 * an embedded struct. Throws an Error if there are no facts about the type.
 */
export const jsonFields = perType((name: string): ReadonlyMap<string, FieldFacts> => {
  const type = typeFacts(name);
  if (type === undefined) throw new Error(`there are no facts about the type ${name}`);
  const own = new Map(type.fields.map((field) => [field.json, field]));
  const fields = new Map<string, FieldFacts>();
  for (const field of type.fields) {
    if (!field.inline) fields.set(field.json, field);
    else for (const [json, inner] of jsonFields(field.ref ?? '')) if (!own.has(json)) fields.set(json, inner);
  }
  return fields;
});

/** Returns the name of the struct that the field, or each element of its list or map, is in JSON; undefined for other values. */
export const structOf = ({ ref }: FieldFacts): string | undefined => {
  const type = ref === undefined ? undefined : typeFacts(ref);
  return type === undefined || type.items !== undefined ? undefined : type.name;
};

export const typeNames = (): string[] =>
  [...packages.values()].flatMap(({ path, types }) => Object.keys(types).map((type) => `${path}.${type}`));

/** Returns the path of the package of a group and version that is added at run time, such as com.example.v1 for example.com/v1. */
export const packagePath = (group: string, version: string): string =>
  [...group.split('.').reverse(), version].filter((part) => part !== '').join('.');

/**
 * Returns the full name of the type of a kind; undefined if there are no facts about the kind. The kinds of meta/v1, such as DeleteOptions,
 * belong to every group and version.
 */
export function typeOfKind(group: string, version: string, kind: string): string | undefined {
  const known = kindTypes.get(`${group}/${version}/${kind}`);
  if (known !== undefined) return known;
  const name = `${packagePath(group, version)}.${kind}`;
  if (added.length > 0 && typeFacts(name) !== undefined) return name;
  return kindTypes.get(`meta.k8s.io/v1/${kind}`);
}
