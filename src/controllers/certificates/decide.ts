/**
 * Decides the next step for a CertificateSigningRequest. The functions are pure. Source: pkg/controller/certificates of v1.33 (behavior).
 */
import { X509Certificate } from 'node:crypto';
import { hasCondition, isIssued } from '../../api/certificates.k8s.io/v1/certificate-signing-request/conditions.ts';
import type { CertificateSigningRequest } from '../../api/generated/types.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import { KUBELET_CLIENT_SIGNER } from './node-requests.ts';
import { SIGNERS } from './signers.ts';

const HOUR_MILLIS = 60 * 60 * 1000;
/** How long a denied, failed or issued request is kept, counted from its denial, failure or approval. */
const DECIDED_MILLIS = HOUR_MILLIS;
const PENDING_MILLIS = 24 * HOUR_MILLIS;

/** `review`: check whether the request may be approved automatically. `wait`: do nothing until the request expires. */
export type Step = 'review' | 'sign' | 'delete' | 'wait';

export function decide(request: CertificateSigningRequest, now: Millis): { step: Step; deleteAt: Millis | undefined } {
  const deleteAt = deletionTime(request);
  return { step: deleteAt !== undefined && now >= deleteAt ? 'delete' : stepOf(request), deleteAt };
}

export function stepOf(request: CertificateSigningRequest): Step {
  if (hasCondition(request, 'Denied') || hasCondition(request, 'Failed') || isIssued(request)) return 'wait';
  if (!hasCondition(request, 'Approved')) return request.spec.signerName === KUBELET_CLIENT_SIGNER ? 'review' : 'wait';
  return SIGNERS.has(request.spec.signerName) ? 'sign' : 'wait';
}

/** Returns when the request is deleted; undefined for an approved request without a certificate, and if timestamps are missing. */
function deletionTime(request: CertificateSigningRequest): Millis | undefined {
  const { metadata, status } = request;
  const conditions = status?.conditions ?? [];
  if (conditions.length === 0) return later(parseTime(metadata.creationTimestamp), PENDING_MILLIS);
  const decided = conditions
    .filter(({ type }) => type === 'Denied' || type === 'Failed' || (type === 'Approved' && isIssued(request)))
    .map(({ lastUpdateTime }) => later(parseTime(lastUpdateTime), DECIDED_MILLIS));
  const times = [...decided, certificateEnd(request)].filter((time) => time !== undefined);
  return times.length === 0 ? undefined : Math.min(...times);
}

const later = (time: Millis | undefined, millis: Millis): Millis | undefined =>
  time === undefined ? undefined : time + millis;

/** Returns when the certificate expires; undefined without a certificate, and for a malformed one from another signer. */
function certificateEnd({ status }: CertificateSigningRequest): Millis | undefined {
  if (!status?.certificate) return undefined;
  try {
    return Date.parse(new X509Certificate(Buffer.from(status.certificate, 'base64')).validTo);
  } catch {
    return undefined;
  }
}
