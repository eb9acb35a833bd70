/** Source: validateCertificate of pkg/apis/certificates/validation of v1.33 (behavior and wording). */
import { X509Certificate } from 'node:crypto';

/**
 * The label after BEGIN is limited to 100 characters. Without a limit, a line with many BEGIN markers takes quadratic time, because each
 * marker is tried with every later `-----` on the line.
 */
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
