/** `lifepod certs check`: prints when the certificates of the engine expire. */
import { machineClock } from '../../platform/node-js.ts';
import { certificatesJson, certificateTable, readCertificates } from './certificates.ts';

export function checkCertificates(dataDir: string, output?: 'json'): void {
  const certificates = readCertificates(dataDir);
  const now = machineClock.now();
  const text =
    output === 'json'
      ? JSON.stringify(certificatesJson(certificates, now), undefined, 2)
      : certificateTable(certificates, now).join('\n');
  process.stdout.write(`${text}\n`);
}
