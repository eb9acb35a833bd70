/** The contents of a PKCS#10 request. */
export interface CertificateRequest {
  /** The common name of the subject; empty if the subject does not have exactly one. */
  commonName: string;
  organizations: readonly string[];
  dnsNames: readonly string[];
  ips: readonly string[];
  emails: readonly string[];
  uris: readonly string[];
}

/** The usages of certificates.k8s.io that the authority certifies. */
export type Usage = 'digital signature' | 'key encipherment' | 'client auth' | 'server auth';

/** In both methods, `request` is the `spec.request` of a CertificateSigningRequest, a PEM text in base64. */
export interface CertificateAuthority {
  /** Rejects with an Error that says why the request is invalid, such as a wrong signature. */
  read(request: string): Promise<CertificateRequest>;
  /**
   * Resolves to the certificate as PEM text in base64. `expirationSeconds`: the requested lifetime, which the authority limits; absent: the
   * longest lifetime that it grants. Rejects with an Error if `request` is invalid or the certificate of the authority has expired.
   */
  sign(request: string, options: { usages: readonly Usage[]; expirationSeconds?: number | undefined }): Promise<string>;
}
