import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { hugepagesName, readHugepages } from './hugepages.ts';

test('readHugepages() returns the reserved bytes of each page size, and nothing without huge pages', async () => {
  const root = mkdtempSync(join(tmpdir(), 'lifepod-hugepages-'));
  try {
    expect(await readHugepages(join(root, 'missing'))).toEqual(new Map());
    const pages = { 64: 3, 1023: 1, 1024: 1, 2048: 4, 1048576: 2 };
    for (const [kibibytes, count] of Object.entries(pages)) {
      mkdirSync(join(root, `hugepages-${kibibytes}kB`));
      writeFileSync(join(root, `hugepages-${kibibytes}kB/nr_hugepages`), `${count}\n`);
    }
    const found = await readHugepages(root);
    expect(Object.fromEntries(found)).toEqual({
      '64KB': 3 * 64 * 1024,
      '1023KB': 1023 * 1024,
      '1MB': 2 ** 20,
      '2MB': 4 * 2 ** 21,
      '1GB': 2 * 2 ** 30,
    });
    expect([...found.keys()].map(hugepagesName)).toContain('hugepages-2Mi');
  } finally {
    rmSync(root, { recursive: true });
  }
});
