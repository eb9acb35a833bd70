import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { checkPaths, readManifests } from './read-manifests.ts';
import { upFiles } from './session.ts';

const never = new AbortController().signal;
const ignore = (): void => undefined;

test.each([
  [['-', import.meta.dirname, import.meta.filename], undefined],
  [[import.meta.filename, '/none/a.yaml'], 'the manifest /none/a.yaml does not exist'],
  [['/none/a.yaml', '-', '/none/b.yaml'], 'the manifests /none/a.yaml, /none/b.yaml do not exist'],
  [[`${import.meta.filename}/a.yaml`], `the manifest ${import.meta.filename}/a.yaml does not exist`],
])('checkPaths(%j) throws %j', (paths, message) => {
  const check = (): void => checkPaths(paths);
  if (message === undefined) expect(check).not.toThrow();
  else expect(check).toThrow(message);
});

test('a URL is refused with the command that reads it from standard input, also to root', async () => {
  const url = 'https://example.com/a.yaml?b=1&c=2';
  await expect(upFiles([url], { dataDir: '/none' })).rejects.toThrow(
    /^https:.* is a URL, and lifepod reads manifests .*: pipe it into lifepod, as in curl -fsSL 'https:\S+c=2' \| .*lifepod up - --data-dir \/none$/,
  );
});

test('checkPaths accepts a path whose other errors depend on the user, such as a permission', () => {
  expect(() => checkPaths([`/${'a'.repeat(300)}`])).not.toThrow();
});

test('a pipe of the shell that sudo has closed is reported with the command that reads standard input', async () => {
  vi.stubEnv('SUDO_UID', '1000');
  const sentence = /^the manifest \/dev\/fd\/9999 does not exist, because sudo .*: type 'COMMAND \| sudo \S+ up -'$/;
  expect(() => checkPaths(['/dev/fd/9999', '-'])).toThrow(sentence);
  await expect(readManifests(['/dev/fd/9999'], never, ignore)).rejects.toThrow(sentence);
  vi.unstubAllEnvs();
});

test('a path that does not exist is reported before standard input has ended, also to root', async () => {
  await expect(upFiles(['-', '/none/a.yaml'], { dataDir: '/none' })).rejects.toThrow(
    'the manifest /none/a.yaml does not exist',
  );
});

test('the errors of all files are reported, a line for each', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'manifests-'));
  try {
    const [bad, good, empty, folderOfBad] = ['bad.yaml', 'good.yaml', 'empty', 'folder'].map((name) =>
      join(folder, name),
    ) as [string, string, string, string];
    for (const each of [empty, folderOfBad]) mkdirSync(each);
    writeFileSync(bad, 'a: [');
    writeFileSync(good, 'apiVersion: v1\nkind: Pod\nmetadata: {name: a}');
    for (const name of ['a.yaml', 'b.yaml']) writeFileSync(join(folderOfBad, name), 'kind: Pod');
    const error: unknown = await readManifests(
      [bad, good, '/none/a.yaml', empty, folderOfBad, good],
      never,
      ignore,
    ).catch((caught) => caught);
    expect(error).toMatchObject({ others: [{ source: good }] });
    expect(String(error).split('\n')).toEqual([
      expect.stringContaining(`${bad} is not valid YAML at line 1`),
      'the manifest /none/a.yaml does not exist',
      `the folder ${empty} has no file that ends in .yaml, .yml or .json`,
      `${folderOfBad}/a.yaml: the field apiVersion is missing`,
      `${folderOfBad}/b.yaml: the field apiVersion is missing`,
      `${good} is given twice: give it once`,
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a file without an object is named if another file has objects', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'manifests-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [good, empty] = ['good.yaml', 'empty.yaml'].map((name) => join(folder, name)) as [string, string];
  writeFileSync(good, 'apiVersion: v1\nkind: Pod\nmetadata: {name: a}');
  writeFileSync(empty, '# nothing\n---\n');
  const warnings: string[] = [];
  expect(await readManifests([good, empty], never, (line) => warnings.push(line))).toHaveLength(1);
  expect(warnings).toEqual([`warning: ${empty} has no object`]);
  await expect(readManifests([empty], never, ignore)).rejects.toThrow(`no object in ${empty}: give manifests`);
});
