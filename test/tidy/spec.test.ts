import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { specification } from '../spec/defer-containers.ts';
import { REPOSITORY, read, titlesIn } from './sources.ts';

const sentences = Object.values(specification).flat();

test('every sentence of the specification names a test, or a missing part of lifepod that its test needs', () => {
  expect(sentences.length).toBeGreaterThan(120);
  expect(sentences.filter(({ tests, awaits }) => tests.length === 0 && awaits === undefined)).toEqual([]);
});

test('no sentence of the specification awaits a part of lifepod that exists already', () => {
  const found = sentences.filter(({ awaits = [] }) => awaits.some((path) => existsSync(join(REPOSITORY, path))));
  expect(found).toEqual([]);
});

/** Matches the paths of test files, and of contract suites, which several test files run. */
const TESTS = /(\.test|^test\/contract\/.*-contract)\.ts$/;

test('every test that the specification names exists in a test file', () => {
  const missing = sentences
    .flatMap(({ tests }) => tests)
    .filter(([file, title]) => {
      if (!TESTS.test(file) || !existsSync(join(REPOSITORY, file))) return true;
      return title === '' || !titlesIn(read(file)).some((each) => each.includes(title));
    });
  expect(missing).toEqual([]);
});
