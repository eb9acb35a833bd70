import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { type Unfinished, unfinishedParts } from '../http/bounds/unfinished.ts';
import { countMessages, messageStream } from './messages.ts';
import { acceptWebSocket } from './web-socket.ts';

const MEBIBYTE = 2 ** 20;
const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

async function connected(unfinished: Pick<Unfinished, 'begin'>) {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const [request, socket, head] = await once(server, 'upgrade');
  const webSocket = await acceptWebSocket(request, socket as Socket, head, undefined);
  countMessages(webSocket, socket as Socket, unfinished);
  cleanups.push(() => {
    client.terminate();
    webSocket.terminate();
    server.close();
  });
  if (client.readyState === WebSocket.CONNECTING) await once(client, 'open');
  const closed = once(client, 'close').then(([code]) => code as number);
  return { client, webSocket, closed };
}

function counted() {
  let bytes = 0;
  const unfinished: Pick<Unfinished, 'begin'> = {
    begin() {
      let own = 0;
      return {
        add(more) {
          own += more;
          bytes += more;
        },
        complete() {},
        end() {
          bytes -= own;
          own = 0;
        },
      };
    },
  };
  return { unfinished, bytes: () => bytes };
}

test.each([true, false])(
  'messageStream with asMessages=%s does not limit the bytes of all messages',
  async (asMessages) => {
    const { client, webSocket } = await connected(unfinishedParts(8 * MEBIBYTE));
    let received = 0;
    const all = new Promise<void>((resolve) => {
      messageStream(webSocket, asMessages).on('data', (message: Buffer) => {
        received += message.length;
        if (received === 20 * MEBIBYTE) resolve();
      });
    });
    for (let sent = 0; sent < 20 * MEBIBYTE; sent += MEBIBYTE) client.send(Buffer.alloc(MEBIBYTE));
    await all;
  },
);

test('the bytes of a WebSocket message count until its reader asks for the next message', async () => {
  const { unfinished, bytes } = counted();
  const { client, webSocket } = await connected(unfinished);
  const messages = messageStream(webSocket, true)[Symbol.asyncIterator]();
  for (let round = 0; round < 3; round++) {
    client.send(Buffer.alloc(1000));
    const { value } = await messages.next();
    expect(value).toHaveLength(1000);
    expect(bytes()).toBeGreaterThan(1000);
  }
  const next = messages.next();
  expect(bytes()).toBe(0);
  client.close();
  await next;
});

test('pings of an idle WebSocket client do not count', async () => {
  const { unfinished, bytes } = counted();
  const { client, webSocket } = await connected(unfinished);
  messageStream(webSocket, true).resume();
  for (let count = 0; count < 5; count++) {
    client.ping();
    await once(client, 'pong');
  }
  expect(bytes()).toBe(0);
});

test('the WebSocket of the largest unfinished message is closed with 1013', async () => {
  const { client, webSocket, closed } = await connected(unfinishedParts(MEBIBYTE));
  messageStream(webSocket, true)
    .on('error', () => undefined)
    .resume();
  client.send(Buffer.alloc(2 * MEBIBYTE), { fin: false });
  expect(await closed).toBe(1013);
});
