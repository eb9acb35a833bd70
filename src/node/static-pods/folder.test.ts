import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readTextIfPresent } from '../../platform/files.ts';
import { nodePlatform } from '../../platform/node-js.ts';
import { followFolder } from './folder.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-manifests-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const watches = (): number =>
  readdirSync('/proc/self/fdinfo')
    .flatMap((fd) => (readTextIfPresent(`/proc/self/fdinfo/${fd}`) ?? '').split('\n'))
    .filter((line) => line.startsWith('inotify ')).length;

test('followFolder reports a change of the folder, and stops watching when the signal aborts', async () => {
  const before = watches();
  const stopping = new AbortController();
  const { promise, resolve } = Promise.withResolvers<void>();
  followFolder(folder, resolve, { ...nodePlatform('error'), signal: stopping.signal });
  expect(watches()).toBe(before + 1);
  writeFileSync(join(folder, 'pod.yaml'), '');
  await promise;
  stopping.abort();
  expect(watches()).toBe(before);
});

test('followFolder watches nothing if the signal has aborted before, so that an interrupted start can end', async () => {
  const before = watches();
  followFolder(folder, () => undefined, { ...nodePlatform('error'), signal: AbortSignal.abort() });
  expect(watches()).toBe(before);
});
