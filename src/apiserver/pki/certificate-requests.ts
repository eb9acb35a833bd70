/**
 * Parses the PKCS#10 requests that clients send. The size of a request is limited, because parsing occupies the event loop: up to 0.2 s for
 * a request with 5,700 empty names.
 * Source: ParseCSR of pkg/apis/certificates of v1.33, and crypto/x509 of Go (behavior).
 */
import 'reflect-metadata';
import { isIP } from 'node:net';
import * as x509 from '@peculiar/x509';
import type { CertificateRequest } from '../../ports/certificates.ts';
import type { Certified } from './certificates.ts';

const MAX_BYTES = 16 * 1024;
const BEGIN = '-----BEGIN CERTIFICATE REQUEST-----';
const END = '-----END CERTIFICATE REQUEST-----';
const COMMON_NAME = '2.5.4.3';
const ORGANIZATION = '2.5.4.10';

const LEAST_RSA_BITS = 1024;
const MOST_RSA_BITS = 8192;
const CURVES = ['P-256', 'P-384', 'P-521'];

export interface ParsedRequest extends CertificateRequest, Pick<Certified, 'subject' | 'publicKey' | 'names'> {}

/**
 * Parses the request, and verifies its signature. `request`: a PEM text in base64. Rejects with an Error that says why the request is not
 * valid.
 */
export async function parseRequest(request: string): Promise<ParsedRequest> {
  if (Buffer.byteLength(request, 'base64') > MAX_BYTES)
    throw new Error(`the certificate request has more than ${MAX_BYTES} bytes`);
  const parsed = parse(derOf(Buffer.from(request, 'base64').toString('latin1')));
  const { publicKey, names, subject } = parsed;
  checkKey(publicKey);
  if (!(await parsed.verify().catch(() => false)))
    throw new Error('the signature of the certificate request is not valid');
  const valuesOf = (wanted: string): string[] => subject.flatMap(({ type, value }) => (type === wanted ? [value] : []));
  const namesOf = (wanted: x509.GeneralNameType): string[] =>
    names.flatMap(({ type, value }) => (type === wanted ? [value] : []));
  const [commonName = '', ...more] = valuesOf(COMMON_NAME);
  return {
    commonName: more.length === 0 ? commonName : '',
    organizations: valuesOf(ORGANIZATION),
    dnsNames: namesOf('dns'),
    ips: namesOf('ip'),
    emails: namesOf('email'),
    uris: namesOf('url'),
    subject: parsed.name,
    publicKey,
    names,
  };
}

function derOf(text: string): Buffer {
  const begin = text.indexOf('-----BEGIN ');
  const end = text.indexOf(END, begin);
  if (begin === -1 || end === -1 || !text.startsWith(BEGIN, begin)) {
    throw new Error('PEM block type must be CERTIFICATE REQUEST');
  }
  const body = text.slice(begin + BEGIN.length, end);
  if (!/^[A-Za-z0-9+/=\s]*$/.test(body))
    throw new Error('the PEM block of the certificate request is not valid base64');
  return Buffer.from(body, 'base64');
}

interface Attribute {
  type: string;
  value: string;
}

/** Throws an Error if the library cannot parse the request, or if other programs could interpret a part of it differently. */
function parse(der: Buffer) {
  try {
    const request = new x509.Pkcs10CertificateRequest(der as Uint8Array<ArrayBuffer>);
    const { attributes, name } = subjectOf(request.subjectName);
    return {
      subject: attributes,
      name,
      publicKey: request.publicKey,
      names: namesIn(request),
      verify: () => request.verify(),
    };
  } catch (error) {
    throw new Error(`the certificate request cannot be parsed: ${(error as Error).message}`);
  }
}

interface AsnAttribute {
  type: string;
  value: { printableString?: string; utf8String?: string; ia5String?: string };
}

/**
 * Returns the attributes of a subject, and the subject with the same types of strings. Throws an Error if a string has an unexpected type:
 * readers of a certificate could interpret the string differently, and a request could hide a group from the checks. Source: RFC 5280,
 * which requires this of authorities.
 */
function subjectOf(requested: x509.Name): { attributes: Attribute[]; name: x509.Name } {
  // The library's list of attributes does not contain the types of the strings.
  const { asn } = requested as unknown as { asn: Iterable<Iterable<AsnAttribute>> };
  const attributes: Attribute[] = [];
  const json = Array.from(asn, (relative) => {
    const item: Record<string, x509.JsonAttributeObject[]> = {};
    for (const { type, value } of relative) {
      const { printableString, utf8String, ia5String } = value;
      const text = printableString ?? utf8String ?? ia5String;
      if (text === undefined) {
        throw new Error(
          `the value of ${type} in the subject is neither a PrintableString, a UTF8String nor an IA5String`,
        );
      }
      attributes.push({ type, value: text });
      const kept =
        printableString !== undefined
          ? { printableString }
          : utf8String !== undefined
            ? { utf8String }
            : { ia5String: text };
      item[type] = [...(item[type] ?? []), kept];
    }
    return item;
  });
  return { attributes, name: new x509.Name(json) };
}

const NAME_TYPES: readonly x509.GeneralNameType[] = ['dns', 'ip', 'email', 'url'];

/** As upstream, ignores names of other types. Throws an Error if an IP address is not valid. */
function namesIn(request: x509.Pkcs10CertificateRequest): x509.JsonGeneralNames {
  const names = request.extensions
    .filter((extension) => extension instanceof x509.SubjectAlternativeNameExtension)
    .flatMap((extension) => extension.names.items.map(({ type, value }) => ({ type, value })))
    .filter(({ type }) => NAME_TYPES.includes(type));
  const wrong = names.find(({ type, value }) => type === 'ip' && isIP(value) === 0);
  if (wrong !== undefined) throw new Error(`${JSON.stringify(wrong.value)} is not an IP address`);
  return names;
}

interface Key {
  name: string;
  /** In bits; only for RSA. */
  modulusLength?: number;
  /** Only for ECDSA. */
  namedCurve?: string;
}

function checkKey({ algorithm }: x509.PublicKey): void {
  const { name, modulusLength = 0, namedCurve = '' } = algorithm as Key;
  if (name === 'Ed25519') return;
  if (name === 'ECDSA' && CURVES.includes(namedCurve)) return;
  if (name.startsWith('RSA') && modulusLength >= LEAST_RSA_BITS && modulusLength <= MOST_RSA_BITS) return;
  throw new Error(
    `the key of the certificate request is not supported: it must be RSA with ${LEAST_RSA_BITS} to ${MOST_RSA_BITS} bits, ECDSA on ${CURVES.join(', ')}, or Ed25519`,
  );
}
