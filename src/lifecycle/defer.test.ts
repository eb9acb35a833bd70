import { describe, expect, it } from 'vitest';
import type { DeferContainer, PodSpec } from '../api/generated/types.ts';
import {
  announcedEntry,
  asked,
  at,
  container,
  decided,
  endedEntry,
  ending,
  entry,
  entryState,
  exited,
  type Given,
  postExit,
  running,
  sandbox,
  secondsOf,
  settled,
  startOf,
} from './fixtures.ts';

const runs = [running('app')];
const over = [exited('app', 0, -1)];
const listed = (...deferContainers: DeferContainer[]): Partial<PodSpec> => ({ deferContainers });
/** S (preExitDeadline) is at 15 and D (deadline) at 30, in seconds after START. `turn`: the entry that has had its turn since START. */
const deletedPod = (turn?: string): Given => ({
  deleted: 30,
  ending: ending(30, 15, turn === undefined ? {} : { turn: { entry: turn, since: at(0) } }),
});
const skipOf = (given: Given, name = 'clean'): string | undefined => {
  const end = entryState(decided(given), name)?.terminated;
  if (end !== undefined) expect(end).toMatchObject({ reason: 'Skipped', exitCode: 137 });
  return end?.message;
};
const NODE = { reason: 'NodePressure', message: 'low', at: at(0) } as const;
const appStart = startOf('app', 'app');
const initStart = startOf('init', 'init');

describe('the order of the list', () => {
  const spec = listed(entry('one'), entry('two'), postExit('three'));
  it('the first entry is announced in the status, then started', () => {
    expect(asked(decided({ ...deletedPod('one'), spec, runs }))).toEqual([]);
    expect(asked(settled({ ...deletedPod(), spec, runs }))).toContain('startContainer/one/0');
  });
  it('the next entry has its turn once the previous one has ended', () => {
    const status = { deferContainerStatuses: [endedEntry('one')] };
    const decision = decided({ ...deletedPod('one'), spec, runs, status, now: 4 });
    expect(decision.memory.termination?.turn).toEqual({ entry: 'two', since: at(4) });
    expect(entryState(decision, 'two')?.waiting?.reason).toBe('ContainerCreating');
    expect(entryState(decision, 'three')?.waiting?.reason).toBe('PendingDefer');
  });
  it('a PostExit entry waits for the last process of an app container', () => {
    const ended = [endedEntry('one'), endedEntry('two')];
    const given: Given = { ...deletedPod('two'), spec, status: { deferContainerStatuses: ended }, now: 4 };
    expect(asked(decided({ ...given, runs }))).toEqual(['stopContainer/app-0/@15']);
    expect(asked(settled({ ...given, runs: [exited('app', 0, 3)] }))).toEqual(['startContainer/three/0']);
  });
  it('in a Pod that completed, the PreExit entries run too', () => {
    const given: Given = { spec: { ...spec, restartPolicy: 'Never' }, runs: over };
    expect(asked(settled(given))).toEqual(['startContainer/one/0']);
  });
  it('PreExit entries run while app containers back off', () => {
    const crashed = [exited('app', 1, -1, { backoffSeconds: 300 })];
    expect(asked(settled({ ...deletedPod(), spec, runs: crashed }))).toEqual(['startContainer/one/0']);
  });
  it('the list does not run when a container of a running Pod crashes', () => {
    expect(asked(decided({ spec, runs: [exited('app', 1, -1)] }))).toEqual(['startContainer/app/1']);
  });
});

