import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { fileURLToPath } from 'node:url';
import {
  Server as GrpcServer,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceDefinition,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { afterEach, describe, expect, test } from 'vitest';
import type { Container, Probe } from '../../api/generated/types.ts';
import { systemTimers } from '../../platform/node-js.ts';
import { type ExecResult, ExecTimeoutError } from '../../runtime/runtime.ts';
import { DeadlineExceeded } from './failure.ts';
import { checkHealth } from './grpc.ts';
import { type HandlerPorts, type ProbeOutcome, runProbe } from './probe.ts';
import type { HandlerTarget } from './target.ts';
import { tcpConnect } from './tcp.ts';

const never = new AbortController().signal;
const success: ProbeOutcome = { result: 'Success', message: '' };
const failure = (message: string): ProbeOutcome => ({ result: 'Failure', message });
const unknown = (message: string): ProbeOutcome => ({ result: 'Unknown', message });

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function listen(server: Server, host = '127.0.0.1'): Promise<number> {
  server.listen(0, host);
  await once(server, 'listening');
  closers.push(() => new Promise((resolve) => server.close(resolve)));
  return (server.address() as AddressInfo).port;
}
const serve = (listener: RequestListener): Promise<number> => listen(createServer(listener));

async function closedPort(): Promise<number> {
  const port = await listen(createTcpServer());
  await closers.pop()?.();
  return port;
}

const noCommands: HandlerPorts['runtime'] = { execSync: () => Promise.reject(new Error('no command was expected')) };

function probe(
  spec: Probe,
  {
    container = {},
    podIp = '127.0.0.1',
    runtime = noCommands,
    signal = never,
  }: {
    container?: Partial<Container>;
    podIp?: string;
    runtime?: HandlerPorts['runtime'];
    signal?: AbortSignal;
  } = {},
): Promise<ProbeOutcome> {
  const target: HandlerTarget = {
    pod: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace: 'default', uid: 'uid' } },
    container: { name: 'app', ...container },
    containerId: 'container-1',
    podIp,
  };
  return runProbe(target, spec, { runtime, timers: systemTimers() }, signal);
}

describe('httpGet', () => {
  test.each([
    [200, 'Success', ''],
    [299, 'Success', ''],
    [304, 'Warning', 'Probe terminated redirects, Response body: '],
    [400, 'Failure', 'HTTP probe failed with statuscode: 400'],
    [500, 'Failure', 'HTTP probe failed with statuscode: 500'],
  ])('an httpGet probe of a server with the status %i has the result %s', async (code, result, message) => {
    const port = await serve((_, response) => response.writeHead(code).end());
    expect(await probe({ httpGet: { port } })).toEqual({ result, message });
  });

  test('an httpGet probe does not report the body of a failure', async () => {
    const port = await serve((_, response) => response.writeHead(500).end('a secret'));
    expect((await probe({ httpGet: { port } })).message).not.toContain('secret');
  });

  test('an httpGet probe has the result Warning, with the body, on a redirect to another host', async () => {
    const port = await serve((_, response) => response.writeHead(302, { location: 'http://localhost/' }).end('moved'));
    expect(await probe({ httpGet: { port } })).toEqual({
      result: 'Warning',
      message: 'Probe terminated redirects, Response body: moved',
    });
  });

  test('an httpGet probe resolves a named port and uses its own host', async () => {
    const port = await serve((incoming, response) => response.writeHead(incoming.url === '/ready' ? 200 : 404).end());
    const container = {
      ports: [
        { name: 'dns', containerPort: 1 },
        { name: 'http', containerPort: port },
      ],
    };
    const httpGet = { port: 'http', path: '/ready', host: '127.0.0.1' };
    expect(await probe({ httpGet }, { container, podIp: '192.0.2.1' })).toEqual(success);
  });

  test('an httpGet probe fails after timeoutSeconds', async () => {
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const port = await serve((_, response) => void response.once('close', () => resolve()));
    const began = Date.now();
    expect(await probe({ httpGet: { port }, timeoutSeconds: 1 })).toEqual(
      failure(
        `Get "http://127.0.0.1:${port}/": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`,
      ),
    );
    expect(Date.now() - began).toBeGreaterThanOrEqual(990);
    await closed;
  });

  test('an httpGet probe rejects on abort', async () => {
    const end = new AbortController();
    const port = await serve(() => end.abort(new Error('given up')));
    await expect(probe({ httpGet: { port }, timeoutSeconds: 3600 }, { signal: end.signal })).rejects.toThrow(
      'given up',
    );
  });
});

