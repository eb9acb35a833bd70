/**
 * Checks whether the signers of the cluster's certificate authority accept a certificate request. The functions are pure.
 * Source: pkg/controller/certificates/signer of v1.33 (behavior and wording).
 */
import type { CertificateRequest } from '../../ports/certificates.ts';
import { KUBELET_CLIENT_SIGNER, kubeletClientError, kubeletServingError } from './node-requests.ts';

/** Returns why the signer refuses the request; undefined if the signer accepts it. */
type SignerRule = (contents: CertificateRequest, usages: readonly string[]) => string | undefined;

function apiClientError(_: CertificateRequest, usages: readonly string[]): string | undefined {
  const allowed = ['digital signature', 'key encipherment', 'client auth'];
  const wrong = usages.find((usage) => !allowed.includes(usage));
  if (wrong !== undefined) return `invalid usage for client certificate: ${wrong}`;
  return usages.includes('client auth') ? undefined : 'missing required usage for client certificate: client auth';
}

/** By signer name. Requests for other signers are not signed. */
export const SIGNERS: ReadonlyMap<string, SignerRule> = new Map([
  ['kubernetes.io/kube-apiserver-client', apiClientError],
  [KUBELET_CLIENT_SIGNER, kubeletClientError],
  ['kubernetes.io/kubelet-serving', kubeletServingError],
]);
