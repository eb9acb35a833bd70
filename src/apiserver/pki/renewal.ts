/**
 * Renews certificates before they expire, and replaces them while the server runs. A timer fires at least once a minute, because the
 * operating system reports no event when its clock is set.
 */
import { X509Certificate } from 'node:crypto';
import type { Millis } from '../../machinery/time.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Clock, Log, Timer, Timers } from '../../platform/platform.ts';
import type { Pki } from './pki.ts';
import { authorityRenewalTime, dateText, expiryOf, isDue, renewalTime } from './validity.ts';

/** The longest time between two checks, and the time after which a failed renewal is repeated. */
const CHECK_MILLIS = 60_000;
const LEAST_MILLIS = 1000;

export interface RenewalOptions {
  pki: Pki;
  /** Resolves to all certificates, after renewing those that are due. */
  load(now: Millis): Promise<Pki>;
  use(pki: Pki): void;
  timers: Timers;
  /** The clock with which the dates of the certificates are compared. */
  clock: Clock;
  log: Log;
  signal: AbortSignal;
}

/** PEM texts by the names of their files. */
export type CertificateTexts = Readonly<Record<'ca' | 'apiserver' | 'admin', string>>;

export interface DatedCertificate {
  name: keyof CertificateTexts;
  certificate: X509Certificate;
  renewAt: Millis;
}

export const datedCertificates = (texts: CertificateTexts): DatedCertificate[] =>
  (['ca', 'apiserver', 'admin'] as const).map((name) => {
    const certificate = new X509Certificate(texts[name]);
    return { name, certificate, renewAt: (name === 'ca' ? authorityRenewalTime : renewalTime)(certificate) };
  });

const datedOf = ({ caCertificate, serving, admin }: Pki): DatedCertificate[] =>
  datedCertificates({ ca: caCertificate, apiserver: serving.certificate, admin: admin.certificate });

export function keepRenewed({ pki, load, use, timers, clock, log, signal }: RenewalOptions): void {
  let current = datedOf(pki);
  let timer: Timer | undefined;
  onAbort(signal, () => timer?.cancel());
  const arm = (millis: Millis): void => {
    if (!signal.aborted) timer = timers.at(timers.now() + millis, () => void check());
  };
  const armNext = (): void => {
    const next = Math.min(...current.map(({ renewAt }) => renewAt)) - clock.now();
    arm(Math.min(Math.max(next, LEAST_MILLIS), CHECK_MILLIS));
  };
  const report = (before: readonly DatedCertificate[]): void => {
    for (const [index, { name, certificate }] of current.entries()) {
      const earlier = before[index]?.certificate;
      if (earlier === undefined || earlier.fingerprint256 === certificate.fingerprint256) continue;
      log.info('renewed a certificate', { certificate: name, expires: dateText(expiryOf(certificate)) });
      if (name !== 'ca') continue;
      log.warn(
        'restart lifepod before the earlier certificate of the authority expires, so that Pods get the new one',
        {
          expires: dateText(expiryOf(earlier)),
        },
      );
    }
  };
  async function check(): Promise<void> {
    const now = clock.now();
    if (!current.some(({ certificate, renewAt }) => isDue(certificate, now, renewAt))) return armNext();
    try {
      const renewed = await load(now);
      if (signal.aborted) return;
      use(renewed);
      const before = current;
      current = datedOf(renewed);
      report(before);
      armNext();
    } catch (error) {
      const expires = Math.min(...current.map(({ certificate }) => expiryOf(certificate)));
      log.error('cannot renew the certificates', { error: (error as Error).message, expires: dateText(expires) });
      arm(CHECK_MILLIS);
    }
  }
  armNext();
}
