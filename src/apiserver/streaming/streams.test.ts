/** Tests streams through the API server to a runtime that the test controls. test/e2e/streams.test.ts uses real runtimes. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import type { Pod } from '../../api/generated/types.ts';
import { PODS } from '../../api/resources.ts';
import { internalError } from '../../machinery/status.ts';
import { systemTimers } from '../../platform/node-js.ts';
import { noNodes, readText, startTestServer, type TestServer, turns } from '../server-fixture.ts';
import { type PeerStream, type RuntimeFixture, type RuntimePeer, startRuntime } from './runtime-fixture.ts';
import { createSpdyConnection } from './spdy/spdy-connection.ts';

const EXEC = '/api/v1/namespaces/default/pods/p/exec?container=app&command=cat';
const ALL = `${EXEC}&stdin=true&stdout=true&stderr=true`;
const FORWARD = '/api/v1/namespaces/default/pods/p/portforward';

let runtime: RuntimeFixture;
let server: TestServer;
let nodeCalls: unknown[];
let nodes: typeof noNodes;
let uid: string;

const createPod = async (name: string, spec: Pod['spec']): Promise<string> => {
  const metadata = { name, namespace: 'default' };
  const { metadata: stored } = await server.api.set<Pod>(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec });
  return stored.uid ?? '';
};

beforeEach(async () => {
  runtime = await startRuntime();
  nodeCalls = [];
  const endpoint =
    (verb: string) =>
    async (...query: unknown[]) => {
      nodeCalls.push([verb, ...query.slice(0, -1)]);
      return { url: runtime.url };
    };
  nodes = {
    ...noNodes,
    exec: endpoint('exec'),
    execTurn: async () => () => undefined,
    attach: endpoint('attach'),
    portForward: endpoint('portForward'),
  };
  server = await startTestServer({ nodes });
  const app = { name: 'app', image: 'x', tty: true };
  uid = await createPod('p', { nodeName: 'n', containers: [app] });
  await createPod('unbound', { containers: [app] });
  await createPod('two', { nodeName: 'n', containers: [app, { name: 'side', image: 'x' }] });
});

afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await runtime[Symbol.asyncDispose]();
});

const tls = () => ({ ca: server.pki.caCertificate, cert: server.pki.admin.certificate, key: server.pki.admin.key });
const base = () => ({ host: server.server.host, port: server.server.port, ...tls() });

interface Refusal {
  code: number;
  json: Record<string, unknown>;
}

const refusal = async (response: IncomingMessage): Promise<Refusal> => ({
  code: response.statusCode ?? 0,
  json: JSON.parse(await readText(response)),
});

/** Collects the messages by channel. If the server refuses the upgrade, `refusal` has its response. */
async function open(path: string, protocol = 'v5.channel.k8s.io') {
  const socket = new WebSocket(`wss://${server.server.host}:${server.server.port}${path}`, protocol, tls());
  const messages: { channel: number; text: string }[] = [];
  const waiting: { done: () => boolean; resolve: () => void }[] = [];
  socket.on('message', (data: Buffer) => {
    messages.push({ channel: data[0] ?? -1, text: data.toString('utf8', 1) });
    for (const { done, resolve } of waiting) if (done()) resolve();
  });
  const closed = once(socket, 'close').then(([code]) => code as number);
  const opened = once(socket, 'open');
  opened.catch(() => undefined);
  const refused = once(socket, 'unexpected-response').then(([, response]) => refusal(response));
  const result = await Promise.race([opened, refused]);
  const of = (channel: number): string =>
    messages
      .filter((message) => message.channel === channel)
      .map(({ text }) => text)
      .join('');
  return {
    socket,
    messages,
    closed,
    refusal: Array.isArray(result) ? undefined : result,
    of,
    status: () => JSON.parse(of(3)) as Record<string, unknown>,
    send: (channel: number, content: string | Buffer) =>
      socket.send(Buffer.concat([Buffer.of(channel), Buffer.from(content)])),
    until: (done: () => boolean) =>
      new Promise<void>((resolve) => {
        if (done()) resolve();
        else waiting.push({ done, resolve });
      }),
  };
}

