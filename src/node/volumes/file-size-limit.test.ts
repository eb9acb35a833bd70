import { expect, it } from 'vitest';
import type { Volume } from '../../api/generated/types.ts';
import { NoRoomError, shownRoom } from './file-size-limit.ts';

const MEBIBYTE = 2 ** 20;
const projected = (name: string): Volume => ({ name, projected: { sources: [] } });
const onDisk: Volume = { name: 'on-disk', configMap: { name: 'conf' } };
const sizes = (count: number, size = 1): number[] => Array.from({ length: count }, () => size);

function refusal(take: () => void): NoRoomError {
  try {
    take();
  } catch (error) {
    if (error instanceof NoRoomError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

it('each file in memory counts 4 KiB in addition to its content', () => {
  const room = shownRoom();
  room.take(projected('a'), sizes(4000));
  expect(() => room.take(projected('b'), sizes(100))).toThrow('at most 16 MiB of Secrets');
  room.take(projected('b'), sizes(90));
  room.take(onDisk, sizes(60, MEBIBYTE));
});

it('only the current files of a volume count toward the limit of the Pod', () => {
  const room = shownRoom();
  for (let time = 0; time < 3; time++) room.take(projected('a'), sizes(10, MEBIBYTE));
  const refused = refusal(() => room.take(projected('b'), sizes(8, MEBIBYTE)));
  expect(refused.fits()).toBe(false);
  room.take(projected('a'), sizes(5, MEBIBYTE));
  expect(refused.fits()).toBe(true);
});

it('kept files that do not fit count toward the limit without affecting the files of other volumes', () => {
  const room = shownRoom();
  room.take(projected('a'), sizes(10, MEBIBYTE));
  room.keep(projected('b'), sizes(10, MEBIBYTE));
  expect(() => room.take(projected('c'), sizes(1))).toThrow(NoRoomError);
  room.take(projected('a'), sizes(9, MEBIBYTE));
});
