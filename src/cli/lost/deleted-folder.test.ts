import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { LostParts } from '../../engine/data-folder/lost-folder.ts';
import { folderDeleted } from './deleted-folder.ts';

test('the deletion of a data folder is noticed while its engine runs, not when its engine has ended', async () => {
  const parent = mkdtempSync(join(tmpdir(), 'lifepod-deleted-'));
  onTestFinished(() => rmSync(parent, { recursive: true, force: true }));
  const dataDir = join(parent, 'data');
  const lock = join(dataDir, 'lock');
  mkdirSync(dataDir);
  writeFileSync(lock, '7 session\n');
  const ending = new AbortController();
  onTestFinished(() => ending.abort());
  let lost: LostParts | undefined = { pids: [], hasPods: true };
  const looked = Promise.withResolvers<void>();
  const find = vi.fn(() => {
    looked.resolve();
    return lost;
  });
  const deleted = folderDeleted(dataDir, ending.signal, find);
  expect(find).not.toHaveBeenCalled();
  rmSync(lock);
  await looked.promise;
  writeFileSync(lock, '7 session\n');
  lost = { pids: [7], hasPods: true };
  rmSync(dataDir, { recursive: true });
  const text = await deleted;
  expect(text).toContain(`the data folder ${dataDir} was deleted while its engine ran: '`);
  expect(text).toMatch(/down.*' ends the engine \(PID 7\), and its Pods without their grace periods$/);
});
