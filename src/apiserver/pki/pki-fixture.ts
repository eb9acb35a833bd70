import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ensurePrivateFolder } from '../../platform/files.ts';
import { loadOrCreatePki, type Pki, type PkiOptions } from './pki.ts';

/** The texts of the files in the folder `pki`, by file name, for each set of additional names in JSON. */
const made = new Map<string, Map<string, string>>();

/**
 * Like loadOrCreatePki() in a new folder, but all servers of a worker get copies of the same keys and certificates: creating them and
 * writing them durably takes longer than most tests.
 */
export async function copiedPki(
  dataDir: string,
  names: Partial<Pick<PkiOptions, 'hostnames' | 'ips'>> = {},
): Promise<Pki> {
  const folder = join(dataDir, 'pki');
  const key = JSON.stringify(names);
  const copy = made.get(key);
  if (copy !== undefined) {
    ensurePrivateFolder(folder);
    for (const [name, text] of copy) writeFileSync(join(folder, name), text, { mode: 0o600 });
  }
  const pki = await loadOrCreatePki(dataDir, { hostnames: [], ips: [], ...names, now: Date.now() });
  if (copy === undefined) {
    made.set(key, new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')])));
  }
  return pki;
}
