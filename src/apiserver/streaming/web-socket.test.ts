import type { IncomingMessage } from 'node:http';
import { duplexPair } from 'node:stream';
import { expect, test } from 'vitest';
import { acceptWebSocket, logProtocol, watchProtocol } from './web-socket.ts';

const requestWith = (headers: Record<string, string>): IncomingMessage => ({ method: 'GET', headers }) as never;

test.each([
  [[], undefined],
  [['x', 'base64.binary.k8s.io', 'binary.k8s.io'], 'base64.binary.k8s.io'],
  [['binary.k8s.io'], 'binary.k8s.io'],
])('a log for which the client offers %j uses %s', (offered, chosen) => {
  expect(logProtocol(offered)).toBe(chosen);
});

test('a log refuses unknown subprotocols, and a watch refuses several', () => {
  expect(() => logProtocol(['x'])).toThrow('unable to negotiate protocol: client supports [x]');
  expect(watchProtocol(['x'])).toBe('x');
  expect(() => watchProtocol(['x', 'y'])).toThrow('a watch supports one subprotocol, not several: [x y]');
});

test('the WebSocket of a client whose connection has ended is refused', async () => {
  const headers = {
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
  };
  const [near] = duplexPair();
  near.destroy();
  const accepted = acceptWebSocket(requestWith(headers), near, Buffer.alloc(0), undefined);
  await expect(accepted).rejects.toThrow('the client has ended its connection');
});
