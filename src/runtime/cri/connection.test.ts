import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Metadata, Server, ServerCredentials, type ServerWritableStream, status } from '@grpc/grpc-js';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { OutcomeUnknownError } from '../runtime.ts';
import {
  type Connection,
  callErrorOf,
  connect,
  delay,
  hasCode,
  RuntimeCallError,
  type RuntimeErrorCode,
  runtimeInitialized,
} from './connection.ts';
import { serviceOf } from './definitions.ts';

const VERSION = 'runtime.v1.RuntimeService/Version';
const EVENTS = 'runtime.v1.RuntimeService/GetContainerEvents';
const { signal: never } = new AbortController();

type Answer = (error: { code: number; details: string } | null, response?: object) => void;
let folder: string;
let server: Server;
let connection: Connection;
let handle: (answer: Answer, metadata: Metadata) => void;
let streams: ServerWritableStream<object, object>[];
let ended: [method: string, seconds: number, failed: boolean][];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-connection-'));
  server = new Server();
  server.addService(serviceOf('runtime.v1.RuntimeService'), {
    Version: ({ metadata }: { metadata: Metadata }, answer: Answer) => handle(answer, metadata),
    GetContainerEvents: (stream: ServerWritableStream<object, object>) => void streams.push(stream),
  });
  const endpoint = `unix://${join(folder, 'cri.sock')}`;
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(endpoint, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve())),
  );
  connection = connect(endpoint, (...call) => void ended.push(call));
});
beforeEach(() => {
  [streams, ended] = [[], []];
});
afterAll(() => {
  connection.close();
  server.forceShutdown();
  rmSync(folder, { recursive: true });
});

const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'it was resolved',
    (error: unknown) => error,
  );

test('the end of each call is reported with its duration and with whether it failed', async () => {
  const begun = performance.now();
  handle = (answer, metadata) => answer(null, { runtimeName: String(metadata.get('containerd-namespace')) });
  expect(await connection.unary(VERSION, {}, never)).toMatchObject({ runtimeName: 'k8s.io' });
  expect(await connection.unaryWhenReachable(VERSION, {}, never)).toMatchObject({ runtimeName: 'k8s.io' });
  handle = (answer) => answer({ code: status.NOT_FOUND, details: 'no' });
  expect(await rejection(connection.unary(VERSION, {}, never))).toEqual(new RuntimeCallError('NotFound', 'no'));
  expect(ended.map(([method, , failed]) => [method, failed])).toEqual([
    [VERSION, false],
    [VERSION, false],
    [VERSION, true],
  ]);
  const inAll = (performance.now() - begun) / 1000;
  expect(ended.every(([, seconds]) => seconds > 0 && seconds <= inAll)).toBe(true);
});

test('a call has an unknown outcome after its time limit, and a limit of 0 means no limit', async () => {
  const answers: Answer[] = [];
  handle = (answer) => void answers.push(answer);
  const error = await rejection(connection.unary(VERSION, {}, never, 1));
  expect(error).toBeInstanceOf(OutcomeUnknownError);
  expect(callErrorOf(error)).toMatchObject({ code: 'DeadlineExceeded', answered: false });
  handle = (answer) => answer(null, { runtimeName: 'x' });
  expect(await connection.unary(VERSION, {}, never, 0)).toMatchObject({ runtimeName: 'x' });
});

test.each<[number, RuntimeErrorCode, boolean]>([
  [status.UNKNOWN, 'Unknown', false],
  [status.INTERNAL, 'Internal', false],
  [status.UNAVAILABLE, 'Unavailable', true],
])(
  'the runtime itself has answered with the error %d, whose code is %s and whose outcome is unknown: %s',
  async (code, name, isUnknown) => {
    handle = (answer) => answer({ code, details: 'Received RST_STREAM' });
    const error = await rejection(connection.unary(VERSION, {}, never));
    expect(error instanceof OutcomeUnknownError).toBe(isUnknown);
    expect(callErrorOf(error)).toMatchObject({ code: name, details: 'Received RST_STREAM', answered: true });
  },
);

