import { once } from 'node:events';
import { type RequestOptions, request } from 'node:https';
import { connect, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { DEFAULT_LIMITS } from './http/bounds/limits.ts';
import { loopbackDown } from './listeners.ts';
import { startTestServer, type TestServer } from './server-fixture.ts';

const ADDRESS = {
  ...{ address: '192.0.2.1', netmask: '255.255.255.0', mac: '00:00:00:00:00:00', cidr: '192.0.2.1/24' },
  ...{ family: 'IPv4' as const, internal: false },
};
const OTHER = '127.0.0.2';
const PODS = '/api/v1/namespaces/default/pods';

async function openAtOther({ server, pki }: TestServer, path: string) {
  const { caCertificate: ca, admin } = pki;
  const options: RequestOptions = { host: OTHER, port: server.port, path, ca, cert: admin.certificate, key: admin.key };
  const outgoing = request({ ...options, servername: 'localhost', agent: false });
  outgoing.end();
  const [response] = await once(outgoing, 'response');
  return response as import('node:http').IncomingMessage;
}

const closed = (socket: Socket): Promise<unknown> => once(socket.on('error', () => undefined).resume(), 'close');

test('requests to a further address are served, and its watches end when the server closes', async () => {
  const at = await startTestServer();
  await at.server.listenOn(OTHER);
  const list = await openAtOther(at, PODS);
  expect(list.statusCode).toBe(200);
  list.resume();
  const watch = await openAtOther(at, `${PODS}?watch=1`);
  const ended = once(watch.resume(), 'end');
  await at[Symbol.asyncDispose]();
  await ended;
  const refused = connect(at.server.port, OTHER);
  const [error] = await once(refused, 'error').catch((reason: unknown) => [reason]);
  expect(error).toMatchObject({ code: 'ECONNREFUSED' });
});

test('a further address that the machine does not have is refused', async () => {
  await using at = await startTestServer();
  await expect(at.server.listenOn('192.0.2.77')).rejects.toThrow(
    'cannot listen on 192.0.2.77: this machine does not have that address',
  );
});

test.each<[string, Parameters<typeof loopbackDown>[1], RegExp | undefined]>([
  ['127.0.0.1', {}, /^the interface lo is down: type '.*ip link set lo up'$/],
  ['::1', { eth0: [ADDRESS] }, /^the interface lo is down/],
  ['127.0.0.1', { lo: [{ ...ADDRESS, internal: true }] }, undefined],
  ['192.0.2.77', {}, undefined],
])('an address of loopback, %s, is missing because lo is down', (host, interfaces, reason) => {
  if (reason === undefined) expect(loopbackDown(host, interfaces)).toBeUndefined();
  else expect(loopbackDown(host, interfaces)).toMatch(reason);
});

test('connections to further addresses leave a quarter of the connections to the first one', async () => {
  await using at = await startTestServer({ limits: { ...DEFAULT_LIMITS, connections: 4 } });
  const { port, host } = at.server;
  await at.server.listenOn(OTHER);
  const open = async (to: string): Promise<Socket> => {
    const socket = connect(port, to);
    await once(socket, 'connect');
    return socket.on('error', () => undefined);
  };
  const silent = [await open(OTHER), await open(OTHER), await open(OTHER)];
  await closed(connect(port, OTHER));
  expect(silent.some((socket) => socket.closed)).toBe(false);
  const own = await open(host);
  await closed(connect(port, host));
  own.destroy();
  await once(own, 'close');
  expect(await at.call('GET', PODS)).toMatchObject({ code: 200 });
  for (const socket of silent) socket.destroy();
});
