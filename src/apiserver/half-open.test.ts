import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { duplexPair } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { expect, test } from 'vitest';
import { startTestServer } from './server-fixture.ts';

async function clientHello(): Promise<Buffer> {
  const [near, far] = duplexPair();
  const client = connectTls({ socket: near });
  client.on('error', () => undefined);
  const [hello] = (await once(far, 'data')) as [Buffer];
  client.destroy();
  return hello;
}

test('a client that does not finish the TLS handshake within 10 s is disconnected, whatever it has sent', async () => {
  await using server = await startTestServer();
  const hello = await clientHello();
  const client = async (): Promise<Socket> => {
    const socket = connect(server.server.port, server.server.host);
    await once(socket, 'connect');
    return socket.on('error', () => undefined);
  };
  const [silent, half, whole, slow] = await Promise.all([client(), client(), client(), client()]);
  half.write(hello.subarray(0, hello.length / 2));
  whole.write(hello);
  // The connection of `slow` is never idle for long.
  let sent = 0;
  const drip = setInterval(() => slow.write(hello.subarray(sent, ++sent)), 1000);
  const begun = performance.now();
  await Promise.all([silent, half, whole, slow].map((socket) => once(socket.resume(), 'close')));
  clearInterval(drip);
  expect(sent).toBeLessThan(hello.length);
  expect(performance.now() - begun).toBeGreaterThan(9_000);
  expect(await server.call('GET', '/api/v1/namespaces/default/pods')).toMatchObject({ code: 200 });
});