async function upgradeSpdy(path: string, protocols: string[] = ['v4.channel.k8s.io', 'v3.channel.k8s.io']) {
  const outgoing = request({
    ...base(),
    method: 'POST',
    path,
    headers: { Connection: 'Upgrade', Upgrade: 'SPDY/3.1', 'X-Stream-Protocol-Version': protocols },
  });
  outgoing.end();
  const upgraded = once(outgoing, 'upgrade').then(([response, socket]) => {
    (socket as Socket).on('error', () => undefined);
    return { headers: (response as IncomingMessage).headers, socket: socket as Socket };
  });
  upgraded.catch(() => undefined);
  const answered = once(outgoing, 'response').then(([response]) => refusal(response as IncomingMessage));
  answered.catch(() => undefined);
  return Promise.race([upgraded, answered]);
}

const connected = async (path: string, protocols?: string[]) => {
  const result = await upgradeSpdy(path, protocols);
  if ('code' in result) throw new Error(`refused with ${result.code}`);
  return result;
};

async function collect(socket: NodeJS.ReadableStream): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of socket) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

/** Checks that, after `leave`, the connection stays open until the runtime, started with `silent`, has replied to all streams. */
async function staysOpenUntilReplied(peer: RuntimePeer, opened: PeerStream[], leave: () => void): Promise<void> {
  let ended = false;
  peer.socket.once('end', () => (ended = true));
  leave();
  await turns(200);
  for (const stream of opened) {
    expect(ended).toBe(false);
    stream.reply();
    await turns(20);
  }
  await peer.closed;
}

