import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';

export const EC = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

export interface TestRequest {
  /** The `spec.request` of a CertificateSigningRequest. */
  request: string;
  /** PEM text. */
  key: string;
}

/** `subject`: a text such as `O=system:nodes, CN=system:node:n1`, or attributes with the types of their strings. */
export async function makeRequest(
  subject: x509.Pkcs10CertificateRequestCreateParamsName,
  { names = [], algorithm = EC, extensions = [] }: Partial<RequestParts> = {},
): Promise<TestRequest> {
  const keys = (await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair;
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: subject,
    keys,
    signingAlgorithm: algorithm as x509.Pkcs10CertificateRequestCreateParams['signingAlgorithm'],
    extensions: [...(names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(names)]), ...extensions],
  });
  const der = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  return { request: encoded(request.toString('pem')), key: x509.PemConverter.encode(der, 'PRIVATE KEY') };
}

interface RequestParts {
  names: x509.JsonGeneralNames;
  algorithm: webcrypto.Algorithm & Record<string, unknown>;
  extensions: x509.Extension[];
}

export const encoded = (pem: string): string => Buffer.from(pem).toString('base64');
