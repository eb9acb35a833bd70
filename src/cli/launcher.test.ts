/** Tests bin/lifepod in folders that have the layout of the repository or of the npm package. */
import {
  chmodSync,
  chownSync,
  constants,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
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

const NOBODY = 65_534;
const JANE = 64_002;

const file = (path: string): string => {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  return join(folder, path);
};

const copyLauncher = (root: string): void => copyFileSync(join(REPOSITORY, 'bin/lifepod'), file(`${root}/bin/lifepod`));

/** Makes `folder/root` a package without dependencies. */
function layOutPackage(root: string): void {
  copyLauncher(root);
  writeFileSync(file(`${root}/dist/cli/main.js`), '');
}

/** Makes `folder` a clone or package whose main module has the path `main`. */
function layOut(main: string, code: string): void {
  copyLauncher('.');
  symlinkSync(process.execPath, file('node_modules/node/bin/node'));
  writeFileSync(file('package.json'), '{"type":"module"}');
  writeFileSync(file(main), code);
}

test('sources that import node:process leave the standard input that they share with other programs in blocking mode', async () => {
  const code = `import process from 'node:process'; import { readFileSync } from 'node:fs';
    console.log(process.pid, readFileSync('/proc/self/fdinfo/0', 'utf8'));`;
  layOut('src/cli/main.ts', code);
  const text = await runCommandOk('sh', ['-c', ': | "$0"', file('bin/lifepod')]);
  const flags = Number.parseInt(/^flags:\s*(\d+)$/m.exec(text)?.[1] ?? '', 8);
  expect([flags, flags & constants.O_NONBLOCK]).toEqual([expect.any(Number), 0]);
});

test('a clone can be used in a folder whose package.json Node.js cannot read', async () => {
  layOut('src/cli/main.ts', `console.log('ran')`);
  writeFileSync(file('current/package.json'), '{');
  const launch = ['-c', 'cd "$1" && "$0"', file('bin/lifepod'), join(folder, 'current')];
  expect(await runCommand('sh', launch)).toEqual({ code: 0, stdout: 'ran\n', stderr: '' });
});

test.each([
  { main: 'src/cli/main.ts', optimizes: false },
  { main: 'dist/cli/main.js', optimizes: true },
])('bin/lifepod runs $main with the optimizing WebAssembly compiler: $optimizes', async ({ main, optimizes }) => {
  layOut(main, 'console.log(JSON.stringify(process.execArgv))');
  const options = JSON.parse(await runCommandOk(file('bin/lifepod'), [])) as string[];
  expect(options).toContain('--max-semi-space-size=4');
  expect(!options.includes('--no-wasm-tier-up')).toBe(optimizes);
});

test('V8 accepts the compiled code of the modules of Node.js with the options of bin/lifepod', async () => {
  layOut('dist/cli/main.js', `console.log(process.getBuiltinModule('v8').cachedDataVersionTag())`);
  const withoutOptions = await runCommandOk(process.execPath, [file('dist/cli/main.js')]);
  expect(await runCommandOk(file('bin/lifepod'), [])).toBe(withoutOptions);
});

test.skipIf(process.geteuid?.() !== 0).each<{
  user?: number;
  home: string;
  owner?: number;
  mode?: number;
  set?: Record<string, string>;
  cache: string;
}>([
  { home: 'HOME', owner: 0, cache: 'HOME/.cache/lifepod/compile' },
  { home: 'HOME', owner: 0, set: { XDG_CACHE_HOME: '/root' }, cache: '/root/lifepod/compile' },
  { home: 'HOME', owner: 0, set: { XDG_CACHE_HOME: '/tmp' }, cache: 'HOME/.cache/lifepod/compile' },
  { home: 'HOME', owner: 0, set: { XDG_CACHE_HOME: 'OTHER' }, cache: 'HOME/.cache/lifepod/compile' },
  { home: 'HOME', owner: 0, set: { XDG_CACHE_HOME: 'relative' }, cache: 'HOME/.cache/lifepod/compile' },
  { home: 'HOME', owner: 1000, cache: '/var/cache/lifepod/compile' },
  { home: 'HOME', owner: 1000, set: { XDG_CACHE_HOME: 'HOME/.cache' }, cache: '/var/cache/lifepod/compile' },
  { home: 'HOME', owner: 1000, set: { NODE_COMPILE_CACHE: '/chosen' }, cache: '/chosen' },
  { home: 'HOME', owner: 0, mode: 0o777, cache: '/var/cache/lifepod/compile' },
  { home: 'HOME', owner: 0, mode: 0o1777, cache: '/var/cache/lifepod/compile' },
  { home: 'HOME/missing', owner: 0, cache: '/var/cache/lifepod/compile' },
  { home: '.', owner: 0, cache: '/var/cache/lifepod/compile' },
  { user: NOBODY, home: 'HOME', owner: NOBODY, cache: 'HOME/.cache/lifepod/compile' },
  { user: NOBODY, home: 'HOME', owner: 0, cache: '' },
  { user: NOBODY, home: 'HOME/missing', owner: NOBODY, cache: '' },
  { user: NOBODY, home: 'HOME/missing', owner: NOBODY, set: { XDG_CACHE_HOME: 'HOME' }, cache: 'HOME/lifepod/compile' },
  { user: NOBODY, home: 'HOME/missing', owner: 0, set: { XDG_CACHE_HOME: 'HOME' }, cache: '' },
])('bin/lifepod caches code only in folders that no other user can change: %j', async (each) => {
  const { user = 0, owner = 0, mode = 0o755, set = {}, cache } = each;
  chmodSync(folder, 0o755);
  layOutPackage('.');
  writeFileSync(file('node_modules/node/bin/node'), '#!/bin/sh\necho "$NODE_COMPILE_CACHE"\n', { mode: 0o755 });
  const home = join(folder, 'home');
  const other = join(folder, 'other');
  const place = (text: string): string => text.replace('HOME', home).replace('OTHER', other);
  mkdirSync(home);
  mkdirSync(other);
  chownSync(other, JANE, JANE);
  chownSync(home, owner, owner);
  chmodSync(home, mode);
  const given = Object.entries(set).map(([name, value]) => [name, place(value)]);
  const env = { PATH: process.env['PATH'], HOME: place(each.home), ...Object.fromEntries(given) };
  const words = [`--reuid=${user}`, '--clear-groups', file('bin/lifepod')];
  const { stdout } = await runCommand('setpriv', words, { env });
  expect(stdout).toBe(`${place(cache)}\n`);
  expect(readdirSync(home)).toEqual([]);
});

/** Writes a program like Node.js that prints its path. With --version, it prints `version`, or fails unless `knowsOptions` is true. */
function nodeAt(path: string, version: string, knowsOptions = true): void {
  const answer = knowsOptions ? `echo ${version}` : 'exit 9';
  writeFileSync(
    file(path),
    `#!/bin/sh\nfor each; do [ "$each" != --version ] || { ${answer}; exit; }; done\necho "$0"\necho "$LIFEPOD_NODE_FOLDER" >&2\n`,
    {
      mode: 0o755,
    },
  );
}

const PACKAGE = 'lib/node_modules/lifepod';

function launched(root: string, env: Record<string, string> = {}, words: string[] = []): Promise<CommandResult> {
  layOutPackage(root);
  const PATH = `${folder}/first bin:${folder}/second`;
  return runCommand(join(folder, root, 'bin/lifepod'), words, { env: { PATH, ...env } });
}

test.each([
  ['its own package', `${PACKAGE}/node_modules/node/bin/node`],
  ['the package node for lifepod only', 'lib/lifepod-node/node_modules/node/bin/node'],
  ['the package node next to it', 'lib/node_modules/node/bin/node'],
  ['the installation whose npm has installed it', 'bin/node'],
  ['the PATH', 'first bin/node'],
  ['the PATH behind one that is too old', 'second/node'],
])('bin/lifepod prefers the Node.js of %s to those after it', async (_, path) => {
  const places = [
    `${PACKAGE}/node_modules/node/bin/node`,
    'lib/lifepod-node/node_modules/node/bin/node',
    'lib/node_modules/node/bin/node',
    'bin/node',
    'first bin/node',
    'second/node',
  ];
  const first = places.indexOf(path);
  for (const each of places.slice(Math.max(first, 1))) nodeAt(each, 'v24.0.0');
  if (first === 0) nodeAt(path, 'v24.0.0');
  // The programs before the first suitable one are too old, lack an option, or are not a Node.js.
  if (first > 2) nodeAt('lib/node_modules/node/bin/node', 'v22.12.0');
  if (first > 3) nodeAt('bin/node', 'v24.0.0', false);
  if (first > 4) nodeAt('first bin/node', 'unknown');
  const { stdout, stderr } = await launched(PACKAGE);
  expect(realpathSync(stdout.trim())).toBe(join(folder, path));
  // The launcher names the folder if only the PATH leads to it.
  expect(stderr.trim()).toBe(first < 4 ? '' : dirname(join(folder, path)));
});

test.each([
  ['bin', PACKAGE],
  ['local/node_modules/.bin', 'local/node_modules/lifepod'],
])(
  'a copy of the launcher in %s, where npm makes a symbolic link, runs the package and its Node.js',
  async (bin, root) => {
    layOutPackage(root);
    nodeAt(`${root}/node_modules/node/bin/node`, 'v24.0.0');
    copyFileSync(join(REPOSITORY, 'bin/lifepod'), file(`${bin}/lifepod`));
    const { stdout } = await runCommand(join(folder, bin, 'lifepod'), [], { env: { PATH: '' } });
    expect(stdout.trim()).toBe(join(folder, root, 'node_modules/node/bin/node'));
  },
);

test('a copy of the launcher without its package says what to run', async () => {
  copyLauncher('.');
  expect(await runCommand(file('bin/lifepod'), [])).toEqual({
    code: 1,
    stdout: '',
    stderr: `lifepod: ${folder}/bin/lifepod is a copy of the launcher without its package: run bin/lifepod in the folder of the package, such as PREFIX/lib/node_modules/lifepod, or a symbolic link to it\n`,
  });
});

test('bin/lifepod accepts a Node.js that is newer than 24', async () => {
  nodeAt('bin/node', 'v100.1.0');
  expect((await launched(PACKAGE)).stdout.trim()).toMatch(/\/bin\/node$/);
});

test.each(['', '/nonexistent'])('bin/lifepod needs no program of the PATH %j', async (PATH) => {
  nodeAt('bin/node', 'v24.0.0');
  expect((await launched(PACKAGE, { PATH })).stdout.trim()).toMatch(/\/bin\/node$/);
  rmSync(join(folder, 'bin/node'));
  expect((await launched(PACKAGE, { PATH })).stderr).toMatch(/^lifepod: Node\.js 24 or newer is missing: .*\n$/);
});

test('the launcher says that sudo has another PATH, and how to keep that of the user', async () => {
  nodeAt('second/node', 'v20.19.2');
  const program = `${folder}/clone/bin/lifepod`;
  const stderr = (SUDO_UID: string) =>
    launched('clone', { SUDO_UID }, ['up', '--detach']).then((result) => result.stderr);
  expect(await stderr('1000')).toBe(
    `lifepod: Node.js 24 or newer is missing on the PATH of sudo; ${folder}/second/node is v20.19.2: run 'sudo npm run setup' in ` +
      `${folder}/clone; or, if your own PATH has it, begin the command with: sudo env "PATH=$PATH" ${program}\n`,
  );
  expect(await stderr('0')).not.toContain('PATH of sudo');
});

test.each([
  ['a clone', 'clone', "run 'npm run setup' in FOLDER/clone"],
  ['a global installation', PACKAGE, 'install it, or type: npm install --prefix FOLDER/lib/lifepod-node node@24'],
  [
    'a local installation',
    'local/node_modules/lifepod',
    'install it, or type: npm install --prefix FOLDER/local node@24',
  ],
  [
    'an installation with an unusual path',
    "it's/lib/node_modules/lifepod",
    "install it, or type: npm install --prefix 'FOLDER/it'\\''s/lib/lifepod-node' node@24",
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

test.skipIf(process.geteuid?.() !== 0).each<{ user?: number; invoker?: number; owner: number; sudo: boolean }>([
  { owner: 0, sudo: false },
  { owner: JANE, sudo: false },
  { user: JANE, owner: 0, sudo: true },
  { user: JANE, owner: JANE, sudo: false },
  { invoker: JANE, owner: 0, sudo: true },
  { invoker: JANE, owner: JANE, sudo: false },
])('the command that installs Node.js has sudo if its user may not write there: %j', async (each) => {
  const { user = 0, invoker = 0, owner, sudo } = each;
  chmodSync(folder, 0o755);
  for (const root of ['clone', PACKAGE]) layOutPackage(root);
  for (const place of ['clone', 'lib']) chownSync(join(folder, place), owner, owner);
  const env = ['env', 'PATH=/nonexistent', `SUDO_UID=${invoker}`];
  const said = async (root: string): Promise<string> => {
    const words = [`--reuid=${user}`, '--clear-groups', ...env, join(folder, root, 'bin/lifepod')];
    return (await runCommand('setpriv', words)).stderr;
  };
  const prefix = sudo ? 'sudo ' : '';
  expect(await said('clone')).toContain(`: run '${prefix}npm run setup' in ${folder}/clone`);
  expect(await said(PACKAGE)).toContain(`, or type: ${prefix}npm install --prefix ${folder}/lib/lifepod-node node@24`);
});

test.each([
  ['global', PACKAGE, 'lib/lifepod-node'],
  ['local', 'local/node_modules/lifepod', 'local'],
])('the launcher of a %s installation says how to run the install script of the package node', async (_, root, at) => {
  writeFileSync(file(`${at}/node_modules/node/package.json`), '{}');
  expect((await launched(root)).stderr).toBe(
    `lifepod: Node.js 24 or newer is missing: the install script of ${folder}/${at}/node_modules/node has not run, ` +
      `type: npm rebuild --ignore-scripts=false --prefix ${folder}/${at} node\n`,
  );
});
