/** What the specification of defer containers says is held by tests that exist. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { specification } from '../spec/defer-containers.ts';
import { REPOSITORY, read } from './sources.ts';

const sentences = Object.values(specification).flat();

test('every sentence has a test', () => {
  expect(sentences.length).toBeGreaterThan(60);
  expect(sentences.filter(({ tests }) => tests.length === 0)).toEqual([]);
});

test('every test that is named exists, in a file of tests', () => {
  const missing = sentences
    .flatMap(({ tests }) => tests)
    .filter(([file, title]) => {
      if (!file.endsWith('.test.ts') || !existsSync(join(REPOSITORY, file))) return true;
      // Titles may be wrapped, and stand in a table of rows.
      return title === '' || !read(file).replace(/\s+/g, ' ').includes(title);
    });
  expect(missing).toEqual([]);
});