describe('an entry is skipped', () => {
  const spec = listed(entry('clean'));
  const post = listed(postExit('clean'));
  it.each<[string, Given, string | undefined]>([
    [
      'an entry is skipped if its onReasons do not contain the reason',
      { spec: listed(entry('clean', { onReasons: ['Completed'] })), runs },
      'not due on Deleted',
    ],
    [
      'an entry is not skipped if its onReasons contain the reason',
      { spec: listed(entry('clean', { onReasons: ['Deleted'] })), runs },
      undefined,
    ],
    [
      'an entry is not skipped if its onReasons are empty',
      { spec: { deferContainers: [entry('clean', { onReasons: [] })] }, runs },
      undefined,
    ],
    ['an entry is skipped if it was given up before its turn', { spec, runs, skip: ['clean'] }, 'given up'],
    ['an entry is not skipped if another entry was given up', { spec, runs, skip: ['other'] }, undefined],
    [
      'a PreExit entry is skipped at the end of the PreExit stage',
      { spec, runs, now: 15 },
      'the PreExit stage had ended',
    ],
    ['a PreExit entry is not skipped before the end of the PreExit stage', { spec, runs, now: 14 }, undefined],
    [
      'a PostExit entry is skipped at the deadline',
      { spec: post, runs: over, now: 30, ...ended(30) },
      'the grace period had passed',
    ],
    ['a PostExit entry is not skipped before the deadline', { spec: post, runs: over, now: 29 }, undefined],
    [
      'a PreExit entry is skipped if no app container had started',
      { spec: { ...spec, initContainers: [container('init')] }, runs: [exited('init', 0, -1)] },
      'no app container had started',
    ],
    [
      'a PostExit entry is not skipped if only an init container had started',
      { spec: { ...post, initContainers: [container('init')] }, runs: [exited('init', 0, -1)] },
      undefined,
    ],
    ['a PostExit entry is skipped if no container had started', { spec: post }, 'no container of the Pod had started'],
    [
      'a PostExit entry is skipped if a container was created but never started',
      { spec: post, runs: [running('app', { state: 'created' })] },
      'no container of the Pod had started',
    ],
    [
      'a PreExit entry is skipped if the sandbox was lost',
      { spec, runs, observed: { sandboxes: [sandbox(0, { ready: false })] } },
      'the sandbox was lost, and the app containers with it',
    ],
    [
      'a PostExit entry is not skipped if the sandbox was lost',
      { spec: post, runs: over, observed: { sandboxes: [sandbox(1)] } },
      undefined,
    ],
    [
      'a PreExit entry is not skipped in a crash loop whose last run the runtime has lost',
      {
        spec,
        runs: [],
        status: {
          containerStatuses: [
            {
              name: 'app',
              image: 'i',
              imageID: '',
              ready: false,
              restartCount: 3,
              state: { waiting: { reason: 'CrashLoopBackOff' } },
              lastState: { terminated: { exitCode: 1 } },
            },
          ],
        },
      },
      undefined,
    ],
    [
      'an entry is skipped if the Pod was deleted with a grace period of 0',
      { spec, runs, deleted: 0 },
      'the Pod was deleted with a grace period of 0',
    ],
    [
      'an entry that was given up stays given up if the Pod is then deleted with a grace period of 0',
      { spec, runs, deleted: 0, ending: ending(30), skip: ['clean'] },
      'given up',
    ],
    [
      'an entry is skipped if the node has no time',
      { spec, runs, input: { nodeEnd: { ...NODE, graceSeconds: 0 } } },
      'the node had no time',
    ],
    [
      'an entry is not skipped if the node has some time',
      { spec, runs, input: { nodeEnd: { ...NODE, graceSeconds: 5 } } },
      undefined,
    ],
  ])('%s', (_, given, expected) => {
    expect(skipOf({ ...deletedPod(), ...given })).toBe(expected);
  });

  function ended(deadline: number): Given {
    return { deleted: 30, ending: ending(deadline, 15, { turn: { entry: 'clean', since: at(16) } }) };
  }

  it.each<[string, string, number[], string | undefined]>([
    ['Always', 'is due after any end of the app containers', [1], undefined],
    ['Succeeded', 'is due if all app containers exited with 0', [0, 0], undefined],
    ['Succeeded', 'is skipped if one app container failed', [0, 1], 'the app containers did not succeed'],
    ['Failed', 'is skipped if all app containers exited with 0', [0, 0], 'the app containers did not fail'],
    ['Failed', 'is due if one app container failed', [0, 143], undefined],
  ])('an entry with when %s %s', (when, _, codes, expected) => {
    const containers = codes.map((_code, i) => container(`app-${i}`));
    const ends = codes.map((code, i) => exited(`app-${i}`, code, -1));
    expect(skipOf({ ...deletedPod(), spec: { ...listed(postExit('clean', { when })), containers }, runs: ends })).toBe(
      expected,
    );
  });
  it('for an entry with when Failed, an app container that never ran counts as failed', () => {
    const containers = [container('app'), container('web')];
    expect(
      skipOf({ ...deletedPod(), spec: { ...listed(postExit('clean', { when: 'Failed' })), containers }, runs: over }),
    ).toBe(undefined);
  });
  it('an entry with when Failed and onReasons Completed is due only for failures of the app itself', () => {
    const failed = [exited('app', 143, -1)];
    const spec = listed(postExit('clean', { when: 'Failed', onReasons: ['Completed'] }));
    expect(skipOf({ ...deletedPod(), spec, runs: failed })).toBe('not due on Deleted');
    const byItself: Given = { spec: { ...spec, restartPolicy: 'Never' }, runs: failed };
    expect(skipOf(byItself)).toBeUndefined();
    expect(decided(byItself).memory.termination).toMatchObject({ reason: 'Completed', turn: { entry: 'clean' } });
  });
  it('onReasons applies to the first reason', () => {
    const spec = listed(entry('one', { onReasons: ['Deleted'] }), entry('clean', { onReasons: ['NodeShutdown'] }));
    const status = { deferContainerStatuses: [endedEntry('one')] };
    const nodeEnd = { reason: 'NodeShutdown', message: 'down', at: at(2), graceSeconds: 20 } as const;
    expect(skipOf({ ...deletedPod('one'), spec, runs, status, input: { nodeEnd }, now: 3 })).toBe('not due on Deleted');
  });
  it('sidecars do not count for the field when of an entry', () => {
    const initContainers = [container('proxy', { restartPolicy: 'Always' })];
    const spec = { ...listed(postExit('clean', { when: 'Failed' })), initContainers };
    expect(skipOf({ ...deletedPod(), spec, runs: [...over, exited('proxy', 1, -1)] })).toBe(
      'the app containers did not fail',
    );
  });
  it('a PostExit entry that is not due does not wait for the app containers', () => {
    const notDue = listed(postExit('clean', { onReasons: ['Completed'] }));
    expect(skipOf({ ...deletedPod(), spec: notDue, runs })).toBe('not due on Deleted');
  });
  it('an entry is skipped at its turn, not before', () => {
    const two = listed(entry('one'), entry('clean', { onReasons: ['Completed'] }));
    expect(skipOf({ ...deletedPod('one'), spec: two, runs: [...runs, running('one')] })).toBeUndefined();
  });
  it('a skipped entry passes the turn to the next one in the same decision', () => {
    const two = listed(entry('one', { onReasons: ['Completed'] }), entry('two'));
    expect(decided({ ...deletedPod(), spec: two, runs }).memory.termination?.turn?.entry).toBe('two');
  });
  it('an end of an entry that the status has stays, regardless of other observations', () => {
    const status = { deferContainerStatuses: [endedEntry('clean')] };
    const decision = decided({ ...deletedPod(), spec, runs, status, skip: ['clean'], now: 20 });
    expect(entryState(decision, 'clean')?.terminated?.reason).toBe('Completed');
  });
});

