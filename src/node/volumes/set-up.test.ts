import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Volume } from '../../api/generated/types.ts';
import { writePayload } from './atomic-writer.ts';
import { shownRoom } from './file-size-limit.ts';
import type { PayloadSource } from './projected-files.ts';
import { keepVolume, setUpVolume, type VolumePlace } from './set-up.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'lifepod-set-up-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const item = { path: 'end/reason', fieldRef: { fieldPath: 'status.termination.reason' } };
const volume: Volume = {
  name: 'v',
  projected: { sources: [{ secret: { name: 'gone' } }, { downwardAPI: { items: [item] } }] },
};
const termination = { reason: 'Evicted', startedAt: '', deadline: '' };
const source = {
  pod: podOf({}, { termination }),
  tokens: new Map(),
  room: shownRoom(),
  now: () => 0,
  facts: { nodeName: 'n', hostIps: [], podIps: [], allocatable: {} },
} as unknown as PayloadSource;

it('a volume whose Secret was deleted keeps the file and its mode but updates fields of the Pod', async () => {
  const file = (text: string, mode: number) => ({ data: Buffer.from(text), mode });
  await writePayload(
    folder,
    new Map([
      ['password', file('kept', 0o400)],
      ['end/reason', file('', 0o644)],
    ]),
    0,
  );
  expect(await keepVolume(source, volume, folder)).toBe(true);
  expect(await readFile(join(folder, 'end/reason'), 'utf8')).toBe('Evicted');
  expect(await readFile(join(folder, 'password'), 'utf8')).toBe('kept');
  expect((await stat(join(folder, 'password'))).mode & 0o777).toBe(0o400);
});

it('all volumes of a Pod are limited to 64 MiB; a volume that exceeds the limit does not count', async () => {
  const read = async () => new Map([['key', Buffer.alloc(2 ** 20)]]);
  const shared = { ...source, read, room: shownRoom() };
  const setUp = (name: string, files: number): Promise<unknown> => {
    const items = Array.from({ length: files }, (_, i) => ({ key: 'key', path: `${i}` }));
    const own: Volume = { name, configMap: { name: 'conf', items } };
    const place = { volume: own, folder: join(folder, name) } as VolumePlace;
    return setUpVolume(shared, place, new AbortController().signal);
  };
  await setUp('first', 60);
  await expect(setUp('second', 5)).rejects.toThrow('the volumes of a Pod may show at most 64 MiB');
  expect(await readdir(folder)).toEqual(['first']);
  await setUp('third', 3);
});

it('keepVolume() returns false for a volume that was never written', async () => {
  expect(await keepVolume(source, volume, folder)).toBe(false);
});
