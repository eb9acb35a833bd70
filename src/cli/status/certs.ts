/** `lifepod certs check`: prints when the certificates of the engine expire. */
import { machineClock } from '../../platform/node-js.ts';
import { certificateTable, readCertificates } from './certificates.ts';

export function checkCertificates(dataDir: string): void {
  const lines = certificateTable(readCertificates(dataDir), machineClock.now());
  process.stdout.write(`${lines.join('\n')}\n`);
}
