import { once } from 'node:events';
import { request } from 'node:https';
import type { Socket } from 'node:net';
import { PassThrough, Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { expect, test } from 'vitest';
import { PODS } from '../../api/resources.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { whileServingOthers } from '../hostile-fixture.ts';
import { noNodes, startTestServer } from '../server-fixture.ts';
import { inPieces } from './message-pieces.ts';
import { startRuntime } from './runtime-fixture.ts';
import { ping } from './spdy/frames.ts';
import { createSpdyRelay } from './spdy/spdy-relay.ts';

test('a message with many small frames is handled only as fast as the runtime accepts data', async () => {
  let written = 0;
  const firstIsTaken = Promise.withResolvers<void>();
  const runtime = new Writable({
    write(chunk, _encoding, done) {
      written += (chunk as Buffer).length;
      firstIsTaken.promise.then(() => done());
    },
  });
  const waits = new Promise<void>((resolve) => {
    runtime.on('newListener', (name) => name === 'drain' && resolve());
  });
  const { fromClient } = createSpdyRelay(new PassThrough(), runtime, { types: ['error', 'data'], once: false });
  const message = Buffer.concat(Array.from({ length: 20_000 }, () => ping(1)));
  const taken = inPieces(fromClient, runtime)(message);
  await Promise.race([waits, taken]);
  expect(runtime.writableLength).toBeLessThan(160 * 1024);
  firstIsTaken.resolve();
  await taken;
  runtime.end();
  await finished(runtime);
  expect(written).toBe(message.length);
});

test('no piece of a message is handled after a refused piece', async () => {
  const taken: number[] = [];
  const take = async (bytes: Uint8Array): Promise<void> => {
    taken.push(bytes.length);
    if (taken.length === 2) throw new Error('not this one');
  };
  await expect(inPieces(take, new PassThrough())(Buffer.alloc(200_000))).rejects.toThrow('not this one');
  expect(taken).toEqual([65_536, 65_536]);
});

test('other clients are served while a tunneled message of 31 MiB with small frames is passed on', async () => {
  await using runtime = await startRuntime();
  const nodes = { ...noNodes, portForward: async () => ({ url: runtime.url }) };
  await using server = await startTestServer({ nodes });
  const spec = { nodeName: 'n', containers: [{ name: 'app', image: 'x' }] };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec };
  await server.api.create(PODS, 'default', pod as KubeObject);
  const { caCertificate: ca, admin } = server.pki;
  const upgradeRequest = request({
    host: server.server.host,
    port: server.server.port,
    ca,
    cert: admin.certificate,
    key: admin.key,
    path: '/api/v1/namespaces/default/pods/p/portforward',
    headers: {
      Connection: 'Upgrade',
      Upgrade: 'websocket',
      'Sec-WebSocket-Version': '13',
      'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==',
      'Sec-WebSocket-Protocol': 'SPDY/3.1+portforward.k8s.io',
    },
  }).end();
  const [, client] = (await once(upgradeRequest, 'upgrade')) as [unknown, Socket];
  client.on('error', () => undefined);
  const peer = await runtime.next();
  const frames = Buffer.concat(Array<Buffer>(2_700_000).fill(ping(1)));
  // The head of one binary message, masked with zeros.
  const head = Buffer.alloc(14);
  head.writeUInt16BE(0x82ff);
  head.writeBigUInt64BE(BigInt(frames.length), 2);
  let received = 0;
  const all = new Promise<void>((resolve) => {
    peer.socket.removeAllListeners('data').on('data', (bytes: Buffer) => {
      received += bytes.length;
      if (received === frames.length) resolve();
    });
  });
  const { othersWaited } = await whileServingOthers(server, async () => {
    client.write(Buffer.concat([head, frames]));
    await all;
    return server.call('GET', '/healthz');
  });
  client.destroy();
  // Ten times the delay that was measured with pieces. If the message were not split, other clients would wait 700 ms.
  expect(othersWaited).toBeLessThan(450);
});
