/**
 * The client of an API server in another process. Idle connections do not keep the process alive.
 *
 * Calls reject with an ApiError: with the server's Status, with 503 ServiceUnavailable if the server does not send a complete and valid
 * response, or with the reason Unknown if the server reports a failure without a Status.
 */

import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import type { Readable } from 'node:stream';
import { text as readText } from 'node:stream/consumers';
import type { KubeList, KubeObject, ResourceRef, Status } from '../machinery/meta.ts';
import { ApiError, isApiError, serviceUnavailable, unauthorized } from '../machinery/status.ts';
import { USER_AGENT } from '../platform/version/version.ts';
import type { DeleteOptions, ResourceApi, WatchEvent, WriteOptions } from '../ports/backend.ts';
import type { Client } from './client.ts';
import { jsonLines } from './json-lines.ts';
import { queryText, resourcePath } from './paths.ts';
import { limitSilence } from './silence.ts';
import { clientOf } from './typed-client.ts';

export interface HttpClientOptions {
  /** Such as `https://127.0.0.1:6443`. */
  server: string;
  caPem: string;
  /** Absent if the user has only a token. */
  certPem?: string;
  keyPem?: string;
  /** Absent if the user has only a certificate. */
  token?: string;
  /** Returns the error message for a server that cannot be reached. Undefined: the message names the server and the error. */
  unreachable?: (error: NodeJS.ErrnoException) => string | undefined;
  /** Returns the error message for a server that does not accept the credentials. Absent: the message of the server. */
  refused?(): string;
  /**
   * A call fails if the server is silent for this long; a watch, open() or post() fails only if its TLS handshake takes this long.
   * Undefined: one minute.
   */
  silenceMillis?: number;
  /**
   * Called when a request is sent. The returned function is called, perhaps repeatedly, when the response begins or the request ends; for a
   * watch, open() or post(), also when the TLS handshake is complete.
   */
  sent?: () => () => void;
}

const SILENCE_MILLIS = 60_000;

export interface HttpClient extends Client {
  /**
   * Sends a GET, or a POST without a body, and resolves to the body of the response, which need not be JSON and may be endless, such as a
   * log. The body is destroyed when `signal` aborts. Rejects with an ApiError if the request fails; if the connection is lost later, the
   * body emits an error.
   */
  open(path: string, signal: AbortSignal, method?: 'GET' | 'POST'): Promise<Readable>;
  /** Sends a POST without a body, and resolves to the body of the response, however long that takes. Rejects with an ApiError. */
  post(path: string, signal: AbortSignal): Promise<string>;
  /** Ends the calls that are under way, which would keep the process alive. */
  close(): void;
}

export function httpClient(options: HttpClientOptions): HttpClient {
  const connected = connection(options);
  return {
    ...clientOf(httpBackend(connected)),
    open: (path, signal, method = 'GET') => connected.open({ method, path }, { signal }),
    close: connected.close,
    post: async (path, signal) => {
      const response = await connected.open({ method: 'POST', path }, { signal });
      return readText(response).catch((error: Error) => {
        throw serviceUnavailable(`the response of the API server is incomplete: ${error.message}`);
      });
    },
  };
}

interface Call {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  body?: { contentType: string; value: unknown };
  onWarning?: (text: string) => void;
}

interface CallSettings {
  signal?: AbortSignal;
  /** Whether the server must answer within `silenceMillis`, not only complete the TLS handshake. */
  answersSoon?: boolean;
}

interface Connection {
  /** Resolves once the headers of the response have arrived; the caller reads the body. Rejects unless the status is 2xx. */
  open(call: Call, options: CallSettings): Promise<IncomingMessage>;
  close(): void;
}

function connection(options: HttpClientOptions): Connection {
  const { caPem, certPem, keyPem, token, silenceMillis = SILENCE_MILLIS } = options;
  const certificate = certPem === undefined || keyPem === undefined ? {} : { cert: certPem, key: keyPem };
  const agent = new Agent({ keepAlive: true, ca: caPem, ...certificate });
  const closing = new AbortController();
  const send = (call: Call, settings: CallSettings): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const body = call.body === undefined ? undefined : Buffer.from(JSON.stringify(call.body.value));
      const headers = {
        accept: 'application/json',
        'user-agent': USER_AGENT,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': call.body?.contentType, 'content-length': body.length }),
      };
      const url = new URL(call.path, options.server);
      const signal =
        settings.signal === undefined ? closing.signal : AbortSignal.any([settings.signal, closing.signal]);
      const outgoing = request(url, { method: call.method, agent, headers, signal }, resolve);
      limitSilence(outgoing, silenceMillis, settings.answersSoon === true, options.sent?.());
      outgoing.on('error', (error) => reject(isStale(outgoing, error, call) ? new StaleConnection() : error));
      outgoing.end(body);
    });

  return {
    close: () => closing.abort(),
    async open(call, settings) {
      const response = await send(call, settings)
        .catch((error) => {
          if (error instanceof StaleConnection) return send(call, settings);
          throw error;
        })
        .catch((error: Error) => {
          const composed = options.unreachable?.(error);
          throw Object.assign(serviceUnavailable(composed ?? unreachableText(options.server, error)), { cause: error });
        });
      for (const warning of response.headersDistinct['warning'] ?? []) call.onWarning?.(warningText(warning));
      if ((response.statusCode ?? 0) >= 300) throw await failureOf(response, options.refused);
      return response;
    },
  };
}

/** The codes of TLS errors for a server certificate that the authority in the kubeconfig has not issued. */
const OTHER_AUTHORITY: readonly (string | undefined)[] = [
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_SIGNATURE_FAILURE',
];

