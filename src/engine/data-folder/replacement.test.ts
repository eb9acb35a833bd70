import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  abandonReplacement,
  commitReplacement,
  completeRestore,
  finishReplacement,
  isReplacing,
  prepareReplacement,
} from './replacement.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-replacement-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const TIME = '2026-01-02T03:04:05.678Z';
const KEPT = 'before-restore-20260102T030405Z';

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

function contents(root: string, below = ''): Record<string, string> {
  const all: Record<string, string> = {};
  for (const entry of readdirSync(join(root, below), { withFileTypes: true })) {
    const path = join(below, entry.name);
    if (entry.isDirectory()) Object.assign(all, contents(root, path));
    else all[path] = readFileSync(join(root, path), 'utf8');
  }
  return all;
}

/** The files of the former data folder: FORMER are replaced or removed, and STAYS remain. */
const FORMER = {
  'engine.json': 'old',
  'store/data.mdb': 'old',
  'pki/ca.key': 'old',
  'pki/sa.key': 'old',
  'certs.d/a/hosts.toml': 'old',
};
const STAYS = { 'volumes/claim/file': 'data', 'containerd/root': 'images', 'pods/uid/volumes/file': 'data' };
const NEW = { 'engine.json': 'new', 'store/data.mdb': 'new', 'pki/ca.key': 'new', 'manifests/pod.yaml': 'new' };
const KEPT_FORMER = Object.fromEntries(Object.entries(FORMER).map(([path, text]) => [join(KEPT, path), text]));

function begin(): void {
  for (const [path, text] of Object.entries({ ...FORMER, ...STAYS, 'pods/uid/journal.json': 'newer' })) {
    write(join(folder, path), text);
  }
  const prepared = prepareReplacement(folder);
  for (const [path, text] of Object.entries(NEW)) write(join(prepared, path), text);
}

test('the new parts replace the former ones, which are kept, and everything else stays', () => {
  begin();
  commitReplacement(folder, TIME);
  expect(finishReplacement(folder)).toBe(join(folder, KEPT));
  expect(contents(folder)).toEqual({ ...NEW, ...STAYS, ...KEPT_FORMER });
  expect(finishReplacement(folder)).toBeUndefined();
  expect(contents(folder)).toEqual({ ...NEW, ...STAYS, ...KEPT_FORMER });
});

test('a replacement that has not been decided changes nothing', () => {
  begin();
  const before = { ...FORMER, ...STAYS, 'pods/uid/journal.json': 'newer' };
  const copy = mkdtempSync(join(tmpdir(), 'lifepod-replacement-'));
  cpSync(folder, copy, { recursive: true });
  expect(finishReplacement(folder)).toBeUndefined();
  expect(contents(folder)).toEqual(before);
  abandonReplacement(copy);
  expect(contents(copy)).toEqual(before);
  rmSync(copy, { recursive: true });
});

test('a replacement of an empty folder keeps nothing', () => {
  const prepared = prepareReplacement(folder);
  write(join(prepared, 'engine.json'), 'new');
  commitReplacement(folder, TIME);
  expect(finishReplacement(folder)).toBeUndefined();
  expect(contents(folder)).toEqual({ 'engine.json': 'new' });
});

test('each replacement keeps the former parts in a folder of its own', () => {
  begin();
  commitReplacement(folder, TIME);
  finishReplacement(folder);
  write(join(prepareReplacement(folder), 'engine.json'), 'newest');
  commitReplacement(folder, TIME);
  expect(finishReplacement(folder)).toBe(join(folder, `${KEPT}-2`));
  expect(contents(folder)).toMatchObject({ ...KEPT_FORMER, 'engine.json': 'newest', [`${KEPT}-2/engine.json`]: 'new' });
});

test('a replacement that is killed after any number of moves is completed by the next start', () => {
  let kills = 0;
  for (; ; kills++) {
    rmSync(folder, { recursive: true });
    begin();
    commitReplacement(folder, TIME);
    let moves = 0;
    const dying: typeof renameSync = (from, to) => {
      if (moves++ === kills) throw new Error('killed');
      renameSync(from, to);
    };
    try {
      finishReplacement(folder, dying);
      break;
    } catch (error) {
      expect((error as Error).message).toBe('killed');
    }
    expect(isReplacing(folder)).toBe(true);
    completeRestore(folder);
    expect(isReplacing(folder)).toBe(false);
    const { lock, ...rest } = contents(folder);
    expect(lock?.trim()).toBe('');
    expect(rest).toEqual({ ...NEW, ...STAYS, ...KEPT_FORMER });
  }
  // Four former parts, four new parts, and the folder with the former parts are moved.
  expect(kills).toBe(9);
  expect(existsSync(join(folder, 'restore'))).toBe(false);
});
