/** `lifepod certs check`: prints when the certificates of the engine expire. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { NeedsRootError } from '../../engine/machine-checks.ts';
import { readEngineRecord } from '../../engine/settings.ts';
import { dataDirOwner, UserError } from '../../platform/files.ts';
import { machineClock } from '../../platform/node-js.ts';
import { isOnlyForRoot } from '../kubeconfig/own-kubeconfig.ts';
import { certificatesJson, certificateTable, readCertificates } from './certificates.ts';
import { stoppedText } from './read-engine.ts';

export function checkCertificates(dataDir: string, output?: 'json'): void {
  if (isOnlyForRoot(dataDir)) throw new NeedsRootError(`read the data folder ${dataDir}`);
  if (!existsSync(join(dataDir, 'pki')) && dataDirOwner(dataDir) === undefined)
    throw new UserError(stoppedText(dataDir, readEngineRecord(dataDir)));
  const certificates = readCertificates(dataDir);
  const now = machineClock.now();
  const text =
    output === 'json'
      ? JSON.stringify(certificatesJson(certificates, now), undefined, 2)
      : certificateTable(certificates, now).join('\n');
  process.stdout.write(`${text}\n`);
}
