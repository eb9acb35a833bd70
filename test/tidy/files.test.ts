import { basename, dirname } from 'node:path';
import { expect, test } from 'vitest';
import { files, read, typeScript } from './sources.ts';

const USUAL_LINES = 300;
const MOST_LINES = 400;
/** Files that may have more than USUAL_LINES lines, each with the reason why it is not split. */
const LONGER: Readonly<Record<string, string>> = {
  'src/api/schema.ts': 'one walker over the fields of types: its cases refer to each other',
  'src/machinery/labels.ts': 'lexer, parser and matcher of one small language',
};

const sizes = new Map(typeScript.map((path) => [path, read(path).split('\n').length - 1]));
const isTest = (path: string): boolean => /(\.test|^test\/contract\/.*-contract)\.ts$/.test(path);

test(`no source file has more than ${MOST_LINES} lines, and only listed exceptions have more than ${USUAL_LINES}`, () => {
  const tooLong = [...sizes].filter(
    ([path, lines]) => !isTest(path) && (lines > MOST_LINES || (lines > USUAL_LINES && LONGER[path] === undefined)),
  );
  expect(tooLong).toEqual([]);
});

test('every exception to the usual file size is still needed', () => {
  expect(Object.keys(LONGER).filter((path) => (sizes.get(path) ?? 0) <= USUAL_LINES)).toEqual([]);
});

const LONGEST_COMMENT_LINE = 140;

test(`no line of a comment has more than ${LONGEST_COMMENT_LINE} characters`, () => {
  const tooLong = typeScript.flatMap((path) =>
    read(path)
      .split('\n')
      .filter((line) => line.length > LONGEST_COMMENT_LINE && /^\s*(\/\/|\/\*|\*)/.test(line))
      .map((line) => `${path}: ${line}`),
  );
  expect(tooLong).toEqual([]);
});

const MOST_FILES = 20;

test(`no folder of src/ directly contains more than ${MOST_FILES} files, not counting tests`, () => {
  const counts = new Map<string, number>();
  for (const path of typeScript) {
    if (!path.startsWith('src/') || isTest(path)) continue;
    counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
  }
  expect([...counts].filter(([, count]) => count > MOST_FILES)).toEqual([]);
});

test('no file has the same name as a folder next to it', () => {
  const folders = new Set(files.map(dirname));
  expect(typeScript.filter((path) => folders.has(path.replace(/(\.test)?\.ts$/, '')))).toEqual([]);
});

test('file names are in kebab-case, and none is utils or helpers', () => {
  const names = typeScript.map((path) => basename(path, '.ts').replace(/(\.(test|config|property))+$/, ''));
  expect(names.filter((name) => !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name) || /^(utils?|helpers?)$/.test(name))).toEqual(
    [],
  );
});

test('no test sleeps, is skipped, or excludes other tests with only', () => {
  const sleeping = /\bsetTimeout\(\s*(resolve|r|done)\b|\bsleep\(\d|from 'node:timers\/promises'/;
  const wrong = typeScript
    .filter(isTest)
    .filter((path) => path !== 'test/tidy/files.test.ts')
    .filter((path) => sleeping.test(read(path)) || /\b(test|it|describe)\.(only|skip|todo)\(/.test(read(path)));
  expect(wrong).toEqual([]);
});

test('all files are text, except the archives of data folders', () => {
  const binary = files.filter((path) => read(path).includes('\0'));
  expect(binary.filter((path) => !path.startsWith('test/data-folders/'))).toEqual([]);
});
