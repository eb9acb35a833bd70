import { createPrivateKey } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { Agent } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCatalog } from '../api/catalog.ts';
import { kinds } from '../api/kinds.ts';
import { type RegistryBackend, registryBackend } from '../client/registry-fixture.ts';
import { systemTimers } from '../platform/node-js.ts';
import type { Log } from '../platform/platform.ts';
import type { ResourceBackend } from '../ports/backend.ts';
import type { NodeConnection } from '../ports/node-connection.ts';
import type { NodeReports } from '../ports/node-reports.ts';
import { type Sending, type SendOptions, testClient } from './client-fixture.ts';
import { makeLeaf } from './pki/certificates.ts';
import type { Pki } from './pki/pki.ts';
import { copiedPki } from './pki/pki-fixture.ts';
import { type ApiServer, type ApiServerOptions, startApiServer } from './server.ts';

/** With these kinds, the discovery and OpenAPI documents are short enough for a test to compare. */
export const fewKinds = kinds.filter(
  ({ group, plural }) =>
    (group === '' && ['bindings', 'configmaps', 'nodes', 'pods'].includes(plural)) || plural === 'leases',
);

const noNode = (): never => {
  throw new Error('no node in this test');
};

export const noNodes: NodeConnection & NodeReports = {
  logs: noNode,
  exec: noNode,
  execTurn: noNode,
  attach: noNode,
  portForward: noNode,
  usage: noNode,
  document: noNode,
};

export interface Recorded {
  log: Log;
  errors: { message: string; fields: Record<string, unknown> | undefined }[];
}

export function recordingLog(): Recorded {
  const errors: Recorded['errors'] = [];
  const ignore = (): void => undefined;
  const log: Log = {
    debug: ignore,
    info: ignore,
    warn: ignore,
    error: (message, fields) => void errors.push({ message, fields }),
    child: () => log,
  };
  return { log, errors };
}

export interface Answer {
  code: number;
  headers: IncomingMessage['headers'];
  text: string;
  /** Undefined if the body is compressed or its Content-Type is not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of many kinds
  json: any;
}

export interface TestServer extends AsyncDisposable {
  server: ApiServer;
  /** The backend that the server uses by default. A test may replace its methods. */
  backend: ResourceBackend;
  /** The registry behind `backend`, as another client calls it. */
  api: RegistryBackend;
  pki: Pki;
  errors: Recorded['errors'];
  dataDir: string;
  /** Resolves to the response once its body has arrived. Without `agent`, the client is the administrator. */
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  /** Like call(), but resolves once the headers of the response have arrived. */
  open(method: string, path: string, options?: CallOptions): Promise<IncomingMessage>;
  /** The test itself writes the body and ends it. */
  send(method: string, path: string, options?: Partial<SendOptions>): Sending;
  anonymous: Agent;
}

export interface CallOptions {
  body?: string | Uint8Array;
  headers?: Record<string, string>;
  agent?: Agent;
  signal?: AbortSignal;
}

/** Waits for `count` turns of the event loop, so that work that does not wait for I/O can proceed. */
export async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate);
}

export async function readText(response: IncomingMessage): Promise<string> {
  response.setEncoding('utf8');
  let text = '';
  for await (const chunk of response) text += chunk;
  return text;
}

export async function agentFor(
  { dataDir, pki }: { dataDir: string; pki: Pick<Pki, 'caCertificate'> },
  commonName: string,
  { organization, keepAlive = true }: { organization?: string; keepAlive?: boolean } = {},
): Promise<Agent> {
  const authority = {
    certificate: pki.caCertificate,
    key: createPrivateKey(readFileSync(join(dataDir, 'pki', 'ca.key'))),
  };
  const group = organization === undefined ? {} : { organization };
  const leaf = await makeLeaf(authority, { commonName, usage: 'client', ...group }, Date.now());
  return new Agent({ ca: pki.caCertificate, cert: leaf.certificate, key: leaf.key, keepAlive });
}

const VERSION = { version: 'v1.33.0+lifepod.0.0.0', gitCommit: 'abc', buildDate: '2026-01-31T12:00:00Z' };

export async function startTestServer(overrides: Partial<ApiServerOptions> = {}): Promise<TestServer> {
  const dataDir = mkdtempSync(join(tmpdir(), 'lifepod-apiserver-'));
  const pki = await copiedPki(dataDir);
  const timers = systemTimers();
  const api = await registryBackend({ timers, namespaces: [] });
  const backend = api.serving;
  const { log, errors } = recordingLog();
  const server = await startApiServer({
    backend,
    catalog: createCatalog(kinds),
    nodes: noNodes,
    pki,
    port: 0,
    ...VERSION,
    timers,
    log,
    ...overrides,
  }).catch((error: unknown) => {
    rmSync(dataDir, { recursive: true, force: true });
    throw error;
  });
  const trust = { ca: pki.caCertificate, keepAlive: true };
  const admin = new Agent({ ...trust, cert: pki.admin.certificate, key: pki.admin.key });
  const anonymous = new Agent(trust);
  const client = testClient(server);
  const send: TestServer['send'] = (method, path, options) =>
    client.send(method, path, { ...options, agent: options?.agent ?? admin });
  const open = async (method: string, path: string, options: CallOptions = {}): Promise<IncomingMessage> => {
    const { body: text, ...rest } = options;
    const length: Record<string, string> =
      text === undefined ? {} : { 'content-length': String(Buffer.byteLength(text)) };
    const { body, response } = send(method, path, {
      ...rest,
      headers: { ...length, ...options.headers },
      isWhole: text === undefined,
    });
    body.end(text);
    return response;
  };
  return {
    server,
    backend,
    api,
    pki,
    errors,
    dataDir,
    anonymous,
    open,
    send,
    async call(method, path, options) {
      const response = await open(method, path, options);
      const text = await readText(response);
      const isJson = response.headers['content-type']?.startsWith('application/json') === true;
      return {
        code: response.statusCode ?? 0,
        headers: response.headers,
        text,
        json: isJson && response.headers['content-encoding'] === undefined ? JSON.parse(text) : undefined,
      };
    },
    async [Symbol.asyncDispose]() {
      client.close();
      admin.destroy();
      anonymous.destroy();
      await server.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