describe('exec over WebSocket', () => {
  const streams = async (peer: RuntimePeer) => ({
    error: await peer.stream('error'),
    stdin: await peer.stream('stdin'),
    stdout: await peer.stream('stdout'),
    stderr: await peer.stream('stderr'),
  });

  test('exec over WebSocket translates channels to streams and ends with the Status of the runtime', async () => {
    const client = await open(ALL);
    expect(client.socket.protocol).toBe('v5.channel.k8s.io');
    const peer = await runtime.next();
    expect(peer.request.headers['x-stream-protocol-version']).toBe('v4.channel.k8s.io');
    const { error, stdin, stdout, stderr } = await streams(peer);
    client.send(0, 'some ');
    client.send(0, 'input');
    client.send(255, Buffer.of(0));
    expect((await stdin.received).toString()).toBe('some input');
    stdout.send('out');
    stderr.send('err', true);
    stdout.send('put', true);
    const status = { metadata: {}, status: 'Failure', reason: 'NonZeroExitCode' };
    error.send(JSON.stringify(status).slice(0, 10));
    error.send(JSON.stringify(status).slice(10));
    peer.close();
    expect(await client.closed).toBe(1000);
    expect(client.of(1)).toBe('output');
    expect(client.of(2)).toBe('err');
    expect(client.messages.at(-1)).toEqual({ channel: 3, text: JSON.stringify(status) });
    expect(client.messages[0]).toEqual({ channel: 1, text: '' });
    expect(nodeCalls).toEqual([
      [
        'exec',
        { namespace: 'default', name: 'p', uid },
        'app',
        { command: ['cat'], stdin: true, stdout: true, stderr: true, tty: false },
      ],
    ]);
  });

  test('a client that uses v4.channel.k8s.io cannot close standard input', async () => {
    const client = await open(ALL, 'v4.channel.k8s.io');
    expect(client.socket.protocol).toBe('v4.channel.k8s.io');
    const peer = await runtime.next();
    const { stdin, error } = await streams(peer);
    client.send(255, Buffer.of(0));
    client.send(0, 'more');
    await stdin.receivedBytes(4);
    error.send('{}', true);
    peer.close();
    expect(await client.closed).toBe(1000);
  });

  test('exec with a terminal has a resize stream and no stderr', async () => {
    const client = await open(`${ALL}&tty=true`);
    const peer = await runtime.next();
    const [resize] = await Promise.all(['resize', 'error', 'stdin', 'stdout'].map((type) => peer.stream(type)));
    const size = '{"Width":80,"Height":24}';
    client.send(4, size);
    await resize?.receivedBytes(size.length);
    expect(nodeCalls).toMatchObject([['exec', {}, 'app', { stderr: false, tty: true }]]);
  });

  test('exec over WebSocket passes on large input and output completely, however they are split', async () => {
    const client = await open(ALL);
    const { stdin, stdout, error } = await streams(await runtime.next());
    const input = Buffer.alloc(3_000_001, 'input of the client ');
    client.send(0, input.subarray(0, 2_900_000));
    client.send(0, input.subarray(2_900_000));
    client.send(255, Buffer.of(0));
    expect((await stdin.received).equals(input)).toBe(true);
    const output = Buffer.alloc(3_000_000, 'output of the process ');
    for (let at = 0; at < output.length; at += 100_000) stdout.send(output.subarray(at, at + 100_000));
    error.send('{}');
    await client.until(() => client.of(1).length === output.length);
    expect(client.of(1)).toBe(output.toString());
  });

  test('a WebSocket client that does not read slows down the runtime', async () => {
    const client = await open(ALL);
    const { stdin, stdout } = await streams(await runtime.next());
    client.socket.pause();
    const megabytes = 64;
    let sent = 0;
    for (let count = 0; count < megabytes; count++) stdout.send(Buffer.alloc(1024 * 1024), false, () => (sent += 1));
    await turns(3000);
    expect(sent).toBeLessThan(megabytes / 2);
    // Data from the client still reaches the runtime.
    client.send(0, 'input');
    await stdin.receivedBytes(5);
    client.socket.resume();
    await client.until(() => client.messages.length > 1 && sent === megabytes);
  });

  test('a process that does not read its input slows down the WebSocket client', async () => {
    const client = await open(ALL);
    const peer = await runtime.next();
    const { stdin } = await streams(peer);
    peer.socket.pause();
    const message = Buffer.alloc(1024 * 1024);
    let sent = 0;
    for (let count = 0; count < 64; count++) client.socket.send(message, () => (sent += 1));
    await turns(3000);
    expect(sent).toBeLessThan(32);
    peer.socket.resume();
    await stdin.receivedBytes(64 * (message.length - 1));
  });

  test('pings of the runtime get a reply', async () => {
    await open(ALL);
    const peer = await runtime.next();
    peer.ping(2);
    await peer.pinged(2);
  });

  test('after a WebSocket client disconnects, the runtime connection stays open until every stream has a reply', async () => {
    await runtime[Symbol.asyncDispose]();
    runtime = await startRuntime({ silent: true });
    const client = await open(ALL);
    const peer = await runtime.next();
    const opened = Object.values(await streams(peer));
    await staysOpenUntilReplied(peer, opened, () => client.socket.terminate());
  });

  test('the end of a WebSocket client ends the connection to the runtime', async () => {
    const client = await open(ALL);
    const peer = await runtime.next();
    await streams(peer);
    client.socket.terminate();
    await peer.closed;
  });

  test('a WebSocket client gets a Status if the runtime disconnects without sending one', async () => {
    const client = await open(ALL);
    const peer = await runtime.next();
    const { stdout } = await streams(peer);
    stdout.send('half');
    peer.socket.destroySoon();
    expect(await client.closed).toBe(1000);
    expect(client.of(1)).toBe('half');
    expect(client.status()).toMatchObject({
      status: 'Failure',
      reason: 'InternalError',
      message: 'Internal error occurred: the connection to the container runtime was lost',
    });
  });

  test('a WebSocket client gets a Status if the runtime refuses a stream', async () => {
    await runtime[Symbol.asyncDispose]();
    runtime = await startRuntime({ silent: true });
    const client = await open(ALL);
    const peer = await runtime.next();
    const { error, stdin, stdout, stderr } = await streams(peer);
    for (const stream of [error, stdout, stderr]) stream.reply();
    stdin.reset();
    expect(await client.closed).toBe(1000);
    expect(client.status()).toMatchObject({
      message: 'Internal error occurred: the container runtime reset the stream: status 5',
    });
  });

  test('close() of the server ends an exec with a Status', async () => {
    const client = await open(ALL);
    const peer = await runtime.next();
    await streams(peer);
    await server.server.close();
    expect(await client.closed).toBe(1000);
    expect(client.status()).toMatchObject({ reason: 'ServiceUnavailable', message: 'the API server is shutting down' });
    await peer.closed;
  });

  test('a command over WebSocket waits for its turn, which ends with its first output', async () => {
    const turn = Promise.withResolvers<() => void>();
    const over = Promise.withResolvers<void>();
    const asking = Promise.withResolvers<void>();
    nodes.execTurn = () => {
      asking.resolve();
      return turn.promise;
    };
    const opening = open(ALL);
    await asking.promise;
    let connectedToRuntime = false;
    const connecting = runtime.next().finally(() => (connectedToRuntime = true));
    await turns(100);
    expect(connectedToRuntime).toBe(false);
    turn.resolve(over.resolve);
    const { stdout } = await streams(await connecting);
    stdout.send('the first output');
    await over.promise;
    (await opening).socket.terminate();
  });

  test('a WebSocket client that disconnects while its command starts does not end the turn of the command', async () => {
    let over = false;
    nodes.execTurn = async () => () => {
      over = true;
    };
    const client = await open(ALL);
    const peer = await runtime.next();
    await streams(peer);
    client.socket.terminate();
    await peer.closed;
    await server.server.close();
    expect(over).toBe(false);
  });

  test('close() of the server does not wait for a runtime that does not reply', async () => {
    await runtime[Symbol.asyncDispose]();
    runtime = await startRuntime({ silent: true });
    const client = await open(ALL);
    const peer = await runtime.next();
    await streams(peer);
    const closed = server.server.close();
    expect(await client.closed).toBe(1000);
    await closed;
    expect(peer.socket.closed).toBe(false);
  });

  test('an invalid terminal size ends the exec with a Status', async () => {
    const client = await open(`${ALL}&tty=true`);
    const peer = await runtime.next();
    await peer.stream('resize');
    client.send(4, '{"Width":80,"Height":"tall"}');
    expect(await client.closed).toBe(1000);
    expect(client.status()).toMatchObject({
      reason: 'BadRequest',
      message: 'the size of a terminal is not an object with Width and Height',
    });
  });

  test('a WebSocket message that is too large ends the connection', async () => {
    const client = await open(ALL);
    const peer = await runtime.next();
    await streams(peer);
    client.send(0, Buffer.alloc(33 * 1024 * 1024));
    expect(await client.closed).toBe(1009);
    await peer.closed;
  });
});

