import { expect, it } from 'vitest';
import { containerOf, defaulted, podOf } from '../../../api/core/v1/pod/pod-fixtures.ts';
import { silentLog } from '../../../platform/silent-log.ts';
import { createVirtualTimers } from '../../../platform/virtual-timers.ts';
import { inTurns } from './turns.ts';
import { startWorker } from './worker.ts';

const podWith = (count: number) =>
  podOf({ containers: Array.from({ length: count }, (_, index) => containerOf(`c${index}`)) });

it('a worker decides immediately on every wake-up of a Pod with few containers', () => {
  let wakes = 0;
  const wake = inTurns(
    () => podWith(2),
    () => (wakes += 1),
  );
  for (let index = 0; index < 5; index++) wake();
  expect(wakes).toBe(5);
});

it('a worker decides once per turn of the event loop on a Pod with many containers', async () => {
  let wakes = 0;
  const pod = podWith(1000);
  const wake = inTurns(
    () => pod,
    () => (wakes += 1),
  );
  for (const expected of [1, 2]) {
    for (let index = 0; index < 1000; index++) wake();
    expect(wakes).toBe(expected - 1);
    await new Promise(setImmediate);
    expect(wakes).toBe(expected);
  }
});

it('a worker makes few decisions when actions of many containers end in one turn', async () => {
  let decisions = 0;
  const answers: (() => void)[] = [];
  const made = defaulted(podWith(300));
  const worker = startWorker(
    { pod: { ...made, status: { phase: 'Pending', startTime: '2026-01-30T00:00:00Z' } }, removed: false },
    {
      timers: createVirtualTimers(Date.UTC(2026, 0, 31)),
      log: silentLog,
      get node() {
        decisions += 1;
        return { ips: ['192.0.2.1'], runtimeName: 'test' };
      },
      observe: async () => ({
        sandboxes: [{ id: 's', attempt: 0, ready: true, createdAt: 0, ips: ['10.0.0.1'] }],
        containers: [],
      }),
      execute: (action) =>
        new Promise((resolve) => {
          answers.push(() => {
            if (action.kind === 'mountVolumes') return resolve({ volumes: 'mounted' });
            if (action.kind !== 'checkImage') return;
            const { container, attempt, image } = action;
            resolve({ image: { container, state: { attempt, image, state: 'present', imageId: 'i' } } });
          });
        }),
      writeStatus: async () => undefined,
      event: () => undefined,
      record: () => undefined,
      recorded: () => undefined,
      keep: () => undefined,
      done: () => undefined,
    },
  );
  const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
  while (answers.length < 300) await nextTurn();
  const before = decisions;
  for (const answer of answers.splice(0)) answer();
  await nextTurn();
  await nextTurn();
  worker.stop();
  expect(answers.length).toBeGreaterThanOrEqual(300);
  expect(decisions - before).toBeLessThan(30);
});
