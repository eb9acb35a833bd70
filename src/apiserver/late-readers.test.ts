import { once } from 'node:events';
import { connect } from 'node:tls';
import { expect, test } from 'vitest';
import { createVirtualTimers } from '../platform/virtual-timers.ts';
import { CONFIG_MAPS } from './hostile-fixture.ts';
import { configMap } from './registry/testing.ts';
import { startTestServer } from './server-fixture.ts';

test('a client that reads none of its short responses for a minute is disconnected', async () => {
  const timers = createVirtualTimers();
  await using at = await startTestServer({ timers });
  await at.call('POST', CONFIG_MAPS, { body: JSON.stringify(configMap('large', { k: 'x'.repeat(120_000) })) });
  const { certificate: cert, key } = at.pki.admin;
  const socket = connect({ host: at.server.host, port: at.server.port, ca: at.pki.caCertificate, cert, key });
  await once(socket, 'secureConnect');
  socket.pause();
  // The kernel buffers only some of the 12 MB of these responses.
  socket.write(`GET ${CONFIG_MAPS}/large HTTP/1.1\r\nhost: a\r\n\r\n`.repeat(100));
  let served = true;
  const get = at.backend.get.bind(at.backend);
  at.backend.get = (context) => {
    served = true;
    return get(context);
  };
  // If the server begins no further response for a hundred turns, the last response waits for the client.
  while (served) {
    served = false;
    for (let turn = 0; turn < 100; turn++) await at.call('GET', '/healthz');
  }
  timers.advance(59_999);
  await at.call('GET', '/healthz');
  expect(socket.closed).toBe(false);
  timers.advance(1);
  let bytes = 0;
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket
    .on('error', () => undefined)
    .on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
  socket.resume();
  await closed;
  expect(bytes).toBeLessThan(12_000_000);
  expect(at.errors).toEqual([]);
});