describe('exec and attach over SPDY', () => {
  test('SPDY streams are relayed both ways, with the protocol that the runtime chose', async () => {
    const { socket, headers } = await connected(ALL);
    expect(headers).toMatchObject({ upgrade: 'SPDY/3.1', 'x-stream-protocol-version': 'v4.channel.k8s.io' });
    expect(headers).not.toHaveProperty('sec-websocket-protocol');
    const peer = await runtime.next();
    expect(peer.request.rawHeaders.filter((value) => /^v\d\.channel/.test(value))).toEqual([
      'v4.channel.k8s.io',
      'v3.channel.k8s.io',
    ]);
    const client = createSpdyConnection(socket, systemTimers());
    let output = '';
    await client.open({ streamtype: 'stdout' }, async (bytes) => {
      output += Buffer.from(bytes).toString();
    });
    const stdin = await client.open({ streamtype: 'stdin' }, async () => undefined);
    await stdin.write(Buffer.from('to the runtime'));
    stdin.end();
    expect((await (await peer.stream('stdin')).received).toString()).toBe('to the runtime');
    (await peer.stream('stdout')).send('to the client', true);
    peer.close();
    await client.ended;
    expect(output).toBe('to the client');
    await peer.closed;
  });

  test('a SPDY client that does not read slows down the runtime', async () => {
    const { socket } = await connected(ALL);
    const peer = await runtime.next();
    const client = createSpdyConnection(socket, systemTimers());
    const megabytes = 64;
    const reading = Promise.withResolvers<void>();
    let received = 0;
    await client.open({ streamtype: 'stdout' }, (bytes) => {
      received += bytes.length;
      return reading.promise;
    });
    const stdout = await peer.stream('stdout');
    let sent = 0;
    for (let count = 0; count < megabytes; count++) stdout.send(Buffer.alloc(1024 * 1024), false, () => (sent += 1));
    await turns(3000);
    // The runtime has sent only as much as fits into the buffers of the connections.
    expect(sent).toBeLessThan(megabytes / 2);
    reading.resolve();
    peer.close();
    await client.ended;
    expect(received).toBe(megabytes * 1024 * 1024);
  });

  test('data that a SPDY client sent before its end reaches the runtime', async () => {
    const { socket } = await connected(ALL);
    const peer = await runtime.next();
    const client = createSpdyConnection(socket, systemTimers());
    const stdin = await client.open({ streamtype: 'stdin' }, async () => undefined);
    peer.socket.pause();
    const input = Buffer.alloc(8_000_000, 'input ');
    const written = stdin.write(input);
    await turns(300);
    peer.socket.resume();
    await written;
    stdin.end();
    socket.end();
    expect((await (await peer.stream('stdin')).received).equals(input)).toBe(true);
    await peer.closed;
  });

  test('a SPDY client that breaks the protocol gets a protocol error, and the runtime gets no byte of its frame', async () => {
    const { socket } = await connected(ALL);
    const peer = await runtime.next();
    let bytes = 0;
    peer.socket.on('data', (piece: Buffer) => (bytes += piece.length));
    socket.write(Buffer.from('8003000400000014ffffffff', 'hex'));
    socket.write(Buffer.alloc(16));
    // A GOAWAY frame with the status 1 (PROTOCOL_ERROR).
    expect((await collect(socket)).toString('hex')).toBe('80030007000000080000000000000001');
    await peer.closed;
    expect(bytes).toBe(0);
  });

  test('a command over SPDY waits for its turn: its last stream is not opened earlier', async () => {
    const turn = Promise.withResolvers<() => void>();
    const over = Promise.withResolvers<void>();
    nodes.execTurn = () => turn.promise;
    const { socket } = await connected(ALL);
    const peer = await runtime.next();
    const client = createSpdyConnection(socket, systemTimers());
    const nothing = async (): Promise<void> => undefined;
    for (const streamtype of ['error', 'stdin', 'stdout']) await client.open({ streamtype }, nothing);
    const last = client.open({ streamtype: 'stderr' }, nothing);
    let open = false;
    const opened = peer.stream('stderr').then(() => (open = true));
    await turns(100);
    expect(open).toBe(false);
    turn.resolve(over.resolve);
    await Promise.all([last, opened]);
    (await peer.stream('stdout')).send('the first output');
    await over.promise;
    client.destroy();
  });

  test('a SPDY client that disconnects while its command waits gives up its turn', async () => {
    const asking = Promise.withResolvers<AbortSignal>();
    nodes.execTurn = (signal) => {
      asking.resolve(signal);
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    };
    const { socket } = await connected(`${EXEC}&stdout=true`);
    const client = createSpdyConnection(socket, systemTimers());
    for (const streamtype of ['error', 'stdout'])
      client.open({ streamtype }, async () => undefined).catch(() => undefined);
    const signal = await asking.promise;
    const given = once(signal, 'abort');
    socket.destroy();
    await given;
  });

  test('a SPDY client that disconnects while its command starts does not end the turn of the command', async () => {
    let over = false;
    nodes.execTurn = async () => () => {
      over = true;
    };
    const { socket } = await connected(`${EXEC}&stdout=true`);
    const client = createSpdyConnection(socket, systemTimers());
    for (const streamtype of ['error', 'stdout']) await client.open({ streamtype }, async () => undefined);
    const peer = await runtime.next();
    client.destroy();
    await peer.closed;
    await server.server.close();
    expect(over).toBe(false);
  });

  test.each([
    ['ends', (socket: Socket) => void socket.end()],
    ['cuts its connection', (socket: Socket) => void socket.destroy()],
    ['breaks the protocol', (socket: Socket) => void socket.write(Buffer.alloc(8, 0xff))],
  ])(
    'after a SPDY client %s, the runtime connection stays open until every stream has a reply',
    async (_how, leave) => {
      await runtime[Symbol.asyncDispose]();
      runtime = await startRuntime({ silent: true });
      const { socket } = await connected('/api/v1/namespaces/default/pods/p/attach?stdout=1');
      const client = createSpdyConnection(socket, systemTimers());
      for (const streamtype of ['error', 'stdout'])
        client.open({ streamtype }, async () => undefined).catch(() => undefined);
      const peer = await runtime.next();
      const opened = [await peer.stream('error'), await peer.stream('stdout')];
      await staysOpenUntilReplied(peer, opened, () => leave(socket));
    },
  );

  test('the end of either side of a SPDY connection ends the other side', async () => {
    const first = await connected(ALL);
    const peer = await runtime.next();
    first.socket.destroy();
    await peer.closed;
    const second = await connected(ALL);
    (await runtime.next()).socket.resetAndDestroy();
    await collect(second.socket).catch(() => undefined);
    await once(second.socket, 'close');
  });

  test('close() of the server ends both connections of a SPDY stream', async () => {
    const { socket } = await connected(ALL);
    const peer = await runtime.next();
    const ended = collect(socket);
    await server.server.close();
    await peer.closed;
    await ended;
  });
});

