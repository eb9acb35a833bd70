import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { kubeconfigText } from '../../apiserver/pki/kubeconfig.ts';
import { DEFAULT_DATA_DIR } from '../../engine/settings.ts';
import { noteOnFolder, otherEngines, serverOf } from './which-engine.ts';

const note = (
  used: string | undefined,
  running: string[],
  folders: string[] = [],
  server = 'https://h:1',
  serverIn = (folder: string): string | undefined => `https://${folder}`,
): string | undefined =>
  otherEngines(
    used,
    server,
    {},
    (folder) => running.includes(folder),
    () => folders,
    serverIn,
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

test('an engine whose server the command uses is not another one, even if its folder is not known', () => {
  const folders = ['/nonexistent/d', '/nonexistent/e'];
  expect(note(undefined, folders, folders, 'https:///nonexistent/d')).toContain(
    "add '--data-dir /nonexistent/e' to use",
  );
  expect(note(undefined, folders.slice(0, 1), folders, 'https:///nonexistent/d')).toBeUndefined();
});

test('an engine whose server the user cannot read is not called another one if the folder of the used one is not known', () => {
  const folders = ['/nonexistent/d'];
  expect(note(undefined, folders, folders, 'https://h:1', () => undefined)).toBeUndefined();
});

test('the server of an engine is read from its kubeconfig', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-which-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  expect(serverOf(folder)).toBeUndefined();
  const credentials = { certificate: 'c', key: 'k' };
  const text = kubeconfigText({ server: 'https://h:1', caCertificate: 'ca', user: 'u', credentials });
  writeFileSync(join(folder, 'kubeconfig'), text);
  expect(serverOf(folder)).toBe('https://h:1');
});

test('a command names the engine of the default data folder only if the command can use one there', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-which-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  let runs = false;
  const noteOn = (dataDir: string, byDefault: string, needsEngine?: 'starts' | 'fails') =>
    noteOnFolder(
      dataDir,
      {},
      needsEngine,
      (used) => `using ${used}`,
      byDefault,
      () => runs,
    );
  expect(noteOn(folder, folder)).toBeUndefined();
  expect(noteOn(folder, folder, 'starts')).toBe(`using ${folder}`);
  expect(noteOn(folder, '/nonexistent', 'starts')).toBeUndefined();
  writeFileSync(join(folder, 'engine.json'), '{}');
  expect(noteOn(folder, folder)).toBe(`using ${folder}`);
  expect(noteOn(folder, '/nonexistent')).toBeUndefined();
  expect(noteOn(folder, folder, 'fails')).toBeUndefined();
  runs = true;
  expect(noteOn(folder, folder, 'fails')).toBe(`using ${folder}`);
});
