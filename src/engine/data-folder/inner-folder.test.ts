import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { recordOf, resolveSettings, writeEngineRecord } from '../settings.ts';
import { refuseInnerFolder, refuseOuterFolder } from './inner-folder.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-inner-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('a data folder inside that of another engine is refused', () => {
  writeEngineRecord(folder, recordOf(resolveSettings({ dataDir: folder }, undefined), 7000));
  for (const name of ['inner', 'new/inner']) {
    const inner = join(folder, name);
    expect(() => refuseInnerFolder(inner)).toThrow(
      `${inner} is inside ${folder}, the data folder of another engine: choose another --data-dir`,
    );
  }
  refuseInnerFolder(folder);
  refuseInnerFolder(`${folder}-beside`);
});

test('a data folder around that of another engine is refused', () => {
  const [near, deep] = [join(folder, 'near/engine'), join(folder, 'deep/a/b/engine')];
  for (const dataDir of [near, deep]) {
    mkdirSync(dataDir, { recursive: true });
    writeEngineRecord(dataDir, recordOf(resolveSettings({ dataDir }, undefined), 7000));
  }
  const refusal = (outer: string, inner: string): string =>
    `${outer} contains ${inner}, the data folder of another engine: choose another --data-dir`;
  expect(() => refuseOuterFolder(join(folder, 'near'), [])).toThrow(refusal(join(folder, 'near'), near));
  expect(() => refuseOuterFolder(folder, ['/nonexistent', deep])).toThrow(refusal(folder, deep));
  for (const dataDir of [near, join(folder, 'none'), `${folder}/ne`, join(folder, 'deep/a')])
    refuseOuterFolder(dataDir, [near, dataDir]);
});

test.each(['{"engine": "V8"}', 'null', 'text'])('a file engine.json with %s does not make a data folder', (content) => {
  writeFileSync(join(folder, 'engine.json'), content);
  refuseInnerFolder(join(folder, 'inner'));
});

test('a pipe with the name of the record does not block a start', () => {
  execFileSync('mkfifo', [join(folder, 'engine.json')]);
  refuseInnerFolder(join(folder, 'inner'));
});