/** Whether the error shows that the server at the address in the kubeconfig is not the server for which the kubeconfig was written. */
export const isOtherServer = ({ code }: NodeJS.ErrnoException): boolean => OTHER_AUTHORITY.includes(code);

const unreachableText = (server: string, error: Error): string =>
  isOtherServer(error)
    ? `the server at ${server} is not that of the kubeconfig: another certificate authority has issued its certificate (${error.message})`
    : `cannot reach the API server at ${server}: ${error.message}`;

/** The server closed a keep-alive connection before it responded to a GET, which is safe to send again. */
class StaleConnection extends Error {}

const isStale = (outgoing: ClientRequest, error: NodeJS.ErrnoException, call: Call): boolean =>
  outgoing.reusedSocket && error.code === 'ECONNRESET' && call.method === 'GET';

/** Returns the quoted text of a Warning header, such as `text` in `299 - "text"`; the header if it has none. Source: RFC 7234, 5.5. */
function warningText(header: string): string {
  const quoted = /"((?:[^"\\]|\\.)*)"/.exec(header)?.[1];
  return quoted === undefined ? header : quoted.replace(/\\(.)/g, '$1');
}

async function failureOf(response: IncomingMessage, refused: HttpClientOptions['refused']): Promise<ApiError> {
  const body = await readText(response).catch(() => '');
  const code = response.statusCode ?? 500;
  if (code === 401 && refused !== undefined) return unauthorized(refused());
  try {
    const status = JSON.parse(body) as Status;
    if (status.kind === 'Status') return new ApiError({ ...status, code: status.code ?? code });
  } catch {
    // The body is not JSON, for example because a proxy between lifepod and the API server has answered.
  }
  const message = body.trim() || `the server answered ${code}`;
  return new ApiError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason: 'Unknown',
    code,
  });
}

function httpBackend(connection: Connection): ResourceApi {
  async function send<T>(call: Call): Promise<T> {
    const response = await connection.open(call, { answersSoon: true });
    try {
      return JSON.parse(await readText(response)) as T;
    } catch (error) {
      throw serviceUnavailable(`the response of the API server is incomplete: ${(error as Error).message}`);
    }
  }
  const json = (value: unknown): Call['body'] => ({ contentType: 'application/json', value });

  return {
    get: (ref, namespace, name) => send<KubeObject>({ method: 'GET', path: resourcePath(ref, namespace, name) }),
    list: (ref, { namespace, ...query }) =>
      send<KubeList>({ method: 'GET', path: resourcePath(ref, namespace) + queryText(query) }),
    create: (ref, namespace, object, options = {}) =>
      send<KubeObject>({
        method: 'POST',
        path: resourcePath(ref, namespace, options.name, options.subresource) + queryText(writeQuery(options)),
        body: json(object),
        onWarning: options.onWarning,
      }),
    update: (ref, object, options = {}) =>
      send<KubeObject>({
        method: 'PUT',
        path:
          resourcePath(ref, object.metadata.namespace, object.metadata.name, options.subresource) +
          queryText(writeQuery(options)),
        body: json(object),
        onWarning: options.onWarning,
      }),
    patch: (ref, namespace, name, type, value, options = {}) =>
      send<KubeObject>({
        method: 'PATCH',
        path: resourcePath(ref, namespace, name, options.subresource) + queryText(writeQuery(options)),
        body: { contentType: type, value },
        onWarning: options.onWarning,
      }),
    delete: (ref, namespace, name, options = {}) =>
      send<KubeObject | Status>({
        method: 'DELETE',
        path: resourcePath(ref, namespace, name) + queryText(writeQuery(options)),
        body: json(deleteBody(options)),
        onWarning: options.onWarning,
      }),
    deleteCollection: (ref, options) => {
      const { namespace, labelSelector, fieldSelector, resourceVersion } = options;
      const query = { labelSelector, fieldSelector, resourceVersion, ...writeQuery(options) };
      return send<KubeList>({
        method: 'DELETE',
        path: resourcePath(ref, namespace) + queryText(query),
        body: json(deleteBody(options)),
        onWarning: options.onWarning,
      });
    },
    watch: (ref, options, sink, signal) => watch(connection, ref, options, sink, signal),
  };
}

const writeQuery = (options: WriteOptions): Record<string, string | undefined> => ({
  dryRun: options.dryRun === true ? 'All' : undefined,
  fieldManager: options.fieldManager,
  fieldValidation: options.fieldValidation,
});

const deleteBody = ({ gracePeriodSeconds, preconditions, propagationPolicy }: DeleteOptions): object => ({
  kind: 'DeleteOptions',
  apiVersion: 'v1',
  gracePeriodSeconds,
  preconditions,
  propagationPolicy,
});

const watch = async (
  connection: Connection,
  ref: ResourceRef,
  { namespace, ...query }: Parameters<ResourceApi['watch']>[1],
  sink: (event: WatchEvent) => void,
  signal: AbortSignal,
): Promise<void> => {
  const path = resourcePath(ref, namespace) + queryText({ ...query, watch: true });
  let response: IncomingMessage;
  try {
    response = await connection.open({ method: 'GET', path }, { signal });
  } catch (error) {
    if (signal.aborted && isApiError(error, 'ServiceUnavailable')) return;
    throw error;
  }
  const feed = jsonLines((event) => {
    if (!signal.aborted) sink(event as WatchEvent);
  });
  await new Promise<void>((resolve, reject) => {
    response.on('data', (chunk: Buffer) => {
      try {
        feed(chunk);
      } catch (error) {
        response.destroy();
        reject(serviceUnavailable(`the API server sent an invalid watch event: ${(error as Error).message}`));
      }
    });
    // A lost connection ends the watch without an error, as if the server had ended the watch. The caller then watches again.
    response.on('error', () => {});
    response.on('close', () => resolve());
  });
};
