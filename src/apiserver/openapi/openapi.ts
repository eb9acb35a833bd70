/**
 * Serves the OpenAPI documents: an index at /openapi/v3, a document for each group version in the index, and one document for all
 * group versions at /openapi/v2.
 *
 * Boundary: the documents are built only from the kinds, the tables of fields and list keys, the descriptions and the patch
 * strategies. kubectl uses the documents for `explain`, for validation, and for the merge keys of `apply`.
 * Invariant: between requests, the only documents in memory are the compressed ones that clients have requested. The large
 * descriptions are read for each document that is built, and then released.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import fieldTable from '../../api/generated/schema.json' with { type: 'json' };
import type { KindDefinition } from '../../api/kind.ts';
import { strategyFor } from '../../api/patch-strategy.ts';
import { notAcceptable, pathNotFound } from '../../machinery/status.ts';
import { sendBody, sendJson } from '../http/answers.ts';
import { acceptsGzip, type Exchange, startAnswer } from '../http/exchange.ts';
import { acceptedRanges, isJson, type MediaRange } from '../http/negotiate.ts';
import { kindPaths } from './paths.ts';
import { componentSchemas, type Descriptions, type FieldTable } from './schemas.ts';
import { type OpenApiDocument, swaggerDocument } from './swagger.ts';

const gzipAsync = promisify(gzip);
const gunzipAsync = promisify(gunzip);
const DESCRIPTIONS = new URL('../../api/generated/docs.json', import.meta.url);
/**
 * The tags of the fields in Swagger's protobuf encoding: the field number shifted by 3 bits, plus wire type 2 (length-delimited).
 */
const SWAGGER_FIELD = (1 << 3) | 2;
const INFO_FIELD = (2 << 3) | 2;
const TITLE_FIELD = (1 << 3) | 2;
const VERSION_FIELD = (2 << 3) | 2;
const YEAR_SECONDS = 365 * 24 * 60 * 60;

export interface OpenApi {
  /**
   * Responds to a request for an OpenAPI document. `segments`: the segments of the URL path, starting with 'openapi'. Rejects with
   * 404 NotFound if there is no such document, and 406 NotAcceptable if the client accepts none of its formats.
   */
  serve(exchange: Exchange, segments: readonly string[]): Promise<void>;
}

/** Returns the path of the group version of the kind, such as `api/v1` or `apis/events.k8s.io/v1`. */
const pathOf = (kind: KindDefinition): string =>
  kind.group === '' ? `api/${kind.version}` : `apis/${kind.group}/${kind.version}`;

export function openApiDocument(kinds: readonly KindDefinition[], descriptions: Descriptions, version: string) {
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version },
    paths: Object.assign({}, ...kinds.map(kindPaths)) as OpenApiDocument['paths'],
    components: {
      schemas: componentSchemas(kinds, {
        fields: fieldTable as unknown as FieldTable,
        descriptions,
        strategies: strategyFor,
      }),
    },
  };
}

