import fc from 'fast-check';
import { stringify } from 'yaml';

const nested = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;

/** JSON texts, because an object literal cannot have an own property with the name __proto__. */
const VALUES = [
  'null',
  'true',
  'false',
  '0',
  '-0',
  '-1',
  '1.5',
  '1e308',
  '9007199254740993',
  '9223372036854775808',
  '-2147483649',
  '[]',
  '{}',
  '[[]]',
  '[null]',
  '[{}]',
  '{"":""}',
  '{"a":null}',
  nested(60),
  nested(1100),
  '{"__proto__":{"polluted":true}}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  '{"toString":1}',
  '""',
  '" "',
  '"a"',
  '"A_b"',
  '"-a"',
  '"a.b/c"',
  '"../../etc"',
  '"/"',
  '"%2e%2e"',
  '"\\u0000"',
  '"\\ud800"',
  '"😀"',
  '"$(a)"',
  '"\\r\\nX: y"',
  '"*"',
  '"1e9999999Gi"',
  '"99999999999999999999m"',
  '"0x10"',
  '"NaN"',
  '"2026-13-45T99:00:00Z"',
  '"+275760-09-13T00:00:00.001Z"',
  '"0001-01-01T00:00:00Z"',
  '"::ffff:127.0.0.1"',
  '"999.0.0.1/33"',
  '"sha256:zz"',
];

export const hostileText: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(...VALUES.filter((value) => value.startsWith('"')).map((value) => JSON.parse(value) as string)),
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({ maxLength: 300 }),
  fc
    .tuple(fc.constantFrom('a', 'a.', 'é', '{', '$(', '\n', '"'), fc.constantFrom(64, 254, 5000))
    .map(([unit, times]) => unit.repeat(times)),
);

/** These texts are too long for a request head and therefore fit only into a body. */
const longText: fc.Arbitrary<string> = fc
  .tuple(fc.constantFrom('a', 'a.', '😀', '"', '\u0001'), fc.constantFrom(30_000, 300_000))
  .map(([unit, times]) => unit.repeat(times / unit.length));

export const hostileValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 1, arbitrary: fc.oneof({ weight: 9, arbitrary: hostileText }, { weight: 1, arbitrary: longText }) },
  { weight: 4, arbitrary: fc.constantFrom(...VALUES).map((value) => JSON.parse(value) as unknown) },
  { weight: 2, arbitrary: hostileText },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom(...VALUES.filter(({ length }) => length < 100)), fc.constantFrom(2, 100, 2000))
      .map(([value, times]) => Array.from({ length: times }, () => JSON.parse(value) as unknown)),
  },
);

const MANY_PLACES = 300;

type Container = Record<string, unknown> | unknown[];
const isContainer = (value: unknown): value is Container => typeof value === 'object' && value !== null;

/** Returns the places in a value, outermost first, up to about MANY_PLACES. A place is a container (object or array) and a key in it. */
function placesOf(root: Container): [Container, string][] {
  const places: [Container, string][] = [];
  const containers = [root];
  for (let container = containers.shift(); container !== undefined; container = containers.shift()) {
    for (const [key, value] of Object.entries(container)) {
      places.push([container, key]);
      if (isContainer(value)) containers.push(value);
    }
    if (places.length > MANY_PLACES) break;
  }
  return places;
}

const set = (container: Container, key: string, value: unknown): void =>
  void Object.defineProperty(container, key, { value, enumerable: true, configurable: true, writable: true });

type Change =
  | { kind: 'replace' | 'add'; key: string; value: unknown }
  | { kind: 'remove' }
  | { kind: 'rename'; key: string }
  | { kind: 'repeat'; times: number };

const change: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('replace' as const), key: fc.constant(''), value: hostileValue }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('add' as const), key: hostileText, value: hostileValue }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('rename' as const), key: hostileText }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('repeat' as const), times: fc.constantFrom(2, 20, 200) }) },
);

function apply(root: Container, at: number, made: Change): void {
  const places = placesOf(root);
  // Repeated lists in repeated lists would exceed the size of any body.
  if (places.length > MANY_PLACES) return;
  const [container, key] = places[at % places.length] ?? [root, 'a'];
  const old = (container as Record<string, unknown>)[key];
  if (made.kind === 'replace') set(container, key, made.value);
  else if (made.kind === 'repeat')
    set(
      container,
      key,
      Array.from({ length: made.times }, () => (Array.isArray(old) ? old[0] : old)),
    );
  else if (made.kind === 'add') set(isContainer(old) ? old : container, made.key, made.value);
  else {
    delete (container as Record<string, unknown>)[key];
    if (made.kind === 'rename' && !Array.isArray(container)) set(container, made.key, old);
  }
}

export const mutated = (template: object): fc.Arbitrary<object> =>
  fc.array(fc.tuple(fc.nat(), change), { maxLength: 4 }).map((changes) => {
    const copy = structuredClone(template) as Container;
    for (const [at, made] of changes) apply(copy, at, made);
    return copy;
  });

type Damage = { at: number; kind: 'flip' | 'cut' | 'insert' | 'double'; bytes: Uint8Array };
const damage: fc.Arbitrary<Damage> = fc.record({
  at: fc.nat(),
  kind: fc.constantFrom('flip', 'cut', 'insert', 'double'),
  bytes: fc.uint8Array({ minLength: 1, maxLength: 8 }),
});

function harm(bytes: Buffer, { at, kind, bytes: added }: Damage): Buffer {
  const place = at % (bytes.length + 1);
  const [before, after] = [bytes.subarray(0, place), bytes.subarray(place)];
  if (kind === 'cut') return Buffer.from(before);
  if (kind === 'insert') return Buffer.concat([before, added, after]);
  if (kind === 'double') return Buffer.concat([bytes, after]);
  const copy = Buffer.from(bytes);
  for (const [index, byte] of added.entries()) if (place + index < copy.length) copy[place + index] = byte;
  return copy;
}

export const damaged = (whole: fc.Arbitrary<Buffer>): fc.Arbitrary<Buffer> =>
  fc
    .tuple(
      whole,
      fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: fc.array(damage, { maxLength: 3 }) }),
    )
    .map(([bytes, all]) => all.reduce(harm, bytes));

export type Json = Record<string, unknown>;
export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Elements of lists are merged by their index. */
export function merged(old: unknown, added: unknown): unknown {
  if (Array.isArray(old) && Array.isArray(added))
    return Array.from({ length: Math.max(old.length, added.length) }, (_, at) =>
      at >= added.length ? old[at] : merged(old[at], added[at]),
    );
  if (!isObject(old) || !isObject(added)) return added ?? old;
  const result: Json = { ...old };
  for (const [key, value] of Object.entries(added)) result[key] = merged(result[key], value);
  return result;
}

/** Large values are encoded as JSON, which is also valid YAML, because the YAML library is slow for them or overflows the stack. */
export function asYaml(value: unknown): string {
  const json = JSON.stringify(value);
  return json.length > 6000 ? json : stringify(value);
}
