/**
 * Compiles src/api/facts/facts.json from checkouts of the tag kubernetes-1.33.0 of kubernetes/api and kubernetes/apimachinery:
 *
 * node scripts/facts/compile.ts API_FOLDER APIMACHINERY_FOLDER
 *
 * Reads the struct tags, types and markers of the Go files and the messages of the generated.proto files, and fails where the two disagree.
 * Only facts are written: names, numbers, types and markers, no descriptions. src/api/facts/facts.ts describes the form of the file.
 */
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type GoField, type GoPackage, type GoType, readGoPackage } from './go-source.ts';
import { type ProtoField, readMessages } from './proto-source.ts';

const [apiFolder, machineryFolder] = process.argv.slice(2);
if (apiFolder === undefined || machineryFolder === undefined)
  throw new Error('usage: node scripts/facts/compile.ts API_FOLDER APIMACHINERY_FOLDER');

/** The facts omit types with a JSON form of their own, which src/api/facts/facts.ts lists, and types that only Go code uses. */
const LEFT_OUT = new Set([
  'Duration',
  'FieldsV1',
  'IntOrString',
  'InternalEvent',
  'MicroTime',
  'Quantity',
  'QuantityValue',
  'RawExtension',
  'Time',
  'Timestamp',
  'Unknown',
]);

interface Source extends GoPackage {
  key: string;
  messages: ReadonlyMap<string, ReadonlyMap<number, ProtoField>>;
}

interface PackageFacts {
  path: string;
  group?: string;
  version?: string;
  kinds?: string;
  atomic?: string;
  types: Record<string, string[]>;
}

const folders = (parent: string): string[] =>
  readdirSync(parent, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);

const sources = new Map<string, Source>();

function readSource(folder: string, path: string, key: string): void {
  const proto = join(folder, 'generated.proto');
  const messages = existsSync(proto) ? readMessages(proto) : new Map<string, Map<number, ProtoField>>();
  sources.set(path, { ...readGoPackage(folder, path), key, messages });
}

for (const group of folders(apiFolder)) {
  for (const version of folders(join(apiFolder, group))) {
    const folder = join(apiFolder, group, version);
    if (existsSync(join(folder, 'generated.proto')))
      readSource(folder, `k8s.io/api/${group}/${version}`, `${group}.${version}`);
  }
}
for (const [folder, key] of [
  ['pkg/apis/meta/v1', 'meta.v1'],
  ['pkg/apis/meta/v1beta1', 'meta.v1beta1'],
  ['pkg/api/resource', 'resource'],
  ['pkg/util/intstr', 'intstr'],
  ['pkg/runtime', 'runtime'],
  ['pkg/types', 'types'],
] as const) {
  readSource(join(machineryFolder, folder), `k8s.io/apimachinery/${folder}`, key);
}

/** `base` is a scalar or the name of another type. `goName` is the name of a Go type that is declared as `base`. */
interface Resolved {
  base: string;
  pointer: boolean;
  /** `[]` for lists, `{}` for maps; empty for single values. */
  container: string;
  goName?: string;
}

const SCALARS: Readonly<Record<string, string>> = {
  string: 'string',
  bool: 'bool',
  int: 'int64',
  int32: 'int32',
  int64: 'int64',
  float64: 'double',
  byte: 'byte',
  any: 'any',
};

/**
 * Returns the meaning of a type that is written in `source`. Names of types are relative to the package `user`. Throws if the type is not
 * found, or is a list or map of lists or maps.
 */
function resolve(type: string, source: Source, user: Source): Resolved {
  if (type.startsWith('*')) return { ...resolve(type.slice(1), source, user), pointer: true };
  if (type === '[]byte') return { base: 'bytes', pointer: false, container: '' };
  const inner = /^\[\](.+)$/.exec(type)?.[1] ?? /^map\[[\w.]+\](.+)$/.exec(type)?.[1];
  if (inner !== undefined) {
    const element = resolve(inner, source, user);
    if (element.container !== '') throw new Error(`${source.path}: ${type} has a list or map in a list or map`);
    return { ...element, pointer: false, container: type.startsWith('[]') ? '[]' : '{}' };
  }
  const scalar = SCALARS[type];
  if (scalar !== undefined) return { base: scalar, pointer: false, container: '' };
  const [alias, name] = type.includes('.') ? type.split('.') : [undefined, type];
  const home = alias === undefined ? source : sources.get(source.imports.get(alias) ?? '');
  const declared = home?.types.get(name ?? '');
  if (home === undefined || declared === undefined) throw new Error(`${source.path}: cannot find the type ${type}`);
  if (declared.underlying?.startsWith('= ')) return resolve(declared.underlying.slice(2), home, user);
  const isMessage = home.messages.has(name ?? '') || declared.fields !== undefined;
  if (isMessage) return { base: home === user ? `${name}` : `${home.key}.${name}`, pointer: false, container: '' };
  const underlying = resolve(declared.underlying ?? '', home, user);
  if (underlying.container !== '') return underlying;
  return { ...underlying, goName: `${home.path.replace(/^.*\//, '')}.${name}` };
}

const marker = (markers: readonly string[], name: string): string | undefined =>
  markers.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1);

