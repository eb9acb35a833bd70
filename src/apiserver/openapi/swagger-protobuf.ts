/**
 * Encodes parts of a Swagger 2.0 document in protobuf, for clients such as kubectl before v1.27. A keyword for which the message has no
 * field is an error, unless the keyword is an extension (x-…), so that no part of the document is lost.
 * Source: the messages of the package openapi.v2 of google/gnostic-models.
 */
import protobuf from 'protobufjs/minimal.js';

const { Writer } = protobuf;
type Writer = protobuf.Writer;
type Json = Readonly<Record<string, unknown>>;
/** Writes the content of a message, or a field with its tag. */
type Write = (writer: Writer, value: unknown) => void;
type Fields = Readonly<Record<string, Write>>;

const VARINT = 0;
const FIXED64 = 1;
const LENGTH_DELIMITED = 2;
const tagOf = (number: number, wireType: number): number => (number << 3) | wireType;

const string = (number: number): Write => {
  const tag = tagOf(number, LENGTH_DELIMITED);
  return (writer, value) => writer.uint32(tag).string(String(value));
};
const bool =
  (number: number): Write =>
  (writer, value) =>
    writer.uint32(tagOf(number, VARINT)).bool(value === true);
const int =
  (number: number): Write =>
  (writer, value) =>
    writer.uint32(tagOf(number, VARINT)).int64(Number(value));
const double =
  (number: number): Write =>
  (writer, value) =>
    writer.uint32(tagOf(number, FIXED64)).double(Number(value));
const message = (number: number, content: Write): Write => {
  const tag = tagOf(number, LENGTH_DELIMITED);
  return (writer, value) => {
    writer.uint32(tag).fork();
    content(writer, value);
    writer.ldelim();
  };
};
const each =
  (write: Write): Write =>
  (writer, value) => {
    for (const element of Array.isArray(value) ? value : [value]) write(writer, element);
  };
/** Writes one entry of a map, the pair [name, value]. */
const entry = (number: number, value: Write): Write => {
  const inner = message(2, value);
  return message(number, (writer, pair) => {
    const [name, content] = pair as [string, unknown];
    writer.uint32(tagOf(1, LENGTH_DELIMITED)).string(name);
    inner(writer, content);
  });
};
const map = (number: number, value: Write): Write => {
  const write = entry(number, value);
  return (writer, object) => {
    for (const pair of Object.entries(object as Json)) write(writer, pair);
  };
};
/** The message Any contains YAML. JSON is valid YAML. */
const any: Write = (writer, value) => writer.uint32(tagOf(2, LENGTH_DELIMITED)).string(JSON.stringify(value));

/** `extensions`: the number of the field for extensions. */
function content(fields: () => Fields, extensions: number): Write {
  const extension = entry(extensions, any);
  let known: Fields | undefined;
  return (writer, object) => {
    // Call `fields` only now, because the fields of a schema refer to `schema` itself.
    known ??= fields();
    for (const [key, value] of Object.entries(object as Json)) {
      const write = Object.hasOwn(known, key) ? known[key] : undefined;
      if (write !== undefined) write(writer, value);
      else if (key.startsWith('x-')) extension(writer, [key, value]);
      else throw new Error(`Swagger in protobuf has no field for ${key}`);
    }
  };
}

const schema: Write = content(
  () => ({
    $ref: string(1),
    format: string(2),
    title: string(3),
    description: string(4),
    default: message(5, any),
    multipleOf: double(6),
    maximum: double(7),
    exclusiveMaximum: bool(8),
    minimum: double(9),
    exclusiveMinimum: bool(10),
    maxLength: int(11),
    minLength: int(12),
    pattern: string(13),
    maxItems: int(14),
    minItems: int(15),
    uniqueItems: bool(16),
    maxProperties: int(17),
    minProperties: int(18),
    required: each(string(19)),
    enum: each(message(20, any)),
    additionalProperties: message(21, (writer, value) =>
      (typeof value === 'boolean' ? bool(2) : message(1, schema))(writer, value),
    ),
    type: message(22, each(string(1))),
    items: message(23, each(message(1, schema))),
    allOf: each(message(24, schema)),
    properties: message(25, map(1, schema)),
    readOnly: bool(27),
    example: message(30, any),
  }),
  31,
);

