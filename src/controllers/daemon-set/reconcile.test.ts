import { describe, expect, test } from 'vitest';
import type { ControllerRevision, DaemonSet, DaemonSetSpec, Node, Pod } from '../../api/generated/types.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';
import { newRevision } from '../revisions/history.ts';
import { daemonSet, node, rolling } from './daemon-set-fixture.ts';
import { HASH } from './daemons.ts';
import { DAEMON_SET_REVISIONS } from './history.ts';
import { podFor } from './placement.ts';
import { BURST, type Decision, reconcile } from './reconcile.ts';

const NOW: Millis = Date.UTC(2026, 0, 31, 12);

interface PodState {
  on: string;
  hash?: string;
  phase?: string;
  ready?: number;
  age?: number;
  bound?: boolean;
  deleting?: boolean;
}

/** Returns a Pod for the node `on`. By default, the Pod is bound and running and has the current template, whose hash is `new`. */
function podOf(name: string, state: PodState): Pod {
  const { on, hash = 'new', phase = 'Running', ready, age = 100, bound = true, deleting = false } = state;
  const { spec, ...pod } = podFor(daemonSet(), on);
  const lastTransitionTime = formatTime(NOW - (ready ?? 0) * 1000);
  return {
    ...pod,
    metadata: {
      name,
      namespace: 'a',
      labels: { app: 'agent', [HASH]: hash },
      creationTimestamp: formatTime(NOW - age * 1000),
      ...(deleting ? { deletionTimestamp: formatTime(NOW) } : {}),
    },
    spec: { containers: [], ...spec, ...(bound ? { nodeName: on } : {}) },
    status: { phase, conditions: ready === undefined ? [] : [{ type: 'Ready', status: 'True', lastTransitionTime }] },
  };
}

const podsOf = (states: Record<string, PodState>): Pod[] =>
  Object.entries(states).map(([name, state]) => podOf(name, state));

const revisionOf = (hash: string, revision: number): ControllerRevision => {
  const { metadata, ...rest } = newRevision(daemonSet(), DAEMON_SET_REVISIONS, revision);
  return { ...rest, metadata: { ...metadata, name: `agent-${hash}`, labels: { [HASH]: hash } } };
};

interface World {
  spec?: Partial<DaemonSetSpec>;
  nodes?: readonly Node[];
  old?: ControllerRevision[];
  mayRetry?: boolean;
  object?: DaemonSet;
}

const NODES = ['n1', 'n2', 'n3'].map((name) => node(name));

function decide(pods: Pod[], world: World = {}): Decision {
  const { spec, nodes = NODES, old = [], mayRetry = true, object = daemonSet(spec) } = world;
  const history = { current: revisionOf('new', 9), duplicates: [], old, revision: 9 };
  return reconcile({ daemonSet: object, history, nodes, pods, mayRetry: () => mayRetry, now: NOW });
}

const writesOf = ({ create, remove, obsolete }: Decision): string[] => [
  ...create.map((name) => `create on ${name}`),
  ...remove.map(({ pod, reason }) => `delete ${pod.metadata.name} ${reason}`),
  ...obsolete.map(({ metadata }) => `delete ${metadata.name}`),
];

const taint = (effect: string) => [{ key: 'a.b/c', effect }];
const TAINTED = [node('n1', taint('NoSchedule')), node('n2'), node('n3')];
const SURGE = { updateStrategy: rolling(1, 0) };
const ready = (on: string, more: Partial<PodState> = {}): PodState => ({ on, ready: 50, ...more });
const old = (on: string, more: Partial<PodState> = {}): PodState => ({ on, hash: 'old', ...more });

