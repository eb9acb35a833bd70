/** Generates JSON values of any type of the facts. */
import fc from 'fast-check';
import { type FieldFacts, type JsonForm, jsonFields, jsonForms, typeFacts } from '../../api/facts/facts.ts';
import { formatTime } from '../../machinery/time.ts';

type Arbitrary = fc.Arbitrary<unknown>;

/** At this depth and below, values have no fields that contain messages. */
const MAX_DEPTH = 3;

const seconds = fc.integer({ min: -62_135_596_800, max: 253_402_300_799 });
const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 });

const FORMS: Readonly<Record<JsonForm, Arbitrary>> = {
  time: seconds.map((each) => formatTime(each * 1000)),
  microTime: fc
    .tuple(seconds, fc.nat(999_999))
    .map(([each, micros]) => `${formatTime(each * 1000).slice(0, -1)}.${String(micros).padStart(6, '0')}Z`),
  duration: fc.constantFrom('1ns', '2.5\u00b5s', '95ms', '-1.5ms', '1.5s', '1m0s', '-2h0m0.25s'),
  quantity: fc.constantFrom('100m', '1Gi', '0', '-3'),
  intOrString: fc.oneof(fc.integer({ min: 1, max: 65_535 }), fc.constantFrom('http', '25%')),
  raw: fc
    .dictionary(text, fc.jsonValue({ maxDepth: 1 }), { minKeys: 1, maxKeys: 3 })
    // fc.jsonValue() can generate -0, which JSON.stringify() writes as 0.
    .map((value) => JSON.parse(JSON.stringify(value)) as unknown),
};

function scalarOf({ scalar, pointer, omitempty }: FieldFacts): Arbitrary {
  // Go does not distinguish an empty value from an absent value if the field is not a pointer and omits empty values.
  const mayBeEmpty = pointer || !omitempty;
  switch (scalar) {
    case 'bool':
      return mayBeEmpty ? fc.boolean() : fc.constant(true);
    case 'int32':
      return fc.integer().filter((value) => mayBeEmpty || value !== 0);
    case 'int64':
      return fc.maxSafeInteger().filter((value) => mayBeEmpty || value !== 0);
    case 'double':
      return fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => value !== 0);
    case 'bytes':
      return fc.uint8Array({ minLength: 1, maxLength: 6 }).map((bytes) => Buffer.from(bytes).toString('base64'));
    default:
      return mayBeEmpty ? fc.oneof(fc.constant(''), text) : text;
  }
}

function elementOf(field: FieldFacts, depth: number): Arbitrary {
  const { ref } = field;
  if (ref === undefined) return scalarOf(field);
  const form = jsonForms.get(ref);
  return form === undefined ? arbitraryOf(ref, depth + 1) : FORMS[form];
}

function fieldOf(field: FieldFacts, depth: number): Arbitrary {
  const element = elementOf(field, depth);
  if (field.container === 'list') return fc.array(element, { minLength: 1, maxLength: 2 });
  if (field.container === 'map') return fc.dictionary(text, element, { minKeys: 1, maxKeys: 2 });
  return element;
}

function encodedFields(type: string): FieldFacts[] {
  const visible = jsonFields(type);
  return (typeFacts(type)?.fields ?? []).flatMap((field) => {
    if (field.number === 0) return [];
    const fields = field.inline ? encodedFields(field.ref ?? '') : [field];
    return fields.filter((each) => visible.get(each.json) === each);
  });
}

const isEmpty = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0;

export function arbitraryOf(type: string, depth = 0): Arbitrary {
  const items = typeFacts(type)?.items;
  if (items !== undefined) return fieldOf({ ...items, container: 'list' }, depth);
  const isFlat = ({ ref }: FieldFacts): boolean => ref === undefined || jsonForms.has(ref);
  const fields = encodedFields(type).filter((field) => depth < MAX_DEPTH || isFlat(field));
  const model = Object.fromEntries(fields.map((field) => [field.json, fieldOf(field, depth)]));
  return fc.record(model, { requiredKeys: [] }).map((value) => {
    for (const { json, omitempty, pointer } of fields)
      if (omitempty && !pointer && isEmpty((value as Record<string, unknown>)[json]))
        delete (value as Record<string, unknown>)[json];
    return value;
  });
}
