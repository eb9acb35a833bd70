import 'reflect-metadata';
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import { beforeAll, describe, expect, test } from 'vitest';
import { createAuthority, readRequest } from './authority.ts';
import { makeAuthority, renewAuthority } from './certificates.ts';
import { EC, encoded, makeRequest } from './request-fixture.ts';

const NOW = Date.UTC(2026, 0, 31, 9, 30);
const DAY = 24 * 60 * 60 * 1000;
const RSA = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256', publicExponent: new Uint8Array([1, 0, 1]) };

let ca: { certificate: string; key: string };
beforeAll(async () => {
  ca = await makeAuthority('test', NOW);
});
const authority = (lifetimeMillis = 365 * DAY, now = NOW) =>
  createAuthority({ caCertificate: ca.certificate, caKey: createPrivateKey(ca.key) }, lifetimeMillis, () => now);
const decoded = (certificate: string): X509Certificate =>
  new X509Certificate(Buffer.from(certificate, 'base64').toString());

test('the contents of a request are its common name, its organizations and its names', async () => {
  const { request } = await makeRequest('O=one, O=two, OU=x, CN=jane', {
    names: [
      { type: 'dns', value: 'a.example' },
      { type: 'ip', value: '192.0.2.1' },
      { type: 'ip', value: '2001:db8::1' },
      { type: 'email', value: 'a@b.example' },
      { type: 'url', value: 'spiffe://a' },
    ],
  });
  expect(await readRequest(request)).toMatchObject({
    commonName: 'jane',
    organizations: ['one', 'two'],
    dnsNames: ['a.example'],
    ips: ['192.0.2.1', '2001:db8::1'],
    emails: ['a@b.example'],
    uris: ['spiffe://a'],
  });
});

test('a subject with two common names counts as having no common name', async () => {
  expect((await readRequest((await makeRequest('CN=a, CN=b')).request)).commonName).toBe('');
  expect(await readRequest((await makeRequest([])).request)).toMatchObject({ commonName: '', organizations: [] });
});

test.each<[string, object]>([
  ['ECDSA P-256', EC],
  ['ECDSA P-384', { ...EC, namedCurve: 'P-384', hash: 'SHA-384' }],
  ['ECDSA P-521', { ...EC, namedCurve: 'P-521', hash: 'SHA-512' }],
  ['RSA', { ...RSA, modulusLength: 2048 }],
  ['Ed25519', { name: 'Ed25519' }],
])('a key of the type %s is certified', async (_, algorithm) => {
  const { request, key } = await makeRequest('CN=jane', { algorithm: algorithm as typeof EC });
  const certificate = decoded(await authority().sign(request, { usages: ['client auth'] }));
  expect(certificate.checkPrivateKey(createPrivateKey(key))).toBe(true);
  expect(certificate.verify(createPublicKey(ca.certificate))).toBe(true);
});

describe('a signed certificate', () => {
  test('a signed certificate has the subject and the names of the request, its usages, and no other extension that the request asks for', async () => {
    const { request } = await makeRequest('O=system:nodes, CN=system:node:n1', {
      names: [{ type: 'dns', value: 'n1' }],
      extensions: [new x509.BasicConstraintsExtension(true, 3, true)],
    });
    const usages = ['digital signature', 'key encipherment', 'server auth'] as const;
    const certificate = decoded(await authority().sign(request, { usages }));
    expect(certificate).toMatchObject({
      subject: 'O=system:nodes\nCN=system:node:n1',
      subjectAltName: 'DNS:n1',
      issuer: 'CN=test',
      ca: false,
      keyUsage: ['1.3.6.1.5.5.7.3.1'],
    });
    const { extensions } = new x509.X509Certificate(new Uint8Array(certificate.raw));
    const usage = extensions.find((extension) => extension instanceof x509.KeyUsagesExtension);
    expect(usage?.usages).toBe(x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyEncipherment);
    expect(extensions.filter((extension) => extension instanceof x509.BasicConstraintsExtension)).toHaveLength(1);
  });

  test.each<[string, number, number | undefined, number, number]>([
    ['for the longest lifetime by default', 365 * DAY, undefined, NOW, 365 * DAY - 5 * 60_000],
    ['for the requested lifetime', 365 * DAY, 600, NOW, 600_000],
    ['at most for the longest lifetime', DAY, 7 * 86400, NOW, DAY - 5 * 60_000],
    ['not longer than the authority', 365 * DAY, undefined, NOW + 3649 * DAY, DAY],
  ])('is valid %s', async (_, lifetime, expirationSeconds, now, valid) => {
    const { request } = await makeRequest('CN=jane');
    const { validFrom, validTo } = decoded(
      await authority(lifetime, now).sign(request, { usages: ['client auth'], expirationSeconds }),
    );
    expect(Date.parse(validFrom)).toBe(now - 5 * 60_000);
    expect(Date.parse(validTo)).toBe(now + valid);
  });
});

