import { createPrivateKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { httpClient } from '../../client/http-client.ts';
import { badRequest } from '../../machinery/status.ts';
import { makeLeaf } from '../pki/certificates.ts';
import { startTestServer } from '../server-fixture.ts';
import { ROTATE_KEY_PATH } from './serve-rotation.ts';

test('a POST of an administrator rotates the key, and responds with the number of values', async () => {
  let rotations = 0;
  const rotateKey = async () => ++rotations * 10;
  await using at = await startTestServer({ rotateKey });
  expect(await at.call('POST', ROTATE_KEY_PATH)).toMatchObject({ code: 200, json: { values: 10 } });
  expect(await at.call('GET', ROTATE_KEY_PATH)).toMatchObject({ code: 405, json: { kind: 'Status' } });
  const { host, port } = at.server;
  const { admin, caCertificate: caPem } = at.pki;
  const credentials = { caPem, certPem: admin.certificate, keyPem: admin.key };
  const client = httpClient({ server: `https://${host}:${port}`, ...credentials });
  expect(JSON.parse(await client.post(ROTATE_KEY_PATH, new AbortController().signal))).toEqual({ values: 20 });
});

test('other users may not rotate the key', async () => {
  let rotations = 0;
  await using at = await startTestServer({ rotateKey: async () => ++rotations });
  const key = createPrivateKey(readFileSync(join(at.dataDir, 'pki', 'ca.key')));
  const authority = { certificate: at.pki.caCertificate, key };
  const leaf = await makeLeaf(authority, { commonName: 'jane', usage: 'client' }, Date.now());
  const jane = new Agent({ ca: at.pki.caCertificate, cert: leaf.certificate, key: leaf.key });
  expect(await at.call('POST', ROTATE_KEY_PATH, { agent: jane })).toMatchObject({ code: 403 });
  expect(await at.call('POST', ROTATE_KEY_PATH, { agent: at.anonymous })).toMatchObject({ code: 401 });
  expect(rotations).toBe(0);
});

test('a refused rotation is a Status, and a server without encryption has no such path', async () => {
  await using at = await startTestServer({ rotateKey: () => Promise.reject(badRequest('the keys are elsewhere')) });
  expect(await at.call('POST', ROTATE_KEY_PATH)).toMatchObject({
    code: 400,
    json: { message: 'the keys are elsewhere' },
  });
  await using other = await startTestServer();
  expect(await other.call('POST', ROTATE_KEY_PATH)).toMatchObject({ code: 404 });
});
