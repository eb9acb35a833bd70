import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { rootCommand } from '../../platform/programs/typed-program.ts';
import { openLmdbStore } from '../../store/lmdb/lmdb-store.ts';
import { discard } from './discard.ts';

let dataDir: string;
let output: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'lifepod-discard-'));
  output = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    output += text;
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(dataDir, { recursive: true });
});

test('the values of a newer lifepod, which this one may not be able to read, are not deleted', async () => {
  writeFileSync(join(dataDir, 'engine.json'), '{}');
  writeFileSync(join(dataDir, 'format-version'), '99\n');
  await expect(discard({ dataDir, yes: true })).rejects.toThrow(
    `the data folder ${dataDir} was written by a newer lifepod (format 99), and this one`,
  );
});

test('if the file of the last start is lost, its values can be deleted for a start with another file', async () => {
  const lost = join(dataDir, 'lost.yaml');
  writeFileSync(join(dataDir, 'engine.json'), JSON.stringify({ encryptionProviderConfig: lost }));
  const key = '/registry/core/secrets/default/db';
  const store = await openLmdbStore({ directory: join(dataDir, 'store') });
  await store.txn({ compare: [], puts: [{ key, value: Buffer.from('k8s:enc:aesgcm:v2:old:bytes') }] });
  await store.close();
  await expect(discard({ dataDir, yes: true })).rejects.toThrow(
    `--encryption-provider-config ${lost} does not exist: restore the file, because the stored Secrets cannot be read without it. ` +
      `If it is lost, '${rootCommand("secrets discard --encryption-provider-config ''", dataDir)}' lists the values that are lost with it`,
  );
  await discard({ dataDir, encryptionProviderConfig: '' });
  expect(output).toBe(
    `${key}\nthis value cannot be read: restore the key file, or repeat the command with --yes to delete it\n`,
  );
  output = '';
  await discard({ dataDir, encryptionProviderConfig: '', yes: true });
  expect(output).toBe(`${key}\ndeleted this value\nstart lifepod with --encryption-provider-config ''\n`);
});