describe('resolving the target', () => {
  test.each([
    ['an unknown port name', { httpGet: { port: 'http' } }, 'strconv.Atoi: parsing "http": invalid syntax'],
    ['a port out of range', { tcpSocket: { port: 0 } }, 'invalid port number: 0'],
    ['no handler', {}, 'missing probe handler for web_default(uid):app'],
  ])('a probe with %s has the result Unknown', async (_, spec, message) => {
    expect(await probe(spec)).toEqual(unknown(message));
  });

  test('a probe of a Pod without an address has the result Unknown', async () => {
    expect(await probe({ tcpSocket: { port: 80 } }, { podIp: '' })).toEqual(unknown('the Pod has no address yet'));
  });

  test('a probe accepts a port number given as a string', async () => {
    const port = await listen(createTcpServer((socket) => socket.end()));
    expect(await probe({ tcpSocket: { port: String(port) } })).toEqual(success);
  });
});

describe('tcpSocket', () => {
  test('a tcpSocket probe succeeds if the port is open, and closes the connection', async () => {
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const port = await listen(createTcpServer((socket) => void socket.resume().once('close', () => resolve())));
    expect(await probe({ tcpSocket: { port } })).toEqual(success);
    await closed;
  });

  test('a tcpSocket probe fails if the port is closed', async () => {
    const port = await closedPort();
    expect(await probe({ tcpSocket: { port } })).toEqual(
      failure(`dial tcp 127.0.0.1:${port}: connect: connection refused`),
    );
  });

  test('a tcpSocket probe puts IPv6 addresses in brackets', async () => {
    const port = await closedPort();
    expect((await probe({ tcpSocket: { port, host: '::1' } })).message).toMatch(
      new RegExp(`^dial tcp \\[::1\\]:${port}: connect: (connection refused|cannot assign requested address)$`),
    );
  });

  test('a tcpSocket probe fails if the connection times out', async () => {
    const end = new AbortController();
    const port = await listen(createTcpServer());
    const connected = tcpConnect('127.0.0.1', port, end.signal);
    end.abort(new DeadlineExceeded());
    await expect(connected).rejects.toThrow(`dial tcp 127.0.0.1:${port}: i/o timeout`);
  });
});

