import { once } from 'node:events';
import { connect, type SecureVersion } from 'node:tls';
import { expect, test } from 'vitest';
import { startTestServer } from './server-fixture.ts';

test.each<[SecureVersion, string]>([
  ['TLSv1', 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION'],
  ['TLSv1.1', 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION'],
  ['TLSv1.2', 'TLSv1.2'],
  ['TLSv1.3', 'TLSv1.3'],
])('a client that supports only %s gets %s', async (version, expected) => {
  await using at = await startTestServer();
  const { host, port } = at.server;
  // Lower the security level of OpenSSL's client, which otherwise does not offer older versions.
  const ciphers = 'DEFAULT@SECLEVEL=0';
  const socket = connect({ host, port, ca: at.pki.caCertificate, ciphers, minVersion: version, maxVersion: version });
  const failed = once(socket, 'error').then(([{ code }]) => code as string);
  failed.catch(() => undefined);
  const protocol = once(socket, 'secureConnect').then(() => socket.getProtocol());
  protocol.catch(() => undefined);
  expect(await Promise.race([failed, protocol])).toBe(expected);
  socket.destroy();
});
