import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { importsOf, read, typeScript } from './sources.ts';

/** Matches a row of the code map: a folder of src/, its purpose, and the folders that it may import besides itself. */
const ROW = /^\| `src\/(\w+)` \| (.+) \| ([^|]+) \|$/gm;
const rows = [...read('ARCHITECTURE.md').matchAll(ROW)].map(([, folder = '', purpose = '', may = '']) => ({
  folder,
  pure: purpose.endsWith(' Pure'),
  may,
}));
/** The code map calls these folders pure: they have no I/O, clock, randomness, logging or promises. */
const PURE = rows.filter(({ pure }) => pure).map(({ folder }) => folder);

/** The last column of the code map contains a list of folders, "nothing", "everything", or "everything but" one folder. */
function mayImport(folder: string, target: string): boolean {
  const may = rows.find((row) => row.folder === folder)?.may ?? 'nothing';
  if (folder === target || may === 'everything') return true;
  if (may.startsWith('everything but ')) return target !== may.slice('everything but '.length);
  return may.split(', ').includes(target);
}

/** Node.js modules without effects, which the pure folders may import. */
const PURE_MODULES = ['node:net'];

const sources = typeScript.filter((path) => path.startsWith('src/'));
const isTest = (path: string): boolean => /(\.test|-arbitrary|-fixtures?|\/testing\/[^/]+)\.ts$/.test(path);
const folderOf = (path: string): string => path.split('/')[1] ?? '';

test('the code map lists exactly the folders of src/, each after the folders that it may import', () => {
  const folders = rows.map(({ folder }) => folder);
  expect([...folders].sort()).toEqual([...new Set(sources.map(folderOf))].sort());
  const lists = rows.filter(({ may }) => !/^(nothing|everything)/.test(may));
  const upward = lists.flatMap(({ folder, may }) =>
    may
      .split(', ')
      .filter((target) => !folders.slice(0, folders.indexOf(folder)).includes(target))
      .map((target) => `${folder} may import ${target}`),
  );
  expect(upward).toEqual([]);
});

test('imports follow the code map', () => {
  const wrong: string[] = [];
  for (const path of sources.filter((source) => !isTest(source))) {
    for (const specifier of importsOf(read(path)).filter((name) => name.startsWith('.'))) {
      const target = join(dirname(path), specifier);
      if (!target.startsWith('src/') || !mayImport(folderOf(path), folderOf(target)))
        wrong.push(`${path} imports ${specifier}`);
    }
  }
  expect(wrong).toEqual([]);
});

test('relative imports name the file with its extension', () => {
  const wrong = typeScript.flatMap((path) =>
    importsOf(read(path))
      .filter((name) => name.startsWith('.') && !/\.(ts|json)$/.test(name))
      .map((name) => `${path} imports ${name}`),
  );
  expect(wrong).toEqual([]);
});

test('the pure folders import no Node.js module that has effects', () => {
  const wrong = sources
    .filter((path) => PURE.includes(folderOf(path)) && !isTest(path))
    .flatMap((path) =>
      importsOf(read(path))
        .filter((name) => name.startsWith('node:') && !PURE_MODULES.includes(name))
        .map((name) => `${path} imports ${name}`),
    );
  expect(wrong).toEqual([]);
});

test('importsOf finds static and dynamic imports and re-exports, and ignores comments', () => {
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
