/** Tests bin/lifepod in folders that have the layout of the repository or of the npm package. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCommandOk } from '../platform/processes.ts';

const REPOSITORY = join(import.meta.dirname, '../..');
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-launcher-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const file = (path: string): string => {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  return join(folder, path);
};

test.each([
  { main: 'src/cli/main.ts', optimizes: false },
  { main: 'dist/cli/main.js', optimizes: true },
])('bin/lifepod runs $main with the optimizing WebAssembly compiler: $optimizes', async ({ main, optimizes }) => {
  copyFileSync(join(REPOSITORY, 'bin/lifepod'), file('bin/lifepod'));
  symlinkSync(process.execPath, file('node_modules/node/bin/node'));
  writeFileSync(file('package.json'), '{"type":"module"}');
  writeFileSync(file(main), 'console.log(JSON.stringify(process.execArgv))');
  const options = JSON.parse(await runCommandOk(file('bin/lifepod'), [])) as string[];
  expect(options).toContain('--max-semi-space-size=4');
  expect(!options.includes('--no-wasm-tier-up')).toBe(optimizes);
});
