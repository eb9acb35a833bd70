import { beforeEach, expect, test } from 'vitest';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import { ExecTimeoutError, MAX_EXEC_OUTPUT_BYTES } from '../runtime.ts';
import { type Connection, RuntimeCallError } from './connection.ts';
import { execSync } from './exec.ts';

const OUTPUT = { stdout: Buffer.from('out'), stderr: Buffer.from('err'), exitCode: 3 };

let timers: VirtualTimers;
let requests: { request: object; timeoutMillis: number | undefined }[];
let response: PromiseWithResolvers<object>;
beforeEach(() => {
  timers = createVirtualTimers();
  requests = [];
  response = Promise.withResolvers();
});

const connection = {
  unary(_: string, request: object, signal: AbortSignal, timeoutMillis?: number) {
    requests.push({ request, timeoutMillis });
    signal.addEventListener('abort', () => response.reject(signal.reason));
    return response.promise;
  },
} as unknown as Connection;
const exec = (timeoutMillis: number, signal = new AbortController().signal) =>
  execSync(connection, timers, { id: 'c1', command: ['ls', '-l'], timeoutMillis }, signal);

test.each([
  [0, { timeout: 0 }, 0],
  [1500, { timeout: 2 }, 121_500],
])('a command with a timeout of %i ms sends the timeout in whole seconds', async (millis, request, limit) => {
  response.resolve(OUTPUT);
  expect(await exec(millis)).toEqual({ exitCode: 3, stdout: 'out', stderr: 'err' });
  const expected = { containerId: 'c1', cmd: ['ls', '-l'], ...request };
  expect(requests).toEqual([{ request: expected, timeoutMillis: limit }]);
});

test('only the beginning of the output of a command is returned', async () => {
  const stdout = Buffer.alloc(MAX_EXEC_OUTPUT_BYTES + 1, 'a');
  response.resolve({ ...OUTPUT, stdout, stderr: stdout });
  const result = await exec(0);
  expect([result.stdout.length, result.stderr.length]).toEqual([MAX_EXEC_OUTPUT_BYTES, MAX_EXEC_OUTPUT_BYTES]);
});

test('a command is canceled when its timeout has passed', async () => {
  const running = exec(1000);
  timers.advance(999);
  expect(await Promise.race([running, Promise.resolve('runs')])).toBe('runs');
  timers.advance(1);
  await expect(running).rejects.toThrow(ExecTimeoutError);
});

test('a command is canceled with the reason of the signal', async () => {
  const abort = new AbortController();
  const running = exec(1000, abort.signal);
  abort.abort(new Error('the Pod ends'));
  await expect(running).rejects.toThrow('the Pod ends');
});

test('a command whose signal has aborted before does not start', async () => {
  await expect(exec(0, AbortSignal.abort(new Error('the Pod ends')))).rejects.toThrow('the Pod ends');
  expect(requests).toEqual([]);
});

test.each([
  ['reports a timeout', 1000, new RuntimeCallError('DeadlineExceeded', 'late'), true],
  ['reports a timeout of a command without one', 0, new RuntimeCallError('DeadlineExceeded', 'late'), false],
  ['does not answer in time', 1000, new RuntimeCallError('DeadlineExceeded', 'late', false), false],
  ['reports another error', 1000, new RuntimeCallError('Unknown', 'failed'), false],
])('whether a command has timed out if the runtime %s', async (_, millis, error, hasTimedOut) => {
  response.reject(error);
  const thrown = await exec(millis).catch((reason: unknown) => reason);
  expect(thrown instanceof ExecTimeoutError).toBe(hasTimedOut);
  if (!hasTimedOut) expect(thrown).toBe(error);
});
