/** Combines the OpenAPI v3 documents of all group versions into one Swagger 2.0 document, for clients that read /openapi/v2. */
type Json = Record<string, unknown>;

export interface OpenApiDocument {
  info: Json;
  paths: Record<string, Record<string, unknown>>;
  components: { schemas: Record<string, Json> };
}

/**
 * Converts a schema, or a part of one, from OpenAPI v3 to Swagger 2.0. In the result, references begin with #/definitions/ and are
 * not wrapped in allOf.
 */
function schema(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(schema);
  if (typeof value !== 'object' || value === null) return value;
  const { allOf, oneOf, ...rest } = value as Json;
  const result: Json = {};
  for (const [key, inner] of Object.entries(rest)) {
    result[key] = key === '$ref' ? String(inner).replace('#/components/schemas/', '#/definitions/') : schema(inner);
  }
  // Swagger 2.0 has no oneOf. As in upstream, a type that allows numbers and strings becomes a string.
  if (oneOf !== undefined) result['type'] = 'string';
  if (Array.isArray(allOf)) Object.assign(result, schema(allOf[0]));
  return result;
}

function parameter(value: Json): Json {
  const { schema: inner, ...rest } = value;
  return { ...rest, ...(inner as Json) };
}

function operation(value: Json): Json {
  const { requestBody, parameters, responses, ...rest } = value;
  const content = (requestBody as { content?: Record<string, Json>; required?: boolean } | undefined)?.content;
  const [body] = Object.values(content ?? {});
  const answers = Object.entries(responses as Record<string, { description: string; content?: Record<string, Json> }>);
  return {
    ...rest,
    consumes: Object.keys(content ?? { '*/*': {} }),
    produces: [...new Set(answers.flatMap(([, answer]) => Object.keys(answer.content ?? {})))],
    schemes: ['https'],
    parameters: [
      ...(body === undefined
        ? []
        : [
            {
              name: 'body',
              in: 'body',
              required: (requestBody as Json)['required'] === true,
              schema: schema(body['schema']),
            },
          ]),
      ...(parameters as Json[]).map(parameter),
    ],
    responses: Object.fromEntries(
      answers.map(([code, { description, content: types }]) => {
        const [type] = Object.values(types ?? {});
        return [code, { description, ...(type === undefined ? {} : { schema: schema(type['schema']) }) }];
      }),
    ),
  };
}

function pathItem(item: Record<string, unknown>): Json {
  return Object.fromEntries(
    Object.entries(item).map(([key, value]) => [
      key,
      key === 'parameters' ? (value as Json[]).map(parameter) : operation(value as Json),
    ]),
  );
}

/** Merges the documents. A path or schema that several documents contain is the same in each of them. */
export function swaggerDocument(documents: readonly OpenApiDocument[]): Json {
  const paths: Json = {};
  const definitions: Json = {};
  for (const document of documents) {
    for (const [path, item] of Object.entries(document.paths)) paths[path] = pathItem(item);
    for (const [name, value] of Object.entries(document.components.schemas)) definitions[name] = schema(value);
  }
  return { swagger: '2.0', info: documents[0]?.info ?? {}, paths, definitions };
}
