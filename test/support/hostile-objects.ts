/** Generates hostile objects from valid objects and the facts about types, and encodes them as JSON, YAML or protobuf. */
import fc from 'fast-check';
import { type FieldFacts, jsonFields, jsonForms, structOf } from '../../src/api/facts/facts.ts';
import type { KindDefinition } from '../../src/api/kind.ts';
import { withOddMetadata } from './hostile-metadata.ts';
import { encodeProtobuf } from './hostile-protobuf.ts';
import { asYaml, damaged, hostileText, hostileValue, merged, mutated } from './hostile-values.ts';
import { PLAUSIBLE } from './plausible-values.ts';
import { CONTENTS, podSpec } from './valid-contents.ts';

const SCALARS: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  string: fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...PLAUSIBLE) }, { weight: 1, arbitrary: hostileText }),
  int: fc.constantFrom(0, 1, -1, 80, 65_536, 2 ** 31 - 1, 2 ** 31, -(2 ** 31) - 1, 2 ** 53, 2 ** 63),
  double: fc.double(),
  bool: fc.boolean(),
  quantity: fc.constantFrom('1', '10m', '1Gi', '-1', '1e3', '0.0000000001', '9223372036854775808', 'x', 1.5),
  intOrString: fc.constantFrom(80, 'web', 0, 65_536, '50%', '-1%', ''),
  bytes: fc.constantFrom('YQ==', 'YQ', '', '!'),
};

const elementOf = (field: FieldFacts, depth: number): fc.Arbitrary<unknown> => {
  const struct = structOf(field);
  if (struct !== undefined) return objectOf(struct, depth);
  const name = jsonForms.get(field.ref ?? '') ?? field.scalar ?? '';
  return SCALARS[name.replace(/\d+$/, '')] ?? (SCALARS['string'] as fc.Arbitrary<unknown>);
};

const contentOf = (field: FieldFacts, depth: number): fc.Arbitrary<unknown> => {
  const element = elementOf(field, depth);
  if (field.container === 'list') return fc.array(element, { maxLength: 3 });
  if (field.container === 'map') return fc.dictionary(fc.constantFrom(...PLAUSIBLE), element, { maxKeys: 3 });
  return element;
};

const someOf = <T>(all: T[]): fc.Arbitrary<T[]> => fc.subarray(all, { maxLength: Math.min(all.length, 4) });

/** Each value has the type of its field. `depth` limits the nesting. */
const objectOf = (type: string, depth: number): fc.Arbitrary<Record<string, unknown>> =>
  depth === 0
    ? fc.constant({})
    : someOf([...jsonFields(type).values()]).chain((fields) =>
        fc.record(Object.fromEntries(fields.map((field) => [field.json, contentOf(field, depth - 1)]))),
      );

export const apiVersionOf = ({ group, version }: KindDefinition): string =>
  group === '' ? version : `${group}/${version}`;

export const pathOf = (kind: KindDefinition): string => `${kind.group === '' ? '/api' : '/apis'}/${apiVersionOf(kind)}`;

export const validObject = (kind: KindDefinition, name: string): object => ({
  apiVersion: apiVersionOf(kind),
  kind: kind.kind,
  // The name of an IPAddress is an address.
  metadata: { name: kind.kind === 'IPAddress' ? `10.200.0.${name.length}` : name },
  ...(CONTENTS[kind.schema] ?? CONTENTS[kind.kind]),
});

export function hostileObject(kind: KindDefinition, name: string): fc.Arbitrary<object> {
  const whole = validObject(kind, name);
  const [isPod, isTemplate] = [kind.kind === 'Pod', kind.kind === 'PodTemplate'];
  const [valid] = podSpec.containers;
  const containers = fc.array(objectOf('io.k8s.api.core.v1.Container', 3).map((added) => merged(valid, added)));
  const grown = fc
    .tuple(fc.constant(whole), objectOf(kind.schema, 5))
    .map(([old, added]) => merged(old, added) as object);
  return fc.oneof(
    { weight: 1, arbitrary: fc.constant(whole) },
    { weight: 3, arbitrary: mutated(whole) },
    { weight: 2, arbitrary: grown },
    { weight: 1, arbitrary: grown.chain(mutated) },
    { weight: isPod || isTemplate ? 4 : 1, arbitrary: withOddMetadata(whole, isTemplate, containers) },
  );
}

export interface Body {
  type: string;
  bytes: Buffer;
}

const YAML_TOKENS = [
  '\n',
  '  ',
  '\t',
  ': ',
  '- ',
  '? ',
  '{',
  '}',
  '[',
  ']',
  ', ',
  '&a ',
  '*a',
  '<<: *a',
  '!!binary ',
  '!!set ',
  '!<x> ',
  '|\n',
  '>+9\n',
  '---\n',
  '...\n',
  '%YAML 9.9\n',
  '%TAG ! x\n',
  '#',
  '"',
  "'",
  '\\x',
  'a',
  'data',
  '1e999',
  '~',
  '\u0085',
];
const yaml = fc.array(fc.constantFrom(...YAML_TOKENS), { maxLength: 60 }).map((tokens) => tokens.join(''));

export const hostileBody = (kind: KindDefinition, name: string): fc.Arbitrary<Body> => {
  const object = hostileObject(kind, name);
  const of = (type: string, bytes: fc.Arbitrary<Buffer>): fc.Arbitrary<Body> =>
    damaged(bytes).map((each) => ({ type, bytes: each }));
  return fc.oneof(
    {
      weight: 6,
      arbitrary: of(
        'application/json',
        object.map((each) => Buffer.from(JSON.stringify(each))),
      ),
    },
    {
      weight: 3,
      arbitrary: of(
        'application/yaml',
        object.map((each) => Buffer.from(asYaml(each))),
      ),
    },
    {
      weight: 1,
      arbitrary: of(
        'application/yaml',
        yaml.map((text) => Buffer.from(text)),
      ),
    },
    {
      weight: 3,
      arbitrary: of(
        'application/vnd.kubernetes.protobuf',
        object.map((each) => encodeProtobuf(apiVersionOf(kind), kind, each)),
      ),
    },
    {
      weight: 1,
      arbitrary: of(
        'application/json',
        hostileValue.map((each) => Buffer.from(JSON.stringify(each) ?? '')),
      ),
    },
  );
};
