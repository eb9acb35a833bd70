/**
 * Creates certificates. Only this file imports the X.509 library, and pki.ts loads this file only when a certificate must be created,
 * because the library is large and a running engine does not need it.
 */
import 'reflect-metadata';
import { type KeyObject, webcrypto, X509Certificate } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import type { Millis } from '../../machinery/time.ts';

const DAY_MILLIS = 24 * 60 * 60 * 1000;
const CA_LIFETIME_DAYS = 3650;
const LEAF_LIFETIME_DAYS = 365;
/** How long before its creation a certificate becomes valid, because the clocks of clients may be slightly behind. */
const BACKDATE_MILLIS = 5 * 60 * 1000;
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const SIGNING = { name: 'ECDSA', hash: 'SHA-256' } as const;

/** A certificate and its private key, both as PEM texts. */
export interface CertificateAndKey {
  certificate: string;
  key: string;
}

export interface LeafRequest {
  commonName: string;
  organization?: string;
  usage: 'server' | 'client';
  dnsNames?: readonly string[];
  ips?: readonly string[];
}

async function generateKeys(): Promise<{ keys: webcrypto.CryptoKeyPair; pem: string }> {
  const keys = (await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair;
  const der = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  return { keys, pem: x509.PemConverter.encode(der, 'PRIVATE KEY') };
}

const validity = (now: Millis, days: number): { notBefore: Date; notAfter: Date } => ({
  notBefore: new Date(now - BACKDATE_MILLIS),
  notAfter: new Date(now + days * DAY_MILLIS),
});

const pem = (certificate: x509.X509Certificate): string => `${certificate.toString('pem')}\n`;

/** Creates the key and the self-signed certificate of an authority, valid for ten years. */
export async function makeAuthority(commonName: string, now: Millis): Promise<CertificateAndKey> {
  const { keys, pem: key } = await generateKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [commonName] }],
    keys,
    signingAlgorithm: SIGNING,
    ...validity(now, CA_LIFETIME_DAYS),
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(
        x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign | x509.KeyUsageFlags.digitalSignature,
        true,
      ),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: pem(certificate), key };
}

/** Creates a key and a certificate that the authority signs, valid for one year. */
export async function makeLeaf(
  authority: { certificate: string; key: KeyObject },
  request: LeafRequest,
  now: Millis,
): Promise<CertificateAndKey> {
  const { keys, pem: key } = await generateKeys();
  const signingKey = await webcrypto.subtle.importKey(
    'pkcs8',
    authority.key.export({ type: 'pkcs8', format: 'der' }) as Uint8Array<ArrayBuffer>,
    ALGORITHM,
    false,
    ['sign'],
  );
  const issuer = new x509.X509Certificate(new X509Certificate(authority.certificate).raw as Uint8Array<ArrayBuffer>);
  const names = [
    ...(request.dnsNames ?? []).map((value) => ({ type: 'dns' as const, value })),
    ...(request.ips ?? []).map((value) => ({ type: 'ip' as const, value })),
  ];
  const certificate = await x509.X509CertificateGenerator.create({
    subject: [
      ...(request.organization === undefined ? [] : [{ O: [request.organization] }]),
      { CN: [request.commonName] },
    ],
    issuer: issuer.subjectName,
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: SIGNING,
    ...validity(now, LEAF_LIFETIME_DAYS),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([
        request.usage === 'server' ? x509.ExtendedKeyUsage.serverAuth : x509.ExtendedKeyUsage.clientAuth,
      ]),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
      ...(names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(names)]),
    ],
  });
  return { certificate: pem(certificate), key };
}
