import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runCommandOk } from './processes.ts';
import { removeTree } from './remove-tree.ts';

it('removeTree removes folders deeper than the maximum path length and names that are not UTF-8', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-tree-'));
  const name = 'd'.repeat(250);
  // The tree is built from the inside out, so that no path is too long for the shell.
  const deep = `mkdir top; for i in $(seq 40); do mkdir new; mv top new/${name}; mv new top; done`;
  await runCommandOk('sh', ['-ec', `cd '${folder}'; ${deep}; mkdir "$(printf 'n\\377')"`]);
  await removeTree(folder);
  expect(existsSync(folder)).toBe(false);
  await removeTree(folder);
});
