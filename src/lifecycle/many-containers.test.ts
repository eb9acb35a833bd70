/** A Pod may have thousands of containers, so the work of a decision may grow at most linearly with their number. */
import { expect, it } from 'vitest';
import { decide } from './decide.ts';
import { container, ending, exited, type Given, inputOf, postExit, running, sandbox, written } from './fixtures.ts';
import type { Action } from './types.ts';

const COUNT = 400;
const names = Array.from({ length: COUNT }, (_, index) => `c${index}`);
const apps = names.map((name) => container(name));
const hooked = names.map((name) => container(name, { lifecycle: { preStop: { sleep: { seconds: 1 } } } }));
const entries = names.map((name) => postExit(`d${name}`, { imageFrom: name }));
const runs = names.map((name) => running(name));
const over = names.map((name) => exited(name, 1, -1));
const unready = { sandboxes: [sandbox(0, { ready: false })] };
const evicted = { nodeEnd: { reason: 'NodePressure', message: 'm', at: 0, graceSeconds: 0, evicted: true } } as const;

const lives: [string, Given][] = [
  ['that run', { spec: { containers: apps }, runs }],
  ['that wait', { spec: { containers: apps } }],
  ['that are restarted', { spec: { containers: apps }, runs: over }],
  ['that are stopped', { spec: { containers: hooked }, runs, deleted: 30 }],
  ['that are killed', { spec: { containers: apps }, runs, deleted: 0, now: 10 }],
  ['whose sandbox is lost', { spec: { containers: apps }, runs, observed: unready }],
  ['that are evicted', { spec: { containers: apps, restartPolicy: 'Never' }, runs: over, input: evicted }],
  ['with entries', { spec: { containers: apps, deferContainers: entries }, runs }],
  [
    'with entries that were given up',
    {
      spec: { containers: apps, deferContainers: entries },
      runs: over,
      ending: ending(300),
      skip: entries.map(({ name }) => name),
    },
  ],
];

it.each(lives)('decide() takes linear time for a Pod with many containers %s', (_, given) => {
  const input = inputOf(given);
  const first = decide(input);
  const asked = first.actions.filter((action: Action) => action.kind !== 'cancel');
  const next = written(input, first);
  let looks = 0;
  const counted = <T extends object>(named: T): T => {
    const copy = { ...named };
    for (const [key, value] of Object.entries(named)) {
      const get = (): unknown => {
        looks += 1;
        return value;
      };
      if (key === 'name' || key === 'id') Object.defineProperty(copy, key, { get, enumerable: true });
    }
    return copy;
  };
  const { spec, status = {} } = next.pod;
  const pod = {
    ...next.pod,
    spec: {
      ...spec,
      containers: (spec?.containers ?? []).map(counted),
      deferContainers: spec?.deferContainers?.map(counted),
    },
    status: {
      ...status,
      containerStatuses: status.containerStatuses?.map(counted),
      deferContainerStatuses: status.deferContainerStatuses?.map(counted),
    },
  };
  const { containers } = next.observed;
  const observed = { ...next.observed, containers: containers.map(counted), underWay: asked.map(counted) };
  decide({ ...next, pod, observed });
  expect(looks).toBeGreaterThan(COUNT);
  expect(looks).toBeLessThan(COUNT * 100);
});
