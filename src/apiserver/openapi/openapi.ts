/**
 * Serves the OpenAPI documents, which kubectl uses for `explain`, for validation, and for the merge keys of `apply`. A change of the
 * catalog discards all documents.
 */
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { KindCatalog } from '../../api/catalog.ts';
import { isApiError, notAcceptable, pathNotFound } from '../../machinery/status.ts';
import { sendGzipped, sendJson, sendParts, sendText } from '../http/answers.ts';
import { acceptsGzip, type Exchange, startAnswer } from '../http/exchange.ts';
import { acceptedRanges, isJson, type MediaRange } from '../http/negotiate.ts';
import { type Documents, documentsOf } from './documents.ts';

const gunzipAsync = promisify(gunzip);
const YEAR_SECONDS = 365 * 24 * 60 * 60;
const JSON_TYPE = 'application/json';
/** Clients request this media type. As in upstream, the response has SWAGGER_PROTOBUF instead, because a Content-Type cannot contain @. */
const SWAGGER_PROTOBUF_REQUESTED = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';
const SWAGGER_PROTOBUF = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';
const isSwaggerProtobuf = ({ type }: MediaRange): boolean =>
  type === SWAGGER_PROTOBUF || type === SWAGGER_PROTOBUF_REQUESTED;

export interface OpenApi {
  /**
   * `segments`: the segments of the URL path, starting with 'openapi'. Rejects with 404 NotFound if there is no such document, and 406
   * NotAcceptable if the client accepts none of its formats.
   */
  serve(exchange: Exchange, segments: readonly string[]): Promise<void>;
}

interface Answer {
  contentType: string;
  gzipped: Buffer;
  /** Without quotes. */
  tag: string;
}

export function openApi(catalog: KindCatalog, version: string): OpenApi {
  const current = catalog.view((kinds) => documentsOf(kinds, version));
  /**
   * Calls `make` again if the kinds changed meanwhile. A build of a document that takes several turns may fail when one of its kinds is
   * removed, because the types of the kind are removed, too.
   */
  const settled = async <T>(make: (documents: Documents) => Promise<T>): Promise<T> => {
    const documents = current();
    try {
      const made = await make(documents);
      if (documents === current()) return made;
    } catch (error) {
      if (documents === current()) throw error;
    }
    return settled(make);
  };

  async function serve(exchange: Exchange, segments: readonly string[]): Promise<void> {
    const [, form, ...rest] = segments;
    const path = rest.join('/');
    const ranges = acceptedRanges(exchange.request.headers.accept);
    if (form === 'v2' && path === '') {
      const range = ranges.find((each) => isJson(each) || isSwaggerProtobuf(each));
      if (range === undefined) throw notAcceptable([JSON_TYPE, SWAGGER_PROTOBUF_REQUESTED]);
      return send(exchange, await settled(swaggerIn(isJson(range) ? 'json' : 'protobuf')));
    }
    if (!ranges.some(isJson)) throw notAcceptable([JSON_TYPE]);
    if (form !== 'v3') throw pathNotFound();
    if (path === '') return sendJson(exchange, 200, await indexOf(current()));
    const answer = await settled((documents) => groupVersion(documents, path));
    if (exchange.query.get('hash') === answer.tag) {
      exchange.response.setHeader('Cache-Control', `public, immutable, max-age=${YEAR_SECONDS}`);
    }
    return send(exchange, answer);
  }
  return {
    async serve(exchange, segments) {
      try {
        await serve(exchange, segments);
      } catch (error) {
        // As upstream, respond with plain text, because kubectl shows the cause of this failure only if the response is plain text.
        if (!isApiError(error, 'InternalError')) throw error;
        return sendText(exchange, error.code, error.message);
      }
    },
  };
}

async function indexOf({ groupVersions, hash }: Documents): Promise<object> {
  const paths = groupVersions.map(async (path) => [
    path,
    { serverRelativeURL: `/openapi/v3/${path}?hash=${await hash(path)}` },
  ]);
  return { paths: Object.fromEntries(await Promise.all(paths)) };
}

async function groupVersion({ groupVersions, v3, hash }: Documents, path: string): Promise<Answer> {
  if (!groupVersions.includes(path)) throw pathNotFound();
  return { contentType: JSON_TYPE, gzipped: await v3(path), tag: await hash(path) };
}

const swaggerIn =
  (form: 'json' | 'protobuf') =>
  async ({ v2, hash }: Documents): Promise<Answer> => ({
    contentType: form === 'json' ? JSON_TYPE : SWAGGER_PROTOBUF,
    gzipped: await v2(form),
    tag: `${await hash()}-${form}`,
  });

async function send(exchange: Exchange, { contentType, gzipped, tag }: Answer): Promise<void> {
  const { request, response } = exchange;
  const etag = `"${tag}"`;
  response.setHeader('ETag', etag);
  response.setHeader('Vary', 'Accept, Accept-Encoding');
  const had = (request.headers['if-none-match'] ?? '').split(',').map((each) => each.trim());
  if (had.includes(etag)) {
    startAnswer(exchange, 304, {});
    response.end();
    return;
  }
  if (acceptsGzip(request)) return sendGzipped(exchange, contentType, gzipped);
  return sendParts(exchange, 200, contentType, [await gunzipAsync(gzipped)]);
}
