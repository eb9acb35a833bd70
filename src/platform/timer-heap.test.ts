import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createTimerHeap, type HeapEntry } from './timer-heap.ts';

test('due timers are taken in the order of their times, and equal times in the order of adding', () => {
  const heap = createTimerHeap();
  const ran: string[] = [];
  for (const [time, name] of [
    [30, 'c'],
    [10, 'a1'],
    [20, 'b'],
    [10, 'a2'],
  ] as const) {
    heap.add(time, () => ran.push(name));
  }
  for (const callback of heap.takeDue(20)) callback();
  expect(ran).toEqual(['a1', 'a2', 'b']);
  expect(heap.nextTime()).toBe(30);
});

test('a removed timer is not taken, and nextTime() ignores it', () => {
  const heap = createTimerHeap();
  const first = heap.add(1, () => undefined);
  heap.add(2, () => undefined);
  heap.remove(first);
  expect(heap.nextTime()).toBe(2);
  expect(heap.takeDue(5)).toHaveLength(1);
  expect(heap.nextTime()).toBeUndefined();
});

test('removing a timer that was already taken changes nothing', () => {
  const heap = createTimerHeap();
  const entry = heap.add(1, () => undefined);
  heap.takeDue(1);
  heap.add(2, () => undefined);
  heap.remove(entry);
  expect(heap.nextTime()).toBe(2);
});

test('the timer heap behaves like a sorted list for any sequence of adds, removes and takes', () => {
  const operation = fc.oneof(
    fc.record({ kind: fc.constant('add' as const), value: fc.nat(50) }),
    fc.record({ kind: fc.constant('remove' as const), value: fc.nat(200) }),
    fc.record({ kind: fc.constant('take' as const), value: fc.nat(60) }),
  );
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 200 }), (operations) => {
      const heap = createTimerHeap();
      const entries: HeapEntry[] = [];
      const given: number[] = [];
      const expected: number[] = [];
      let model: { time: number; id: number }[] = [];
      for (const { kind, value } of operations) {
        if (kind === 'add') {
          const id = entries.length;
          entries.push(heap.add(value, () => given.push(id)));
          model.push({ time: value, id });
          model.sort((a, b) => a.time - b.time || a.id - b.id);
        } else if (kind === 'remove' && entries.length > 0) {
          const id = value % entries.length;
          heap.remove(entries[id] as HeapEntry);
          model = model.filter((entry) => entry.id !== id);
        } else if (kind === 'take') {
          for (const callback of heap.takeDue(value)) callback();
          expected.push(...model.filter((entry) => entry.time <= value).map((entry) => entry.id));
          model = model.filter((entry) => entry.time > value);
        }
        expect(heap.nextTime()).toBe(model[0]?.time);
        expect(given).toEqual(expected);
      }
    }),
  );
});
