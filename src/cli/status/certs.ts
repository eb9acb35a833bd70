/** `lifepod certs check`: prints when the certificates of the engine expire. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { NeedsRootError } from '../../engine/machine-checks.ts';
import { readEngineRecord } from '../../engine/settings.ts';
import { dataDirOwner, UserError } from '../../platform/files.ts';
import { machineClock } from '../../platform/node-js.ts';
import { orOtherFolder } from '../kubeconfig/engine-folders.ts';
import { isOnlyForRoot } from '../kubeconfig/own-kubeconfig.ts';
import { engineRunsIn, sayWhichEngine } from '../kubeconfig/which-engine.ts';
import { printError, printLine } from '../progress/standard-output.ts';
import { certificatesJson, certificateTable, readCertificates } from './certificates.ts';
import { stoppedText } from './read-engine.ts';

/**
 * Prints when the certificates expire. If the engine does not run, says so on standard error: certificates may be due for renewal, and the
 * user may mean another engine.
 */
export function checkCertificates(dataDir: string, output?: 'json'): void {
  if (isOnlyForRoot(dataDir)) throw new NeedsRootError(`read the data folder ${dataDir}`);
  if (!existsSync(join(dataDir, 'pki')) && dataDirOwner(dataDir) === undefined)
    throw new UserError(stoppedText(dataDir, readEngineRecord(dataDir)));
  const certificates = readCertificates(dataDir);
  if (engineRunsIn(dataDir)) sayWhichEngine(dataDir);
  else
    printError(
      `lifepod: these are the certificates of ${dataDir}, whose engine is not running${orOtherFolder(dataDir)}`,
    );
  const now = machineClock.now();
  const text =
    output === 'json'
      ? JSON.stringify(certificatesJson(dataDir, certificates, now), undefined, 2)
      : certificateTable(certificates, now).join('\n');
  printLine(text);
}
