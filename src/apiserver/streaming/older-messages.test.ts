import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { PODS } from '../../api/resources.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { noNodes, startTestServer, type TestServer } from '../server-fixture.ts';

const EXEC = '/api/v1/namespaces/default/pods/p/exec?container=app&command=cat&stdin=true&stdout=true&tty=true';
const SIZE = '{"Width":80,"Height":24}';

let runtime: WebSocketServer;
let server: TestServer;

beforeEach(async () => {
  runtime = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  await once(runtime, 'listening');
  const url = `http://127.0.0.1:${(runtime.address() as AddressInfo).port}/exec/token`;
  const nodes = { ...noNodes, exec: async () => ({ url }), execTurn: async () => () => undefined };
  server = await startTestServer({ nodes });
  const spec = { nodeName: 'n', containers: [{ name: 'app', image: 'x' }] };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec };
  await server.api.create(PODS, 'default', pod as KubeObject);
});

afterEach(async () => {
  for (const client of runtime.clients) client.terminate();
  runtime.close();
  await server[Symbol.asyncDispose]();
});

async function open(protocol: string) {
  const { ca, cert, key } = {
    ca: server.pki.caCertificate,
    cert: server.pki.admin.certificate,
    key: server.pki.admin.key,
  };
  const client = new WebSocket(`wss://${server.server.host}:${server.server.port}${EXEC}`, protocol, { ca, cert, key });
  const [peer] = (await once(runtime, 'connection')) as [WebSocket];
  const messages: Buffer[] = [];
  peer.on('message', (message) => messages.push(message as Buffer));
  const received = once(peer, 'close').then(() => messages);
  const code = once(client, 'close').then(([number]) => number as number);
  await once(client, 'open');
  return { client, received, code };
}

const base64 = (channel: string, text: string): string => `${channel}${Buffer.from(text).toString('base64')}`;
const binary = (channel: string, text: string): Buffer => Buffer.from(`${String.fromCharCode(Number(channel))}${text}`);
const protocols = [
  ['channel.k8s.io', binary],
  ['v4.base64.channel.k8s.io', base64],
] as const;

test.each(protocols)(
  'with the subprotocol %s, terminal sizes reach the runtime complete, and input unchanged',
  async (name, encode) => {
    const { client, received } = await open(name);
    client.send(encode('4', SIZE.slice(0, 9)));
    client.send(encode('4', SIZE.slice(9)));
    client.send(encode('0', '{"Width":'));
    client.close();
    expect(await received).toEqual(
      [encode('4', `${SIZE}\n`), encode('0', '{"Width":')].map((each) => Buffer.from(each)),
    );
  },
);

test.each(protocols)(
  'with the subprotocol %s, an endless terminal size closes the WebSocket with 1002',
  async (name, encode) => {
    const { client, received, code } = await open(name);
    client.send(encode('4', `{"Width":80,"more":"${'x'.repeat(2000)}`));
    expect(await code).toBe(1002);
    expect(await received).toEqual([]);
  },
);

test.each(protocols)(
  'with the subprotocol %s, a long message reaches the runtime in pieces of at most 32 KiB',
  async (name, encode) => {
    const { client, received } = await open(name);
    const text = 'input '.repeat(50_000);
    client.send(encode('0', text));
    client.close();
    const messages = await received;
    const whole = Buffer.concat([Buffer.from(encode('0', '')), ...messages.map((message) => message.subarray(1))]);
    expect(whole).toEqual(Buffer.from(encode('0', text)));
    for (const message of messages) expect(message.length).toBeLessThanOrEqual(32 * 1024 + 1);
  },
);
