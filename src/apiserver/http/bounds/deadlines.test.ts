import { expect, test } from 'vitest';
import { createVirtualTimers } from '../../../platform/virtual-timers.ts';
import { createDeadlines } from './deadlines.ts';

function start() {
  const timers = createVirtualTimers();
  const late: string[] = [];
  let set = 0;
  const counted = {
    now: timers.now,
    at(time: number, callback: () => void) {
      set++;
      const timer = timers.at(time, () => {
        set--;
        callback();
      });
      return {
        cancel() {
          set--;
          timer.cancel();
        },
      };
    },
  };
  const deadlines = createDeadlines<string>(counted, 1000, (item) => late.push(item));
  return { timers, deadlines, late, timersSet: () => set };
}

test('each item is late after its own time, and items that have ended are not', () => {
  const { timers, deadlines, late } = start();
  deadlines.begin('a');
  timers.advance(400);
  deadlines.begin('b');
  deadlines.begin('c');
  deadlines.end('b');
  timers.advance(599);
  expect(late).toEqual([]);
  timers.advance(1);
  expect(late).toEqual(['a']);
  timers.advance(399);
  expect(late).toEqual(['a']);
  timers.advance(1);
  expect(late).toEqual(['a', 'c']);
});

test('many items have one timer', () => {
  const { timers, deadlines, late, timersSet } = start();
  for (let i = 0; i < 100; i++) {
    deadlines.begin(`${i}`);
    if (i % 2 === 0) deadlines.end(`${i}`);
    timers.advance(5);
  }
  expect(timersSet()).toBe(1);
  timers.advance(1000);
  expect(late).toHaveLength(50);
  expect(timersSet()).toBe(0);
});

test('an item can begin after all others have ended or were late', () => {
  const { timers, deadlines, late } = start();
  deadlines.begin('a');
  deadlines.end('a');
  timers.advance(999);
  deadlines.begin('b');
  timers.advance(999);
  expect(late).toEqual([]);
  timers.advance(1);
  expect(late).toEqual(['b']);
  deadlines.begin('c');
  timers.advance(1000);
  expect(late).toEqual(['b', 'c']);
});

test('after close(), a timer remains only while an item needs it', () => {
  const { timers, deadlines, late, timersSet } = start();
  deadlines.begin('a');
  deadlines.end('a');
  expect(timersSet()).toBe(1);
  deadlines.close();
  expect(timersSet()).toBe(0);
  deadlines.begin('b');
  deadlines.begin('c');
  deadlines.end('b');
  timers.advance(1000);
  expect(late).toEqual(['c']);
  expect(timersSet()).toBe(0);
});
