/** Source: validateCertificate of pkg/apis/certificates/validation of v1.33 (behavior and wording). */
import { X509Certificate } from 'node:crypto';

/** The length of the type is limited, because the search for the end of a block is slow for long types. */
const PEM_BLOCK = /-----BEGIN ([^\n]{0,100}?)-----([^-]*)-----END ([^\n]{0,100}?)-----/g;

/** Returns what is wrong with the certificates; undefined if all can be parsed. `base64`: their PEM text in base64. */
export function certificateError(base64: string): string | undefined {
  const blocks = [...Buffer.from(base64, 'base64').toString('latin1').matchAll(PEM_BLOCK)];
  if (blocks.length === 0) return 'must contain at least one CERTIFICATE PEM block';
  for (const [, type = '', body = ''] of blocks) {
    if (type !== 'CERTIFICATE') return `only CERTIFICATE PEM blocks are allowed, found ${JSON.stringify(type)}`;
    if (body.includes(':')) return 'no PEM block headers are permitted';
    try {
      new X509Certificate(Buffer.from(body, 'base64'));
    } catch {
      return 'x509: malformed certificate';
    }
  }
  return undefined;
}
