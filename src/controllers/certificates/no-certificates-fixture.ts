/** Options for tests in which no client requests a certificate: every call is rejected. */
import type { CertificateOptions } from './certificates.ts';

const none = (): Promise<never> => Promise.reject(new Error('no client asks for a certificate'));

export const noCertificates: CertificateOptions = {
  authority: { read: none, sign: none },
  authorizer: { authorize: none },
};
