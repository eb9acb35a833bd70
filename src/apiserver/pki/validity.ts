/** Source: pkg/controller/certificates/authority/policies.go, and the certificate manager of client-go, of v1.33 (behavior). */
import type { X509Certificate } from 'node:crypto';
import type { Millis } from '../../machinery/time.ts';

/** The validity of a certificate begins this long before its creation, because the clocks of clients may be slightly behind. */
export const BACKDATE_MILLIS = 5 * 60 * 1000;
/** Shorter lifetimes count from the creation of the certificate, others from the beginning of its validity. */
const SHORT_MILLIS = 8 * 60 * 60 * 1000;

export const DEFAULT_LIFETIME_MILLIS = 365 * 24 * 60 * 60 * 1000;

export interface Validity {
  begin: Millis;
  end: Millis;
}

/**
 * Returns the validity of a certificate that is created now, which ends at `authorityEnd` at the latest. Throws if the authority has
 * expired.
 */
export function validityOf(now: Millis, lifetimeMillis: Millis, authorityEnd: Millis): Validity {
  if (now >= authorityEnd) throw new Error(`the certificate of the authority has expired on ${dateText(authorityEnd)}`);
  const begin = now - BACKDATE_MILLIS;
  const end = (lifetimeMillis < SHORT_MILLIS ? now : begin) + lifetimeMillis;
  return { begin, end: Math.min(end, authorityEnd) };
}

/** The fingerprint spreads the renewals of certificates that were created together. */
export type Dated = Pick<X509Certificate, 'validFrom' | 'validTo' | 'fingerprint256'>;

export const expiryOf = ({ validTo }: Pick<Dated, 'validTo'>): Millis => Date.parse(validTo);

function timeAfter({ validFrom, validTo }: Dated, part: number): Millis {
  const end = Date.parse(validTo);
  const created = Math.min(Date.parse(validFrom) + BACKDATE_MILLIS, end);
  return created + part * (end - created);
}

/**
 * Returns the time at which 70 to 90 percent of the lifetime have passed. The percentage is derived from the fingerprint, so that it is the
 * same at each start.
 */
export const renewalTime = (certificate: Dated): Millis =>
  timeAfter(certificate, 0.7 + (0.2 * Number.parseInt(certificate.fingerprint256.slice(0, 2), 16)) / 255);

export const authorityRenewalTime = (certificate: Dated): Millis => timeAfter(certificate, 0.8);

/**
 * Returns the time at which 95 percent of the lifetime have passed. A certificate that is still in use then has not been renewed in time.
 */
export const overdueTime = (certificate: Dated): Millis => timeAfter(certificate, 0.95);

/**
 * Whether the certificate is to be renewed. Also true for a certificate that is not valid yet, because the machine's clock was set back
 * after its creation.
 */
export const isDue = (certificate: Dated, now: Millis, renewAt = renewalTime(certificate)): boolean =>
  now >= renewAt || now < Date.parse(certificate.validFrom);

/** Formats the time in UTC, such as `2027-01-31 09:30 UTC`. */
export const dateText = (time: Millis): string => `${new Date(time).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
