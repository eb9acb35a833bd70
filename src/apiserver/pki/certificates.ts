/** Import this file dynamically, because the X.509 library is large and most engines do not need it while they run. */
import 'reflect-metadata';
import { type KeyObject, webcrypto, X509Certificate } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import type { Millis } from '../../machinery/time.ts';
import type { Usage } from '../../ports/certificates.ts';
import { BACKDATE_MILLIS, DEFAULT_LIFETIME_MILLIS, expiryOf, type Validity, validityOf } from './validity.ts';

const AUTHORITY_LIFETIME_MILLIS = 3650 * 24 * 60 * 60 * 1000;
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const SIGNING = { name: 'ECDSA', hash: 'SHA-256' } as const;

/** PEM texts. */
export interface CertificateAndKey {
  certificate: string;
  key: string;
}

export interface LeafRequest {
  commonName: string;
  organization?: string | readonly string[];
  usage: 'server' | 'client';
  dnsNames?: readonly string[];
  ips?: readonly string[];
}

async function generateKeys(): Promise<{ keys: webcrypto.CryptoKeyPair; pem: string }> {
  const keys = (await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair;
  const der = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  return { keys, pem: x509.PemConverter.encode(der, 'PRIVATE KEY') };
}

const dates = ({ begin, end }: Validity): { notBefore: Date; notAfter: Date } => ({
  notBefore: new Date(begin),
  notAfter: new Date(end),
});

const pem = (certificate: x509.X509Certificate): string => `${certificate.toString('pem')}\n`;

/** `certificate`: a PEM text. */
export interface Authority {
  certificate: string;
  key: KeyObject;
}

async function importSigningKey(key: KeyObject): Promise<webcrypto.CryptoKey> {
  const der = key.export({ type: 'pkcs8', format: 'der' }) as Uint8Array<ArrayBuffer>;
  return webcrypto.subtle.importKey('pkcs8', der, ALGORITHM, true, ['sign']);
}

const parsed = (certificate: string): x509.X509Certificate =>
  new x509.X509Certificate(new X509Certificate(certificate).raw as Uint8Array<ArrayBuffer>);

async function selfSigned(
  name: x509.X509CertificateCreateParamsName,
  keys: { publicKey: x509.PublicKeyType; signingKey: webcrypto.CryptoKey },
  now: Millis,
): Promise<string> {
  const certificate = await x509.X509CertificateGenerator.create({
    subject: name,
    issuer: name,
    ...keys,
    signingAlgorithm: SIGNING,
    ...dates({ begin: now - BACKDATE_MILLIS, end: now + AUTHORITY_LIFETIME_MILLIS }),
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(
        x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign | x509.KeyUsageFlags.digitalSignature,
        true,
      ),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return pem(certificate);
}

/** Creates the key and the self-signed certificate of an authority, valid for ten years. */
export async function makeAuthority(commonName: string, now: Millis): Promise<CertificateAndKey> {
  const { keys, pem: key } = await generateKeys();
  const { publicKey, privateKey: signingKey } = keys;
  return { certificate: await selfSigned([{ CN: [commonName] }], { publicKey, signingKey }, now), key };
}

/**
 * Creates another certificate of the authority, valid for ten years. The key and the name remain, so that both certificates verify the
 * certificates that the authority signs.
 */
export async function renewAuthority({ certificate, key }: Authority, now: Millis): Promise<string> {
  const { subjectName, publicKey } = parsed(certificate);
  return selfSigned(subjectName, { publicKey, signingKey: await importSigningKey(key) }, now);
}

export async function makeLeaf(
  authority: Authority,
  request: LeafRequest,
  now: Millis,
  lifetimeMillis = DEFAULT_LIFETIME_MILLIS,
): Promise<CertificateAndKey> {
  const { keys, pem: key } = await generateKeys();
  const { commonName, organization = [], usage, dnsNames = [], ips = [] } = request;
  const certificate = await signCertificate(
    authority,
    {
      // In other strings than UTF8Strings, the library would interpret quotation marks, backslashes and a leading # as syntax.
      subject: new x509.Name([
        ...[organization].flat().map((utf8String) => ({ O: [{ utf8String }] })),
        { CN: [{ utf8String: commonName }] },
      ]),
      publicKey: keys.publicKey,
      usages: ['digital signature', `${usage} auth`],
      names: [
        ...dnsNames.map((value) => ({ type: 'dns' as const, value })),
        ...ips.map((value) => ({ type: 'ip' as const, value })),
      ],
    },
    validityOf(now, lifetimeMillis, expiryOf(new X509Certificate(authority.certificate))),
  );
  return { certificate, key };
}

export interface Certified {
  subject: x509.Name;
  publicKey: x509.PublicKeyType;
  usages: readonly Usage[];
  names: x509.JsonGeneralNames;
}

/** Resolves to the PEM text of a certificate that cannot sign others. */
export async function signCertificate(
  authority: Authority,
  { subject, publicKey, usages, names }: Certified,
  validity: Validity,
): Promise<string> {
  const issuer = parsed(authority.certificate);
  const { keyEncipherment, digitalSignature } = x509.KeyUsageFlags;
  const keyUsages =
    (usages.includes('digital signature') ? digitalSignature : 0) |
    (usages.includes('key encipherment') ? keyEncipherment : 0);
  const purposes = [
    ...(usages.includes('server auth') ? [x509.ExtendedKeyUsage.serverAuth] : []),
    ...(usages.includes('client auth') ? [x509.ExtendedKeyUsage.clientAuth] : []),
  ];
  const certificate = await x509.X509CertificateGenerator.create({
    subject,
    issuer: issuer.subjectName,
    publicKey,
    signingKey: await importSigningKey(authority.key),
    signingAlgorithm: SIGNING,
    ...dates(validity),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      ...(keyUsages === 0 ? [] : [new x509.KeyUsagesExtension(keyUsages, true)]),
      new x509.ExtendedKeyUsageExtension(purposes),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
      // RFC 5280 requires that the extension is critical if the subject is empty.
      ...(names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(names, subject.toString() === '')]),
    ],
  });
  return pem(certificate);
}
