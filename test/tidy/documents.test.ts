import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { files, REPOSITORY, read } from './sources.ts';

const documents = files.filter((path) => path.endsWith('.md'));
const scripts = Object.keys((JSON.parse(read('package.json')) as { scripts: Record<string, string> }).scripts);
const dependencies = (): Record<string, string> => {
  const { dependencies: used, devDependencies } = JSON.parse(read('package.json')) as Record<
    string,
    Record<string, string>
  >;
  return { ...used, ...devDependencies };
};

test('README, ARCHITECTURE, CONTRIBUTING, CHANGELOG and LICENSE exist', () => {
  expect(files).toEqual(
    expect.arrayContaining(['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'LICENSE']),
  );
});

test('every link to a file in a document resolves', () => {
  const broken = documents.flatMap((path) =>
    [...read(path).matchAll(/\]\(([^)#:\s]+)(#[^)]*)?\)/g)]
      .map((match) => match[1] ?? '')
      .filter((target) => !existsSync(join(REPOSITORY, dirname(path), target)))
      .map((target) => `${path}: ${target}`),
  );
  expect(broken).toEqual([]);
});

test('every path of the repository that a document names exists', () => {
  const path = /`((?:src|test|bench|examples|scripts|bin|\.ci)\/[\w./-]*[\w/])`/g;
  const missing = documents
    .filter((document) => document !== 'CHANGELOG.md')
    .flatMap((document) =>
      [...read(document).matchAll(path)]
        .map((match) => match[1] ?? '')
        .filter((name) => !existsSync(join(REPOSITORY, name)))
        .map((name) => `${document}: ${name}`),
    );
  expect(missing).toEqual([]);
});

test('every npm script that a document names exists', () => {
  const named = documents.flatMap((document) =>
    [...read(document).matchAll(/npm run ([\w:-]+)/g)].map((match) => match[1] ?? ''),
  );
  expect(named.filter((name) => !scripts.includes(name))).toEqual([]);
});

test('ARCHITECTURE.md mentions every direct dependency', () => {
  const text = read('ARCHITECTURE.md');
  expect(Object.keys(dependencies()).filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
});

test('every example has a README and is named in a test', () => {
  const examples = new Set(files.flatMap((path) => /^examples\/([^/]+)\//.exec(path)?.[1] ?? []));
  expect(examples.size).toBeGreaterThan(0);
  for (const example of examples) {
    expect(files).toContain(`examples/${example}/README.md`);
    expect(files.some((path) => /^test\/(e2e|long)\//.test(path) && read(path).includes(example))).toBe(true);
  }
});

test('the README states the cost of a PostExit entry without timeoutSeconds', () => {
  const text = read('README.md').replaceAll(/\s+/g, ' ');
  expect(text).toContain('one PostExit entry without `timeoutSeconds` halves the time');
});
