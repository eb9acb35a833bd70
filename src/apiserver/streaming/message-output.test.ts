/** Tests watches and logs over WebSocket. test/e2e/web-sockets.test.ts uses a real engine. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { PODS } from '../../api/resources.ts';
import { DEFAULT_LIMITS } from '../http/bounds/limits.ts';
import { configMap, ref } from '../registry/testing.ts';
import { noNodes, readText, startTestServer, type TestServer, turns } from '../server-fixture.ts';

const WATCH = '/api/v1/namespaces/default/configmaps?watch=1';
const LOG = '/api/v1/namespaces/default/pods/p/log';
const CONFIG = ref('configmaps');

let server: TestServer;
let pieces: string[];
let logSignal: AbortSignal | undefined;
let watchSignals: AbortSignal[];

beforeEach(async () => {
  pieces = ['one\n', 'two\n'];
  const nodes: typeof noNodes = {
    ...noNodes,
    async *logs(_pod, _container, { follow }, signal) {
      logSignal = signal;
      for (const piece of pieces) yield Buffer.from(piece);
      if (follow !== true) return;
      if (!signal.aborted) await once(signal, 'abort');
    },
  };
  server = await startTestServer({ nodes, limits: { ...DEFAULT_LIMITS, watches: 2, streams: 1 } });
  watchSignals = [];
  const watch = server.backend.watch.bind(server.backend);
  server.backend.watch = (context, ...rest) => {
    watchSignals.push(context.signal);
    return watch(context, ...rest);
  };
  const metadata = { name: 'p', namespace: 'default' };
  const spec = { nodeName: 'n', containers: [{ name: 'app', image: 'x' }] };
  await server.api.set(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec });
});

afterEach(() => server[Symbol.asyncDispose]());

const tls = () => ({ ca: server.pki.caCertificate, cert: server.pki.admin.certificate, key: server.pki.admin.key });

interface Message {
  text: string;
  binary: boolean;
}

interface Client {
  socket: WebSocket;
  next(): Promise<Message>;
  closed: Promise<number>;
}

/** Rejects with the status and the message of the refusal. */
async function open(path: string, protocols: string[] = [], headers: Record<string, string> = {}): Promise<Client> {
  const url = `wss://${server.server.host}:${server.server.port}${path}`;
  const socket = new WebSocket(url, protocols, { ...tls(), headers });
  const messages: Message[] = [];
  const waiting: ((message: Message) => void)[] = [];
  socket.on('message', (data: Buffer, binary) => {
    const message = { text: data.toString(), binary };
    const taken = waiting.shift();
    if (taken === undefined) messages.push(message);
    else taken(message);
  });
  const closed = once(socket, 'close').then(([code]) => code as number);
  const refused = once(socket, 'unexpected-response').then(async ([, response]) => {
    const { code, message } = JSON.parse(await readText(response as IncomingMessage));
    throw new Error(`${code}: ${message}`);
  });
  refused.catch(() => undefined);
  await Promise.race([once(socket, 'open'), refused]);
  return {
    socket,
    closed,
    next: async () => messages.shift() ?? new Promise<Message>((resolve) => waiting.push(resolve)),
  };
}

const create = (name: string, data: Record<string, string> = {}) =>
  server.api.create(CONFIG, 'default', configMap(name, data));

