/** `lifepod certs check`: prints when the certificates of the engine expire. */
import { NeedsRootError } from '../../engine/machine-checks.ts';
import { machineClock } from '../../platform/node-js.ts';
import { isOnlyForRoot } from '../kubeconfig/own-kubeconfig.ts';
import { certificatesJson, certificateTable, readCertificates } from './certificates.ts';

export function checkCertificates(dataDir: string, output?: 'json'): void {
  if (isOnlyForRoot(dataDir)) throw new NeedsRootError(`read the data folder ${dataDir}`);
  const certificates = readCertificates(dataDir);
  const now = machineClock.now();
  const text =
    output === 'json'
      ? JSON.stringify(certificatesJson(certificates, now), undefined, 2)
      : certificateTable(certificates, now).join('\n');
  process.stdout.write(`${text}\n`);
}
