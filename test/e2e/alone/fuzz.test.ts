/**
 * Sends random, mostly invalid requests and streams to one engine. LIFEPOD_FUZZ_REQUESTS sets the number of requests (default: 2,000); `npm
 * run test:long` sends 5,000 and `npm run fuzz` 50,000. LIFEPOD_FUZZ_SEED repeats a run with its printed seed.
 */

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { typeOfKind } from '../../../src/api/facts/facts.ts';
import { kinds } from '../../../src/api/kinds.ts';
import { decodeProtobuf } from '../../../src/apiserver/protobuf/decode.ts';
import { agentFor } from '../../../src/apiserver/server-fixture.ts';
import { checkAccess } from '../../support/access/check-access.ts';
import { CERTIFICATES } from '../../support/access/hostile-senders.ts';
import { type Call, HIDDEN, plant } from '../../support/access/planted.ts';
import { containerdPid } from '../../support/containerd.ts';
import { pathOf, validObject } from '../../support/hostile-objects.ts';
import { type HostileRequest, hostileBytes, hostileRequest } from '../../support/hostile-requests.ts';
import { hostileStream } from '../../support/hostile-streams.ts';
import { pod, WAIT } from '../../support/manifests.ts';
import { longestWait } from '../../support/other-client.ts';
import { lifepod, useOwnEngine } from '../../support/own-engine.ts';
import { adminOf, upgrade } from '../../support/raw-streams.ts';

const seed = Number(process.env['LIFEPOD_FUZZ_SEED'] ?? process.env['LIFEPOD_SEED']);
const total = Number(process.env['LIFEPOD_FUZZ_REQUESTS'] ?? 2000);
console.log(`fuzz: seed ${seed}, ${total} requests (LIFEPOD_FUZZ_SEED and LIFEPOD_FUZZ_REQUESTS set them)`);

const STREAMS = Math.ceil(total / 25);
const CONNECTIONS = Math.ceil(total / 25);
const ACCESS = Math.ceil(total / 8);
const REQUESTS = total - STREAMS - CONNECTIONS - ACCESS;
const TIMEOUT_MILLIS = 60_000 + total * 60;
const ANSWER_MILLIS = 60_000;
const OTHERS_WAIT_MILLIS = 5000;
const MEMORY_KIBIBYTES = 512 * 1024;

/** Upstream also returns these responses with a status code of 500 or higher. */
const UPSTREAM_FAILURES = [
  /^503 error trying to reach service: /,
  /^503 no endpoints available for service /,
  /^503 no service port -?\d+ found for service /,
  /^504 Too large resource version: \d+, current: \d+$/,
  /^500 resourceVersion should not be set on objects to be created$/,
  /^500 Internal error occurred: unable to upgrade connection: /,
  // A request may have deleted the only ServiceCIDR.
  /^500 Internal error occurred: failed to allocate a serviceIP: range is full$/,
];

let agent: Agent;
let containerd: number;
let memoryBefore: number;

