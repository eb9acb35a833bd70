import { X509Certificate } from 'node:crypto';
import type { Millis } from '../../machinery/time.ts';
import { programPart } from '../../platform/programs/program-part.ts';
import type { CertificateAuthority } from '../../ports/certificates.ts';
import type { Pki } from './pki.ts';
import { expiryOf, validityOf } from './validity.ts';

/** Parses a request and verifies its signature, without an authority. */
export const readRequest: CertificateAuthority['read'] = async (request) =>
  (await programPart(() => import('./certificate-requests.ts'))).parseRequest(request);

/**
 * `pki`: read for each signature, so that its certificates may be replaced later. `lifetimeMillis`: the maximum lifetime of signed
 * certificates. `now`: the clock with which the dates of certificates are compared.
 */
export function createAuthority(
  pki: Readonly<Pick<Pki, 'caCertificate' | 'caKey'>>,
  lifetimeMillis: Millis,
  now: () => Millis,
): CertificateAuthority {
  return {
    read: readRequest,
    async sign(request, { usages, expirationSeconds }) {
      const [{ parseRequest }, { signCertificate }] = await programPart(() =>
        Promise.all([import('./certificate-requests.ts'), import('./certificates.ts')]),
      );
      const { subject, publicKey, names } = await parseRequest(request);
      const { caCertificate, caKey } = pki;
      const wanted = expirationSeconds === undefined ? lifetimeMillis : expirationSeconds * 1000;
      const end = expiryOf(new X509Certificate(caCertificate));
      const validity = validityOf(now(), Math.min(wanted, lifetimeMillis), end);
      const authority = { certificate: caCertificate, key: caKey };
      const certificate = await signCertificate(authority, { subject, publicKey, usages, names }, validity);
      return Buffer.from(certificate).toString('base64');
    },
  };
}
