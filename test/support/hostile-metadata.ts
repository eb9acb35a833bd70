/** Generates hostile metadata that describes other parts of an object: annotations that contain containers as JSON, and managed fields. */
import fc from 'fast-check';
import { hostileText, hostileValue, isObject, merged } from './hostile-values.ts';

const numbered = (count: number, item: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => item(index)).join();

/** JSON that is nested too deeply, in a quantity, in a name, in an unknown field, or as the whole value. */
const DEEP = ['[', '{"a":'].flatMap((open) => {
  const value = `${open.repeat(50_000)}0${(open === '[' ? ']' : '}').repeat(50_000)}`;
  return [
    `[{"name":"a","image":"b","resources":{"limits":{"cpu":${value}}}}]`,
    `[{"name":${value}}]`,
    `[{"colour":${value}}]`,
    value,
  ];
});

const LARGE = [
  `[{${numbered(20_000, (index) => `"A${index}":0`)}}]`,
  `[{${numbered(200_000, (index) => `"a${index}":0`)}}]`,
  `[${numbered(3000, () => '{"NAME":"a","Image":"b"}')}]`,
  `[{"name":"${'a'.repeat(100_000)}","env":[${numbered(1000, () => '{"name":"a"}')}]}]`,
];

const ANNOTATIONS = [
  'pod.alpha.kubernetes.io/init-containers',
  'pod.beta.kubernetes.io/init-containers',
  'pod.beta.kubernetes.io/init-container-statuses',
  'pod.alpha.kubernetes.io/defer-containers',
  'pod.alpha.kubernetes.io/defer-settings',
  'kubectl.kubernetes.io/last-applied-configuration',
];

/** `containers` generates the lists to encode. */
const hostileAnnotations = (containers: fc.Arbitrary<unknown>): fc.Arbitrary<Record<string, string>> =>
  fc.dictionary(
    fc.constantFrom(...ANNOTATIONS),
    fc.oneof(
      { weight: 4, arbitrary: containers.map((each) => JSON.stringify(each) ?? '') },
      { weight: 2, arbitrary: hostileValue.map((each) => JSON.stringify(each) ?? '') },
      { weight: 2, arbitrary: fc.constantFrom(...DEEP) },
      { weight: 1, arbitrary: fc.constantFrom(...LARGE) },
      { weight: 1, arbitrary: hostileText },
    ),
    { minKeys: 1, maxKeys: 2 },
  );

const ELEMENTS = [
  '.',
  'f:',
  'f:metadata',
  'f:spec',
  'f:template',
  'f:status',
  'f:data',
  'f:a',
  'f:containers',
  'f:env',
  'f:ports',
  'k:{"name":"app"}',
  'k:{"containerPort":80,"protocol":"TCP"}',
  'k:{}',
  'k:[]',
  'k:',
  'v:"a"',
  'v:{"a":[1]}',
  'v:',
  'i:0',
  'i:-1',
  'i:x',
  'x',
  'f:__proto__',
  'f:constructor',
  'f:\u0000',
];

const nodeOf = (depth: number): fc.Arbitrary<object> =>
  fc.dictionary(fc.constantFrom(...ELEMENTS), depth === 0 ? fc.constant({}) : nodeOf(depth - 1), { maxKeys: 3 });

const below = (names: readonly string[], inner: unknown): object =>
  names.reduceRight((value, name) => ({ [name]: value }), inner) as object;

const LONG_NAME = 'a'.repeat(200_000);
const MANY_NAMES = Array.from({ length: 1000 }, (_, index) => `e${index}`);

/** If other managers own all fields, the error message lists all these long paths as conflicts. */
const containerOfLongPaths = {
  name: LONG_NAME,
  image: 'busybox:1.28',
  env: MANY_NAMES.map((name) => ({ name, value: 'b' })),
};

const ownedByOthers = below(
  ['f:containers', `k:${JSON.stringify({ name: LONG_NAME })}`, 'f:env'],
  Object.fromEntries(MANY_NAMES.map((name) => [`k:${JSON.stringify({ name })}`, {}])),
);

/** `specPath` is the path of the spec that contains the containers. */
const hostileOwners = (specPath: readonly string[]): fc.Arbitrary<unknown> => {
  const elements = specPath.map((name) => `f:${name}`);
  const fields = fc.oneof(
    { weight: 4, arbitrary: nodeOf(5) },
    { weight: 2, arbitrary: fc.constant(below(elements, ownedByOthers)) },
    { weight: 1, arbitrary: fc.constantFrom(900, 1100).map((levels) => below(Array(levels).fill('f:a'), {})) },
    { weight: 1, arbitrary: hostileValue },
  );
  const entry = fc.record(
    {
      manager: fc.oneof(fc.constantFrom('a', 'kubectl-client-side-apply', 'ancient-changes'), hostileText),
      operation: fc.constantFrom('Apply', 'Update', 'Update', 'x'),
      apiVersion: fc.constantFrom('v1', 'v2', ''),
      time: fc.constantFrom('2026-01-01T00:00:00Z', '0001-01-01T00:00:00Z'),
      fieldsType: fc.constant('FieldsV1'),
      fieldsV1: fields,
      subresource: fc.constantFrom('status', 'x'),
    },
    { requiredKeys: ['operation', 'apiVersion', 'fieldsType', 'fieldsV1'] },
  );
  return fc.oneof(
    { weight: 6, arbitrary: fc.array(entry, { maxLength: 3 }) },
    { weight: 1, arbitrary: entry.map((each) => Array.from({ length: 50 }, () => each)) },
    { weight: 1, arbitrary: fc.constantFrom<unknown>([{}], [], null, [null]) },
  );
};

const LISTS_IN_ANNOTATIONS = ['initContainers', 'deferContainers'];

/** At any depth, removes the lists that an annotation may replace. */
function withoutLists(value: object): object {
  const entries = Object.entries(value).filter(([key]) => !LISTS_IN_ANNOTATIONS.includes(key));
  return Object.fromEntries(entries.map(([key, inner]) => [key, isObject(inner) ? withoutLists(inner) : inner]));
}

/** `containers` generates lists of containers for the annotations. */
export function withOddMetadata(
  whole: object,
  isTemplate: boolean,
  containers: fc.Arbitrary<unknown>,
): fc.Arbitrary<object> {
  const specPath = isTemplate ? ['template', 'spec'] : ['spec'];
  const added = fc.oneof(
    {
      weight: 3,
      arbitrary: hostileAnnotations(containers).map((annotations) =>
        below([...specPath.slice(0, -1), 'metadata'], { annotations }),
      ),
    },
    { weight: 3, arbitrary: hostileOwners(specPath).map((managedFields) => ({ metadata: { managedFields } })) },
    { weight: 1, arbitrary: fc.constant(below([...specPath, 'containers'], [containerOfLongPaths])) },
  );
  return fc
    .tuple(added, fc.boolean())
    .map(([odd, without]) => merged(without ? withoutLists(whole) : whole, odd) as object);
}
