import { expect, test } from 'vitest';
import { createWorkerOutages } from './outages.ts';

test('an outage begins with the earliest unanswered call and ends with an observation that began after all of them', () => {
  const outages = createWorkerOutages(undefined);
  expect([outages.observed(), outages.isUnknown()]).toEqual([[], false]);
  outages.observing()(5);
  expect(outages.observed()).toEqual([]);
  outages.unanswered(20);
  outages.unanswered(10);
  outages.unanswered(30);
  expect(outages.isUnknown()).toBe(true);
  const early = outages.observing();
  outages.unanswered(40);
  early(50);
  expect([outages.observed(), outages.isUnknown()]).toEqual([[], true]);
  outages.observing()(60);
  expect([outages.observed(), outages.isUnknown()]).toEqual([[{ from: 10, to: 60 }], false]);
  outages.unanswered(70);
  outages.observing()(80);
  expect(outages.observed()).toEqual([
    { from: 10, to: 60 },
    { from: 70, to: 80 },
  ]);
  outages.counted();
  expect(outages.observed()).toEqual([]);
});

test('the time before the start of a worker in which no agent ran is an outage until it is counted', () => {
  const outages = createWorkerOutages({ from: 1, to: 2 });
  expect([outages.observed(), outages.isUnknown()]).toEqual([[{ from: 1, to: 2 }], false]);
  outages.counted();
  expect(outages.observed()).toEqual([]);
});
