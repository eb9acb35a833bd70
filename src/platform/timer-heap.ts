import type { Millis } from '../machinery/time.ts';
/** A binary heap of callbacks, ordered by time. Callbacks with equal times keep the order in which they were added. */

export interface HeapEntry {
  readonly time: Millis;
  readonly sequence: number;
  /** Undefined after the entry was removed or taken. */
  callback: (() => void) | undefined;
}

export interface TimerHeap {
  add(time: Millis, callback: () => void): HeapEntry;
  remove(entry: HeapEntry): void;
  nextTime(): Millis | undefined;
  /** Removes all entries with times up to and including `now`, and returns their callbacks, earliest first. */
  takeDue(now: Millis): (() => void)[];
}

const before = (a: HeapEntry, b: HeapEntry): boolean =>
  a.time < b.time || (a.time === b.time && a.sequence < b.sequence);

export function createTimerHeap(): TimerHeap {
  const heap: HeapEntry[] = [];
  let sequence = 0;

  const swap = (i: number, j: number): void => {
    const held = heap[i] as HeapEntry;
    heap[i] = heap[j] as HeapEntry;
    heap[j] = held;
  };
  const pop = (): void => {
    const last = heap.pop() as HeapEntry;
    if (heap.length === 0) return;
    heap[0] = last;
    for (let i = 0; ; ) {
      const left = 2 * i + 1;
      const right = left + 1;
      let least = i;
      if (left < heap.length && before(heap[left] as HeapEntry, heap[least] as HeapEntry)) least = left;
      if (right < heap.length && before(heap[right] as HeapEntry, heap[least] as HeapEntry)) least = right;
      if (least === i) return;
      swap(i, least);
      i = least;
    }
  };
  /** A removed entry remains in the heap, without its callback, until it is at the top. */
  const dropRemoved = (): void => {
    while (heap[0] !== undefined && heap[0].callback === undefined) pop();
  };

  return {
    add(time, callback) {
      const entry: HeapEntry = { time, sequence: sequence++, callback };
      heap.push(entry);
      for (let i = heap.length - 1; i > 0; ) {
        const parent = (i - 1) >> 1;
        if (!before(heap[i] as HeapEntry, heap[parent] as HeapEntry)) break;
        swap(i, parent);
        i = parent;
      }
      return entry;
    },
    remove(entry) {
      entry.callback = undefined;
      dropRemoved();
    },
    nextTime() {
      return heap[0]?.time;
    },
    takeDue(now) {
      const due: (() => void)[] = [];
      for (let first = heap[0]; first !== undefined && first.time <= now; first = heap[0]) {
        if (first.callback !== undefined) due.push(first.callback);
        first.callback = undefined;
        pop();
        dropRemoved();
      }
      return due;
    },
  };
}