const peakMemory = (): number =>
  Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${lifepod.pid()}/status`, 'utf8'))?.[1]);

/** The audit log records every request with its objects. */
const folder = mkdtempSync(join(tmpdir(), 'lifepod-fuzz-'));
const MAX_EVENT_BYTES = 100 * 1024;

useOwnEngine(() => {
  const policy = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [{ level: 'RequestResponse' }] };
  writeFileSync(join(folder, 'policy.json'), JSON.stringify(policy));
  const files = ['--audit-policy-file', join(folder, 'policy.json'), '--audit-log-path', join(folder, 'audit.log')];
  return {
    options: [...files, '--audit-log-truncate-enabled', '--audit-log-truncate-max-event-size', `${MAX_EVENT_BYTES}`],
  };
});
beforeAll(async () => {
  agent = new Agent({ ...adminOf(lifepod.kubeconfig), keepAlive: true });
  await lifepod.kubectlOk('create', 'namespace', 'kept');
  await lifepod.kubectlOk('create', 'namespace', 'other');
  const spec = { tolerations: [{ operator: 'Exists' }] };
  await lifepod.apply({
    ...pod('box', { app: [{ name: 'app', script: WAIT }], spec }),
    metadata: { name: 'box', namespace: 'kept' },
  });
  await lifepod.kubectlOk('-n', 'kept', 'wait', '--for=condition=Ready', 'pod/box', '--timeout=60s');
  for (const kind of kinds.filter(({ computed, createOnly }) => computed === undefined && createOnly === undefined))
    for (const name of ['one', 'two', 'three', 'four']) {
      const path = `${pathOf(kind)}${kind.namespaced ? '/namespaces/default' : ''}/${kind.plural}`;
      const body = JSON.stringify(validObject(kind, name));
      const { code, text } = await send({
        method: 'POST',
        path,
        headers: { 'content-type': 'application/json' },
        body,
      });
      // The core group and events.k8s.io have the same Events, so the second creation fails with 409.
      expect([201, 409], `${path}: ${text}`).toContain(code);
    }
  containerd = containerdPid(lifepod);
  memoryBefore = peakMemory();
});

afterAll(() => {
  agent?.destroy();
  rmSync(folder, { recursive: true });
});

/** The body is empty for a watch or a followed log, which are aborted. */
async function send(asked: HostileRequest): Promise<{ code: number; text: string }> {
  const { method, path, headers } = asked;
  const body = Buffer.from(asked.body, 'latin1');
  const outgoing = request({
    ...adminAddress(),
    agent,
    method,
    path,
    headers: { ...headers, 'content-length': body.length },
  });
  const deadline = setTimeout(() => outgoing.destroy(new Error('no response within the time limit')), ANSWER_MILLIS);
  try {
    outgoing.end(body);
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      outgoing.once('response', resolve).once('error', reject);
      outgoing.once('upgrade', (upgraded, socket) => {
        socket.destroy();
        resolve(upgraded);
      });
    });
    const code = answer.statusCode ?? 0;
    const isEndless = code < 300 && /[?&](watch|follow)=/.test(path);
    const pieces: Buffer[] = [];
    if (code !== 101 && !isEndless) for await (const piece of answer) pieces.push(piece as Buffer);
    if (isEndless) outgoing.destroy();
    return { code, text: textOf(Buffer.concat(pieces)) };
  } finally {
    clearTimeout(deadline);
  }
}

function textOf(body: Buffer): string {
  if (body.subarray(0, 4).toString() !== 'k8s\0') return body.toString();
  const object = decodeProtobuf(body, (apiVersion, kind) => {
    const [version = '', group = ''] = apiVersion.split('/').reverse();
    return typeOfKind(group, version, kind);
  });
  return JSON.stringify(object);
}

const adminAddress = (): { host: string; port: number } => {
  const { host, port } = agent.options;
  return { host: String(host), port: Number(port) };
};

interface Status {
  kind: string;
  code: number;
  message: string;
}

const messageOf = (text: string): string => {
  try {
    return (JSON.parse(text) as Status).message;
  } catch {
    return text;
  }
};

/** Without the cluster roles of the components, the engine refuses their requests, and useOwnEngine() then fails. */
const keepsRoles = ({ method, path }: HostileRequest): boolean =>
  method !== 'DELETE' || !path.toLowerCase().includes('/clusterrole');

test('every random request gets a response that is not an internal error', { timeout: TIMEOUT_MILLIS }, async () => {
  const codes = new Map<number, number>();
  await whileServingOthers(() =>
    fc.assert(
      fc.asyncProperty(hostileRequest.filter(keepsRoles), async (asked) => {
        const { code, text } = await send(asked);
        codes.set(code, (codes.get(code) ?? 0) + 1);
        // The response to HEAD has no body, so GET gives the message.
        const isHeadFailure = asked.method === 'HEAD' && code >= 500;
        const explained = isHeadFailure ? (await send({ ...asked, method: 'GET' })).text : text;
        const outcome = `${code} ${messageOf(explained)}`;
        if (code >= 500 && !UPSTREAM_FAILURES.some((each) => each.test(outcome)))
          throw new Error(`${outcome}\n${inspect(asked)}`);
        // A response to a head that is too large (431) has no Status, because the server has read neither user nor path.
        if (code < 400 || code === 431 || asked.method === 'HEAD') return;
        const status = JSON.parse(text) as Status;
        expect({ kind: status.kind, code: status.code }, inspect(asked)).toEqual({ kind: 'Status', code });
      }),
      { numRuns: REQUESTS, seed },
    ),
  );
  console.log(`fuzz: responses by status code: ${textOfCodes(codes)}`);
  // If the first check rejected almost all requests, some of these codes would not occur, and the test would cover little.
  for (const code of [200, 201, 400, 404, 409, 422]) expect(codes.get(code) ?? 0).toBeGreaterThan(0);
});

const textOfCodes = (codes: ReadonlyMap<number, number>): string =>
  [...codes]
    .sort()
    .map((pair) => pair.join(': '))
    .join(', ');

const inspect = ({ method, path, headers, body }: HostileRequest): string =>
  `${method} ${path} ${JSON.stringify(headers)} ${JSON.stringify(body.slice(0, 4000))}`;

async function whileServingOthers(attack: () => Promise<void>): Promise<void> {
  const longest = await longestWait(lifepod.kubeconfig, attack);
  console.log(`fuzz: other clients waited ${longest.toFixed(0)} ms at most`);
  expect(longest).toBeLessThan(OTHERS_WAIT_MILLIS);
}

test('random bytes instead of HTTP end only the connection on which they are sent', {
  timeout: TIMEOUT_MILLIS,
}, async () => {
  const admin = adminOf(lifepod.kubeconfig);
  await whileServingOthers(() =>
    fc.assert(
      fc.asyncProperty(hostileBytes, async (bytes) => {
        const socket = connect(admin);
        socket.setTimeout(ANSWER_MILLIS, () => socket.destroy(new Error('the connection did not end')));
        let text = '';
        socket.on('data', (piece: Buffer) => (text += piece.toString('latin1')));
        socket.on('error', () => undefined);
        const closed = new Promise((resolve) => socket.once('close', resolve));
        socket.end(bytes, 'latin1');
        await closed;
        expect(text).not.toMatch(/^HTTP\/1\.1 5/m);
      }),
      { numRuns: CONNECTIONS, seed },
    ),
  );
});

test('random bytes on a stream to a container end only this stream', { timeout: TIMEOUT_MILLIS }, async () => {
  await whileServingOthers(() =>
    fc.assert(
      fc.asyncProperty(hostileStream, async ({ stream, headers, bytes }) => {
        const path = `/api/v1/namespaces/kept/pods/box/${stream}`;
        const opened = await upgrade(lifepod.kubeconfig, path, headers).catch((error: Error) => error);
        if (opened instanceof Error) {
          expect(opened.message).toMatch(/got the response 4\d\d$/);
          return;
        }
        const stuck = setTimeout(() => opened.socket.destroy(new Error('the stream did not end')), ANSWER_MILLIS);
        opened.socket.end(bytes, 'latin1');
        await opened.closed;
        clearTimeout(stuck);
        expect(opened.socket.errored).toBe(null);
      }),
      { numRuns: STREAMS, seed },
    ),
  );
});

test('access is decided as the roles say, and responses to unauthorized requests contain nothing', {
  timeout: TIMEOUT_MILLIS,
}, async () => {
  const call: Call = async (method, path, body) => {
    const headers = { 'content-type': 'application/json' };
    const { code, text } = await send({ method, path, headers, body: body === undefined ? '' : JSON.stringify(body) });
    return { code, json: JSON.parse(text) };
  };
  const planted = await plant(call);
  // The engine learns of the bindings in their order, so it knows all of them once it knows the last one.
  const review = {
    spec: {
      user: 'jane',
      resourceAttributes: { verb: 'get', resource: 'pods', subresource: 'log', namespace: HIDDEN },
    },
  };
  const isKnown = async (): Promise<boolean> =>
    (await call('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', review)).json.status.allowed;
  while (!(await isKnown()));
  const { ca, host, port } = adminOf(lifepod.kubeconfig);
  const pki = { caCertificate: ca.toString() };
  const agents = new Map<string, Agent>();
  for (const [name, options] of Object.entries(CERTIFICATES))
    agents.set(name, await agentFor({ dataDir: lifepod.dataDir, pki }, name, options));
  const nodeList = await lifepod.get<{ items: { metadata: { name: string } }[] }>('nodes');
  const { metadata: { name: node } = { name: '' } } = nodeList.items[0] ?? {};
  const codes = await checkAccess(
    {
      ...planted,
      node,
      addressOf(certificate) {
        const { cert, key } = (agents.get(certificate)?.options ?? {}) as { cert?: string; key?: string };
        return { host, port, ca, ...(cert === undefined ? {} : { cert, key }) };
      },
      isUpstreams: ({ code, body }) => UPSTREAM_FAILURES.some((each) => each.test(`${code} ${messageOf(body)}`)),
    },
    { numRuns: ACCESS, seed },
  );
  console.log(`fuzz: responses about access by status code: ${textOfCodes(codes)}`);
  const countOf = (...wanted: number[]): number => wanted.reduce((sum, code) => sum + (codes.get(code) ?? 0), 0);
  for (const code of [400, 401, 403]) expect(countOf(code)).toBeGreaterThan(0);
  // About one request in a hundred gets 200, so a run may have none. Authorized requests for missing objects get 404.
  expect(countOf(200, 404)).toBeGreaterThan(0);
});

test('every line of the audit log is an event of limited size, and no event is lost', async () => {
  const stages = new Map<string, number>();
  for (const name of readdirSync(folder).filter((each) => each.startsWith('audit'))) {
    for (const line of readFileSync(join(folder, name), 'utf8').trimEnd().split('\n')) {
      expect(Buffer.byteLength(line)).toBeLessThanOrEqual(MAX_EVENT_BYTES);
      const { stage } = JSON.parse(line) as { stage: string };
      stages.set(stage, (stages.get(stage) ?? 0) + 1);
    }
  }
  expect(stages.get('ResponseComplete')).toBeGreaterThan(REQUESTS);
  expect(stages.has('Panic')).toBe(false);
  expect(await lifepod.kubectlOk('get', '--raw', '/metrics')).not.toMatch(/^apiserver_audit_error_total/m);
});

test('the engine, its runtime and its Pods still run after all random requests', async () => {
  expect(containerdPid(lifepod)).toBe(containerd);
  expect(await lifepod.kubectl('-n', 'kept', 'exec', 'box', '--', 'echo', 'still there')).toMatchObject({
    code: 0,
    stdout: 'still there\n',
  });
  const { status } = await lifepod.get<{ status: { containerStatuses: { restartCount: number }[] } }>(
    '-n',
    'kept',
    'pod',
    'box',
  );
  expect(status.containerStatuses[0]?.restartCount).toBe(0);
  const log = readFileSync(join(lifepod.dataDir, 'lifepod.log'), 'utf8');
  expect(log.split('\n').filter((line) => line.includes('request failed'))).toEqual([]);
  console.log(`fuzz: the peak memory of the engine grew by ${Math.round((peakMemory() - memoryBefore) / 1024)} MiB`);
  expect(peakMemory() - memoryBefore).toBeLessThan(MEMORY_KIBIBYTES);
});