/** Returns the words at the end of a field's line in the facts, which come from the field's markers and tags. */
function flags(source: Source, field: GoField, { goName }: Resolved): string[] {
  const { markers, tags } = field;
  const keys = markers.filter((each) => each.startsWith('listMapKey=')).map((each) => each.slice('listMapKey='.length));
  const structType = marker(markers, 'structType') ?? marker(markers, 'mapType');
  const value = marker(markers, 'default');
  const constant = /^ref\((\w+)\)$/.exec(value ?? '')?.[1];
  const word = (name: string, value: string | undefined): string[] => (value === undefined ? [] : [`${name}=${value}`]);
  return [
    ...word('list', marker(markers, 'listType')),
    ...word('keys', keys.length === 0 ? undefined : keys.join(',')),
    ...word('patch', tags.get('patchStrategy')),
    ...word('merge', tags.get('patchMergeKey')),
    ...(structType === 'atomic' || structType === 'granular' ? [structType] : []),
    ...word('default', constant === undefined ? value : source.constants.get(constant)),
    ...word('go', goName),
  ];
}

const PROTO_SCALARS: Readonly<Record<string, readonly string[]>> = {
  string: ['string'],
  bool: ['bool'],
  int32: ['int32'],
  int64: ['int64'],
  double: ['double'],
  bytes: ['bytes'],
};

function compareWithMessage(
  where: string,
  resolved: Resolved,
  number: number,
  message: ReadonlyMap<number, ProtoField>,
): void {
  const proto = message.get(number);
  const fits =
    proto !== undefined &&
    proto.repeated === (resolved.container === '[]') &&
    proto.map === (resolved.container === '{}') &&
    (PROTO_SCALARS[resolved.base]?.includes(proto.type) ??
      proto.type.split('.').at(-1) === resolved.base.split('.').at(-1));
  if (!fits) throw new Error(`${where}: Go has ${JSON.stringify(resolved)}, protobuf ${JSON.stringify(proto)}`);
}

function fieldLine(source: Source, user: Source, typeName: string, field: GoField): string | undefined {
  const [json = '', ...options] = (field.tags.get('json') ?? '').split(',');
  if (json === '-' || !field.tags.has('json')) return undefined;
  const number = Number(field.tags.get('protobuf')?.split(',')[1] ?? 0);
  const message = user.messages.get(typeName);
  const resolved = resolve(field.type, source, user);
  if (number !== 0 && message !== undefined)
    compareWithMessage(`${user.path}.${typeName}.${json}`, resolved, number, message);
  const type = `${resolved.pointer ? '*' : ''}${resolved.container}${resolved.base}`;
  if (json === '' && (options.includes('inline') || field.embedded)) return `... ${number} ${type}`;
  if (json === '') throw new Error(`${source.path}.${typeName}.${field.name} has no name in JSON`);
  const omitempty = options.includes('omitempty');
  // `optional` and `required` mark the fields whose requirement in OpenAPI does not follow from omitempty.
  const optional = !omitempty && field.markers.includes('optional') ? ['optional'] : [];
  const required = omitempty && field.markers.includes('required') ? ['required'] : [];
  return [
    `${json}${omitempty ? '?' : ''}`,
    number,
    type,
    ...optional,
    ...required,
    ...flags(source, field, resolved),
  ].join(' ');
}

/**
 * Returns the fields and the package of the struct that a declaration such as `type List metav1.List` copies; else those of the type
 * itself. The fields are undefined if the type is not a struct.
 */
function structOf(source: Source, type: GoType): { source: Source; fields: GoField[] | undefined } {
  const [, alias, name] = /^(\w+)\.(\w+)$/.exec(type.underlying ?? '') ?? [];
  const home = sources.get(source.imports.get(alias ?? '') ?? '');
  const copied = home?.types.get(name ?? '')?.fields;
  return home !== undefined && copied !== undefined
    ? { source: home, fields: copied }
    : { source, fields: type.fields };
}

/** Returns undefined if the type does not belong to the API. Throws if Go lacks a field of the message. */
function typeLines(source: Source, name: string, type: GoType): string[] | undefined {
  const message = source.messages.get(name);
  if (type.underlying?.startsWith('[]') && message !== undefined) return [`[] 1 ${type.underlying}`];
  const struct = structOf(source, type);
  if (struct.fields === undefined) return undefined;
  const lines = struct.fields
    .map((field) => fieldLine(struct.source, source, name, field))
    .filter((line) => line !== undefined);
  if (message === undefined && lines.length === 0) return undefined;
  const numbers = new Set(lines.map((line) => Number(line.split(' ')[1])));
  for (const { number, name: lost } of message?.values() ?? [])
    if (!numbers.has(number)) throw new Error(`${source.path}.${name}: Go has no field ${number} (${lost})`);
  return lines;
}

const packages: Record<string, PackageFacts> = {};
for (const source of [...sources.values()].sort((a, b) => (a.key < b.key ? -1 : 1))) {
  if (source.key === 'types') continue;
  const types: Record<string, string[]> = {};
  const atomic: string[] = [];
  for (const [name, type] of [...source.types].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const lines = LEFT_OUT.has(name) || source.key === 'runtime' ? undefined : typeLines(source, name, type);
    if (lines === undefined) continue;
    types[name] = lines;
    if (marker(type.markers, 'structType') === 'atomic') atomic.push(name);
  }
  const kinds = source.kinds.filter((kind) => types[kind] !== undefined).sort();
  packages[source.key] = {
    path: `io.${source.path.replace(/^k8s\.io\//, 'k8s.').replaceAll('/', '.')}`,
    ...(source.group === undefined || kinds.length === 0
      ? {}
      : { group: source.group, version: source.path.replace(/^.*\//, '') }),
    ...(kinds.length === 0 ? {} : { kinds: kinds.join(' ') }),
    ...(atomic.length === 0 ? {} : { atomic: atomic.join(' ') }),
    types,
  };
}
const out = fileURLToPath(new URL('../../src/api/facts/facts.json', import.meta.url));
writeFileSync(out, `${JSON.stringify(packages, undefined, 1)}\n`);
