import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Cursor, type FollowedFile, followLog, openLog, readFrom } from './log-follow.ts';

let folder: string;
let path: string;
let stop: AbortController;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-follow-'));
  path = join(folder, '0.log');
  stop = new AbortController();
});
afterEach(() => {
  stop.abort();
  rmSync(folder, { recursive: true, force: true });
});

/** `read(text)` resolves once the text read so far ends with `text`. */
function follow(file: Partial<FollowedFile> = {}, begin: (cursor: Cursor) => Promise<unknown> = async () => undefined) {
  const end = Promise.withResolvers<void>();
  let text = '';
  let heard = Promise.withResolvers<void>();
  const all = (async () => {
    for await (const bytes of followLog({ path, ended: end.promise, ...file }, begin, stop.signal)) {
      text += bytes.toString();
      heard.resolve();
      heard = Promise.withResolvers();
    }
    return text;
  })();
  return {
    end: () => end.resolve(),
    all: () => all,
    async read(wanted: string): Promise<void> {
      while (!text.endsWith(wanted)) await heard.promise;
    },
  };
}

const rotate = (name: string): void => renameSync(path, `${path}.${name}`);

test('a followed log is read while it is written, and up to its end', async () => {
  writeFileSync(path, 'one\n');
  const log = follow();
  await log.read('one\n');
  appendFileSync(path, 'two\n');
  await log.read('two\n');
  appendFileSync(path, 'three\n');
  log.end();
  expect(await log.all()).toBe('one\ntwo\nthree\n');
});

test('a followed log may be created later', async () => {
  const log = follow();
  writeFileSync(path, 'one\n');
  await log.read('one\n');
  log.end();
  expect(await log.all()).toBe('one\n');
});

test('a log whose end is not given is complete', async () => {
  writeFileSync(path, 'one\n');
  let text = '';
  for await (const bytes of followLog({ path }, async () => undefined, stop.signal)) text += bytes.toString();
  expect(text).toBe('one\n');
});

test('following begins where `begin` moves the cursor', async () => {
  writeFileSync(path, 'one\ntwo\n');
  const log = follow({}, async (cursor) => {
    cursor.position = 4;
  });
  log.end();
  expect(await log.all()).toBe('two\n');
});

test('following ends at once if the folder of the log does not exist', async () => {
  expect(await follow({ path: join(folder, 'absent', '0.log') }).all()).toBe('');
});

test('following ends when the signal aborts', async () => {
  writeFileSync(path, 'one\n');
  const log = follow();
  await log.read('one\n');
  stop.abort();
  expect(await log.all()).toBe('one\n');
});

test('following ends if the wait for the end of the container fails', async () => {
  writeFileSync(path, 'one\n');
  expect(await follow({ ended: Promise.reject(new Error('the node ends')) }).all()).toBe('one\n');
});

test('a rotation loses no line, although the runtime still writes to the previous file', async () => {
  writeFileSync(path, 'one\n');
  const log = follow();
  await log.read('one\n');
  rotate('20260131-000000');
  writeFileSync(path, '');
  appendFileSync(`${path}.20260131-000000`, 'two\n');
  await log.read('two\n');
  appendFileSync(path, 'three\n');
  await log.read('three\n');
  log.end();
  expect(await log.all()).toBe('one\ntwo\nthree\n');
});

test('lines that the runtime writes to the previous file come before those that are already in the new file', async () => {
  writeFileSync(path, 'one\n');
  const log = follow();
  await log.read('one\n');
  rotate('20260101-000000');
  writeFileSync(path, 'four\n');
  appendFileSync(`${path}.20260101-000000`, 'two\n');
  await log.read('two\n');
  // Give the follower, which also reads files, enough time to read the new file.
  for (let reads = 0; reads < 200; reads++) await stat(path);
  appendFileSync(`${path}.20260101-000000`, 'three\n');
  await log.read('four\n');
  log.end();
  expect(await log.all()).toBe('one\ntwo\nthree\nfour\n');
});

test('a new file is read only after the incomplete record of the previous file', async () => {
  writeFileSync(path, 'one\n');
  const log = follow();
  await log.read('one\n');
  appendFileSync(path, 'tw');
  await log.read('tw');
  rotate('20260131-000000');
  writeFileSync(path, 'three\n');
  appendFileSync(`${path}.20260131-000000`, 'o\n');
  await log.read('three\n');
  log.end();
  expect(await log.all()).toBe('one\ntwo\nthree\n');
});

test('a reader that is several rotations behind also reads the files between, even if they are compressed', async () => {
  writeFileSync(path, 'one\n');
  const log = follow();
  await log.read('one\n');
  // All of this happens in one turn of the event loop, so the follower sees only the result.
  rotate('20260131-000000');
  writeFileSync(`${path}.20260131-000001.gz`, gzipSync('two\n'));
  writeFileSync(`${path}.20260131-000002`, 'three\n');
  writeFileSync(path, 'four\n');
  await log.read('four\n');
  log.end();
  expect(await log.all()).toBe('one\ntwo\nthree\nfour\n');
});

test('readFrom stops at the given offset, and records whether the last record is complete', async () => {
  writeFileSync(path, 'one\ntwo');
  const cursor = await openLog(path);
  if (cursor === undefined) throw new Error('the log exists');
  const read = async (end?: number): Promise<string> => {
    let text = '';
    for await (const bytes of readFrom(cursor, end)) text += bytes.toString();
    return text;
  };
  expect([await read(4), cursor.position, cursor.whole]).toEqual(['one\n', 4, true]);
  expect([await read(), cursor.position, cursor.whole]).toEqual(['two', 7, false]);
  await cursor.handle.close();
});

test('openLog returns undefined only if the file does not exist', async () => {
  expect(await openLog(path)).toBeUndefined();
  mkdirSync(path);
  writeFileSync(join(folder, 'file'), '');
  await expect(openLog(join(folder, 'file', 'child'))).rejects.toThrow('ENOTDIR');
});