/**
 * The fields that describe a value outside of a body, such as a query parameter, in the order of their numbers. The first number depends on
 * the message.
 */
const PRIMITIVE: readonly (readonly [keyword: string, field: (number: number) => Write])[] = [
  ['type', string],
  ['format', string],
  ['items', (number) => message(number, primitiveItems)],
  ['collectionFormat', string],
  ['default', (number) => message(number, any)],
  ['maximum', double],
  ['exclusiveMaximum', bool],
  ['minimum', double],
  ['exclusiveMinimum', bool],
  ['maxLength', int],
  ['minLength', int],
  ['pattern', string],
  ['maxItems', int],
  ['minItems', int],
  ['uniqueItems', bool],
  ['enum', (number) => each(message(number, any))],
  ['multipleOf', double],
];
const primitive = (first: number, others: Fields): Write =>
  content(
    () => ({ ...others, ...Object.fromEntries(PRIMITIVE.map(([keyword, field], at) => [keyword, field(first + at)])) }),
    first + PRIMITIVE.length,
  );
const primitiveItems: Write = primitive(1, {});

const NAMED: Fields = { required: bool(1), in: string(2), description: string(3), name: string(4) };
const withoutEmpty = primitive(5, NAMED);
const withEmpty = primitive(6, { ...NAMED, allowEmptyValue: bool(5) });
const PLACES: Fields = {
  header: message(1, withoutEmpty),
  formData: message(2, withEmpty),
  query: message(3, withEmpty),
  path: message(4, withoutEmpty),
};
const bodyParameter = message(
  1,
  content(
    () => ({
      description: string(1),
      name: string(2),
      in: string(3),
      required: bool(4),
      schema: message(5, schema),
    }),
    6,
  ),
);
const otherParameter = message(2, (writer, value) => {
  const place = String((value as Json)['in']);
  const write = PLACES[place];
  if (write === undefined) throw new Error(`Swagger in protobuf has no parameters in ${place}`);
  write(writer, value);
});
const parameters = (number: number): Write =>
  each(
    message(
      number,
      message(1, (writer, value) => ((value as Json)['in'] === 'body' ? bodyParameter : otherParameter)(writer, value)),
    ),
  );

const response = content(() => ({ description: string(1), schema: message(2, message(1, schema)) }), 5);
const operation = content(
  () => ({
    tags: each(string(1)),
    summary: string(2),
    description: string(3),
    operationId: string(5),
    produces: each(string(6)),
    consumes: each(string(7)),
    parameters: parameters(8),
    responses: message(9, map(1, message(1, response))),
    schemes: each(string(10)),
    deprecated: bool(11),
  }),
  13,
);
const pathItem = content(
  () => ({
    get: message(2, operation),
    put: message(3, operation),
    post: message(4, operation),
    delete: message(5, operation),
    options: message(6, operation),
    head: message(7, operation),
    patch: message(8, operation),
    parameters: parameters(9),
  }),
  10,
);

function written(write: Write, value: unknown): Uint8Array {
  const writer = Writer.create();
  write(writer, value);
  return writer.finish();
}

const pathEntry = entry(2, pathItem);
const definitionEntry = entry(1, schema);

/** Encodes one entry of the document's paths. Throws an Error if the entry has a keyword for which the messages have no field. */
export const encodePath = (path: string, item: unknown): Uint8Array => written(pathEntry, [path, item]);

/** Encodes one entry of the document's definitions. Throws an Error like encodePath(). */
export const encodeDefinition = (name: string, value: unknown): Uint8Array => written(definitionEntry, [name, value]);

const head = content(
  () => ({
    swagger: string(1),
    info: message(
      2,
      content(() => ({ title: string(1), version: string(2) }), 7),
    ),
  }),
  16,
);

/** Returns the document in parts. `paths` and `definitions`: the results of encodePath() and encodeDefinition(). */
export function documentParts(
  info: object,
  paths: readonly Uint8Array[],
  definitions: readonly Uint8Array[],
): Uint8Array[] {
  const start = (number: number, entries: readonly Uint8Array[]): Uint8Array =>
    Writer.create()
      .uint32(tagOf(number, LENGTH_DELIMITED))
      .uint32(entries.reduce((bytes, { length }) => bytes + length, 0))
      .finish();
  return [written(head, { swagger: '2.0', info }), start(8, paths), ...paths, start(9, definitions), ...definitions];
}
