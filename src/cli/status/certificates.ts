/** Reads the certificates of an engine, and composes what `lifepod certs check` and `lifepod status` show about them. */
import { join } from 'node:path';
import { humanDuration } from '../../api/table.ts';
import { type DatedCertificate, datedCertificates } from '../../apiserver/pki/renewal.ts';
import { dateText, expiryOf, overdueTime } from '../../apiserver/pki/validity.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';
import { readTextIfPresent, UserError } from '../../platform/files.ts';
import { hintsFor } from '../hints.ts';
import { orOtherFolder } from '../kubeconfig/engine-folders.ts';

/** Throws a UserError if a certificate is missing or damaged. */
export function readCertificates(dataDir: string): DatedCertificate[] {
  const textOf = (name: string): string => {
    const text = readTextIfPresent(join(dataDir, 'pki', `${name}.crt`));
    if (text !== undefined) return text;
    throw new UserError(
      `there is no certificate ${name} in ${dataDir}: '${hintsFor({ dataDir }, process.env).engine('up')}' creates it${orOtherFolder(dataDir)}`,
    );
  };
  const texts = { ca: textOf('ca'), apiserver: textOf('apiserver'), admin: textOf('admin') };
  try {
    return datedCertificates(texts);
  } catch (error) {
    throw new UserError(
      `a certificate in ${join(dataDir, 'pki')} is damaged (${(error as Error).message}): restart lifepod, which replaces it`,
    );
  }
}

const HEADINGS = ['CERTIFICATE', 'EXPIRES', 'RESIDUAL TIME', 'RENEWAL DUE'];

export function certificateTable(certificates: readonly DatedCertificate[], now: Millis): string[] {
  const rows = certificates.map(({ name, certificate, renewAt }) => {
    const left = expiryOf(certificate) - now;
    return [name, dateText(expiryOf(certificate)), left < 0 ? 'expired' : humanDuration(left), dateText(renewAt)];
  });
  const widths = HEADINGS.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  return [HEADINGS, ...rows].map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** Returns the object that `-o json` prints, with times in RFC 3339 format. Fields may be added; none is removed or changes its meaning. */
export const certificatesJson = (dataDir: string, certificates: readonly DatedCertificate[], now: Millis): object => ({
  dataDir,
  certificates: certificates.map(({ name, certificate, renewAt }) => {
    const expires = expiryOf(certificate);
    return { name, expires: formatTime(expires), expired: expires < now, renewalDue: formatTime(renewAt) };
  }),
});

/** Returns a sentence for each certificate that should have been renewed, or one sentence if the certificates cannot be read. */
export function certificateTroubles(dataDir: string, now: Millis): string[] {
  let certificates: DatedCertificate[];
  try {
    certificates = readCertificates(dataDir);
  } catch (error) {
    return [(error as Error).message];
  }
  return certificates
    .filter(({ certificate }) => now >= overdueTime(certificate))
    .map(({ name, certificate }) => {
      const end = expiryOf(certificate);
      const state = now > end ? `has expired on ${dateText(end)}` : `expires on ${dateText(end)}`;
      return `the certificate ${name} ${state} and was not renewed: see the log of lifepod, or restart it`;
    });
}
