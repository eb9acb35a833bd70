import { describe, expect, test } from 'vitest';
import { turns } from '../../server-fixture.ts';
import { type CompletePart, unfinishedParts } from './unfinished.ts';

test('the largest unfinished part is refused if all unfinished parts together exceed the limit', () => {
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

test('the largest part of the user with the most bytes is refused, not a larger one of another user', () => {
  const unfinished = unfinishedParts(100);
  const refused: string[] = [];
  const begin = (name: string, owner: string, bytes: number): void =>
    unfinished.begin(() => refused.push(name), owner).add(bytes);
  begin('large', 'a', 40);
  begin('first', 'b', 20);
  begin('second', 'b', 25);
  begin('third', 'b', 16);
  expect(refused).toEqual(['second']);
});

test('a single unfinished part that exceeds the limit is refused', () => {
  let refused = 0;
  const part = unfinishedParts(100).begin(() => {
    refused++;
    part.end();
  });
  part.add(101);
  expect(refused).toBe(1);
});

test('complete small parts beyond the maximum number wait and count as being read', () => {
  const unfinished = unfinishedParts(100, 2);
  const happened: string[] = [];
  const parts = ['a', 'b', 'c', 'd'].map((name) => {
    const part = unfinished.begin(() => happened.push(`${name} refused`));
    part.add(40);
    part.complete(() => happened.push(name));
    return part;
  });
  expect(happened).toEqual(['a', 'b']);
  unfinished.begin(() => undefined).add(30);
  expect(happened.splice(0)).toEqual(['a', 'b', 'c refused']);
  parts[0]?.end();
  expect(happened).toEqual(['d']);
});

test('a part that left gets its room back after the parts that wait for room, and never after it has ended', async () => {
  const unfinished = unfinishedParts(200 * 1024, 1);
  const happened: string[] = [];
  const begin = (name: string, bytes: number): Promise<CompletePart> => {
    const part = unfinished.begin(() => undefined);
    part.add(bytes);
    return new Promise((resolve) => {
      part.complete((complete) => {
        happened.push(name);
        resolve(complete);
      });
    });
  };
  for (const bytes of [1, 150 * 1024]) {
    const first = await begin('first', bytes);
    first.leave();
    const ended = await begin('ended', bytes);
    ended.leave();
    const second = await begin('second', bytes);
    const third = begin('third', bytes);
    void first.return().then(() => happened.push('first returned'));
    void ended.return().then(() => happened.push('ended returned'));
    ended.end();
    void ended.return().then(() => happened.push('ended returned'));
    await turns(1);
    expect(happened.splice(0)).toEqual(['first', 'ended', 'second']);
    second.end();
    (await third).end();
    await turns(1);
    expect(happened.splice(0)).toEqual(['third', 'first returned']);
    const next = begin('next', bytes);
    await turns(1);
    expect(happened.splice(0)).toEqual([]);
    first.end();
    (await next).end();
    happened.splice(0);
  }
});

describe('room for complete parts', () => {
  const KB = 1024;
  /** The name of each part ends with its size in KiB. */
  function parts(limit: number) {
    const unfinished = unfinishedParts(limit * KB);
    const happened: string[] = [];
    return {
      happened: () => happened.splice(0),
      begin(name: string) {
        const part = unfinished.begin(() => happened.push(`${name} refused`));
        part.add(Number(name.split(' ').at(-1)) * KB);
        return { complete: () => part.complete(() => happened.push(`${name} complete`)), end: part.end };
      },
    };
  }

  test('complete parts are not refused and do not reduce the room of parts that are being read', () => {
    const { begin, happened } = parts(200);
    begin('first 200').complete();
    expect(happened()).toEqual(['first 200 complete']);
    begin('second 150');
    begin('third 50');
    expect(happened()).toEqual([]);
    begin('fourth 1');
    expect(happened()).toEqual(['second 150 refused']);
  });

  test('complete parts have room up to the limit, and further complete parts wait in order of arrival', () => {
    const { begin, happened } = parts(400);
    const [first, second] = [begin('first 200'), begin('second 200')];
    first.complete();
    second.complete();
    expect(happened()).toEqual(['first 200 complete', 'second 200 complete']);
    const third = begin('third 201');
    third.complete();
    begin('fourth 100').complete();
    first.end();
    expect(happened()).toEqual([]);
    second.end();
    second.end();
    expect(happened()).toEqual(['third 201 complete', 'fourth 100 complete']);
  });

  test('complete parts of at most 64 KiB do not wait for room', () => {
    const { begin, happened } = parts(200);
    begin('first 200').complete();
    begin('large 65').complete();
    begin('small 64').complete();
    begin('smaller 1').complete();
    expect(happened()).toEqual(['first 200 complete', 'small 64 complete', 'smaller 1 complete']);
  });

  test('a complete part that waits for room can be refused, which lets the next complete part proceed', () => {
    const { begin, happened } = parts(300);
    begin('first 100').complete();
    const second = begin('second 201');
    second.complete();
    begin('third 99').complete();
    expect(happened()).toEqual(['first 100 complete']);
    begin('fourth 1');
    expect(happened()).toEqual(['third 99 complete', 'second 201 refused']);
    second.complete();
    second.end();
    expect(happened()).toEqual([]);
  });

  test('the next complete part proceeds when a waiting client disconnects', () => {
    const { begin, happened } = parts(300);
    begin('first 200').complete();
    const second = begin('second 150');
    second.complete();
    begin('third 100').complete();
    second.end();
    expect(happened()).toEqual(['first 200 complete', 'third 100 complete']);
  });
});

test('a body that has arrived as a whole is complete at once if it has room and no other body waits for room', async () => {
  const unfinished = unfinishedParts(220_000, 2);
  const large = unfinished.completed(150_000);
  expect(large?.bytes).toBe(150_000);
  expect(unfinished.completed(100_000)).toBeUndefined();
  const waiting = unfinished.begin(() => undefined);
  waiting.add(100_000);
  let proceeded: CompletePart | undefined;
  waiting.complete((part) => {
    proceeded = part;
  });
  expect(proceeded).toBeUndefined();
  // There is room for this body, but it must not overtake the part that waits.
  expect(unfinished.completed(66_000)).toBeUndefined();
  const small = [unfinished.completed(10), unfinished.completed(10)];
  expect(small).not.toContain(undefined);
  expect(unfinished.completed(10)).toBeUndefined();
  small[0]?.end();
  const next = unfinished.completed(10);
  next?.leave();
  const other = unfinished.completed(10);
  let isBack = false;
  void next?.return().then(() => {
    isBack = true;
  });
  await turns(1);
  expect(isBack).toBe(false);
  other?.end();
  await turns(1);
  expect(isBack).toBe(true);
  large?.end();
  expect(proceeded).toBeDefined();
});
