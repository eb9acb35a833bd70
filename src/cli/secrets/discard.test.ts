import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { discard } from './discard.ts';

test('the values of a newer lifepod, which this one may not be able to read, are not deleted', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'lifepod-discard-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  writeFileSync(join(dataDir, 'engine.json'), '{}');
  writeFileSync(join(dataDir, 'format-version'), '99\n');
  await expect(discard(dataDir, true)).rejects.toThrow(
    `the data folder ${dataDir} was written by a newer lifepod (format 99), and this one`,
  );
});
