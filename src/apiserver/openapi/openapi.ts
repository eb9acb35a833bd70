/**
 * Serves the OpenAPI documents: an index at /openapi/v3, a document for each group version in the index, and one document for all
 * group versions at /openapi/v2.
 *
 * Boundary: the documents are built only from the kinds, the facts about their types and the descriptions. kubectl uses the documents for `explain`, for validation, and for the merge keys of `apply`.
 * Invariants:
 *  1. Between requests, the only documents in memory are the compressed ones that clients have requested. The large descriptions are
 *     read for each document that is built, and then released.
 *  2. A document and its hash change with the kinds in it: a change of the catalog discards all documents.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { KindCatalog } from '../../api/catalog.ts';
import facts from '../../api/facts/facts.json' with { type: 'json' };
import { ownFacts } from '../../api/facts/own.ts';
import type { KindDefinition } from '../../api/kind.ts';
import { notAcceptable, pathNotFound } from '../../machinery/status.ts';
import { sendBody, sendJson } from '../http/answers.ts';
import { acceptsGzip, type Exchange, startAnswer } from '../http/exchange.ts';
import { acceptedRanges, isJson, type MediaRange } from '../http/negotiate.ts';
import { kindPaths } from './paths.ts';
import { componentSchemas, type Descriptions } from './schemas.ts';
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
    components: { schemas: componentSchemas(kinds, descriptions) },
  };
}

/** The OpenAPI documents of a set of kinds. */
interface Documents {
  /** The paths of the group versions; each has a document. */
  groupVersions: readonly string[];
  /** Resolves to the compressed v3 document of the group version, which must be one of `groupVersions`. */
  v3(path: string): Promise<Buffer>;
  /** Resolves to the compressed v2 document of all group versions. */
  v2(): Promise<Buffer>;
  /** Resolves to a hash of everything from which the v3 document of the group version is built. */
  hash(path: string): Promise<string>;
}

function documentsOf(kinds: readonly KindDefinition[], version: string): Documents {
  const kindsOf = Map.groupBy(kinds, pathOf);
  const compressed = new Map<string, Promise<Buffer>>();
  let sources: Promise<string> | undefined;

  const build = (path: string, descriptions: Descriptions): OpenApiDocument =>
    openApiDocument(kindsOf.get(path) ?? [], descriptions, version);
  /** Returns the compressed document. Builds the document at the first request for it. */
  const document = (key: string, make: (descriptions: Descriptions) => unknown): Promise<Buffer> => {
    const known = compressed.get(key);
    if (known !== undefined) return known;
    const made = readFile(DESCRIPTIONS, 'utf8').then((text) => gzipAsync(JSON.stringify(make(JSON.parse(text)))));
    compressed.set(key, made);
    made.catch(() => compressed.delete(key));
    return made;
  };
  const hashOf = (...parts: (string | Buffer)[]): string =>
    parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest('hex');
  /** Resolves to a hash of what all documents have in common. */
  const sourcesHash = (): Promise<string> =>
    (sources ??= readFile(DESCRIPTIONS).then((descriptions) =>
      hashOf(JSON.stringify([facts, ownFacts]), descriptions),
    ));

  return {
    groupVersions: [...kindsOf.keys()],
    v3: (path) => document(path, (descriptions) => build(path, descriptions)),
    v2: () =>
      document('v2', (descriptions) => swaggerDocument([...kindsOf.keys()].map((path) => build(path, descriptions)))),
    hash: async (path) => hashOf(`${version} ${JSON.stringify(kindsOf.get(path))}`, await sourcesHash()).toUpperCase(),
  };
}

async function serveIndex(exchange: Exchange, { groupVersions, hash }: Documents): Promise<void> {
  const paths = groupVersions.map(async (path) => [
    path,
    { serverRelativeURL: `/openapi/v3/${path}?hash=${await hash(path)}` },
  ]);
  return sendJson(exchange, 200, { paths: Object.fromEntries(await Promise.all(paths)) });
}

export function openApi(catalog: KindCatalog, version: string): OpenApi {
  const documents = catalog.view((kinds) => documentsOf(kinds, version));
  return {
    async serve(exchange, segments) {
      const { groupVersions, v2, v3, hash } = documents();
      const [, form, ...rest] = segments;
      const path = rest.join('/');
      const ranges = acceptedRanges(exchange.request.headers.accept);
      if (!ranges.some(isJson)) {
        if (form !== 'v2' || path !== '' || !ranges.some(isSwaggerProtobuf)) throw notAcceptable(['application/json']);
        return sendSwaggerProtobuf(exchange, version);
      }
      if (form === 'v2' && path === '') {
        return send(exchange, await v2());
      }
      if (form !== 'v3') throw pathNotFound();
      if (path === '') return serveIndex(exchange, documents());
      if (!groupVersions.includes(path)) throw pathNotFound();
      const bytes = await v3(path);
      if (exchange.query.get('hash') === (await hash(path))) {
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
