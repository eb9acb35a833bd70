import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bearerToken, takeTokenProtocols, webSocketTokens } from './bearer-token.ts';

const PREFIX = 'base64url.bearer.authorization.k8s.io.';
const SECRET = `${PREFIX}${Buffer.from('secret').toString('base64url')}`;

const server = createServer();
beforeAll(() => once(server.listen(0, '127.0.0.1'), 'listening'));
afterAll(() => void server.close().closeAllConnections());

async function received(protocols: string | string[], more: object = {}): Promise<IncomingMessage> {
  const { port } = server.address() as AddressInfo;
  const headers = { upgrade: 'websocket', connection: 'Upgrade', 'sec-websocket-protocol': protocols, ...more };
  const sent = request({ port, host: '127.0.0.1', headers, agent: false });
  sent.on('error', () => undefined).end();
  const [message] = (await once(server, 'upgrade').catch(() => [])) as [IncomingMessage];
  message.socket.destroy();
  return message;
}

const tokenIn = async (message: IncomingMessage): Promise<string | undefined> => {
  takeTokenProtocols(message);
  const tokens = webSocketTokens((token) => ({ user: { name: token, groups: [] } }), []);
  return (await tokens(message))?.user.name;
};

test('the token of a WebSocket is taken from its subprotocols, and no header contains it afterwards', async () => {
  for (const protocols of [
    `${SECRET}, v5.channel.k8s.io, v4.channel.k8s.io`,
    ['v5.channel.k8s.io', `v4.channel.k8s.io,${SECRET}`],
  ]) {
    const message = await received(protocols);
    expect(await tokenIn(message)).toBe('secret');
    const others = 'v5.channel.k8s.io, v4.channel.k8s.io';
    expect(message.headers['sec-websocket-protocol']).toBe(others);
    expect(message.headersDistinct['sec-websocket-protocol']).toEqual([others]);
  }
});

test('a malformed token is removed, too', async () => {
  for (const protocols of [SECRET, `${SECRET},${SECRET},a`, `${PREFIX}_w,a`, `${PREFIX},a`]) {
    const message = await received(protocols);
    await expect(async () => tokenIn(message)).rejects.toThrow(/bearer\.authorization token|missing additional/);
    expect(JSON.stringify([message.headers, message.headersDistinct])).not.toContain(PREFIX);
  }
});

test('a request for another protocol has no token in its subprotocols', async () => {
  expect(await tokenIn(await received(`${SECRET}, a`, { upgrade: 'SPDY/3.1' }))).toBeUndefined();
  expect(await tokenIn(await received('v5.channel.k8s.io'))).toBeUndefined();
});

test('bearerToken() returns the token of a header', () => {
  expect(bearerToken('Bearer a.b.c')).toBe('a.b.c');
  expect(bearerToken(' bearer a more ')).toBe('a');
  for (const other of [undefined, '', 'Bearer', 'Bearer ', 'Bearer  a', 'Basic a', 'a'])
    expect(bearerToken(other)).toBeUndefined();
});
