/** Tests bin/lifepod in folders that have the layout of the repository or of the npm package. */
import {
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type CommandResult, runCommand, runCommandOk } from '../platform/processes.ts';

const REPOSITORY = join(import.meta.dirname, '../..');
let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'lifepod-launcher-')));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const file = (path: string): string => {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  return join(folder, path);
};

test.each([
  { main: 'src/cli/main.ts', optimizes: false },
  { main: 'dist/cli/main.js', optimizes: true },
])('bin/lifepod runs $main with the optimizing WebAssembly compiler: $optimizes', async ({ main, optimizes }) => {
  copyFileSync(join(REPOSITORY, 'bin/lifepod'), file('bin/lifepod'));
  symlinkSync(process.execPath, file('node_modules/node/bin/node'));
  writeFileSync(file('package.json'), '{"type":"module"}');
  writeFileSync(file(main), 'console.log(JSON.stringify(process.execArgv))');
  const options = JSON.parse(await runCommandOk(file('bin/lifepod'), [])) as string[];
  expect(options).toContain('--max-semi-space-size=4');
  expect(!options.includes('--no-wasm-tier-up')).toBe(optimizes);
});

test.skipIf(process.geteuid?.() !== 0).each([
  { owner: 0, set: {}, cache: 'HOME/.cache/lifepod/compile' },
  { owner: 0, set: { XDG_CACHE_HOME: '/elsewhere' }, cache: '/elsewhere/lifepod/compile' },
  { owner: 1000, set: {}, cache: '/var/cache/lifepod/compile' },
  { owner: 1000, set: { XDG_CACHE_HOME: 'HOME/.cache' }, cache: '/var/cache/lifepod/compile' },
  { owner: 1000, set: { NODE_COMPILE_CACHE: '/chosen' }, cache: '/chosen' },
])('bin/lifepod of root caches code in $cache if HOME belongs to the user $owner, with $set', async (each) => {
  copyFileSync(join(REPOSITORY, 'bin/lifepod'), file('bin/lifepod'));
  writeFileSync(file('node_modules/node/bin/node'), '#!/bin/sh\necho "$NODE_COMPILE_CACHE"\n', { mode: 0o755 });
  const home = join(folder, 'home');
  mkdirSync(home);
  chownSync(home, each.owner, each.owner);
  const set = Object.entries(each.set).map(([name, value]) => [name, value.replace('HOME', home)]);
  const env = { PATH: process.env['PATH'], HOME: home, ...Object.fromEntries(set) };
  const { stdout } = await runCommand(file('bin/lifepod'), [], { env });
  expect(stdout.trim()).toBe(each.cache.replace('HOME', home));
});

/** Writes a program like Node.js that prints its path. With --version, it prints `version`, or fails unless `knowsOptions` is true. */
function nodeAt(path: string, version: string, knowsOptions = true): void {
  const answer = knowsOptions ? `echo ${version}` : 'exit 9';
  writeFileSync(
    file(path),
    `#!/bin/sh\nfor each; do [ "$each" != --version ] || { ${answer}; exit; }; done\necho "$0"\n`,
    {
      mode: 0o755,
    },
  );
}

const PACKAGE = 'lib/node_modules/lifepod';

/** Runs the launcher of an npm package at `root`, with two folders of programs on the PATH. */
function launched(root: string): Promise<CommandResult> {
  copyFileSync(join(REPOSITORY, 'bin/lifepod'), file(`${root}/bin/lifepod`));
  // The programs that the launcher runs. Their folders may contain a Node.js, which the tests must not find.
  for (const name of ['dirname', 'readlink']) symlinkSync(`/usr/bin/${name}`, file(`tools/${name}`));
  const PATH = `${folder}/first bin:${folder}/second:${folder}/tools`;
  return runCommand(join(folder, root, 'bin/lifepod'), [], { env: { PATH } });
}

test.each([
  ['its own package', `${PACKAGE}/node_modules/node/bin/node`],
  ['the package node next to it', 'lib/node_modules/node/bin/node'],
  ['the installation whose npm has installed it', 'bin/node'],
  ['the PATH', 'first bin/node'],
  ['the PATH behind one that is too old', 'second/node'],
])('bin/lifepod prefers the Node.js of %s to those after it', async (_, path) => {
  const places = [
    `${PACKAGE}/node_modules/node/bin/node`,
    'lib/node_modules/node/bin/node',
    'bin/node',
    'first bin/node',
    'second/node',
  ];
  const first = places.indexOf(path);
  for (const each of places.slice(Math.max(first, 1))) nodeAt(each, 'v24.0.0');
  if (first === 0) nodeAt(path, 'v24.0.0');
  // The programs before the first suitable one are too old, lack an option, or are not a Node.js.
  if (first > 1) nodeAt('lib/node_modules/node/bin/node', 'v22.12.0');
  if (first > 2) nodeAt('bin/node', 'v24.0.0', false);
  if (first > 3) nodeAt('first bin/node', 'unknown');
  const { stdout } = await launched(PACKAGE);
  expect(realpathSync(stdout.trim())).toBe(join(folder, path));
});

test('bin/lifepod accepts a Node.js that is newer than 24', async () => {
  nodeAt('bin/node', 'v100.1.0');
  expect((await launched(PACKAGE)).stdout.trim()).toMatch(/\/bin\/node$/);
});

test.each([
  ['a clone', 'clone', "run 'npm run setup' in FOLDER/clone"],
  ['a global installation', PACKAGE, 'install it, or type: npm install -g --no-bin-links --prefix FOLDER node@24'],
  [
    'a local installation',
    'local/node_modules/lifepod',
    'install it, or type: npm install --prefix FOLDER/local node@24',
  ],
])('without a suitable Node.js, the launcher of %s says what to type', async (_, root, remedy) => {
  nodeAt('second/node', 'v20.19.2');
  const found = `${folder}/second/node is v20.19.2`;
  expect(await launched(root)).toEqual({
    code: 1,
    stdout: '',
    stderr: `lifepod: Node.js 24 or newer is missing; ${found}: ${remedy.replace('FOLDER', folder)}\n`,
  });
});

test.each([
  ['global', PACKAGE, 'lib/', 'npm rebuild -g --no-bin-links --ignore-scripts=false --prefix FOLDER node'],
  ['local', 'local/node_modules/lifepod', 'local/', 'npm rebuild --ignore-scripts=false --prefix FOLDER/local node'],
])(
  'the launcher of a %s installation says how to run the install script of the package node',
  async (_, root, at, remedy) => {
    writeFileSync(file(`${at}node_modules/node/package.json`), '{}');
    expect((await launched(root)).stderr).toBe(
      `lifepod: Node.js 24 or newer is missing: the install script of ${folder}/${at}node_modules/node has not run, ` +
        `type: ${remedy.replace('FOLDER', folder)}\n`,
    );
  },
);
