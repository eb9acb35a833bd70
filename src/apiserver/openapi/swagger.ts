/** Converts paths and schemas of OpenAPI v3 documents to Swagger 2.0. */
import type { Schema } from './schemas.ts';

type Json = Record<string, unknown>;

export interface OpenApiDocument {
  info: Json;
  paths: Record<string, Record<string, unknown>>;
  components: { schemas: Record<string, Schema> };
}

/** As in upstream's document, a $ref is next to the description of the field instead of within allOf, and there are no defaults. */
export function swaggerSchema(value: Schema): Schema {
  const { allOf, oneOf, default: _, $ref, properties, items, additionalProperties, ...rest } = value;
  const [wrapped] = (allOf ?? []) as Schema[];
  return {
    ...rest,
    // Swagger 2.0 has no oneOf. As in upstream, a type that allows numbers and strings becomes a string.
    ...(oneOf === undefined ? {} : { type: 'string' }),
    ...(typeof $ref === 'string' ? { $ref: $ref.replace('#/components/schemas/', '#/definitions/') } : {}),
    ...(properties === undefined
      ? {}
      : {
          properties: Object.fromEntries(
            Object.entries(properties as Record<string, Schema>).map(([name, inner]) => [name, swaggerSchema(inner)]),
          ),
        }),
    ...(items === undefined ? {} : { items: swaggerSchema(items as Schema) }),
    ...(additionalProperties === undefined
      ? {}
      : { additionalProperties: swaggerSchema(additionalProperties as Schema) }),
    ...(wrapped === undefined ? {} : swaggerSchema(wrapped)),
  };
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
              schema: swaggerSchema(body['schema'] as Schema),
            },
          ]),
      ...(parameters as Json[]).map(parameter),
    ],
    responses: Object.fromEntries(
      answers.map(([code, { description, content: types }]) => {
        const [type] = Object.values(types ?? {});
        return [
          code,
          { description, ...(type === undefined ? {} : { schema: swaggerSchema(type['schema'] as Schema) }) },
        ];
      }),
    ),
  };
}

export function swaggerPath(item: Record<string, unknown>): Json {
  return Object.fromEntries(
    Object.entries(item).map(([key, value]) => [
      key,
      key === 'parameters' ? (value as Json[]).map(parameter) : operation(value as Json),
    ]),
  );
}