export function openApi(kinds: readonly KindDefinition[], version: string): OpenApi {
  const groupVersions = [...new Set(kinds.map(pathOf))];
  const compressed = new Map<string, Promise<Buffer>>();
  let contentHash: Promise<string> | undefined;

  const readDescriptions = async (): Promise<Descriptions> => JSON.parse(await readFile(DESCRIPTIONS, 'utf8'));
  const hash = (): Promise<string> =>
    (contentHash ??= readFile(DESCRIPTIONS).then((descriptions) =>
      createHash('sha256')
        .update(`${version} ${JSON.stringify(groupVersions)} ${JSON.stringify(fieldTable)}`)
        .update(descriptions)
        .digest('hex')
        .toUpperCase(),
    ));
  const build = (path: string, descriptions: Descriptions): OpenApiDocument =>
    openApiDocument(
      kinds.filter((kind) => pathOf(kind) === path),
      descriptions,
      version,
    );

  /** Returns the compressed document. Builds the document at the first request for it. */
  const document = (key: string, make: (descriptions: Descriptions) => unknown): Promise<Buffer> => {
    const known = compressed.get(key);
    if (known !== undefined) return known;
    const made = readDescriptions().then((descriptions) => gzipAsync(JSON.stringify(make(descriptions))));
    compressed.set(key, made);
    made.catch(() => compressed.delete(key));
    return made;
  };

  const serveIndex = async (exchange: Exchange): Promise<void> => {
    const suffix = await hash();
    const paths = groupVersions.map((path) => [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${suffix}` }]);
    return sendJson(exchange, 200, { paths: Object.fromEntries(paths) });
  };

  return {
    async serve(exchange, segments) {
      const [, form, ...rest] = segments;
      const path = rest.join('/');
      const ranges = acceptedRanges(exchange.request.headers.accept);
      if (!ranges.some(isJson)) {
        if (form !== 'v2' || path !== '' || !ranges.some(isSwaggerProtobuf)) throw notAcceptable(['application/json']);
        return sendSwaggerProtobuf(exchange, version);
      }
      if (form === 'v2' && path === '') {
        const all = (descriptions: Descriptions): unknown =>
          swaggerDocument(groupVersions.map((each) => build(each, descriptions)));
        return send(exchange, await document('v2', all));
      }
      if (form !== 'v3') throw pathNotFound();
      if (path === '') return serveIndex(exchange);
      if (!groupVersions.includes(path)) throw pathNotFound();
      const bytes = await document(path, (descriptions) => build(path, descriptions));
      if (exchange.query.get('hash') === (await hash())) {
        exchange.response.setHeader('Cache-Control', `public, immutable, max-age=${YEAR_SECONDS}`);
      }
      return send(exchange, bytes);
    },
  };
}

/**
 * The media type that clients request. As in upstream, the response has SWAGGER_PROTOBUF instead, because a Content-Type cannot
 * contain @.
 */
const SWAGGER_PROTOBUF_REQUESTED = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';
const SWAGGER_PROTOBUF = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';
const isSwaggerProtobuf = (range: MediaRange): boolean =>
  range.type === SWAGGER_PROTOBUF || range.type === SWAGGER_PROTOBUF_REQUESTED;

/**
 * Sends a Swagger document without kinds, in protobuf. kubectl requests Swagger in protobuf for kinds that v3 does not contain,
 * such as a v1 List or a kind that is not served, and fails if the request is refused. Because the document contains no kinds,
 * kubectl leaves validation to the server, as it does for the kinds in v3.
 * Source: the message Document of openapiv2 in google/gnostic.
 */
async function sendSwaggerProtobuf(exchange: Exchange, version: string): Promise<void> {
  const { default: protobuf } = await import('protobufjs/minimal.js');
  const writer = protobuf.Writer.create();
  writer.uint32(SWAGGER_FIELD).string('2.0');
  writer
    .uint32(INFO_FIELD)
    .fork()
    .uint32(TITLE_FIELD)
    .string('Kubernetes')
    .uint32(VERSION_FIELD)
    .string(version)
    .ldelim();
  const body = writer.finish();
  startAnswer(exchange, 200, { 'Content-Type': SWAGGER_PROTOBUF, 'Content-Length': body.length });
  exchange.response.end(body);
}

async function send(exchange: Exchange, compressed: Buffer): Promise<void> {
  if (!acceptsGzip(exchange.request)) {
    exchange.response.setHeader('Vary', 'Accept-Encoding');
    return sendBody(exchange, 200, 'application/json', (await gunzipAsync(compressed)).toString());
  }
  startAnswer(exchange, 200, {
    'Content-Type': 'application/json',
    Vary: 'Accept-Encoding',
    'Content-Length': compressed.length,
    'Content-Encoding': 'gzip',
  });
  exchange.response.end(compressed);
}