describe('grpc', () => {
  const proto = loadSync(fileURLToPath(new URL('health.proto', import.meta.url)), { enums: String });
  const health = proto['grpc.health.v1.Health'] as ServiceDefinition;

  type Check = (service: string, answer: sendUnaryData<object>) => void;

  async function serveHealth(check: Check | undefined): Promise<{ port: number; userAgent: () => unknown }> {
    const server = new GrpcServer();
    let userAgent: unknown;
    if (check !== undefined)
      server.addService(health, {
        Check: (call: ServerUnaryCall<{ service: string }, object>, answer: sendUnaryData<object>) => {
          userAgent = call.metadata.get('user-agent')[0];
          check(call.request.service, answer);
        },
      });
    const port = await new Promise<number>((resolve, reject) =>
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      ),
    );
    closers.push(async () => server.forceShutdown());
    return { port, userAgent: () => userAgent };
  }
  const states: Check = (service, answer) => {
    if (service === 'missing') answer({ code: status.NOT_FOUND, details: 'unknown service' });
    else answer(null, { status: service === '' ? 'SERVING' : service });
  };

  test('a grpc probe succeeds if the server as a whole, or the service, is SERVING', async () => {
    const { port, userAgent } = await serveHealth(states);
    expect(await probe({ grpc: { port } })).toEqual(success);
    expect(userAgent()).toMatch(/^kube-probe\/1\.33 /);
    expect(await probe({ grpc: { port, service: 'SERVING' } })).toEqual(success);
  });

  test.each([
    ['NOT_SERVING', 'service unhealthy (responded with "NOT_SERVING")'],
    ['SERVICE_UNKNOWN', 'service unhealthy (responded with "SERVICE_UNKNOWN")'],
    ['missing', 'error: health rpc probe failed: rpc error: code = NotFound desc = unknown service'],
  ])('a grpc probe fails if the service is %s', async (service, message) => {
    const { port } = await serveHealth(states);
    expect(await probe({ grpc: { port, service } })).toEqual(failure(message));
  });

  test('a grpc probe fails if the server has no health service', async () => {
    const { port } = await serveHealth(undefined);
    const { result, message } = await probe({ grpc: { port } });
    expect(result).toBe('Failure');
    expect(message).toMatch(
      /^error: this server does not implement the grpc health protocol \(grpc\.health\.v1\.Health\): ./,
    );
  });

  test('a grpc probe fails if there is no response in time', async () => {
    const { port } = await serveHealth(() => undefined);
    expect(await probe({ grpc: { port }, timeoutSeconds: 1 })).toEqual(
      failure('timeout: health rpc did not complete within 1s'),
    );
  });

  test('a grpc probe fails at its timeout if the connection is refused', async () => {
    const port = await closedPort();
    expect(await probe({ grpc: { port }, timeoutSeconds: 1 })).toEqual(
      failure(`timeout: failed to connect service "127.0.0.1:${port}" within 1s: context deadline exceeded`),
    );
  });

  test('a grpc health check rejects on abort', async () => {
    const end = new AbortController();
    const { port } = await serveHealth(() => end.abort(new Error('given up')));
    const target = { host: '127.0.0.1', port, service: '', userAgent: 'x', timeoutSeconds: 3600 };
    await expect(checkHealth(target, end.signal)).rejects.toThrow('given up');
  });
});

describe('exec', () => {
  const answering = (...answers: (ExecResult | Error)[]): HandlerPorts['runtime'] & { calls: unknown[][] } => {
    const calls: unknown[][] = [];
    return {
      calls,
      execSync: async (...call) => {
        calls.push(call.slice(0, 3));
        const answer = answers.shift();
        if (answer === undefined || answer instanceof Error) throw answer ?? new Error('one command too many');
        return answer;
      },
    };
  };
  const exited = (exitCode: number, stdout = '', stderr = ''): ExecResult => ({ exitCode, stdout, stderr });

  test('an exec probe expands its command with the values in the spec, and passes the timeout', async () => {
    const runtime = answering(exited(0, 'ok'));
    const env = [
      { name: 'A', value: 'a' },
      { name: 'B', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
    ];
    const exec = { command: ['echo', '$(A)-$(B)-$(C)-$$(A)'] };
    expect(await probe({ exec, timeoutSeconds: 2 }, { runtime, container: { env } })).toEqual(success);
    expect(runtime.calls).toEqual([['container-1', ['echo', 'a--$(C)-$(A)'], 2000]]);
  });

  test('an exec probe fails with the output of its command', async () => {
    const runtime = answering(exited(1, 'out', 'err\n'));
    expect(await probe({ exec: { command: ['x'] } }, { runtime })).toEqual(failure('outerr\n'));
  });

  test('an exec probe fails if its command times out', async () => {
    const runtime = answering(new ExecTimeoutError(['sleep', '10']));
    expect(await probe({ exec: { command: ['sleep', '10'] } }, { runtime })).toEqual(
      failure('command "sleep 10" timed out'),
    );
  });

  test('an exec probe retries errors of the runtime, and has the result Unknown after three attempts', async () => {
    const error = new Error('rpc error: code = Unknown desc = no');
    const exec = { command: ['x'] };
    expect(await probe({ exec }, { runtime: answering(error, error, exited(0)) })).toEqual(success);
    expect(await probe({ exec }, { runtime: answering(error, error, error) })).toEqual(unknown(error.message));
  });
});