test('after the renewal of the authority, certificates are signed with the renewed certificate', async () => {
  const pki = { caCertificate: ca.certificate, caKey: createPrivateKey(ca.key) };
  const now = NOW + 3651 * DAY;
  const renewing = createAuthority(pki, DAY, () => now);
  const { request } = await makeRequest('CN=jane');
  const sign = () => renewing.sign(request, { usages: ['client auth'] });
  await expect(sign()).rejects.toThrow('the certificate of the authority has expired on 2036-01-29 09:30 UTC');
  pki.caCertificate = await renewAuthority({ certificate: pki.caCertificate, key: pki.caKey }, now);
  expect(decoded(await sign()).checkIssued(new X509Certificate(pki.caCertificate))).toBe(true);
});

describe('a request is refused', () => {
  const refusal = (request: string): Promise<string> =>
    readRequest(request).then(
      () => 'accepted',
      (error: Error) => error.message,
    );
  const pem = async (): Promise<string> => Buffer.from((await makeRequest('CN=jane')).request, 'base64').toString();

  test('a request is refused if it is not the PEM text of a request', async () => {
    for (const text of ['', 'x', (await pem()).replaceAll('CERTIFICATE REQUEST', 'CERTIFICATE')])
      expect(await refusal(encoded(text))).toBe('PEM block type must be CERTIFICATE REQUEST');
    const headers = (await pem()).replace('-----\n', '-----\nProc-Type: 4\n\n');
    expect(await refusal(encoded(headers))).toBe('the PEM block of the certificate request is not valid base64');
  });

  test('a request is refused if it has more than 16 KiB', async () => {
    const long = Buffer.alloc(16 * 1024 + 1).toString('base64');
    expect(await refusal(long)).toBe('the certificate request has more than 16384 bytes');
  });

  test('a request is refused if it is cut, or if its parts are not those of a request', async () => {
    const cut = (await pem()).replace(/\n.{64}\n/, '\n');
    expect(await refusal(encoded(cut))).toMatch(/^the certificate request cannot be parsed: /);
    const nested = Buffer.alloc(8 * 1024, Buffer.from([0x30, 0x80])).toString('base64');
    const text = `-----BEGIN CERTIFICATE REQUEST-----\n${nested}\n-----END CERTIFICATE REQUEST-----\n`;
    expect(await refusal(encoded(text))).toMatch(/^the certificate request cannot be parsed: /);
  });

  test('a request is refused if its signature does not fit its key', async () => {
    const [one, other] = await Promise.all(['CN=jane', 'CN=john'].map((name) => makeRequest(name)));
    const parts = [one, other].map(
      (each) => new x509.Pkcs10CertificateRequest(Buffer.from(each?.request ?? '', 'base64').toString()).rawData,
    );
    // Replace the name in one request by the name of another. Both requests have the same length, so the result can still be parsed.
    const mixed = Buffer.from(new Uint8Array(parts[0] ?? new ArrayBuffer(0)));
    Buffer.from('john').copy(mixed, mixed.indexOf('jane'));
    const text = x509.PemConverter.encode(new Uint8Array(mixed), 'CERTIFICATE REQUEST');
    expect(await refusal(encoded(text))).toBe('the signature of the certificate request is not valid');
  });

  test('a request is refused if its key is too small', async () => {
    const { request } = await makeRequest('CN=jane', { algorithm: { ...RSA, modulusLength: 512 } });
    expect(await refusal(request)).toBe(
      'the key of the certificate request is not supported: it must be RSA with 1024 to 8192 bits, ECDSA on P-256, P-384, P-521, or Ed25519',
    );
  });

  test.each(['bmpString', 'universalString'])('a request is refused if a group is hidden in a %s', async (type) => {
    const subject = new x509.Name([{ O: [{ [type]: 'system:masters' }] }, { CN: ['jane'] }]);
    const { request } = await makeRequest(subject);
    expect(await refusal(request)).toBe(
      'the certificate request cannot be parsed: the value of 2.5.4.10 in the subject is neither a PrintableString, a UTF8String nor an IA5String',
    );
  });

  test('a request is refused if a group is hidden in a string of another type', async () => {
    // The bytes are a VisibleString, which OpenSSL reads like other strings.
    const any = `#1a0e${Buffer.from('system:masters').toString('hex')}`;
    const { request } = await makeRequest(new x509.Name([{ O: [any] }, { CN: ['jane'] }]));
    expect(await refusal(request)).toMatch(/neither a PrintableString, a UTF8String nor an IA5String$/);
  });
});
