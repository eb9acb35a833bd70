import { createPublicKey, type KeyObject, X509Certificate } from 'node:crypto';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { writeKubeconfig } from './kubeconfig.ts';
import { loadOrCreatePki } from './pki.ts';
import { createTokenIssuer } from './tokens.ts';

const NOW = Date.UTC(2026, 0, 31, 9, 30);
const YEAR = 365 * 24 * 60 * 60 * 1000;

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'lifepod-pki-'));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const load = (now = NOW, ips: string[] = ['10.96.0.1'], hostnames = ['node-1']) =>
  loadOrCreatePki(dataDir, { hostnames, ips, now });

describe('loadOrCreatePki', () => {
  test('loadOrCreatePki creates a serving certificate with all names and an admin certificate, in private files', async () => {
    const pki = await load();
    const ca = new X509Certificate(pki.caCertificate);
    const serving = new X509Certificate(pki.serving.certificate);
    expect(serving.verify(ca.publicKey)).toBe(true);
    for (const name of ['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc', 'node-1']) {
      expect(serving.checkHost(name)).toBe(name);
    }
    for (const ip of ['127.0.0.1', '::1', '10.96.0.1']) expect(serving.checkIP(ip)).toBe(ip);
    expect(new X509Certificate(pki.admin.certificate).subject).toBe('O=system:masters\nCN=kubernetes-admin');
    const folder = join(dataDir, 'pki');
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    const files = readdirSync(folder);
    expect(files.toSorted()).toEqual([
      'admin.crt',
      'admin.key',
      'apiserver.crt',
      'apiserver.key',
      'ca.crt',
      'ca.key',
      'sa.key',
    ]);
    for (const file of files) expect(statSync(join(folder, file)).mode & 0o777).toBe(0o600);
  });

  test('loadOrCreatePki keeps all keys and certificates on the next start, and restores the mode of the folder', async () => {
    const first = await load();
    chmodSync(join(dataDir, 'pki'), 0o755);
    const second = await load(NOW + 1000);
    expect(second.serving).toEqual(first.serving);
    expect(second.admin).toEqual(first.admin);
    expect(second.serviceAccountKey.equals(first.serviceAccountKey)).toBe(true);
    expect(statSync(join(dataDir, 'pki')).mode & 0o777).toBe(0o700);
  });

  test('loadOrCreatePki renews the authority before its end, with its key and its name', async () => {
    const first = await load();
    const second = await load(NOW + 8.5 * YEAR);
    const [before, after] = [first, second].map(({ caCertificate }) => new X509Certificate(caCertificate));
    expect(second.caCertificate).not.toBe(first.caCertificate);
    expect([after?.subject, after?.publicKey.equals(before?.publicKey as KeyObject)]).toEqual([before?.subject, true]);
    expect((await load(NOW + 8.5 * YEAR)).caCertificate).toBe(second.caCertificate);
  });

  test('loadOrCreatePki gives new certificates the requested lifetime', async () => {
    const lifetimeMillis = 20_000;
    const { serving } = await loadOrCreatePki(dataDir, { hostnames: [], ips: [], lifetimeMillis, now: NOW });
    expect(Date.parse(new X509Certificate(serving.certificate).validTo)).toBe(NOW + lifetimeMillis);
  });

  test('loadOrCreatePki renews only the leaf certificates when they are about to expire', async () => {
    const first = await load();
    const second = await load(NOW + 0.95 * YEAR);
    expect(second.caCertificate).toBe(first.caCertificate);
    expect(second.serving.certificate).not.toBe(first.serving.certificate);
    expect(second.admin.certificate).not.toBe(first.admin.certificate);
    expect(Date.parse(new X509Certificate(second.serving.certificate).validTo)).toBeGreaterThan(NOW + 1.9 * YEAR);
  });

  test('loadOrCreatePki renews only the serving certificate when a name is added or removed', async () => {
    const first = await load();
    const second = await load(NOW, ['10.96.0.1', 'fd00:0::1']);
    expect(second.serving.certificate).not.toBe(first.serving.certificate);
    expect(second.admin).toEqual(first.admin);
    expect((await load(NOW, ['fd00::1', '10.96.0.1'])).serving).toEqual(second.serving);
    const third = new X509Certificate((await load(NOW, ['fd00::1'])).serving.certificate);
    expect([third.checkIP('fd00::1'), third.checkIP('10.96.0.1')]).toEqual(['fd00::1', undefined]);
    expect((await load(NOW, ['fd00::1'])).caCertificate).toBe(first.caCertificate);
  });

  test('loadOrCreatePki recreates a pair whose key is missing or does not match, and keeps the token key', async () => {
    const first = await load();
    rmSync(join(dataDir, 'pki', 'apiserver.key'));
    writeFileSync(join(dataDir, 'pki', 'admin.key'), first.serving.key);
    const second = await load();
    expect(second.serving.certificate).not.toBe(first.serving.certificate);
    expect(second.admin.key).not.toBe(first.serving.key);
    expect(second.serviceAccountKey.equals(first.serviceAccountKey)).toBe(true);
  });

  test('loadOrCreatePki refuses a damaged token key instead of replacing it', async () => {
    await load();
    writeFileSync(join(dataDir, 'pki', 'sa.key'), 'not a key');
    await expect(load()).rejects.toThrow(/sa\.key is not a private key/);
  });
});

