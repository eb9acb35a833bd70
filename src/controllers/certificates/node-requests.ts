/**
 * Recognizes the requests of nodes. The functions are pure.
 * Source: pkg/apis/certificates/helpers.go and pkg/controller/certificates/approver of v1.33 (behavior and wording).
 */
import type { CertificateSigningRequest } from '../../api/generated/types.ts';
import type { CertificateRequest } from '../../ports/certificates.ts';

export const KUBELET_CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet';

const NODES_GROUP = 'system:nodes';
const NODE_PREFIX = 'system:node:';

/** Returns an error text unless the usages are `digital signature` and `purpose`. `key encipherment` is for RSA keys and optional. */
function usageError(usages: readonly string[], purpose: 'client auth' | 'server auth'): string | undefined {
  const required = ['digital signature', 'key encipherment', purpose].sort();
  const sent = new Set(usages);
  const isRequired = usages.every((usage) => required.includes(usage));
  if (isRequired && sent.has('digital signature') && sent.has(purpose)) return undefined;
  return `usages did not match [${required.join(' ')}]`;
}

const isOfNodes = ({ organizations }: CertificateRequest): boolean =>
  organizations.length === 1 && organizations[0] === NODES_GROUP;

const organizationError = 'subject organization is not system:nodes';
const nameError = 'subject common name does not begin with system:node:';

/** Returns why the request is not a valid request of a node for a client certificate; undefined if it is one. */
export function kubeletClientError(contents: CertificateRequest, usages: readonly string[]): string | undefined {
  const { commonName, dnsNames, emails, ips, uris } = contents;
  if (!isOfNodes(contents)) return organizationError;
  if (dnsNames.length > 0) return 'DNS subjectAltNames are not allowed';
  if (emails.length > 0) return 'Email subjectAltNames are not allowed';
  if (ips.length > 0) return 'IP subjectAltNames are not allowed';
  if (uris.length > 0) return 'URI subjectAltNames are not allowed';
  if (!commonName.startsWith(NODE_PREFIX)) return nameError;
  return usageError(usages, 'client auth');
}

/** Returns why the request is not a valid request of a node for a serving certificate; undefined if it is one. */
export function kubeletServingError(contents: CertificateRequest, usages: readonly string[]): string | undefined {
  const { commonName, dnsNames, emails, ips, uris } = contents;
  if (!isOfNodes(contents)) return organizationError;
  if (dnsNames.length === 0 && ips.length === 0) return 'DNS or IP subjectAltName is required';
  if (emails.length > 0) return 'Email subjectAltNames are not allowed';
  if (uris.length > 0) return 'URI subjectAltNames are not allowed';
  return usageError(usages, 'server auth') ?? (commonName.startsWith(NODE_PREFIX) ? undefined : nameError);
}

/**
 * An automatic approval requires that the sender of the request may create this subresource of certificatesigningrequests. `message`: the
 * message of the condition Approved.
 */
export interface AutomaticApproval {
  subresource: 'selfnodeclient' | 'nodeclient';
  message: string;
}

/**
 * Returns the rights, one of which is sufficient for an automatic approval, in the order of the checks; an empty list if the request is
 * never approved automatically.
 */
export function automaticApprovals(
  { spec }: CertificateSigningRequest,
  contents: CertificateRequest,
): AutomaticApproval[] {
  if (kubeletClientError(contents, spec.usages ?? []) !== undefined) return [];
  const first: AutomaticApproval = {
    subresource: 'nodeclient',
    message: 'Auto approving kubelet client certificate after SubjectAccessReview.',
  };
  if (spec.username !== contents.commonName) return [first];
  const message = 'Auto approving self kubelet client certificate after SubjectAccessReview.';
  return [{ subresource: 'selfnodeclient', message }, first];
}
