/**
 * The form in which facts.json, own.ts and kinds that are added at run time declare a field: a line of words.
 *
 *   NAME NUMBER TYPE WORDS…       containers 2 []Container list=map keys=name patch=merge merge=name
 *
 *   NAME     the name in JSON, followed by `?` if Go omits empty values; `...` for an embedded struct, whose fields belong to the type
 *            itself in JSON but not in protobuf; `[]` for the only field of a type that is a list in JSON and a message in protobuf
 *   NUMBER   the field number in protobuf; 0 for a field that protobuf does not have
 *   TYPE     a scalar, a type of the same package, or the key of a package with a type of it, such as meta.v1.ObjectMeta; after `[]` for
 *            a list, `{}` for a map with strings as keys, or `*` for a pointer
 *   WORDS    optional and required (for OpenAPI, where they do not follow from NAME), list=TYPE, keys=NAMES, patch=STRATEGY,
 *            merge=KEY, atomic, granular, default=JSON, go=NAME (Go's own type of the scalar), unlisted
 */
import type { JsonValue } from '../../machinery/json-value.ts';

export type Scalar = 'string' | 'bool' | 'int32' | 'int64' | 'double' | 'bytes' | 'any';

export interface FieldFacts {
  /** Empty if `inline` is set. */
  json: string;
  /** The field number in protobuf; 0 if protobuf does not have the field. */
  number: number;
  /** Whether the value is a list of, or a map from strings to, values of the type. */
  container?: 'list' | 'map';
  /** Undefined if `ref` is set. */
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
  patchStrategy?: 'merge' | 'replace' | 'retainKeys' | 'merge,retainKeys';
  mergeKey?: string;
  /** Whether server-side apply replaces the map or struct as a whole. */
  atomic: boolean;
  /** Whether server-side apply merges the struct although its type is atomic. */
  granular: boolean;
  default?: JsonValue;
  /** The Go type of the scalar with its package, such as v1.PodPhase; absent if Go uses the built-in type. */
  goName?: string;
  /** Whether OpenAPI omits the field, because validation always rejects it. */
  unlisted: boolean;
}

const SCALARS: ReadonlySet<string> = new Set(['string', 'bool', 'int32', 'int64', 'double', 'bytes', 'any']);

function parseType(
  text: string,
  fullName: (type: string) => string,
): Pick<FieldFacts, 'container' | 'scalar' | 'ref' | 'pointer'> {
  const pointer = text.startsWith('*');
  const container = text.startsWith('[]') ? 'list' : text.startsWith('{}') ? 'map' : undefined;
  const type = text.replace(/^(\*|\[\]|\{\})/, '');
  return {
    pointer,
    ...(container === undefined ? {} : { container }),
    ...(SCALARS.has(type) ? { scalar: type as Scalar } : { ref: fullName(type) }),
  };
}

/** `fullName` returns the full name of a type that a line names. */
export function parseLine(line: string, fullName: (type: string) => string): FieldFacts {
  const [name = '', number, type = '', ...words] = line.split(' ');
  const inline = name === '...';
  const omitempty = name.endsWith('?');
  const field: FieldFacts = {
    json: inline ? '' : name.replace('?', ''),
    number: Number(number),
    ...parseType(type, fullName),
    inline,
    omitempty,
    required: !inline && (omitempty ? words.includes('required') : !words.includes('optional')),
    atomic: words.includes('atomic'),
    granular: words.includes('granular'),
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
        field.patchStrategy = value as NonNullable<FieldFacts['patchStrategy']>;
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
