import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { needsSudo, reinstallFirst, rootCommand, rootProgram, shellQuoted, typedProgram } from './typed-program.ts';

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'lifepod-typed-')));
afterAll(() => rmSync(folder, { recursive: true }));
const clone = join(folder, 'clone/bin/lifepod');
const links = join(folder, 'links');
const other = join(folder, 'other');
for (const path of ['clone/bin', 'links', 'other']) mkdirSync(join(folder, path), { recursive: true });
for (const path of [clone, join(other, 'lifepod')]) writeFileSync(path, '', { mode: 0o755 });
symlinkSync(clone, join(links, 'lifepod'));

test.each<[string, NodeJS.ProcessEnv, boolean, string]>([
  ['nothing is known', { PATH: other }, false, 'lifepod'],
  ['the PATH leads to it', { LIFEPOD_PROGRAM: join(links, 'lifepod'), PATH: links }, false, 'lifepod'],
  ['the PATH does not contain it', { LIFEPOD_PROGRAM: clone, PATH: '/nonexistent' }, false, clone],
  ['the PATH leads to another lifepod', { LIFEPOD_PROGRAM: clone, PATH: other }, false, clone],
  [
    'the PATH of sudo does not contain it',
    { LIFEPOD_PROGRAM: join(links, 'lifepod'), PATH: links },
    true,
    `${links}/lifepod`,
  ],
  ['sudo found it on its PATH', { LIFEPOD_PROGRAM: clone, PATH: links, SUDO_UID: '1000' }, true, 'lifepod'],
  ['it was removed', { LIFEPOD_PROGRAM: `${folder}/gone/lifepod`, PATH: links }, false, 'lifepod'],
  ['it was removed, and there is no other', { LIFEPOD_PROGRAM: '/gone/lifepod', PATH: '/x' }, false, '/gone/lifepod'],
  ['a shell was given a file', { LIFEPOD_PROGRAM: 'lifepod', PATH: '/nonexistent' }, false, './lifepod'],
])('lifepod is run again with a word that works if %s', (_, env, sudo, word) => {
  expect(typedProgram(env, sudo)).toBe(word);
});

test('a sentence says to install lifepod again first if its program has been removed and the PATH leads to no other', () => {
  const text = (program: string, path: string): string =>
    reinstallFirst({ LIFEPOD_PROGRAM: program, PATH: path }, false);
  const gone = join(clone, '../gone/lifepod');
  expect(text(gone, '/nonexistent')).toBe(` (first install lifepod again, because ${gone} has been removed)`);
  expect([text(gone, links), text(clone, '/nonexistent'), reinstallFirst({}, false)]).toEqual(['', '', '']);
});

test('a command for root names the typed path and the data folder', () => {
  const env = { LIFEPOD_PROGRAM: clone, PATH: '/nonexistent', SUDO_UID: '1000' };
  expect(rootCommand('down', '/my data', env)).toBe(`sudo ${clone} down --data-dir '/my data'`);
});

test.skipIf(process.geteuid?.() !== 0).each<[NodeJS.ProcessEnv, boolean, string]>([
  [{}, false, 'lifepod down'],
  [{ SUDO_UID: '0' }, false, 'lifepod down'],
  [{ SUDO_UID: '1000' }, true, 'sudo lifepod down'],
  [{ DOAS_USER: 'root' }, false, 'lifepod down'],
  [{ DOAS_USER: 'jane' }, true, 'doas lifepod down'],
  [{ PKEXEC_UID: '1000' }, true, 'pkexec lifepod down'],
])('a user who runs commands as root with %j types the same program again', (env, needs, start) => {
  expect(needsSudo(env)).toBe(needs);
  expect(rootCommand('down', '/d', env)).toBe(`${start} --data-dir /d`);
});

test.each<[string, NodeJS.ProcessEnv, string]>([
  ['only the PATH of the user leads to Node.js', { LIFEPOD_NODE_FOLDER: other }, 'sudo env "PATH=$PATH" lifepod'],
  ['sudo has kept that PATH', { LIFEPOD_NODE_FOLDER: other, SUDO_UID: '1000' }, 'sudo env "PATH=$PATH" lifepod'],
  ['the PATH of sudo leads to Node.js', { LIFEPOD_NODE_FOLDER: '/usr/bin' }, `sudo ${links}/lifepod`],
  ['Node.js is beside lifepod', { LIFEPOD_NODE_FOLDER: '' }, `sudo ${links}/lifepod`],
])('the command with sudo keeps the PATH only if lifepod needs it: %s', (_, env, words) => {
  expect(rootProgram({ LIFEPOD_PROGRAM: join(links, 'lifepod'), PATH: links, ...env }, true)).toBe(words);
});

test('a command of root contains no PATH', () => {
  expect(rootProgram({ LIFEPOD_PROGRAM: clone, PATH: links, LIFEPOD_NODE_FOLDER: other }, false)).toBe('lifepod');
});

test('shellQuoted quotes only words that a shell would change', () => {
  expect(['/a/b.c', 'a b', "it's", ''].map(shellQuoted)).toEqual(['/a/b.c', "'a b'", `'it'\\''s'`, "''"]);
});
