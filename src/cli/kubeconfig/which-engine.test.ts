import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { DEFAULT_DATA_DIR } from '../../engine/settings.ts';
import { noteOnFolder, otherEngines } from './which-engine.ts';

const note = (used: string | undefined, running: string[], folders: string[] = []): string | undefined =>
  otherEngines(
    used,
    'https://h:1',
    {},
    (folder) => running.includes(folder),
    () => folders,
  );

test('a command says which engine it uses only if the user has another one that runs', () => {
  expect(note('/nonexistent/d', [])).toBeUndefined();
  expect(note(DEFAULT_DATA_DIR, [DEFAULT_DATA_DIR], [DEFAULT_DATA_DIR])).toBeUndefined();
  expect(note(DEFAULT_DATA_DIR, [DEFAULT_DATA_DIR], ['/nonexistent/stopped'])).toBeUndefined();
  expect(note('/nonexistent/d', [DEFAULT_DATA_DIR])).toBe(
    `using the engine in /nonexistent/d; add '--data-dir ${DEFAULT_DATA_DIR}' to use the engine there`,
  );
  expect(note(undefined, [DEFAULT_DATA_DIR, '/nonexistent/e'], ['/nonexistent/e'])).toBe(
    `using the server https://h:1; add '--data-dir ${DEFAULT_DATA_DIR}' or '--data-dir /nonexistent/e' to use the engine there`,
  );
});

test('a command names the engine of the default data folder only if one has run there', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-which-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const noteOn = (dataDir: string, byDefault: string) =>
    noteOnFolder(dataDir, {}, (used) => `using ${used}`, byDefault);
  expect(noteOn(folder, folder)).toBeUndefined();
  writeFileSync(join(folder, 'engine.json'), '{}');
  expect(noteOn(folder, folder)).toBe(`using ${folder}`);
  expect(noteOn(folder, '/nonexistent')).toBeUndefined();
});
