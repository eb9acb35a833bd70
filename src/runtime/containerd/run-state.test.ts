import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type ContainerdPaths, containerdPaths } from './paths.ts';
import { prepareRunFolder } from './run-state.ts';

let folder: string;
let paths: ContainerdPaths;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-run-state-'));
  const run = join(folder, 'run');
  paths = { ...containerdPaths(folder), run, bootId: join(run, 'boot-id') };
});
afterEach(() => rmSync(folder, { recursive: true }));

test('the content of the run folder stays until the machine boots again, and is then deleted', async () => {
  const file = join(paths.run, 'state');
  await prepareRunFolder(paths);
  writeFileSync(file, 'of this boot');
  await prepareRunFolder(paths);
  expect(existsSync(file)).toBe(true);
  const boot = readFileSync(paths.bootId, 'utf8');
  writeFileSync(paths.bootId, 'an earlier boot\n');
  await prepareRunFolder(paths);
  expect(existsSync(file)).toBe(false);
  expect(readFileSync(paths.bootId, 'utf8')).toBe(boot);
});