describe('Pods on one node', () => {
  test.each<[string, Record<string, PodState>, World, string[]]>([
    ['a Pod is created on an empty node', {}, {}, ['create on n1']],
    ['no Pod is created while one is pending', { p: { on: 'n1', phase: 'Pending', bound: false } }, {}, []],
    ['no Pod is created while one is being deleted', { p: { on: 'n1', deleting: true } }, {}, []],
    [
      'a Pod is created beside an ended one that is being deleted',
      { p: { on: 'n1', phase: 'Failed', deleting: true } },
      {},
      ['create on n1'],
    ],
    ['no Pod is created on a node with an untolerated taint', {}, { nodes: [node('n1', taint('NoSchedule'))] }, []],
    [
      'a Pod is created on a node with a taint that only prefers other nodes',
      {},
      { nodes: [node('n1', taint('PreferNoSchedule'))] },
      ['create on n1'],
    ],
    ['a Pod remains on a node with NoSchedule', { p: ready('n1') }, { nodes: [node('n1', taint('NoSchedule'))] }, []],
    [
      'a Pod is deleted from a node with NoExecute',
      { p: ready('n1') },
      { nodes: [node('n1', taint('NoExecute'))] },
      ['delete p ScaledDown'],
    ],
    ['a failed Pod is deleted', { p: { on: 'n1', phase: 'Failed' } }, {}, ['delete p Replaced']],
    ['a failed Pod remains during the back-off', { p: { on: 'n1', phase: 'Failed' } }, { mayRetry: false }, []],
    [
      'a succeeded Pod is deleted even during the back-off',
      { p: { on: 'n1', phase: 'Succeeded' } },
      { mayRetry: false },
      ['delete p Replaced'],
    ],
    [
      'the oldest of two Pods remains',
      { young: ready('n1', { age: 1 }), aged: ready('n1', { age: 2 }) },
      {},
      ['delete young Replaced'],
    ],
    [
      'a bound Pod remains rather than an older one that is not bound',
      { young: ready('n1', { age: 1 }), aged: { on: 'n1', age: 2, bound: false } },
      {},
      ['delete aged Replaced'],
    ],
    [
      'the first name of two Pods of the same age remains',
      { b: ready('n1'), a: ready('n1') },
      {},
      ['delete b Replaced'],
    ],
    [
      'a Pod that is not bound is deleted if its node does not exist',
      { p: ready('n1'), q: { on: 'gone', bound: false } },
      {},
      ['delete q ScaledDown'],
    ],
    [
      'with a surge, a Pod is created while the only one is being deleted',
      { p: ready('n1', { deleting: true }) },
      { spec: SURGE },
      ['create on n1'],
    ],
    [
      'with a surge, no Pod is created beside a failed one during the back-off',
      { p: { on: 'n1', phase: 'Failed' } },
      { spec: SURGE, mayRetry: false },
      [],
    ],
    [
      'with a surge, no Pod is created on a node with an untolerated taint while the last one is being deleted',
      { p: ready('n1', { deleting: true }) },
      { spec: SURGE, nodes: [node('n1', taint('NoSchedule'))] },
      [],
    ],
    ['a bound Pod on a node that does not exist remains', { p: ready('n1'), q: { on: 'gone' } }, {}, []],
  ])('%s', (_, states, world, writes) => {
    expect(writesOf(decide(podsOf(states), { nodes: [node('n1')], ...world }))).toEqual(writes);
  });

  test('an ended Pod causes an Event, and only a failed one starts the back-off of its node', () => {
    const decision = decide(podsOf({ f: { on: 'n1', phase: 'Failed' }, s: { on: 'n2', phase: 'Succeeded' } }));
    expect(decision.events).toEqual([
      {
        type: 'Warning',
        reason: 'FailedDaemonPod',
        message: 'Found failed daemon pod a/f on node n1, will try to kill it',
      },
      {
        type: 'Normal',
        reason: 'SucceededDaemonPod',
        message: 'Found succeeded daemon pod a/s on node n2, will try to delete it',
      },
    ]);
    expect(decision.failedOn).toEqual(['n1']);
  });

  test('no more than 250 Pods are created by one decision', () => {
    const nodes = Array.from({ length: BURST + 1 }, (_, i) => node(`n${i}`));
    expect(decide([], { nodes }).create).toHaveLength(250);
  });
});