test('only errors of calls have a code', () => {
  const call = new RuntimeCallError('NotFound', 'no');
  const unknown = new OutcomeUnknownError('no', { cause: call });
  expect([call, unknown].map((error) => hasCode(error, 'NotFound'))).toEqual([true, true]);
  expect(hasCode(call, 'Unknown')).toBe(false);
  const others = [new Error('no', { cause: call }), new OutcomeUnknownError('no'), undefined];
  expect(others.map(callErrorOf)).toEqual([undefined, undefined, undefined]);
});

test('a call or a stream with an aborted signal is not made', async () => {
  const reason = new Error('enough');
  handle = () => expect.unreachable();
  expect(await rejection(connection.unary(VERSION, {}, AbortSignal.abort(reason)))).toBe(reason);
  expect(await rejection(connection.stream(EVENTS, {}, () => undefined, AbortSignal.abort(reason)))).toBe(reason);
  expect([streams, ended]).toEqual([[], []]);
});

test('a stream passes on its messages, and rejects with the reason of its end', async () => {
  const messages: unknown[] = [];
  const opened = async (signal = never) => {
    const count = streams.length + 1;
    const stream = connection.stream(EVENTS, {}, (message) => messages.push(message), signal);
    const rejected = rejection(stream);
    await vi.waitFor(() => expect(streams).toHaveLength(count));
    return { rejected };
  };
  const normal = await opened();
  streams[0]?.write({ containerId: 'c1' });
  streams[0]?.end();
  expect(await normal.rejected).toEqual(new RuntimeCallError('Unavailable', 'the runtime ended the stream'));
  expect(messages).toMatchObject([{ containerId: 'c1' }]);
  const failed = await opened();
  streams[1]?.emit('error', { code: status.UNIMPLEMENTED, details: 'no' });
  expect(await failed.rejected).toEqual(new RuntimeCallError('Unimplemented', 'no'));
  const abort = new AbortController();
  const aborted = await opened(abort.signal);
  abort.abort(new Error('enough'));
  expect(await aborted.rejected).toEqual(new Error('enough'));
});

test('the runtime is asked every 10 ms until it is initialized', async () => {
  const timers = createVirtualTimers(0);
  const times: number[] = [];
  const unaryWhenReachable = async (method: string): Promise<object> => {
    expect(method).toBe('runtime.v1.RuntimeService/Status');
    times.push(timers.now());
    if (times.length < 3) throw new RuntimeCallError('Unavailable', 'no');
    return {};
  };
  let initialized = false;
  void runtimeInitialized({ unaryWhenReachable } as unknown as Connection, timers, never).then(() => {
    initialized = true;
  });
  await timers.run(() => initialized, 60_000);
  expect([initialized, times]).toEqual([true, [0, 10, 20]]);
});

test('the wait until a runtime is initialized ends with any error other than Unavailable', async () => {
  const error = new RuntimeCallError('Unimplemented', 'no');
  const unaryWhenReachable = vi.fn(() => Promise.reject(error));
  const asking = runtimeInitialized({ unaryWhenReachable } as unknown as Connection, createVirtualTimers(), never);
  await expect(asking).rejects.toBe(error);
  expect(unaryWhenReachable).toHaveBeenCalledOnce();
});

test('a delay ends after its time, or with the reason of an abort', async () => {
  const timers = createVirtualTimers(0);
  const reason = new Error('enough');
  const abort = new AbortController();
  const delayed = delay(5, timers, never).then(() => timers.now());
  const aborted = rejection(delay(5, timers, abort.signal));
  abort.abort(reason);
  timers.advance(5);
  expect([await delayed, await aborted]).toEqual([5, reason]);
  expect(await rejection(delay(5, timers, abort.signal))).toBe(reason);
});
