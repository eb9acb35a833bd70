import { expect, it } from 'vitest';
import { podOf } from '../../../api/core/v1/pod/pod-fixtures.ts';
import type { Action, ContainerState, NodeEnd, SandboxState } from '../../../lifecycle/types.ts';
import type { Outcome } from './ports.ts';
import { absorb, initialState, inputOf, observed, type WorkerState } from './state.ts';

const NOW = Date.UTC(2026, 0, 31);
const node = { ips: ['192.0.2.1'], runtimeName: 'test' };
const { stopped: _, ...sandbox }: SandboxState = {
  id: 's',
  attempt: 0,
  ready: true,
  stopped: false,
  createdAt: 0,
  ips: [],
};
const run: ContainerState = {
  id: 'c',
  sandboxId: 's',
  name: 'app',
  kind: 'app',
  attempt: 0,
  state: 'running',
  createdAt: 0,
  image: 'busybox:1.28',
  imageId: 'i',
  backoffSeconds: 0,
};
const mount: Action = { kind: 'mountVolumes' };
const stateOf = (): WorkerState => initialState({ pod: podOf(), removed: false });
const seenBy = (state: WorkerState) => inputOf(state, { node, underWay: [], now: NOW });

it('before the first observation and action, the input of a decision contains nothing but the facts of the start', () => {
  const pod = podOf();
  const nodeEnd: NodeEnd = { reason: 'NodeShutdown', message: 'm', at: NOW, graceSeconds: 30 };
  const outage = { from: 1, to: 2 };
  const underWay = [mount];
  expect(inputOf(initialState({ pod, removed: true, nodeEnd, outage }), { node, underWay, now: NOW })).toEqual({
    pod,
    removed: true,
    node,
    nodeEnd,
    observed: {
      sandboxes: [],
      containers: [],
      images: {},
      pulls: {},
      appeared: new Set(),
      volumes: 'pending',
      failures: [],
      probes: {},
      hooks: {},
      underWay,
      outages: [outage],
      downward: undefined,
    },
    now: NOW,
  });
});

it('a worker without an earlier outage reports no outage', () => {
  expect(seenBy(stateOf()).observed.outages).toEqual([]);
});

it('the input of a decision contains the sandboxes and containers of the last observation', () => {
  const state = stateOf();
  observed(state, { sandboxes: [sandbox], containers: [run] });
  expect(seenBy(state).observed).toMatchObject({ sandboxes: [{ ...sandbox, stopped: false }], containers: [run] });
});

it('only the sandboxes that the worker stopped count as stopped', () => {
  const state = stateOf();
  observed(state, { sandboxes: [sandbox, { ...sandbox, id: 'other' }], containers: [] });
  absorb(state, { kind: 'stopSandbox', id: 's' }, {});
  expect(seenBy(state).observed.sandboxes).toEqual([
    { ...sandbox, stopped: true },
    { ...sandbox, id: 'other', stopped: false },
  ]);
});

it('an action other than stopSandbox does not count a sandbox as stopped', () => {
  const state = stateOf();
  observed(state, { sandboxes: [sandbox], containers: [] });
  absorb(state, { kind: 'removeSandbox', id: 's' }, {});
  expect(seenBy(state).observed.sandboxes).toEqual([{ ...sandbox, stopped: false }]);
});

it('an observation drops the results of the runs that it does not contain', () => {
  const state = stateOf();
  for (const id of ['c', 'gone']) {
    const probe: Outcome['probe'] = { result: 'Success', message: '' };
    absorb(state, { kind: 'runProbe', container: 'app', id, probe: 'liveness' }, { probe });
    absorb(state, { kind: 'runHook', container: 'app', id, hook: 'postStart' }, { hook: {} });
  }
  observed(state, { sandboxes: [sandbox], containers: [run] });
  expect(seenBy(state).observed).toMatchObject({ containers: [run] });
  expect(Object.keys(seenBy(state).observed.probes)).toEqual(['c/liveness']);
  expect(Object.keys(seenBy(state).observed.hooks)).toEqual(['c/postStart']);
});

it.each<[string, Outcome, object]>([
  ['volumes', { volumes: 'mounted' }, { volumes: 'mounted', downward: '1', removed: false }],
  ['downward API files', { downward: '2' }, { volumes: 'unmounted', downward: '2', removed: false }],
  ['a removed object', { removed: true }, { volumes: 'unmounted', downward: '1', removed: true }],
  ['nothing', {}, { volumes: 'unmounted', downward: '1', removed: false }],
])('an outcome with %s changes only that part of the state', (_name, outcome, expected) => {
  const state = stateOf();
  absorb(state, mount, { volumes: 'unmounted', downward: '1' });
  absorb(state, mount, outcome);
  const { removed, observed } = seenBy(state);
  expect({ volumes: observed.volumes, downward: observed.downward, removed }).toEqual(expected);
});

it.each([
  ['present', []],
  ['absent', ['pullImage']],
] as const)('an image that is found %s leaves the failed actions %j', (found, left) => {
  const state = stateOf();
  const image = { container: 'app', attempt: 0, image: 'busybox:1.28' };
  state.failures.failed({ kind: 'pullImage', ...image }, new Error('no registry'), NOW);
  const about = { attempt: 0, image: 'busybox:1.28' };
  const state_ = found === 'present' ? { ...about, state: found, imageId: 'i' } : { ...about, state: found };
  absorb(state, { kind: 'checkImage', mustExist: false, ...image }, { image: { container: 'app', state: state_ } });
  const { images, failures } = seenBy(state).observed;
  expect(images).toEqual({ app: state_ });
  expect(failures.map(({ action }) => action.kind)).toEqual(left);
});