describe('a rolling update without a surge', () => {
  const allOld = { a: old('n1', { ready: 50 }), b: old('n2', { ready: 50 }), c: old('n3', { ready: 50 }) };

  test.each<[string, Record<string, PodState>, number | string, string[]]>([
    ['replaces one Pod', allOld, 1, ['delete a Replaced']],
    ['replaces as many as may be unavailable', allOld, 2, ['delete a Replaced', 'delete b Replaced']],
    ['rounds percentages up', allOld, '34%', ['delete a Replaced', 'delete b Replaced']],
    ['replaces one Pod even if no amount is allowed', allOld, 0, ['delete a Replaced']],
    ['waits for a new Pod that is not ready', { ...allOld, a: { on: 'n1' } }, 1, []],
    ['waits for an old Pod that is being deleted', { ...allOld, a: old('n1', { ready: 50, deleting: true }) }, 1, []],
    ['continues once the new Pod is available', { ...allOld, a: ready('n1') }, 1, ['delete b Replaced']],
    ['first replaces a Pod that is not available', { ...allOld, b: old('n2') }, 1, ['delete b Replaced']],
    [
      'replaces all Pods that are not available at once',
      { a: old('n1'), b: old('n2'), c: old('n3') },
      1,
      ['delete a Replaced', 'delete b Replaced', 'delete c Replaced'],
    ],
  ])('%s', (_, states, maxUnavailable, writes) => {
    const spec = { updateStrategy: rolling(0, maxUnavailable) };
    expect(writesOf(decide(podsOf(states), { spec }))).toEqual(writes);
  });

  test('counts a Pod as unavailable until it has been ready for minReadySeconds', () => {
    const spec = { updateStrategy: rolling(0, 1), minReadySeconds: 10 };
    const waiting = decide(podsOf({ ...allOld, a: ready('n1', { ready: 4 }) }), { spec });
    expect([writesOf(waiting), waiting.checkAt]).toEqual([[], NOW + 6_000]);
    const done = decide(podsOf({ ...allOld, a: ready('n1', { ready: 10 }) }), { spec });
    expect([writesOf(done), done.checkAt]).toEqual([['delete b Replaced'], undefined]);
  });

  test('waits until a Pod is created on a node that has none', () => {
    const { c: _, ...two } = allOld;
    expect(writesOf(decide(podsOf(two), { spec: { updateStrategy: rolling(0, 1) } }))).toEqual(['create on n3']);
  });

  test('replaces no Pod on a node that takes no new Pods: it deletes the old one', () => {
    const spec = { updateStrategy: rolling(0, 1) };
    expect(writesOf(decide(podsOf(allOld), { spec, nodes: TAINTED }))).toEqual(['delete a ScaledDown']);
  });

  test('replaces no Pod with the strategy OnDelete', () => {
    expect(writesOf(decide(podsOf(allOld), { spec: { updateStrategy: { type: 'OnDelete' } } }))).toEqual([]);
  });
});

describe('a rolling update with a surge of 1', () => {
  const allOld = { a: old('n1', { ready: 50 }), b: old('n2', { ready: 50 }), c: old('n3', { ready: 50 }) };

  test.each<[string, Record<string, PodState>, World, string[]]>([
    ['creates a second Pod on one node', allOld, {}, ['create on n1']],
    ['waits for the second Pod', { ...allOld, d: { on: 'n1' } }, {}, []],
    ['deletes the old Pod once the new one is available', { ...allOld, d: ready('n1') }, {}, ['delete a Replaced']],
    [
      'deletes an old Pod that is not ready though the new one is not available',
      { ...allOld, a: old('n1'), d: { on: 'n1' } },
      {},
      ['delete a Replaced'],
    ],
    ['continues on the next node', { ...allOld, a: ready('n1') }, {}, ['create on n2']],
    [
      'creates a second Pod besides the surge where the old one is not available',
      { ...allOld, b: old('n2') },
      {},
      ['create on n2', 'create on n1'],
    ],
    [
      'keeps the oldest Pod of each template',
      { ...allOld, d: { on: 'n1', age: 9 }, e: { on: 'n1', age: 8 } },
      {},
      ['delete e Replaced'],
    ],
    [
      'creates no second Pod on a node that takes no new Pods, and deletes its old one, which is one too many',
      allOld,
      { nodes: TAINTED },
      ['create on n2', 'delete a ScaledDown'],
    ],
    [
      'deletes an old Pod that is not available from a node that takes no new Pods',
      { a: old('n1'), b: ready('n2'), c: ready('n3') },
      { nodes: TAINTED },
      ['delete a ScaledDown'],
    ],
    [
      'deletes an available old Pod from a node that takes no new Pods once all other nodes have an available Pod',
      { ...allOld, b: ready('n2'), c: ready('n3') },
      { nodes: TAINTED },
      ['delete a ScaledDown'],
    ],
    [
      'keeps an available old Pod on a node that takes no new Pods while another node has no available Pod',
      { ...allOld, b: ready('n2'), c: { on: 'n3' } },
      { nodes: TAINTED },
      [],
    ],
  ])('%s', (_, states, world, writes) => {
    expect(writesOf(decide(podsOf(states), { spec: SURGE, ...world }))).toEqual(writes);
  });

  test('rounds percentages of the nodes up', () => {
    const spec = { updateStrategy: rolling('34%', 0) };
    expect(writesOf(decide(podsOf(allOld), { spec }))).toEqual(['create on n1', 'create on n2']);
  });
});

