import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { machineAddresses } from '../engine/node-address.ts';
import { createVirtualTimers } from '../platform/virtual-timers.ts';
import { isHttp2, type Sending } from './client-fixture.ts';
import { readText, startTestServer, type TestServer } from './server-fixture.ts';

const PODS = '/api/v1/namespaces/default/pods';
const FIVE_MINUTES = 300_000;

async function post(at: TestServer, path: string): Promise<Sending> {
  const sent = at.send('POST', path, { headers: { 'transfer-encoding': 'chunked', expect: '100-continue' } });
  await sent.continued;
  return sent;
}

test('a body that does not arrive within 5 minutes ends its connection or stream', async () => {
  const timers = createVirtualTimers();
  await using at = await startTestServer({ timers });
  const { body, response } = await post(at, PODS);
  body.write('{');
  timers.advance(FIVE_MINUTES - 1);
  expect(await at.call('GET', PODS)).toMatchObject({ code: 200 });
  expect(body.destroyed).toBe(false);
  timers.advance(1);
  await expect(response).rejects.toMatchObject({ code: isHttp2 ? 'ERR_HTTP2_STREAM_ERROR' : 'ECONNRESET' });
});

test('a body that the proxy of a Pod forwards may take an hour', async () => {
  const timers = createVirtualTimers();
  await using at = await startTestServer({ timers });
  const received = Promise.withResolvers<void>();
  const upload = createServer((incoming, response) => {
    incoming.once('data', received.resolve);
    void readText(incoming).then((text) => response.end(text));
  });
  // The proxy refuses loopback addresses.
  const [podIP = ''] = machineAddresses(['IPv4'], '', AbortSignal.timeout(FIVE_MINUTES)).all();
  upload.listen(0, podIP);
  await once(upload, 'listening');
  const pod = { metadata: { name: 'p' }, spec: { nodeName: 'n', containers: [{ name: 'app', image: 'x' }] } };
  await at.call('POST', PODS, { body: JSON.stringify(pod) });
  await at.call('PATCH', `${PODS}/p/status`, {
    headers: { 'content-type': 'application/merge-patch+json' },
    body: JSON.stringify({ status: { podIP, podIPs: [{ ip: podIP }] } }),
  });
  const { body, response } = await post(at, `${PODS}/p:${(upload.address() as AddressInfo).port}/proxy/`);
  body.write('one ');
  await received.promise;
  timers.advance(12 * FIVE_MINUTES);
  expect(await at.call('GET', PODS)).toMatchObject({ code: 200 });
  body.end('two');
  expect(await readText(await response)).toBe('one two');
  upload.close();
});