test('writeKubeconfig writes a private file with cluster, context and user named lifepod', async () => {
  const pki = await load();
  const path = join(dataDir, 'kubeconfig');
  writeKubeconfig(path, { server: 'https://127.0.0.1:6443', pki });
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const config = JSON.parse(readFileSync(path, 'utf8'));
  expect(config['current-context']).toBe('lifepod');
  expect(config.clusters[0].cluster.server).toBe('https://127.0.0.1:6443');
  expect(Buffer.from(config.users[0].user['client-key-data'], 'base64').toString()).toBe(pki.admin.key);
});

describe('createTokenIssuer', () => {
  const issuerUrl = 'https://kubernetes.default.svc.cluster.local';

  test('the token issuer issues a token bound to the Pod with the claims of upstream', async () => {
    const pki = await load();
    const { status, id, audiences, expirationSeconds } = await createTokenIssuer(pki, issuerUrl, () => NOW).issue(
      'default',
      { name: 'builder', uid: 'uid-sa' },
      { expirationSeconds: 3607, pod: { name: 'myapp-pod', uid: 'uid-pod' }, node: { name: 'node-1' } },
    );
    expect(status.expirationTimestamp).toBe('2026-01-31T10:30:07Z');
    expect({ audiences, expirationSeconds }).toEqual({ audiences: [issuerUrl], expirationSeconds: 3607 });
    const { payload } = await jwtVerify(status.token, createPublicKey(pki.serviceAccountKey), {
      currentDate: new Date(NOW),
    });
    const { jti, ...rest } = payload;
    expect(jti).toMatch(/^[0-9a-f-]{36}$/);
    expect(jti).toBe(id);
    expect(rest).toEqual({
      iss: issuerUrl,
      sub: 'system:serviceaccount:default:builder',
      aud: [issuerUrl],
      iat: NOW / 1000,
      nbf: NOW / 1000,
      // The token is valid for a year, because old clients read the token of a volume only once.
      exp: NOW / 1000 + 365 * 24 * 3600,
      'kubernetes.io': {
        namespace: 'default',
        serviceaccount: { name: 'builder', uid: 'uid-sa' },
        pod: { name: 'myapp-pod', uid: 'uid-pod' },
        node: { name: 'node-1' },
        warnafter: NOW / 1000 + 3607,
      },
    });
    for (const options of [
      { expirationSeconds: 3607 },
      { expirationSeconds: 3600, pod: { name: 'myapp-pod' } },
      { expirationSeconds: 3607, pod: { name: 'myapp-pod' }, audiences: ['vault'] },
    ]) {
      const other = await createTokenIssuer(pki, issuerUrl, () => NOW).issue('default', { name: 'builder' }, options);
      expect(decodeJwt(other.status.token).exp).toBe(NOW / 1000 + options.expirationSeconds);
    }
    expect(decodeProtectedHeader(status.token)).toMatchObject({ alg: 'ES256', kid: expect.any(String) });
  });
});
