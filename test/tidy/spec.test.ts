/** What the specification of defer containers says is held by tests that exist. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { specification } from '../spec/defer-containers.ts';
import { REPOSITORY, read } from './sources.ts';

const sentences = Object.values(specification).flat();

test('every sentence has a test, or says what it waits for', () => {
  expect(sentences.length).toBeGreaterThan(120);
  expect(sentences.filter(({ tests, awaits }) => tests.length === 0 && awaits === undefined)).toEqual([]);
});

test('what a sentence waits for does not exist: once it does, the sentence needs its tests', () => {
  const found = sentences.filter(({ awaits = [] }) => awaits.some((path) => existsSync(join(REPOSITORY, path))));
  expect(found).toEqual([]);
});

/** A string of the source; its text is the second group. */
const TEXT = String.raw`(['"\`])((?:\\.|(?!\1).)*)\1`;
/** Where titles stand: of tests and groups of them, and in rows of a table, by position, key or name. */
const TITLES = [
  String.raw`\b(?:it|test|describe)(?:\.concurrent)?\(\s*${TEXT}`,
  String.raw`[\])]\(\s*${TEXT},\s`,
  String.raw`\[\s*${TEXT},`,
  String.raw`\['\w+', ${TEXT},`,
  String.raw`^\s*${TEXT}: *[([{]`,
  String.raw`^\s*${TEXT}:$`,
  String.raw`\bname: ${TEXT}`,
].map((pattern) => new RegExp(pattern, 'gms'));

/** A file of tests, or a suite that several of them run. */
const TESTS = /(\.test|^test\/contract\/.*-contract)\.ts$/;

const titlesIn = (source: string): string[] =>
  TITLES.flatMap((pattern) => [...source.matchAll(pattern)].map(([, , title = '']) => title.replaceAll('\\', '')));

test('every test that is named exists, in a file of tests', () => {
  const missing = sentences
    .flatMap(({ tests }) => tests)
    .filter(([file, title]) => {
      if (!TESTS.test(file) || !existsSync(join(REPOSITORY, file))) return true;
      return title === '' || !titlesIn(read(file)).some((each) => each.includes(title));
    });
  expect(missing).toEqual([]);
});
