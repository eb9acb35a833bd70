/**
 * Tests that setting the machine's clock forward or back by hours while a Pod runs changes no actions, statuses, Events, probes or hooks,
 * and no back-off. The lives have no crashes, because a new agent starts with the clock as set. They have no faults or outages of the
 * runtime, because these could delay the first read of a timestamp until after the clock is set.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { deferLives } from './defer-lives.ts';
import { type Life, live } from './pod-life.ts';
import { lives } from './random-lives.ts';
import { simulatedPod } from './simulated-pod.ts';

const HOUR = 3_600_000;
const CLOCK_STEPS: [string, NonNullable<Life['clockSteps']>][] = [
  ['1 h forward', [{ at: 4_321, millis: HOUR }]],
  ['1 h back', [{ at: 4_321, millis: -HOUR }]],
  [
    '2 h back, then 5 h forward',
    [
      { at: 1_234, millis: -2 * HOUR },
      { at: 12_345, millis: 5 * HOUR },
    ],
  ],
];

const outputOf = async (life: Life): Promise<string> => {
  const { actions, statuses, events, probes, hooks, goneAt } = await live(life);
  return JSON.stringify({ actions, statuses, events, probes, hooks, goneAt });
};

it.each(CLOCK_STEPS)('the sampled lives are the same if the clock is set %s', async (_, clockSteps) => {
  const sample: Life[] = [
    ...fc.sample(lives, { seed: 20_261_120, numRuns: 25 }),
    ...fc.sample(deferLives, { seed: 20_261_120, numRuns: 25 }),
  ];
  for (const { crashes: _, faults: _faults, outages: _outages, ...life } of sample)
    expect(await outputOf({ ...life, clockSteps })).toBe(await outputOf(life));
});

it.each(CLOCK_STEPS)('the duration of a back-off does not change if the clock is set %s', async (_, clockSteps) => {
  const crashing = { pod: simulatedPod({ apps: ['app'] }), scripts: { app: [{ runMillis: 100, exitCode: 1 }] } };
  const { trace, actions } = await live({ ...crashing, clockSteps, limitMillis: 90_000 });
  const starts = actions.filter(({ action }) => action.kind === 'startContainer').map(({ at }) => at);
  expect(trace.filter(({ what }) => what === 'start').length).toBeGreaterThanOrEqual(4);
  const gaps = starts.slice(1).map((at, index) => Math.round((at - (starts[index] ?? 0)) / 1000));
  expect(gaps).toEqual([0, 10, 20, 40]);
});
