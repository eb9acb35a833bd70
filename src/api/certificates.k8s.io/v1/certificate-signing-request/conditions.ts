/** The meaning of the conditions of a CertificateSigningRequest. Source: pkg/controller/certificates and pkg/printers of v1.33. */
import type { CertificateSigningRequest, CertificateSigningRequestCondition } from '../../../generated/types.ts';

/** The conditions that decide about a request. They are never removed, and their status is always True. */
export const DECISIONS = ['Approved', 'Denied', 'Failed'] as const;
export type DecisionType = (typeof DECISIONS)[number];

export const conditionsOf = (
  { status }: CertificateSigningRequest,
  type: DecisionType,
): CertificateSigningRequestCondition[] => (status?.conditions ?? []).filter((condition) => condition.type === type);

export const hasCondition = (request: CertificateSigningRequest, type: DecisionType): boolean =>
  conditionsOf(request, type).length > 0;

export const isIssued = ({ status }: CertificateSigningRequest): boolean => (status?.certificate ?? '') !== '';

/** Returns the text that kubectl shows, such as `Approved,Issued`. */
export function conditionText(request: CertificateSigningRequest): string {
  const decision = hasCondition(request, 'Denied')
    ? 'Denied'
    : hasCondition(request, 'Approved')
      ? 'Approved'
      : 'Pending';
  return [
    decision,
    ...(hasCondition(request, 'Failed') ? ['Failed'] : []),
    ...(isIssued(request) ? ['Issued'] : []),
  ].join();
}
