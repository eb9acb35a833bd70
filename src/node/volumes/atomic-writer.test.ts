import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { writePayload } from './atomic-writer.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-payload-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const NOW = Date.UTC(2026, 0, 31);
const payload = (files: Record<string, string>) =>
  new Map(Object.entries(files).map(([path, text]) => [path, { data: Buffer.from(text), mode: 0o644 }]));
const write = (files: Record<string, string>): Promise<boolean> => writePayload(folder, payload(files), NOW);
const visible = (): string[] =>
  readdirSync(folder)
    .filter((name) => !name.startsWith('..'))
    .sort();
const generations = (): string[] => readdirSync(folder).filter((name) => /^\.\.\d/.test(name));
const content = (): Record<string, string> =>
  Object.fromEntries(visible().map((name) => [name, readFileSync(join(folder, name), 'utf8')]));

test('the files of a volume are links into one folder, which is replaced when the content changes', async () => {
  expect(await write({ a: '1', b: '2' })).toBe(true);
  expect(readlinkSync(join(folder, 'a'))).toBe('..data/a');
  expect(await write({ a: '1', b: '2' })).toBe(false);
  expect(await write({ a: '1', c: '3' })).toBe(true);
  expect(content()).toEqual({ a: '1', c: '3' });
  expect(generations()).toHaveLength(1);
});

/** States in which an engine may have died while it replaced `{a: old, b: old}` with `{a: new, c: new}`. */
const cuts: [string, () => void][] = [
  [
    'with half of the new files',
    () => {
      mkdirSync(join(folder, '..2026_01_30_00_00_00.1'));
      writeFileSync(join(folder, '..2026_01_30_00_00_00.1/a'), 'ne');
    },
  ],
  [
    'before the swap',
    () => {
      mkdirSync(join(folder, '..2026_01_30_00_00_00.1'));
      symlinkSync('..2026_01_30_00_00_00.1', join(folder, '..data_tmp'));
    },
  ],
  ['after the swap', swapped],
  [
    'with some of the links',
    () => {
      swapped();
      symlinkSync('..data/c', join(folder, 'c'));
    },
  ],
  [
    'with the old folder',
    () => {
      swapped();
      symlinkSync('..data/c', join(folder, 'c'));
      unlinkSync(join(folder, 'b'));
    },
  ],
];
function swapped(): void {
  const name = '..2026_01_30_00_00_00.1';
  mkdirSync(join(folder, name));
  for (const file of ['a', 'c']) writeFileSync(join(folder, name, file), 'new', { mode: 0o644 });
  unlinkSync(join(folder, '..data'));
  symlinkSync(name, join(folder, '..data'));
}

test.each(cuts)('the writer completes a change during which an engine died %s', async (_when, cut) => {
  await write({ a: 'old', b: 'old' });
  cut();
  await write({ a: 'new', c: 'new' });
  expect(content()).toEqual({ a: 'new', c: 'new' });
  expect(generations()).toHaveLength(1);
});

test('the writer creates missing links after a first write that was interrupted after the swap', async () => {
  await write({ a: '1', 'deep/b': '2' });
  for (const name of visible()) unlinkSync(join(folder, name));
  await write({ a: '1', 'deep/b': '2' });
  expect(visible()).toEqual(['a', 'deep']);
});

test('a write that failed leaves no files', async () => {
  await write({ a: '1' });
  await expect(write({ a: '2', 'a/b': '3' })).rejects.toThrow('EEXIST');
  expect(content()).toEqual({ a: '1' });
  expect(generations()).toHaveLength(1);
});

test.each([
  ['an empty path', '', 'must not be empty'],
  ['an absolute path', '/a', 'must be relative path: /a'],
  ['a path that is too long', 'a'.repeat(4097), 'must be less than or equal to 4096 characters'],
  ['a path with ..', 'a/../b', "must not contain '..': a/../b"],
  ['a path that begins with ..', '..a', "must not start with '..': ..a"],
])('a volume with %s is refused, and nothing is written', async (_, path, message) => {
  await expect(write({ a: '1', [path]: '2' })).rejects.toThrow(`invalid path: ${message}`);
  expect(readdirSync(folder)).toEqual([]);
});

test.each<[string, number | undefined, number | undefined, number[], number[]]>([
  ['no owner and no group', undefined, undefined, [0, 0, 0o600], [0, 0, 0o755]],
  ['an owner', 7, undefined, [7, 0, 0o600], [0, 0, 0o755]],
  ['a group', undefined, 8, [0, 8, 0o640], [0, 8, 0o2755]],
  ['an owner and a group', 7, 8, [7, 8, 0o640], [0, 8, 0o2755]],
])(
  'the files of a volume with %s get these and their mode, and are not written again',
  async (_, uid, fsGroup, file, parent) => {
    const data = Buffer.from('1');
    const files = new Map([['deep/a', { data, mode: 0o600, ...(uid === undefined ? {} : { uid }) }]]);
    expect(await writePayload(folder, files, NOW, fsGroup)).toBe(true);
    const seen = (path: string): number[] => {
      const stat = statSync(join(folder, '..data/', path));
      return [stat.uid, stat.gid, stat.mode & 0o7777];
    };
    expect([seen('deep/a'), seen('deep'), seen('.')]).toEqual([file, parent, parent]);
    expect(await writePayload(folder, files, NOW, fsGroup)).toBe(false);
    expect(await writePayload(folder, files, NOW, (fsGroup ?? 0) + 1)).toBe(true);
  },
);
