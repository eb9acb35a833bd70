import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import type { LifecycleHandler } from '../../api/generated/types.ts';
import { systemTimers } from '../../platform/node-js.ts';
import type { Timers } from '../../platform/platform.ts';
import type { ExecResult } from '../../runtime/runtime.ts';
import { HookError, type HookOutcome, runHook } from './hook.ts';
import type { HandlerPorts } from './probe.ts';
import type { HandlerTarget } from './target.ts';

const never = new AbortController().signal;
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function serve(status: number): Promise<{ port: number; requests: IncomingMessage[] }> {
  const requests: IncomingMessage[] = [];
  const server = createServer((incoming, response) => {
    requests.push(incoming);
    response.writeHead(status).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => new Promise((resolve) => server.close(resolve)));
  return { port: (server.address() as AddressInfo).port, requests };
}

interface Options {
  signal?: AbortSignal;
  timers?: Timers;
  execSync?: HandlerPorts['runtime']['execSync'];
  port?: number;
}

function hook(handler: LifecycleHandler, options: Options = {}): Promise<HookOutcome> {
  const { signal = never, timers = systemTimers(), execSync = () => Promise.reject(new Error('no command')) } = options;
  const target: HandlerTarget = {
    pod: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace: 'default', uid: 'uid' } },
    container: { name: 'app', ports: [{ name: 'http', containerPort: options.port ?? 1 }] },
    containerId: 'container-1',
    podIp: '127.0.0.1',
  };
  return runHook(target, handler, { runtime: { execSync }, timers }, signal);
}

describe('exec', () => {
  const exited =
    (result: ExecResult, calls: unknown[] = []): HandlerPorts['runtime']['execSync'] =>
    async (...call) => {
      calls.push(call.slice(0, 3));
      return result;
    };

  test('an exec hook runs its command without expansion or timeout', async () => {
    const calls: unknown[] = [];
    const execSync = exited({ exitCode: 0, stdout: '', stderr: '' }, calls);
    expect(await hook({ exec: { command: ['echo', '$(HOME)'] } }, { execSync })).toEqual({});
    expect(calls).toEqual([['container-1', ['echo', '$(HOME)'], 0]]);
  });

  test('an exec hook reports exit code and output of a failed command', async () => {
    const execSync = exited({ exitCode: 3, stdout: 'out\n', stderr: 'no' });
    const failed = hook({ exec: { command: ['sh', '-c', 'exit 3'] } }, { execSync });
    await expect(failed).rejects.toThrow(HookError);
    await expect(failed).rejects.toThrow(
      'Exec lifecycle hook ([sh -c exit 3]) for Container "app" in Pod "web_default(uid)" failed - ' +
        `error: command 'sh -c exit 3' exited with 3: no, message: "out\\nno"`,
    );
  });

  test('an exec hook truncates long output in its message', async () => {
    const execSync = exited({ exitCode: 3, stdout: 'x'.repeat(16 << 20), stderr: 'y'.repeat(16 << 20) });
    await expect(hook({ exec: { command: ['yes'] } }, { execSync })).rejects.toThrow(/^.{100,30000}$/);
  });

  test("an exec hook reports the runtime's error", async () => {
    const failed = hook({ exec: { command: ['x'] } }, { execSync: () => Promise.reject(new Error('rpc error')) });
    await expect(failed).rejects.toThrow('failed - error: rpc error, message: ""');
  });
});

describe('httpGet', () => {
  test.each([200, 404, 500])('an httpGet hook succeeds on the status %i', async (status) => {
    const { port, requests } = await serve(status);
    expect(await hook({ httpGet: { port: 'http', path: '/bye' } }, { port })).toEqual({});
    expect(requests.map(({ url, headers }) => [url, headers['user-agent']])).toEqual([['/bye', 'kube-lifecycle/1.33']]);
  });

  test('an httpGet hook falls back to HTTP without the Authorization header if the server does not speak TLS', async () => {
    const { port, requests } = await serve(200);
    const httpHeaders = [
      { name: 'Authorization', value: 'Bearer x' },
      { name: 'X-Kept', value: 'yes' },
    ];
    expect(await hook({ httpGet: { port, scheme: 'HTTPS', httpHeaders } })).toEqual({
      httpFallback: `request to HTTPS lifecycle hook 127.0.0.1:${port} got HTTP response, retry with HTTP succeeded`,
    });
    expect(requests).toHaveLength(1);
    expect(requests[0]?.headers).toMatchObject({ 'x-kept': 'yes' });
    expect(requests[0]?.headers).not.toHaveProperty('authorization');
  });

  test('an httpGet hook fails if the connection is refused', async () => {
    const { port } = await serve(200);
    await closers.pop()?.();
    await expect(hook({ httpGet: { port, path: '/bye' } })).rejects.toThrow(
      'HTTP lifecycle hook (/bye) for Container "app" in Pod "web_default(uid)" failed - ' +
        `error: Get "http://127.0.0.1:${port}/bye": dial tcp 127.0.0.1:${port}: connect: connection refused`,
    );
  });

  test('an httpGet hook fails if the container has no port of that name', async () => {
    const failed = hook({ httpGet: { port: 'metrics' } });
    await expect(failed).rejects.toThrow(HookError);
    await expect(failed).rejects.toThrow('strconv.Atoi: parsing "metrics": invalid syntax');
  });
});

describe('sleep', () => {
  test('a sleep hook sleeps for the given seconds with one timer', async () => {
    const set: number[] = [];
    const timers: Timers = {
      now: () => 1000,
      at: (time, callback) => {
        set.push(time);
        queueMicrotask(callback);
        return { cancel: () => undefined };
      },
    };
    expect(await hook({ sleep: { seconds: 5 } }, { timers })).toEqual({});
    expect(set).toEqual([6000]);
  });

  test('a sleep hook stops on abort and cancels its timer', async () => {
    const end = new AbortController();
    let cancelled = 0;
    const timers: Timers = { now: () => 0, at: () => ({ cancel: () => void cancelled++ }) };
    const ended = hook({ sleep: { seconds: 3600 } }, { timers, signal: end.signal });
    end.abort(new Error('given up'));
    await expect(ended).rejects.toThrow('given up');
    expect(cancelled).toBe(1);
  });
});

test('a tcpSocket hook fails', async () => {
  const failed = hook({ tcpSocket: { port: 80 } });
  await expect(failed).rejects.toThrow(HookError);
  await expect(failed).rejects.toThrow('Cannot run handler: invalid handler: ');
});