describe('a start in flight counts as started', () => {
  const init = { initContainers: [container('init')] };
  it.each<[string, Given]>([
    ['an app container', { observed: { underWay: [appStart] } }],
    ['an init container', { spec: init, observed: { underWay: [initStart] } }],
  ])('while the start of %s is under way, no entry is skipped or started', (_, given) => {
    const spec = { ...given.spec, ...listed(entry('pre'), postExit('post')) };
    const decision = settled({ ...given, deleted: 30, spec });
    expect(asked(decision)).toEqual([]);
    expect(entryState(decision, 'pre')?.waiting?.reason).toBe('PendingDefer');
    expect(entryState(decision, 'post')?.waiting?.reason).toBe('PendingDefer');
    expect(decision.memory.ended).toEqual({});
  });
  it('while the first start of a sidecar is under way, no entry is skipped or started', () => {
    const initContainers = [container('proxy', { restartPolicy: 'Always' })];
    const underWay = [{ ...initStart, container: 'proxy' }];
    const spec = { initContainers, ...listed(entry('pre'), postExit('post')) };
    const decision = settled({ deleted: 30, spec, observed: { underWay } });
    expect([asked(decision), decision.memory.ended]).toEqual([[], {}]);
  });
  it('PreExit entries run once the container whose start was under way runs', () => {
    const spec = listed(entry('pre'));
    expect(asked(settled({ ...deletedPod(), spec, runs }))).toEqual(['startContainer/pre/0']);
  });
  it('the start of an app container is awaited until the end of the PreExit stage', () => {
    const spec = listed(entry('clean'), postExit('post'));
    const given: Given = { ...deletedPod(), spec, observed: { underWay: [appStart] } };
    expect(skipOf({ ...given, now: 14 })).toBeUndefined();
    expect(skipOf({ ...given, now: 15 })).toBe('the PreExit stage had ended');
    expect(skipOf({ ...given, now: 15 }, 'post')).toBeUndefined();
  });
  it('a container found in state created may still be starting, so no entry is skipped', () => {
    const initContainers = [container('init')];
    const created = running('init', { state: 'created', startedAt: undefined });
    const found: Given = { deleted: 30, spec: { ...listed(postExit('post')), initContainers }, runs: [created] };
    expect(skipOf(found, 'post')).toBe('no container of the Pod had started');
    expect(skipOf({ ...found, memory: { unstarted: new Set([created.id]) } }, 'post')).toBeUndefined();
  });
  it('the Pod stays on the node while the start is under way', () => {
    const observed = { underWay: [appStart] };
    expect(asked(decided({ deleted: 0, spec: listed(entry('pre')), observed }))).toEqual([]);
  });
});

