/** Parses a Go package, as far as the API of Kubernetes uses Go's syntax. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface GoField {
  /** The name of the field in Go; the type's name for an embedded struct. */
  name: string;
  embedded: boolean;
  /** As written, such as `*metav1.Time`. */
  type: string;
  /** By key, such as json and protobuf. */
  tags: ReadonlyMap<string, string>;
  /** From the comment above the field, without the plus sign, such as `listType=map`. */
  markers: readonly string[];
}

export interface GoType {
  markers: readonly string[];
  /** Undefined for types other than structs. */
  fields?: GoField[];
  /** The right side of the declaration of a type that is not a struct. */
  underlying?: string;
}

export interface GoPackage {
  /** The import path, such as k8s.io/api/core/v1. */
  path: string;
  types: ReadonlyMap<string, GoType>;
  /** The import paths by the name that the package uses for them. */
  imports: ReadonlyMap<string, string>;
  /** As JSON; only constants that are strings. */
  constants: ReadonlyMap<string, string>;
  /** Undefined if the package does not belong to a group. */
  group: string | undefined;
  /** The types that the package registers as kinds of its group and version. */
  kinds: readonly string[];
}

const TYPE = /^type (\w+) (struct ?\{(\})?|.+)$/;
const FIELD = /^(?:(\w+)\s+)?([\w.*[\]{}]+)(?:\s+`([^`]*)`)?\s*(?:\/\/.*)?$/;

const tagsOf = (text: string): Map<string, string> =>
  new Map([...text.matchAll(/(\w+):"([^"]*)"/g)].map(([, key = '', value = '']) => [key, value]));

function fieldOf(line: string, markers: string[]): GoField {
  const [, name, type = '', tags = ''] = FIELD.exec(line.replace('interface{}', 'any')) ?? [];
  if (type === '') throw new Error(`cannot read the field: ${line}`);
  return {
    name: name ?? type.replace(/^.*\./, ''),
    embedded: name === undefined,
    type,
    tags: tagsOf(tags),
    markers,
  };
}

function readTypes(text: string, types: Map<string, GoType>): void {
  let struct: GoField[] | undefined;
  let markers: string[] = [];
  for (const raw of text.replace(/\/\*[\s\S]*?\*\//g, '').split('\n')) {
    const line = raw.trim();
    if (line.startsWith('//')) {
      const marker = /^\/\/ ?\+(\S.*)$/.exec(line)?.[1];
      if (marker !== undefined) markers.push(marker);
      continue;
    }
    if (struct === undefined) {
      const [, name, declared = '', empty] = TYPE.exec(raw) ?? [];
      if (name !== undefined && /^struct ?\{/.test(declared)) {
        const fields: GoField[] = [];
        types.set(name, { markers, fields });
        if (empty === undefined) struct = fields;
      } else if (name !== undefined) types.set(name, { markers, underlying: declared.replace(/\s*\/\/.*/, '') });
    } else if (raw.startsWith('}')) struct = undefined;
    // A field without tags does not exist in JSON.
    else if (line.includes('`')) struct.push(fieldOf(line, markers));
    markers = [];
  }
}

function readImports(text: string, imports: Map<string, string>): void {
  const block = /^import \(([\s\S]*?)^\)/m.exec(text)?.[1] ?? '';
  for (const [, name, path = ''] of block.matchAll(/^\s*(?:(\w+)\s+)?"([^"]+)"/gm))
    imports.set(name ?? path.replace(/^.*\//, ''), path);
}

function readConstants(text: string, constants: Map<string, string>): void {
  for (const [, name = '', value = ''] of text.matchAll(/^\s*(\w+)\s+\w+\s*=\s*("[^"]*")/gm))
    constants.set(name, value);
}

/** Generated files and tests declare no types of the API, so they are left out. */
export function readGoPackage(folder: string, path: string): GoPackage {
  const types = new Map<string, GoType>();
  const imports = new Map<string, string>();
  const constants = new Map<string, string>();
  let group: string | undefined;
  let kinds: string[] = [];
  for (const file of readdirSync(folder).filter((name) =>
    /^(?!zz_|generated|types_swagger).*(?<!_test)\.go$/.test(name),
  )) {
    const text = readFileSync(join(folder, file), 'utf8');
    readTypes(text, types);
    readImports(text, imports);
    readConstants(text, constants);
    if (file !== 'register.go') continue;
    group = /^const GroupName = "(.*)"$/m.exec(text)?.[1];
    kinds = [...text.matchAll(/&(\w+)\{\}/g)].map(([, name = '']) => name);
  }
  return { path, types, imports, constants, group, kinds };
}
