import { connect, type TLSSocket } from 'node:tls';
import { expect, test } from 'vitest';
import { CONFIG_MAPS } from './hostile-fixture.ts';
import { startTestServer, type TestServer } from './server-fixture.ts';

const get = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`;

function connection({ server, pki }: TestServer): TLSSocket {
  const { certificate: cert, key } = pki.admin;
  const socket = connect({ host: server.host, port: server.port, ca: pki.caCertificate, cert, key });
  return socket.on('error', () => undefined);
}

async function codes(socket: TLSSocket): Promise<string[]> {
  let text = '';
  for await (const chunk of socket) text += chunk;
  return text.match(/(?<=HTTP\/1\.1 )\d+/g) ?? [];
}

/** No read of an object finishes before `answer` is called. `gets` returns the number of reads that have begun. */
async function startSlowServer(): Promise<TestServer & { gets(): number; answer(): void }> {
  const at = await startTestServer();
  const answered = Promise.withResolvers<void>();
  let gets = 0;
  at.backend.get = async () => {
    gets += 1;
    await answered.promise;
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one' } };
  };
  return { ...at, gets: () => gets, answer: answered.resolve };
}

test('pipelined requests get their responses in the order of the requests, even if some fail', async () => {
  await using at = await startTestServer();
  const socket = connection(at);
  socket.write(get('/api/v1/configmaps') + get(`${CONFIG_MAPS}/none`) + get('/healthz', 'Connection: close\r\n'));
  expect(await codes(socket)).toEqual(['200', '404', '200']);
});

test('pipelined requests wait for their turn and are not handled after their connection has ended', async () => {
  await using at = await startSlowServer();
  const socket = connection(at);
  socket.write(get(`${CONFIG_MAPS}/one`).repeat(50));
  await expect.poll(() => at.gets()).toBe(1);
  socket.destroy();
  expect((await at.call('GET', '/healthz')).code).toBe(200);
  expect(at.gets()).toBe(1);
});

test('a hundred pipelined requests wait for the first one, and all get a response', async () => {
  await using at = await startSlowServer();
  const socket = connection(at);
  socket.write(get(`${CONFIG_MAPS}/one`) + get('/healthz').repeat(99) + get('/healthz', 'Connection: close\r\n'));
  await expect.poll(() => at.gets()).toBe(1);
  at.answer();
  expect(await codes(socket)).toEqual(Array(101).fill('200'));
});

test('a connection with too many waiting requests is closed, and none of them is handled', async () => {
  await using at = await startSlowServer();
  const socket = connection(at);
  const received = codes(socket).catch(() => 'reset');
  socket.write(get(`${CONFIG_MAPS}/one`));
  await expect.poll(() => at.gets()).toBe(1);
  socket.write(get(`${CONFIG_MAPS}/one`).repeat(101));
  expect(['reset', []]).toContainEqual(await received);
  expect(at.gets()).toBe(1);
  expect((await at.call('GET', '/healthz')).code).toBe(200);
});

test('300,000 pipelined requests take only the memory of a few requests', async () => {
  await using at = await startSlowServer();
  const before = process.memoryUsage().rss;
  const socket = connection(at);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.write(get(`${CONFIG_MAPS}/one`) + get('/healthz').repeat(300_000));
  await closed;
  expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024);
});
