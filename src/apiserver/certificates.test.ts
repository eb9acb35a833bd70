import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { Agent } from 'node:https';
import { connect } from 'node:tls';
import { expect, test } from 'vitest';
import { CONFIG_MAPS } from '../api/resources.ts';
import { systemTimers } from '../platform/node-js.ts';
import { createAuthority } from './pki/authority.ts';
import { loadOrCreatePki } from './pki/pki.ts';
import { makeRequest } from './pki/request-fixture.ts';
import { configMap } from './registry/testing.ts';
import { startTestServer, type TestServer } from './server-fixture.ts';

const DAY = 24 * 60 * 60 * 1000;
const MAPS = '/api/v1/namespaces/default/configmaps';

async function served({ server, pki }: TestServer): Promise<string> {
  const socket = connect({ host: server.host, port: server.port, ca: pki.caCertificate, servername: 'localhost' });
  await once(socket, 'secureConnect');
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

const fingerprint = (pem: string): string => new X509Certificate(pem).fingerprint256;

test('new connections get the renewed certificate, and a watch that is open continues', async () => {
  await using at = await startTestServer();
  const leave = new AbortController();
  const watch = await at.open('GET', `${MAPS}?watch=1`, { signal: leave.signal });
  watch.on('error', () => undefined);
  const event = once(watch, 'data');
  expect(await served(at)).toBe(fingerprint(at.pki.serving.certificate));
  // An additional name makes loadOrCreatePki() renew the certificate, like an expiry.
  const renewed = await loadOrCreatePki(at.dataDir, { hostnames: ['other'], ips: [], now: Date.now() });
  at.server.useCertificates(renewed);
  expect(await served(at)).toBe(fingerprint(renewed.serving.certificate));
  await at.api.create(CONFIG_MAPS, 'default', configMap('one'));
  expect(String(await event)).toContain('"name":"one"');
  leave.abort();
  // The certificates of clients remain valid, on open and on new connections.
  const { certificate: cert, key } = at.pki.admin;
  const agent = new Agent({ ca: at.pki.caCertificate, cert, key });
  for (const each of [undefined, agent]) expect((await at.call('GET', MAPS, { agent: each })).code).toBe(200);
  agent.destroy();
});

test('a request on an open connection gets 401 when the client certificate has expired', async () => {
  const timers = systemTimers();
  let later = 0;
  await using at = await startTestServer({ timers: { ...timers, now: () => timers.now() + later } });
  const agent = new Agent({
    ca: at.pki.caCertificate,
    cert: at.pki.admin.certificate,
    key: at.pki.admin.key,
    keepAlive: true,
    maxSockets: 1,
  });
  expect((await at.call('GET', MAPS, { agent })).code).toBe(200);
  later = 364 * DAY;
  expect((await at.call('GET', MAPS, { agent })).code).toBe(200);
  later = 366 * DAY;
  const refused = await at.call('GET', MAPS, { agent });
  expect(refused).toMatchObject({ code: 401, json: { reason: 'Unauthorized' } });
  agent.destroy();
});

test('certificates are valid by the clock of the machine, although the engine started with a clock that was years ahead', async () => {
  const timers = systemTimers();
  const ahead = { ...timers, now: () => timers.now() + 800 * DAY };
  await using at = await startTestServer({ timers: ahead, clock: { now: Date.now } });
  const { certificate: cert, key } = at.pki.admin;
  const agent = new Agent({ ca: at.pki.caCertificate, cert, key });
  expect((await at.call('GET', MAPS, { agent })).code).toBe(200);
  agent.destroy();
});

test.each([
  ['client', 200],
  ['server', 401],
] as const)('a certificate for the authentication of a %s gets %i', async (usage, code) => {
  await using at = await startTestServer();
  const { request, key } = await makeRequest('O=system:masters, CN=jane');
  const authority = createAuthority(at.pki, DAY, Date.now);
  const signed = await authority.sign(request, { usages: ['digital signature', `${usage} auth`] });
  const cert = Buffer.from(signed, 'base64');
  const agent = new Agent({ ca: at.pki.caCertificate, cert, key });
  expect((await at.call('GET', MAPS, { agent })).code).toBe(code);
  agent.destroy();
});
