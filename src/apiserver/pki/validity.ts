/**
 * Decides how long certificates are valid, and when they are renewed. Pure.
 * Source: pkg/controller/certificates/authority/policies.go, and the certificate manager of client-go, of v1.33 (behavior).
 */
import type { X509Certificate } from 'node:crypto';
import type { Millis } from '../../machinery/time.ts';

/** The validity of a certificate begins this long before its creation, because the clocks of clients may be slightly behind. */
export const BACKDATE_MILLIS = 5 * 60 * 1000;
/**
 * The limit below which a lifetime is short. A short lifetime counts from the creation of the certificate, other lifetimes from the
 * beginning of its validity.
 */
const SHORT_MILLIS = 8 * 60 * 60 * 1000;

/** The lifetime of certificates by default: a year. */
export const DEFAULT_LIFETIME_MILLIS = 365 * 24 * 60 * 60 * 1000;

/** The time in which a certificate is valid. */
export interface Validity {
  begin: Millis;
  end: Millis;
}

/**
 * Returns the validity of a certificate that is created now. The validity ends at `authorityEnd`, the end of the authority's validity, at
 * the latest. Throws if the authority has expired.
 */
export function validityOf(now: Millis, lifetimeMillis: Millis, authorityEnd: Millis): Validity {
  if (now >= authorityEnd) throw new Error(`the certificate of the authority has expired on ${dateText(authorityEnd)}`);
  const begin = now - BACKDATE_MILLIS;
  const end = (lifetimeMillis < SHORT_MILLIS ? now : begin) + lifetimeMillis;
  return { begin, end: Math.min(end, authorityEnd) };
}

/** The fields of a certificate that determine when to renew it. The fingerprint spreads the renewals of certificates created together. */
export type Dated = Pick<X509Certificate, 'validFrom' | 'validTo' | 'fingerprint256'>;

/** Returns the end of the certificate's validity. */
export const expiryOf = ({ validTo }: Pick<Dated, 'validTo'>): Millis => Date.parse(validTo);

/** Returns the time at which the part of the lifetime has passed since the creation. `part`: from 0 to 1. */
function timeAfter({ validFrom, validTo }: Dated, part: number): Millis {
  const end = Date.parse(validTo);
  const created = Math.min(Date.parse(validFrom) + BACKDATE_MILLIS, end);
  return created + part * (end - created);
}

/**
 * Returns the time from which a certificate should be renewed: when 70 to 90 percent of its lifetime have passed. The percentage is derived
 * from the fingerprint, so that certificates that were created together are not renewed together, and each start calculates the same time.
 */
export const renewalTime = (certificate: Dated): Millis =>
  timeAfter(certificate, 0.7 + (0.2 * Number.parseInt(certificate.fingerprint256.slice(0, 2), 16)) / 255);

/** Returns the time from which the certificate of an authority should be renewed: when 80 percent of its lifetime have passed. */
export const authorityRenewalTime = (certificate: Dated): Millis => timeAfter(certificate, 0.8);

/**
 * Returns the time at which 95 percent of the lifetime have passed. A certificate that is still in use then has not been renewed in time.
 */
export const overdueTime = (certificate: Dated): Millis => timeAfter(certificate, 0.95);

/**
 * Whether the certificate should be renewed: from `renewAt` on, or if it is not valid yet, because the machine's clock was set back after
 * its creation.
 */
export const isDue = (certificate: Dated, now: Millis, renewAt = renewalTime(certificate)): boolean =>
  now >= renewAt || now < Date.parse(certificate.validFrom);

/** Returns the date and the time in UTC, such as `2027-01-31 09:30 UTC`. */
export const dateText = (time: Millis): string => `${new Date(time).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
