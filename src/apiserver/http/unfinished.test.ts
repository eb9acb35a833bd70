import { expect, test } from 'vitest';
import { unfinishedParts } from './unfinished.ts';

test('where all parts together are too large, the largest is refused', () => {
  const unfinished = unfinishedParts(100);
  const refused: string[] = [];
  const begin = (name: string, bytes: number) => {
    const part = unfinished.begin(() => {
      refused.push(name);
      part.end();
    });
    part.add(bytes);
    return part;
  };
  begin('small', 10);
  begin('large', 60);
  const middle = begin('middle', 20);
  expect(refused).toEqual([]);
  middle.add(15);
  expect(refused).toEqual(['large']);
  middle.end();
  middle.end();
  begin('other', 90);
  expect(refused).toEqual(['large']);
  begin('last', 1);
  expect(refused).toEqual(['large', 'other']);
});

test('a part that is larger than the limit is refused itself', () => {
  let refused = 0;
  const part = unfinishedParts(100).begin(() => {
    refused++;
    part.end();
  });
  part.add(101);
  expect(refused).toBe(1);
});

test('a part that is complete counts until its end, and is not refused', () => {
  const unfinished = unfinishedParts(100);
  const refused: string[] = [];
  const begin = (name: string) => unfinished.begin(() => refused.push(name));
  const first = begin('first');
  first.add(90);
  first.complete();
  begin('second').add(20);
  expect(refused).toEqual(['second']);
  first.end();
  begin('third').add(20);
  expect(refused).toEqual(['second']);
});
