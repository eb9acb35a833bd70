/** Tests that the agent writes few statuses, because each write can cause a conflict for a client that reads and then updates the Pod. */
import { expect, test } from 'vitest';
import { GENERATION_MILLIS, PASSING_MILLIS } from '../node/pod/status-changes.ts';
import type { RunScript } from '../runtime/simulated/simulated-runtime.ts';
import { type Life, type LifeResult, live } from './pod-life.ts';
import { simulatedPod } from './simulated-pod.ts';

const once = (runMillis: number, exitCode = 0): RunScript => ({ runMillis, exitCode });
const forever: RunScript = { stopMillis: 100 };
const probed = {
  startupProbe: { exec: { command: ['check'] }, periodSeconds: 1 },
  readinessProbe: { exec: { command: ['check'] }, periodSeconds: 1 },
};
/** How long the start of a simulated container takes, as with a real runtime. */
const startMillis = 100;

const lives: [string, Life, number][] = [
  ['starts and restarts once', { pod: simulatedPod({ apps: ['app'] }), scripts: { app: [once(5000, 1), forever] } }, 4],
  [
    'starts and restarts once, with probes',
    { pod: simulatedPod({ apps: ['app'], each: probed }), scripts: { app: [once(5000, 1), forever] } },
    5,
  ],
  [
    'starts after three short init containers',
    {
      pod: simulatedPod({ init: ['one', 'two', 'three'], apps: ['app'] }),
      scripts: { one: [once(50)], two: [once(50)], three: [once(50)], app: [forever] },
    },
    5,
  ],
  [
    'is deleted, with a defer container before and one after the end of the app',
    {
      pod: simulatedPod({ apps: ['app'], defers: [{ trigger: 'PreExit' }, { trigger: 'PostExit' }] }),
      scripts: { app: [forever], 'defer-1': [once(1000)], 'defer-2': [once(1000)] },
      deletions: [{ at: 5000, graceSeconds: 30 }],
    },
    10,
  ],
  ['completes', { pod: simulatedPod({ apps: ['app'], restartPolicy: 'Never' }), scripts: { app: [once(5000)] } }, 4],
];

test.each(lives)('the life of a Pod that %s takes few writes', async (_, life, most) => {
  const { statuses } = await live({ startMillis, statusMillis: 1, limitMillis: 60_000, ...life });
  expect(statuses).toHaveLength(most);
});

/** Returns when a status that satisfies `shows` was first written, in milliseconds from the start; NaN if none was. */
const shownAt = (
  { statuses, start }: LifeResult,
  shows: (status: LifeResult['statuses'][number]['status']) => boolean,
) => (statuses.find(({ status }) => shows(status))?.at ?? Number.NaN) - start;

test('an init container that runs is shown at most 250 ms late', async () => {
  const pod = simulatedPod({ init: ['init'], apps: ['app'] });
  const result = await live({ pod, scripts: { init: [once(5000)], app: [forever] }, limitMillis: 10_000 });
  const began = (result.trace.find(({ what }) => what === 'start')?.at ?? 0) - result.start;
  const shown = shownAt(result, ({ initContainerStatuses: [init] = [] }) => init?.state?.running !== undefined);
  expect(shown).toBeGreaterThan(began);
  expect(shown).toBeLessThanOrEqual(began + PASSING_MILLIS);
});

test('a new generation alone is shown with the next change, or after 5 s', async () => {
  const edit = (at: number, generation: number) => ({
    at,
    edit: (pod: LifeResult['pod']) => ({ ...pod, metadata: { ...pod.metadata, generation } }),
  });
  const result = await live({
    pod: simulatedPod({ apps: ['app'] }),
    scripts: { app: [once(5000, 1), forever] },
    edits: [edit(4000, 2), edit(10_000, 3)],
    limitMillis: 20_000,
  });
  expect(result.statuses.map(({ status }) => status.observedGeneration)).toEqual([1, 1, 2, 2, 3]);
  expect(shownAt(result, ({ observedGeneration }) => observedGeneration === 3)).toBe(10_000 + GENERATION_MILLIS);
});
