/** Uses a CRI server that returns various codes or is shut down. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Server, ServerCredentials, type ServiceDefinition, status } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemTimers } from '../../platform/node-js.ts';
import type { Log } from '../../platform/platform.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { type ContainerRuntime, ExecTimeoutError, OutcomeUnknownError } from '../runtime.ts';
import { connectRuntime } from './cri-runtime.ts';
import { execSync } from './exec.ts';

const never = new AbortController().signal;
const log: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => log,
};
const definition = loadSync(fileURLToPath(new URL('protos/cri.proto', import.meta.url)));

type Answer = (error: { code: number; details: string } | null, response?: object) => void;

let folder: string;
let server: Server;
let runtime: ContainerRuntime;
/** Answers each call to the runtime, except the method Version. */
let handle: (answer: Answer) => void;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-cri-outcome-'));
  server = new Server();
  const call = (_call: unknown, answer: Answer): void => handle(answer);
  const version = (_call: unknown, answer: Answer): void =>
    answer(null, { runtimeName: 'test', runtimeVersion: '1', runtimeApiVersion: 'v1' });
  server.addService(definition['runtime.v1.RuntimeService'] as unknown as ServiceDefinition, {
    Version: version,
    StartContainer: call,
    StopPodSandbox: call,
    ContainerStatus: call,
    ExecSync: call,
  });
  server.addService(definition['runtime.v1.ImageService'] as unknown as ServiceDefinition, {
    PullImage: call,
    ImageStatus: call,
  });
  const endpoint = `unix://${join(folder, 'cri.sock')}`;
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(endpoint, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve())),
  );
  runtime = await connectRuntime({ endpoint, log, timers: systemTimers() });
});

afterEach(async () => {
  await runtime.close();
  server.forceShutdown();
  rmSync(folder, { recursive: true, force: true });
});

const rejection = (promise: Promise<unknown>): Promise<Error> =>
  promise.then(
    () => new Error('it was resolved'),
    (error: Error) => error,
  );

test.each([
  [status.UNAVAILABLE, 'Unavailable'],
  [status.DEADLINE_EXCEEDED, 'DeadlineExceeded'],
  [status.CANCELLED, 'Canceled'],
])('code %s (%s) means that the outcome of a call is unknown', async (code, name) => {
  handle = (answer) => answer({ code, details: 'shim' });
  const error = await rejection(runtime.startContainer('c', never));
  expect(error).toBeInstanceOf(OutcomeUnknownError);
  expect(error.message).toBe(`rpc error: code = ${name} desc = shim`);
  expect(await rejection(runtime.imageStatus('i', never))).toBeInstanceOf(OutcomeUnknownError);
});

test('a call that returns the code Unknown rejects with a RuntimeCallError', async () => {
  handle = (answer) => answer({ code: status.UNKNOWN, details: 'no' });
  const error = await rejection(runtime.stopSandbox('s', never));
  expect(error).toMatchObject({ name: 'RuntimeCallError', code: 'Unknown', details: 'no' });
});

test('a pull that fails because the registry did not respond rejects with a RuntimeCallError, whatever the code', async () => {
  for (const code of [status.UNAVAILABLE, status.DEADLINE_EXCEEDED, status.CANCELLED]) {
    handle = (answer) => answer({ code, details: 'failed to do request: Head "http://r/v2/": dial tcp: i/o timeout' });
    expect(await rejection(runtime.pullImage('r/i', undefined, never))).toMatchObject({ name: 'RuntimeCallError' });
  }
});

test('the outcome of a call is unknown if the connection is cut during the call, or is refused', async () => {
  handle = () => setImmediate(() => server.forceShutdown());
  const calls = [runtime.pullImage('r/i', undefined, never), runtime.execSync('c', ['true'], 0, never)];
  for (const call of calls) expect(await rejection(call)).toBeInstanceOf(OutcomeUnknownError);
  expect(await rejection(runtime.startContainer('c', never))).toBeInstanceOf(OutcomeUnknownError);
  expect(await rejection(runtime.pullImage('r/i', undefined, never))).toBeInstanceOf(OutcomeUnknownError);
});

test('an aborted call rejects with the reason of the signal', async () => {
  const wanted = new AbortController();
  handle = () => wanted.abort(new Error('not wanted any more'));
  expect((await rejection(runtime.startContainer('c', wanted.signal))).message).toBe('not wanted any more');
});

test('DeadlineExceeded is a timeout of a command that has one, and otherwise means an unknown outcome', async () => {
  handle = (answer) => answer({ code: status.DEADLINE_EXCEEDED, details: 'timeout 1s exceeded' });
  expect(await rejection(runtime.execSync('c', ['true'], 1000, never))).toBeInstanceOf(ExecTimeoutError);
  expect(await rejection(runtime.execSync('c', ['true'], 0, never))).toBeInstanceOf(OutcomeUnknownError);
});

test('a command times out after its timeout even if the runtime does not respond', async () => {
  const timers = createVirtualTimers();
  const unary = (_method: string, _request: object, signal: AbortSignal): Promise<never> =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  const running = execSync({ unary } as never, timers, { id: 'c', command: ['true'], timeoutMillis: 1000 }, never);
  timers.advance(1000);
  expect(await rejection(running)).toBeInstanceOf(ExecTimeoutError);
});

test.each([
  'failed to kill container "c": ttrpc: closed: unknown',
  'failed to kill container "c": context canceled: unknown',
])('the stop of a sandbox whose container has just exited is retried: %s', async (reason) => {
  let calls = 0;
  handle = (answer) => {
    calls += 1;
    if (calls < 3) answer({ code: status.UNKNOWN, details: `failed to stop container "c": ${reason}` });
    else answer(null, {});
  };
  await runtime.stopSandbox('s', never);
  expect(calls).toBe(3);
});

test('a call that arrives before containerd has recovered its state has an unknown outcome', async () => {
  handle = (answer) => answer({ code: status.UNKNOWN, details: 'server is not initialized yet' });
  const error = await rejection(runtime.startContainer('c', never));
  expect(error).toBeInstanceOf(OutcomeUnknownError);
  expect(error.message).toBe('rpc error: code = Unavailable desc = server is not initialized yet');
});
