/** The import table of ARCHITECTURE.md: imports run downward only. */
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { importsOf, read, typeScript } from './sources.ts';

/** What a folder of src/ may import beside itself. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  machinery: [],
  platform: [],
  api: ['machinery'],
  lifecycle: ['api', 'machinery'],
  scheduling: ['api', 'machinery'],
  store: ['platform', 'api', 'machinery'],
  client: ['platform', 'api', 'machinery'],
  runtime: ['platform', 'api', 'machinery'],
  apiserver: ['store', 'platform', 'api', 'machinery'],
  scheduler: ['scheduling', 'client', 'platform', 'api', 'machinery'],
  controllers: ['scheduling', 'client', 'platform', 'api', 'machinery'],
  // A node refuses by the rules that the scheduler chooses nodes with.
  node: ['lifecycle', 'scheduling', 'runtime', 'client', 'platform', 'api', 'machinery'],
  network: ['client', 'platform', 'api', 'machinery'],
};
const MAY_IMPORT_ALL = ['simulation', 'cli'];
/** The command line is one way to run an engine. */
const MAY_IMPORT_ALL_BUT_CLI = ['engine'];
/** No I/O, clock, randomness, logging or promises: nothing of Node.js. */
const PURE = ['machinery', 'api', 'lifecycle', 'scheduling'];
/** Node.js modules without an effect. */
const PURE_MODULES = ['node:net'];

const sources = typeScript.filter((path) => path.startsWith('src/'));
const isTest = (path: string): boolean => /(\.test|-arbitrary|-fixtures?|\/testing\/[^/]+)\.ts$/.test(path);
const folderOf = (path: string): string => path.split('/')[1] ?? '';

test('every folder of src/ is in the table', () => {
  const known = [...Object.keys(MAY_IMPORT), ...MAY_IMPORT_ALL, ...MAY_IMPORT_ALL_BUT_CLI];
  expect(sources.map(folderOf).filter((folder) => !known.includes(folder))).toEqual([]);
});

test('imports keep to the table', () => {
  const wrong: string[] = [];
  for (const path of sources) {
    const folder = folderOf(path);
    if (MAY_IMPORT_ALL.includes(folder) || isTest(path)) continue;
    for (const specifier of importsOf(read(path)).filter((name) => name.startsWith('.'))) {
      const target = join(dirname(path), specifier);
      const targetFolder = folderOf(target);
      const inTable = MAY_IMPORT_ALL_BUT_CLI.includes(folder)
        ? targetFolder !== 'cli'
        : targetFolder === folder || MAY_IMPORT[folder]?.includes(targetFolder);
      const allowed = inTable && target.startsWith('src/');
      if (!allowed) wrong.push(`${path} imports ${specifier}`);
    }
  }
  expect(wrong).toEqual([]);
});

test('relative imports name the file with its ending', () => {
  const wrong = typeScript.flatMap((path) =>
    importsOf(read(path))
      .filter((name) => name.startsWith('.') && !/\.(ts|json)$/.test(name))
      .map((name) => `${path} imports ${name}`),
  );
  expect(wrong).toEqual([]);
});

test('the pure folders import no module of Node.js that has effects', () => {
  const wrong = sources
    .filter((path) => PURE.includes(folderOf(path)) && !isTest(path))
    .flatMap((path) =>
      importsOf(read(path))
        .filter((name) => name.startsWith('node:') && !PURE_MODULES.includes(name))
        .map((name) => `${path} imports ${name}`),
    );
  expect(wrong).toEqual([]);
});

test('imports are found in every form', () => {
  const source = [
    "import a from './a.ts';",
    "import './b.ts';",
    "import {\n  c,\n  type D,\n} from './c.ts';",
    "export * from './d.ts';",
    "const e = await import('./e.ts');",
    "// import './no.ts';",
    "import type { F } from './f.ts';",
  ].join('\n');
  expect(importsOf(source)).toEqual(['./a.ts', './b.ts', './c.ts', './d.ts', './e.ts', './f.ts']);
});
