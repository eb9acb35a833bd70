import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { programTroubles } from './program-troubles.ts';

const folder = mkdtempSync(join(tmpdir(), 'lifepod-program-'));
const script = join(folder, 'dist/cli/main.js');
mkdirSync(dirname(script), { recursive: true });
writeFileSync(script, '');
afterAll(() => rmSync(folder, { recursive: true }));

const [RUNNING, INSTALLED] = ['a'.repeat(40), 'b'.repeat(40)];
const troubles = (running: string | undefined, program = script) =>
  programTroubles(join(folder, 'data'), process.pid, running, {}, program);

test('a package that was replaced while its engine runs is a trouble, with the commands that restart the engine', () => {
  expect(troubles(RUNNING)).toEqual([]);
  writeFileSync(join(folder, 'dist/git-commit'), `${INSTALLED}\n`);
  expect(troubles(INSTALLED)).toEqual([]);
  expect(troubles(undefined)).toEqual([]);
  expect(troubles(RUNNING)).toEqual([
    expect.stringMatching(
      /^the program of the engine was replaced \(commit a+ runs, b+ is installed\), so requests fail if the engine has not yet loaded the part that they need: type 'kill \d+', which leaves its Pods running, then '.*up --detach /,
    ),
  ]);
});

test('a package that was removed while its engine runs is a trouble', () => {
  expect(troubles(RUNNING, join(folder, 'none/dist/cli/main.js'))).toEqual([
    expect.stringMatching(/^the program of the engine was removed, .* need: install lifepod again, then type 'kill /),
  ]);
});