describe('a watch', () => {
  test.each([WATCH, WATCH.replace('watch=1', 'watch=true'), '/api/v1/watch/namespaces/default/configmaps'])(
    '%s over WebSocket sends each event as a text message, and ends after its timeout',
    async (path) => {
      await create('a');
      const { next, closed } = await open(`${path}${path.includes('?') ? '&' : '?'}timeoutSeconds=1`);
      const first = await next();
      expect(first.binary).toBe(false);
      expect(JSON.parse(first.text)).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'a' } } });
      await create('b');
      expect(JSON.parse((await next()).text)).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'b' } } });
      expect(await closed).toBe(1000);
    },
  );

  test('a watch over WebSocket sends Tables if the client asks for them', async () => {
    await create('a');
    const { next, socket } = await open(WATCH, [], { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' });
    expect(JSON.parse((await next()).text)).toMatchObject({ type: 'ADDED', object: { kind: 'Table' } });
    socket.terminate();
  });

  test('a watch over WebSocket in protobuf sends binary messages, without the length that precedes an event in a body', async () => {
    await create('a');
    const { next, socket } = await open(WATCH, [], { accept: 'application/vnd.kubernetes.protobuf' });
    const { text, binary } = await next();
    expect(binary).toBe(true);
    // A WatchEvent: field 1 is the type, and field 2 the object with its envelope.
    expect(text).toMatch(/^\n\x05ADDED/);
    expect(text).toContain('k8s\0');
    socket.terminate();
  });

  test('a watch over WebSocket in protobuf sends a long event as one message, whether the event is initial or later', async () => {
    const data = { text: 'x'.repeat(100_000) };
    await create('initial', data);
    const { next, socket } = await open(WATCH, [], { accept: 'application/vnd.kubernetes.protobuf' });
    for (const name of ['initial', 'later']) {
      if (name === 'later') await create(name, data);
      const { text } = await next();
      expect(text.length).toBeGreaterThan(100_000);
      expect(text.slice(0, 300)).toContain(name);
    }
    await create('short');
    expect((await next()).text).toContain('short');
    socket.terminate();
  });

  test('a watch over WebSocket sends the columns of Tables in the first event, even a long one', async () => {
    const { next, socket } = await open(`${WATCH}&includeObject=Object`, [], {
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
    });
    for (const name of ['a', 'b']) await create(name, { text: 'x'.repeat(100_000) });
    expect(JSON.parse((await next()).text).object.columnDefinitions).toContainEqual(
      expect.objectContaining({ name: 'Name' }),
    );
    expect(JSON.parse((await next()).text).object.columnDefinitions).toBeNull();
    socket.terminate();
  });

  test('a watch accepts the only subprotocol that the client offers, and never returns a token', async () => {
    const { socket } = await open(WATCH, ['base64url.bearer.authorization.k8s.io.c2VjcmV0', 'base64.binary.k8s.io']);
    expect(socket.protocol).toBe('base64.binary.k8s.io');
    socket.terminate();
    await expect(open(WATCH, ['a', 'b'])).rejects.toThrow('400: a watch supports one subprotocol, not several: [a b]');
  });

  test.each([
    ['/api/v1/namespaces/default/nothing?watch=1', '404: the server could not find the requested resource'],
    [`${WATCH}&labelSelector=%21%21`, '400: '],
    [`${WATCH}&resourceVersion=x`, '4'],
  ])('a watch that cannot start is refused with a Status: %s', async (path, message) => {
    await expect(open(path)).rejects.toThrow(message);
  });

  test('a watch with an invalid WebSocket handshake is refused', async () => {
    const headers = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' };
    expect(await server.call('GET', WATCH, { headers })).toMatchObject({
      code: 400,
      json: { message: 'the header Sec-WebSocket-Key is missing or malformed' },
    });
  });

  test('a list with an upgrade to WebSocket gets its list', async () => {
    const headers = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' };
    const { code, json } = await server.call('GET', WATCH.replace('=1', '=0'), { headers });
    expect([code, json.kind]).toEqual([200, 'ConfigMapList']);
  });

  test('a watch occupies a place until its client has closed or lost the connection', async () => {
    const [first, second] = await Promise.all([open(WATCH), open(WATCH)]);
    await expect(open(WATCH)).rejects.toThrow('429: Too many requests, please try again later.');
    const ended = watchSignals.map((signal) => once(signal, 'abort'));
    first.socket.close();
    second.socket.terminate();
    await Promise.all(ended);
    await turns(10);
    for (const { socket } of await Promise.all([open(WATCH), open(WATCH)])) socket.terminate();
  });

  test('a watch over WebSocket drops the messages of its client and answers pings', async () => {
    const { socket, next } = await open(WATCH);
    socket.send('ignored');
    socket.send(Buffer.alloc(100_000));
    socket.ping('x');
    expect(String((await once(socket, 'pong'))[0])).toBe('x');
    await create('a');
    expect(JSON.parse((await next()).text)).toMatchObject({ type: 'ADDED' });
    socket.terminate();
  });

  test('a watch over WebSocket is cut if its client does not read', async () => {
    const { socket, closed } = await open(WATCH);
    socket.pause();
    const text = 'x'.repeat(1024 * 1024 - 1000);
    // The connection itself takes a few MiB, and 16 MiB of events may wait.
    for (let index = 0; index < 40; index++) await create(`c${index}`, { text });
    socket.resume();
    expect(await closed).toBe(1006);
  });

  test('a watch over WebSocket ends normally when the server closes', async () => {
    const { closed } = await open(WATCH);
    await server.server.close();
    expect(await closed).toBe(1000);
  });
});

describe('a log', () => {
  test.each([
    [[], '', true],
    [['binary.k8s.io'], 'binary.k8s.io', true],
    [['unknown', 'base64.binary.k8s.io'], 'base64.binary.k8s.io', false],
  ])('a log with the subprotocols %j is sent as messages of %j', async (offered, protocol, isBinary) => {
    const { socket, next, closed } = await open(LOG, offered);
    expect(socket.protocol).toBe(protocol);
    const received = [await next(), await next(), await next()];
    expect(received.every(({ binary }) => binary === isBinary)).toBe(true);
    const textOf = ({ text, binary }: Message) => (binary ? text : Buffer.from(text, 'base64').toString());
    expect(received.map(textOf)).toEqual(['', 'one\n', 'two\n']);
    expect(await closed).toBe(1000);
  });

  test('a log with unknown subprotocols is refused', async () => {
    await expect(open(LOG, ['v4.channel.k8s.io'])).rejects.toThrow(
      '400: unable to negotiate protocol: client supports [v4.channel.k8s.io], server supports [binary.k8s.io base64.binary.k8s.io]',
    );
  });

  test('a log that is followed ends with the connection of its client, and gives up its place', async () => {
    const { socket, next, closed } = await open(`${LOG}?follow=true`);
    await next();
    await expect(open(LOG)).rejects.toThrow('429');
    const aborted = once(logSignal as AbortSignal, 'abort');
    socket.terminate();
    await Promise.all([aborted, closed]);
    await turns(10);
    expect(await (await open(LOG)).closed).toBe(1000);
  });

  test('a log that cannot be read is refused with a Status', async () => {
    await expect(open(LOG.replace('/p/', '/absent/'))).rejects.toThrow('404: pods "absent" not found');
    await expect(open(`${LOG}?container=x`)).rejects.toThrow('400: container x is not valid for pod p');
  });

  test('a log of 20 MB arrives whole', async () => {
    pieces = Array.from({ length: 320 }, (_, index) => String(index % 10).repeat(64 * 1024));
    const { next, closed } = await open(LOG);
    let length = 0;
    for (let count = 0; count <= pieces.length; count++) length += (await next()).text.length;
    expect(length).toBe(320 * 64 * 1024);
    expect(await closed).toBe(1000);
  });
});
