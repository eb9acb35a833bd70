/** Decodes Swagger documents in protobuf with a Protocol Buffers library. */
import protobuf from 'protobufjs';

/** The messages of openapi.v2 with the fields that lifepod's documents have. Source: openapiv2/OpenAPIv2.proto of google/gnostic-models. */
const MESSAGES = `
  syntax = "proto3";
  message Document { string swagger = 1; Info info = 2; Paths paths = 8; Definitions definitions = 9; }
  message Info { string title = 1; string version = 2; }
  message Paths { map<string, PathItem> entries = 2; }
  message Definitions { map<string, Schema> entries = 1; }
  message PathItem {
    Operation get = 2; Operation put = 3; Operation post = 4; Operation delete = 5; Operation options = 6;
    Operation head = 7; Operation patch = 8; repeated ParametersItem parameters = 9;
  }
  message Operation {
    repeated string tags = 1; string description = 3; string operationId = 5; repeated string produces = 6;
    repeated string consumes = 7; repeated ParametersItem parameters = 8; Responses responses = 9;
    repeated string schemes = 10; map<string, Any> extensions = 13;
  }
  message ParametersItem { Parameter parameter = 1; }
  message Parameter { BodyParameter body = 1; OtherParameter other = 2; }
  message BodyParameter { string description = 1; string name = 2; string in = 3; bool required = 4; Schema schema = 5; }
  message OtherParameter { QueryParameter query = 3; PathParameter path = 4; }
  message QueryParameter {
    bool required = 1; string in = 2; string description = 3; string name = 4; string type = 6; bool uniqueItems = 20;
  }
  message PathParameter {
    bool required = 1; string in = 2; string description = 3; string name = 4; string type = 5; bool uniqueItems = 19;
  }
  message Responses { map<string, ResponseValue> entries = 1; }
  message ResponseValue { Response response = 1; }
  message Response { string description = 1; SchemaItem schema = 2; }
  message SchemaItem { Schema schema = 1; }
  message Any { string yaml = 2; }
  message Schema {
    string _ref = 1; string format = 2; string description = 4; repeated string required = 19;
    AdditionalProperties additionalProperties = 21; Type type = 22; Items items = 23; Properties properties = 25;
    map<string, Any> extensions = 31;
  }
  message AdditionalProperties { Schema schema = 1; }
  message Type { repeated string value = 1; }
  message Items { repeated Schema schema = 1; }
  message Properties { map<string, Schema> entries = 1; }
`;

// biome-ignore lint/suspicious/noExplicitAny: a decoded message
type Message = any;

const Document = protobuf.parse(MESSAGES, { keepCase: true }).root.lookupType('Document');

const mapped = (object: object | undefined, read: (value: Message) => unknown): Record<string, unknown> =>
  Object.fromEntries(Object.entries(object ?? {}).map(([name, value]) => [name, read(value)]));
const extensions = (of: object | undefined) => mapped(of, ({ yaml }) => JSON.parse(yaml));
const present = (key: string, value: Message, read: (value: Message) => unknown = (same) => same): object =>
  value === undefined ? {} : { [key]: read(value) };

function schemaOf(message: Message): object {
  const { _ref, type, items, additionalProperties, properties, extensions: others, ...rest } = message;
  return {
    ...rest,
    ...present('$ref', _ref),
    ...present('type', type, ({ value }) => value[0]),
    ...present('items', items, ({ schema }) => schemaOf(schema[0])),
    ...present('additionalProperties', additionalProperties, ({ schema }) => schemaOf(schema)),
    ...present('properties', properties, ({ entries }) => mapped(entries, schemaOf)),
    ...extensions(others),
  };
}

function parameterOf({ parameter: { body, other } }: Message): object {
  if (body !== undefined) return { ...body, schema: schemaOf(body.schema) };
  return other.query ?? other.path;
}

const responseOf = ({ response: { schema, ...rest } }: Message): object => ({
  ...rest,
  ...present('schema', schema, (item) => schemaOf(item.schema)),
});

const operationOf = ({ parameters, responses, extensions: others, ...rest }: Message): object => ({
  produces: [],
  ...rest,
  parameters: (parameters ?? []).map(parameterOf),
  responses: mapped(responses.entries, responseOf),
  ...extensions(others),
});

const pathOf = ({ parameters, ...operations }: Message): object => ({
  ...mapped(operations, operationOf),
  parameters: parameters.map(parameterOf),
});

export function readSwagger(bytes: Uint8Array): object {
  const { paths, definitions, ...rest }: Message = Document.toObject(Document.decode(bytes));
  return { ...rest, paths: mapped(paths.entries, pathOf), definitions: mapped(definitions.entries, schemaOf) };
}