describe('a hard threshold in the middle of a list', () => {
  const spec = listed(entry('one'), entry('two'), postExit('three'));
  const given: Given = {
    spec,
    runs: [...runs, running('two')],
    now: 5,
    deleted: 30,
    ending: ending(30, 15, { turn: { entry: 'two', since: at(1) } }),
    status: { deferContainerStatuses: [endedEntry('one')] },
    input: { nodeEnd: { ...NODE, graceSeconds: 0, at: at(5) } },
  };
  it('at a hard eviction threshold, every container is stopped, and killed after 2 s', () => {
    expect(asked(decided(given))).toEqual(['stopContainer/two-0/@7', 'stopContainer/app-0/@7']);
    expect(secondsOf(decided(given).memory.termination?.deadline ?? 0)).toBe(5);
  });
  it('at a hard eviction threshold, sidecars and ephemeral containers are stopped as well', () => {
    const initContainers = [container('proxy', { restartPolicy: 'Always' })];
    const companions = { initContainers, ephemeralContainers: [container('debug')] };
    const all = [...runs, running('two'), running('proxy'), running('debug')];
    expect(asked(decided({ ...given, spec: { ...spec, ...companions }, runs: all })).sort()).toEqual(
      ['app', 'debug', 'proxy', 'two'].map((name) => `stopContainer/${name}-0/@7`),
    );
  });
  it('at a hard eviction threshold, entries that have ended keep their result, and later ones are skipped', () => {
    const decision = decided(given);
    expect(entryState(decision, 'one')?.terminated?.reason).toBe('Completed');
    expect(entryState(decision, 'three')?.terminated).toMatchObject({
      reason: 'Skipped',
      message: 'the node had no time',
    });
  });
  it('at a hard eviction threshold, the running entry ends as Skipped too', () => {
    const killed = exited('two', 137, 7);
    const stops = decided(given).memory.stops;
    const decision = decided({ ...given, runs: [...runs, killed], now: 7, memory: { stops } });
    expect(entryState(decision, 'two')?.terminated).toMatchObject({
      reason: 'Skipped',
      message: 'the node had no time',
    });
  });
});

it('a list runs once: a new agent continues from the status', () => {
  const spec = listed(entry('one'), entry('two'));
  const deferContainerStatuses = [endedEntry('one', 'Error', 1), announcedEntry('two')];
  const given: Given = { ...deletedPod('two'), spec, runs, status: { deferContainerStatuses } };
  expect(asked(decided(given))).toEqual(['startContainer/two/0']);
});