describe('the history', () => {
  const all = { a: ready('n1'), b: ready('n2'), c: ready('n3') };
  const revisions = [revisionOf('r3', 3), revisionOf('r1', 1), revisionOf('r2', 2)];

  test.each<[string, Record<string, PodState>, number | undefined, string[]]>([
    ['keeps the revisions within the default limit', all, undefined, []],
    ['loses the oldest revisions above its limit', all, 1, ['delete agent-r1', 'delete agent-r2']],
    [
      'keeps a revision that a Pod has',
      { ...all, d: old('gone', { hash: 'r1' }) },
      1,
      ['delete agent-r2', 'delete agent-r3'],
    ],
    ['keeps no old revision with the limit 0', all, 0, ['delete agent-r1', 'delete agent-r2', 'delete agent-r3']],
    ['is cleaned up only once no Pod is missing', { a: ready('n1'), b: ready('n2') }, 0, ['create on n3']],
  ])('%s', (_, states, limit, writes) => {
    const spec = limit === undefined ? {} : { revisionHistoryLimit: limit };
    expect(writesOf(decide(podsOf(states), { spec, old: revisions }))).toEqual(writes);
  });
});

describe('the status', () => {
  const object = (spec: Partial<DaemonSetSpec> = {}): DaemonSet => {
    const { metadata, ...rest } = daemonSet(spec);
    return { ...rest, metadata: { ...metadata, generation: 7 } };
  };

  test('counts nodes by the oldest of their Pods', () => {
    const nodes = [...NODES, node('n4'), node('tainted', taint('NoSchedule')), node('empty', taint('NoSchedule'))];
    const pods = podsOf({
      a: ready('n1', { age: 9, hash: 'old' }),
      b: { on: 'n1', age: 5 },
      c: ready('n2'),
      d: ready('n3', { ready: 4 }),
      e: ready('tainted'),
    });
    const { status } = decide(pods, { nodes, object: object({ ...SURGE, minReadySeconds: 10 }) });
    expect(status).toEqual({
      desiredNumberScheduled: 4,
      currentNumberScheduled: 3,
      numberMisscheduled: 1,
      numberReady: 3,
      updatedNumberScheduled: 2,
      numberAvailable: 2,
      numberUnavailable: 2,
      observedGeneration: 7,
    });
  });

  test('has only the required counts without nodes, and keeps the count of collisions', () => {
    const status = { ...decide([], { nodes: [] }).status, collisionCount: 2 };
    expect(decide([], { nodes: [], object: { ...object(), status } }).status).toEqual({
      desiredNumberScheduled: 0,
      currentNumberScheduled: 0,
      numberMisscheduled: 0,
      numberReady: 0,
      observedGeneration: 7,
      collisionCount: 2,
    });
  });
});

test('an adopted Pod that names no node remains', () => {
  const current = newRevision(daemonSet(), DAEMON_SET_REVISIONS, 1);
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'stray', namespace: 'a', labels: { app: 'agent' } },
    spec: { containers: [] },
    status: { phase: 'Pending' },
  };
  const history = { current, duplicates: [], old: [], revision: 1 };
  const input = { daemonSet: daemonSet(), history, nodes: [node('n1')], pods: [pod], mayRetry: () => true, now: NOW };
  expect(reconcile(input)).toMatchObject({ create: ['n1'], remove: [] });
});