describe('port-forward', () => {
  test('port-forward over SPDY uses the protocol that the runtime chose', async () => {
    const { headers } = await connected(FORWARD, ['portforward.k8s.io']);
    expect(headers['x-stream-protocol-version']).toBe('portforward.k8s.io');
    expect(nodeCalls).toEqual([['portForward', { namespace: 'default', name: 'p', uid }, []]]);
  });

  test('port-forward can tunnel SPDY through WebSocket messages', async () => {
    const path = `wss://${server.server.host}:${server.server.port}${FORWARD}`;
    // ws accepts no subprotocol with a slash in its name, so the test sets and checks the header itself.
    const headers = { 'Sec-WebSocket-Protocol': 'SPDY/3.1+portforward.k8s.io' };
    const client = new WebSocket(path, { ...tls(), headers });
    const upgrade = once(client, 'upgrade');
    client.on('error', () => undefined);
    const peer = await runtime.next();
    expect(peer.request.headers).toMatchObject({
      upgrade: 'SPDY/3.1',
      'x-stream-protocol-version': 'portforward.k8s.io',
    });
    expect(peer.request.method).toBe('POST');
    expect(((await upgrade)[0] as IncomingMessage).headers['sec-websocket-protocol']).toBe(
      'SPDY/3.1+portforward.k8s.io',
    );
  });

  test('port-forward with an older protocol and ports in the query uses the same protocol at the runtime', async () => {
    const client = open(`${FORWARD}?ports=80&ports=81,82`, 'v4.channel.k8s.io');
    client.catch(() => undefined);
    const peer = await runtime.next();
    expect(peer.request).toMatchObject({
      method: 'GET',
      headers: { upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-protocol': 'v4.channel.k8s.io' },
    });
    expect(nodeCalls).toMatchObject([['portForward', {}, [80, 81, 82]]]);
  });

  test('port-forward with an unsupported subprotocol is refused', async () => {
    expect((await open(FORWARD, 'v5.channel.k8s.io')).refusal).toMatchObject({
      code: 400,
      json: { reason: 'BadRequest', message: expect.stringContaining('unable to negotiate protocol') },
    });
    expect(nodeCalls).toEqual([]);
  });

  test('port-forward with an older protocol is refused beyond 1000 ports, and beyond the limit of all clients', async () => {
    const ports = (count: number): string => `${FORWARD}?ports=${Array.from({ length: count }, () => 80).join(',')}`;
    expect((await open(ports(1001), 'v4.channel.k8s.io')).refusal).toMatchObject({
      json: { message: 'at most 1000 ports may be forwarded on a connection' },
    });
    let underWay = 0;
    const { promise: enough, resolve } = Promise.withResolvers<void>();
    const portForward = (...query: unknown[]): Promise<never> => {
      underWay += 1;
      if (underWay === 5) resolve();
      const signal = query.at(-1) as AbortSignal;
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    };
    Object.assign(nodes, { portForward });
    for (let connection = 0; connection < 5; connection++) {
      open(ports(1000), 'v4.channel.k8s.io').catch(() => undefined);
    }
    await enough;
    expect((await open(ports(1), 'v4.channel.k8s.io')).refusal).toMatchObject({ code: 429 });
  });

  test.each(['0', 'x', '65536', '-1'])('port-forward refuses port %s', async (port) => {
    expect(await upgradeSpdy(`${FORWARD}?ports=${port}`)).toMatchObject({ code: 400, json: { reason: 'BadRequest' } });
  });
});

describe('requests that are refused with a Status before the upgrade', () => {
  const path = (name: string, query: string) => `/api/v1/namespaces/default/pods/${name}/${query}`;
  const cases: [string, string, number, string][] = [
    ['an unknown Pod', path('none', 'exec?command=ls&stdout=1'), 404, 'pods "none" not found'],
    [
      'an unknown container',
      path('p', 'exec?container=x&command=ls&stdout=1'),
      400,
      'container x is not valid for pod p',
    ],
    [
      'no container of several',
      path('two', 'exec?command=ls&stdout=1'),
      400,
      'a container name must be specified for pod two, choose one of: [app side]',
    ],
    [
      'a Pod without a node',
      path('unbound', 'exec?command=ls&stdout=1'),
      400,
      'pod unbound does not have a host assigned',
    ],
    ['a Pod without a node', path('unbound', 'portforward'), 400, 'pod unbound does not have a host assigned'],
    ['no streams', path('p', 'exec?command=ls'), 400, 'you must specify at least 1 of stdin, stdout, stderr'],
    [
      'no stream except stderr of a terminal',
      path('p', 'attach?stderr=1'),
      400,
      'you must specify at least 1 of stdin, stdout, stderr',
    ],
    ['no command', path('p', 'exec?stdout=1'), 400, 'you must specify at least one command for the container'],
  ];
  test.each(cases)('a request with %s (%s) is refused with a Status', async (_what, at, code, message) => {
    const expected = { code, json: { kind: 'Status', status: 'Failure', message, code } };
    expect(await upgradeSpdy(at)).toMatchObject(expected);
    expect((await open(at)).refusal).toMatchObject(expected);
    expect(nodeCalls).toEqual([]);
  });

  test('a request without an upgrade is refused with a Status', async () => {
    for (const method of ['GET', 'POST']) {
      expect(await server.call(method, EXEC.concat('&stdout=1'))).toMatchObject({
        code: 400,
        json: { reason: 'BadRequest', message: 'Upgrade request required' },
      });
    }
    expect(await server.call('PUT', EXEC)).toMatchObject({ code: 405 });
  });

  test('an unauthenticated client is refused with a Status', async () => {
    const client = new WebSocket(`wss://${server.server.host}:${server.server.port}${ALL}`, 'v5.channel.k8s.io', {
      ca: server.pki.caCertificate,
    });
    client.on('error', () => undefined);
    const [, response] = await once(client, 'unexpected-response');
    expect(await refusal(response as IncomingMessage)).toMatchObject({ code: 401, json: { reason: 'Unauthorized' } });
    expect(nodeCalls).toEqual([]);
  });

  test('a refusal by the node is passed on as a Status', async () => {
    nodes.exec = async () => {
      throw internalError('unable to upgrade connection: container not found ("app")');
    };
    const expected = {
      code: 500,
      json: { message: 'Internal error occurred: unable to upgrade connection: container not found ("app")' },
    };
    expect(await upgradeSpdy(ALL)).toMatchObject(expected);
    expect((await open(ALL)).refusal).toMatchObject(expected);
  });

  test('a refusal by the runtime is passed on as a Status', async () => {
    await runtime[Symbol.asyncDispose]();
    runtime = await startRuntime({ refusal: 'unable to negotiate protocol' });
    const message = 'Internal error occurred: unable to upgrade connection: unable to negotiate protocol';
    expect(await upgradeSpdy(ALL)).toMatchObject({ code: 403, json: { message, code: 403 } });
    expect((await open(ALL)).refusal).toMatchObject({ code: 403, json: { message } });
  });

  test('an unreachable runtime leads to a Status', async () => {
    await runtime[Symbol.asyncDispose]();
    const response = await upgradeSpdy(ALL);
    expect(response).toMatchObject({ code: 500, json: { reason: 'InternalError' } });
    runtime = await startRuntime();
  });

  test('an invalid WebSocket handshake is refused with a Status', async () => {
    const outgoing = request({
      ...base(),
      path: ALL,
      headers: { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' },
    });
    outgoing.end();
    const [response] = await once(outgoing, 'response');
    expect(await refusal(response as IncomingMessage)).toMatchObject({ code: 400, json: { reason: 'BadRequest' } });
    expect(nodeCalls).toEqual([]);
  });
});

test('attach uses the terminal of the container, regardless of the request', async () => {
  const client = await open('/api/v1/namespaces/default/pods/p/attach?stdout=1&stderr=1');
  const peer = await runtime.next();
  await Promise.all(['error', 'stdout', 'resize'].map((type) => peer.stream(type)));
  expect(nodeCalls).toMatchObject([['attach', {}, 'app', { stdin: false, stdout: true, stderr: false, tty: true }]]);
  client.socket.terminate();
});

test('exec and attach accept the name of a defer container', async () => {
  await createPod('ending', {
    nodeName: 'n',
    containers: [{ name: 'app', image: 'x' }],
    deferContainers: [{ name: 'cleanup', image: 'x', tty: true }],
  });
  const of = (verb: string, query: string) =>
    `/api/v1/namespaces/default/pods/ending/${verb}?container=cleanup&${query}`;
  const clients = [await open(of('exec', 'command=ls&stdout=1')), await open(of('attach', 'stdout=1'))];
  expect(nodeCalls).toMatchObject([
    ['exec', { name: 'ending' }, 'cleanup', { command: ['ls'], tty: false }],
    ['attach', { name: 'ending' }, 'cleanup', { tty: true }],
  ]);
  for (const { socket } of clients) socket.terminate();
});

test('each of 40 concurrent exec clients gets the output of its own command', async () => {
  const clients = await Promise.all(Array.from({ length: 40 }, () => open(ALL)));
  const peers = await Promise.all(clients.map(() => runtime.next()));
  for (const [index, peer] of peers.entries()) {
    (await peer.stream('stdout')).send(`output ${index}`, true);
    (await peer.stream('error')).send('{}', true);
    peer.close();
  }
  await Promise.all(clients.map(({ closed }) => closed));
  expect(clients.map(({ of }) => of(1)).sort()).toEqual(peers.map((_, index) => `output ${index}`).sort());
});

test('an upgrade request for a path without streams is served as a plain request', async () => {
  const headers = { Connection: 'Upgrade', Upgrade: 'websocket' };
  expect(await server.call('GET', '/api/v1/namespaces/default/pods/p', { headers })).toMatchObject({ code: 200 });
});
