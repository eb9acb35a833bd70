import { describe, expect, it } from 'vitest';
import type { DeferContainer, PodCondition, PodSpec } from '../api/generated/types.ts';
import type { Given } from './fixtures.ts';
import {
  at,
  container,
  decided,
  ending,
  entry,
  exited,
  postExit,
  running,
  sandbox,
  secondsOf,
  stamp,
} from './fixtures.ts';
import { nodeEndAfter } from './termination-causes.ts';
import type { NodeEnd } from './types.ts';

const runs = [running('app')];
const CLEAN = [entry('clean')];
const terminationOf = (given: Given) => decided({ runs, ...given }).memory.termination;

/** S (preExitDeadline) and D (deadline) are in seconds after START. */
function endsOf(given: Given): [reason: string, S: number, D: number] | undefined {
  const so = terminationOf(given);
  return so && [so.reason, secondsOf(so.preExitDeadline), secondsOf(so.deadline)];
}
const nodeEnd = (graceSeconds: number, more: Partial<NodeEnd> = {}): Given['input'] => ({
  nodeEnd: { reason: 'NodeShutdown', message: 'down', at: at(0), graceSeconds, ...more },
});

describe('the first cause', () => {
  const deadline = { activeDeadlineSeconds: 100 };
  it('a Pod without a cause does not terminate', () => {
    expect(endsOf({})).toBeUndefined();
  });
  it('the grace period of a deletion counts from when the agent sees it', () => {
    expect(endsOf({ deleted: 20, now: 4 })).toEqual(['Deleted', 24, 24]);
  });
  it('activeDeadlineSeconds counts from the start of the Pod, and is followed by the grace period', () => {
    expect(endsOf({ spec: { activeDeadlineSeconds: 101 } })).toBeUndefined();
    expect(decided({ runs, spec: { activeDeadlineSeconds: 101 } }).wakeAt).toBe(at(1));
    expect(endsOf({ spec: deadline })).toEqual(['DeadlineExceeded', 30, 30]);
  });
  it.each([
    [10, 10],
    [60, 30],
  ])(
    'a node that grants %i s to a Pod with a grace period of 30 s leaves it %i s from the decision of the node',
    (grace, left) => {
      expect(endsOf({ input: nodeEnd(grace), now: 3 })).toEqual(['NodeShutdown', left, left]);
    },
  );
  it('an outage after the decision of the node does not count toward the grace period', () => {
    const observed = { outages: [{ from: at(2), to: at(8) }] };
    expect(endsOf({ input: nodeEnd(10), now: 8, observed })).toEqual(['NodeShutdown', 16, 16]);
  });
  it('no termination begins later than now, even if the clock was set back after the decision of the node', () => {
    expect(terminationOf({ input: nodeEnd(10, { at: at(60) }), now: 3 })?.startedAt).toBe(at(3));
  });
  it('the first of several causes gives the reason of a termination', () => {
    expect(endsOf({ spec: deadline, deleted: 30 })?.[0]).toBe('DeadlineExceeded');
    expect(endsOf({ input: nodeEnd(10), deleted: 30 })?.[0]).toBe('NodeShutdown');
    expect(endsOf({ deleted: 30, ending: ending(30, 30, { reason: 'Evicted' }) })?.[0]).toBe('Evicted');
  });
  it('the cause with the earliest end gives the end of a termination', () => {
    expect(endsOf({ spec: deadline, deleted: 5 })).toEqual(['DeadlineExceeded', 5, 5]);
    expect(endsOf({ input: nodeEnd(10), deleted: 5 })).toEqual(['NodeShutdown', 5, 5]);
  });
});

describe('a second termination by the node', () => {
  const first: NodeEnd = { reason: 'NodeShutdown', message: 'down', at: at(0), graceSeconds: 20 };
  const pressed = { reason: 'NodePressure', message: 'low', graceSeconds: 5 } as const;
  it('a second termination by the node keeps the first reason and message, with the shorter grace period from now on', () => {
    expect(nodeEndAfter(first, pressed, at(3))).toEqual({ ...first, at: at(3), graceSeconds: 5, evicted: true });
    const shutDown = { reason: 'NodeShutdown', message: 'down', graceSeconds: 5 } as const;
    expect(nodeEndAfter({ ...first, reason: 'Preempted' }, shutDown, at(3))).toEqual({
      ...first,
      reason: 'Preempted',
      at: at(3),
      graceSeconds: 5,
    });
  });
  it('a second termination by the node with a grace period that is not shorter changes nothing', () => {
    expect(nodeEndAfter(first, { ...pressed, graceSeconds: 20 }, at(3))).toBe(first);
  });
});

describe('a Pod that completed on its own', () => {
  const over = { restartPolicy: 'OnFailure', deferContainers: CLEAN };
  it('the grace period of a completed Pod counts from the last exit', () => {
    const spec = { ...over, containers: [container('app'), container('web')] };
    expect(endsOf({ spec, runs: [exited('app', 0, -9), exited('web', 0, -0.5)] })).toEqual(['Completed', 29.5, 29.5]);
  });
  it('the grace period of a completed Pod counts from now if no agent saw the last exit', () => {
    expect(endsOf({ spec: over, runs: [exited('app', 0, -9)] })).toEqual(['Completed', 30, 30]);
  });
  it('a Pod whose init container failed for good has completed', () => {
    const spec = { ...over, restartPolicy: 'Never', initContainers: [container('init')] };
    expect(endsOf({ spec, runs: [exited('init', 1, 0)] })?.[0]).toBe('Completed');
  });
  it('a deletion during the exit work moves the end earlier but keeps the reason', () => {
    const so = ending(30, 30, { reason: 'Completed' });
    const given: Given = { spec: over, runs: [exited('app', 0, 0)], ending: so, now: 10 };
    expect(endsOf({ ...given, metadata: { deletionTimestamp: stamp(15), deletionGracePeriodSeconds: 5 } })).toEqual([
      'Completed',
      15,
      15,
    ]);
    expect(endsOf({ ...given, metadata: { deletionTimestamp: stamp(40), deletionGracePeriodSeconds: 30 } })).toEqual([
      'Completed',
      30,
      30,
    ]);
  });
});

describe('the reserve of the PostExit stage', () => {
  type Row = [string, Partial<DeferContainer>[], Partial<PodSpec>, grace: number, reserve: number];
  it.each<Row>([
    ['there is no reserve without PostExit entries', [], {}, 30, 0],
    ['the reserve for an entry without timeoutSeconds is half of the grace period', [{}], {}, 30, 15],
    ['the reserve is postExitGracePeriodSeconds if that is set', [{}], { postExitGracePeriodSeconds: 20 }, 30, 20],
    ['there is no reserve if postExitGracePeriodSeconds is 0', [{}], { postExitGracePeriodSeconds: 0 }, 30, 0],
    [
      'the reserve for entries with timeoutSeconds is at most timeoutSeconds + 2 s for each',
      [{ timeoutSeconds: 5 }, { timeoutSeconds: 3 }],
      {},
      30,
      12,
    ],
    [
      'the reserve for entries with long timeoutSeconds is half of the grace period',
      [{ timeoutSeconds: 50 }],
      {},
      30,
      15,
    ],
    [
      'the reserve is half of the grace period if one of several entries has no timeoutSeconds',
      [{ timeoutSeconds: 5 }, {}],
      {},
      30,
      15,
    ],
    [
      'an entry that is not due adds nothing to the reserve',
      [{ timeoutSeconds: 5 }, { onReasons: ['Completed'] }],
      {},
      30,
      7,
    ],
    [
      'there is no reserve if no PostExit entry is due',
      [{ onReasons: ['Completed'] }],
      { postExitGracePeriodSeconds: 20 },
      30,
      0,
    ],
    [
      'the reserve shrinks in proportion to a grace period that is shorter than in the spec',
      [{}],
      { postExitGracePeriodSeconds: 15 },
      10,
      5,
    ],
    [
      'the reserve does not grow with a grace period that is longer than in the spec',
      [{}],
      { postExitGracePeriodSeconds: 15 },
      60,
      15,
    ],
    ['the reserve of a shorter grace period is at least 2 s', [{}], { postExitGracePeriodSeconds: 15 }, 3, 2],
    ['a reserve below 2 s does not shrink with a shorter grace period', [{}], { postExitGracePeriodSeconds: 1 }, 3, 1],
    [
      'life a: the reserve is 15 s for a grace period of 30 s, an entry of 5 s and one without timeoutSeconds',
      [{ timeoutSeconds: 5 }, {}],
      {},
      30,
      15,
    ],
    ['life g: the reserve is 2 s for a grace period of 1 s', [{}], {}, 1, 2],
  ])('%s', (_, entries, spec, grace, reserve) => {
    const deferContainers = [entry('pre'), ...entries.map((each, i) => postExit(`post-${i}`, each))];
    const [, S = 0, D = 0] = endsOf({ spec: { ...spec, deferContainers }, deleted: grace }) ?? [];
    expect([D, D - S]).toEqual([grace, reserve]);
  });
  it('life f: a node shutdown leaves 10 s to a Pod with a grace period of 60 s and a reserve of 30 s', () => {
    const deferContainers = [entry('pre'), postExit('post')];
    const spec = { terminationGracePeriodSeconds: 60, postExitGracePeriodSeconds: 30, deferContainers };
    expect(endsOf({ spec, input: nodeEnd(10) })).toEqual(['NodeShutdown', 5, 10]);
  });
});

describe('a later cause', () => {
  const deferContainers = [entry('pre'), postExit('post')];
  const again = (so: [D: number, S: number], now: number, grace: number) => {
    const first = ending(...so, { deletionGracePeriodSeconds: 30 });
    const metadata = { deletionTimestamp: stamp(now + grace), deletionGracePeriodSeconds: grace };
    return endsOf({ spec: { deferContainers }, ending: first, metadata, now })?.slice(1);
  };
  it.each<[string, [number, number], number, number, [S: number, D: number]]>([
    [
      'life d: a second delete at 10 s with 1 s moves the end of the PreExit stage to 9 s and the deadline to 11 s',
      [30, 15],
      10,
      1,
      [9, 11],
    ],
    ['the reserve shrinks with the time that a second delete leaves', [30, 15], 10, 10, [12.5, 20]],
    ['a reserve below 2 s does not shrink with a second delete', [30, 29], 10, 4, [13, 14]],
    ['a second delete with a later end moves nothing', [30, 15], 10, 20, [15, 30]],
    [
      'the reserve also shrinks after the end of the PreExit stage, while the app containers stop',
      [30, 15],
      20,
      4,
      [18, 24],
    ],
    ['the reserve keeps 2 s however little time a second delete leaves', [30, 15], 15, 0.5, [13.5, 15.5]],
  ])('%s', (_, so, now, grace, expected) => {
    expect(again(so, now, grace)).toEqual(expected);
  });
  it('once the PostExit stage has begun, a second delete moves only the deadline', () => {
    const turn = { entry: 'post', since: at(18) };
    const so = ending(30, 15, { deletionGracePeriodSeconds: 30, turn });
    expect(endsOf({ spec: { deferContainers }, ending: so, deleted: 4, now: 20 })).toEqual(['Deleted', 15, 24]);
  });
  it('each cause of a termination counts once', () => {
    const so = ending(30, 15, { deletionGracePeriodSeconds: 4 });
    const given: Given = { spec: { deferContainers }, deleted: 4, now: 20 };
    expect(endsOf({ ...given, ending: so })).toEqual(['Deleted', 15, 30]);
    const byNode = ending(30, 15, { reason: 'NodeShutdown', nodeGracePeriodSeconds: 4 });
    expect(endsOf({ ...given, ending: byNode, input: nodeEnd(4), deleted: 30 })?.[2]).toBe(30);
  });
  it('the final deletion of a Pod with finalizers does not change the deadlines of its list, which is over', () => {
    const ended: Given = { spec: { deferContainers }, status: { phase: 'Succeeded' }, runs: [exited('app', 0, 1)] };
    const so = ending(30, 15, { deletionGracePeriodSeconds: 30 });
    expect(endsOf({ ...ended, ending: so, deleted: 0, now: 5 })).toEqual(['Deleted', 15, 30]);
    expect(endsOf({ ...ended, runs, ending: so, deleted: 0, now: 5 })?.[2]).toBe(5);
  });
  it('a termination by the node shortens a deletion', () => {
    expect(endsOf({ deleted: 30, ending: ending(30), input: nodeEnd(5, { at: at(10) }), now: 10 })).toEqual([
      'Deleted',
      15,
      15,
    ]);
  });
  it('the removal of its object leaves a Pod 2 s', () => {
    expect(endsOf({ deleted: 30, ending: ending(30), input: { removed: true }, now: 10 })).toEqual(['Deleted', 12, 12]);
  });
  it('activeDeadlineSeconds no longer counts once a termination has begun', () => {
    const given: Given = { deleted: 30, ending: ending(300), spec: { activeDeadlineSeconds: 100 }, now: 5 };
    expect(endsOf(given)).toEqual(['Deleted', 300, 300]);
    expect(endsOf({ ...given, spec: { ...given.spec, deferContainers: CLEAN } })?.[2]).toBe(300);
  });
});

describe('the reason of a deletion', () => {
  const condition = (type: string, reason: string, seconds: number, status = 'True'): PodCondition => ({
    type,
    status,
    reason,
    lastTransitionTime: stamp(seconds),
  });
  const own = (reason: string, seconds = -10, status?: string) => condition('DeletionReason', reason, seconds, status);
  const target = (reason: string, seconds = -10, status?: string) =>
    condition('DisruptionTarget', reason, seconds, status);
  it.each<[string, PodCondition[], string]>([
    ['a deletion without conditions has the reason Deleted', [], 'Deleted'],
    ['the condition DeletionReason gives the reason of a deletion', [own('ScaledDown')], 'ScaledDown'],
    ['a condition DeletionReason that is False does not count', [own('ScaledDown', -10, 'False')], 'Deleted'],
    ['an unknown reason in the condition DeletionReason does not count', [own('Bored')], 'Deleted'],
    ['an eviction through the API has the reason Evicted', [target('EvictionByEvictionAPI')], 'Evicted'],
    ['an eviction for a taint has the reason Evicted', [target('DeletionByTaintManager')], 'Evicted'],
    ['a preemption has the reason Preempted', [target('PreemptionByScheduler')], 'Preempted'],
    [
      'a condition DeletionReason that is later than DisruptionTarget gives the reason of a deletion',
      [own('Replaced', -5), target('EvictionByEvictionAPI')],
      'Replaced',
    ],
    [
      'a condition DisruptionTarget that is later than DeletionReason gives the reason of a deletion',
      [own('Replaced'), target('EvictionByEvictionAPI', -5)],
      'Evicted',
    ],
    [
      'DisruptionTarget gives the reason of a deletion if DeletionReason was set at the same time',
      [own('Replaced'), target('EvictionByEvictionAPI')],
      'Evicted',
    ],
    [
      'a later condition DisruptionTarget that is False does not count',
      [own('Replaced'), target('EvictionByEvictionAPI', -5, 'False')],
      'Replaced',
    ],
  ])('%s', (_, conditions, reason) => {
    expect(endsOf({ deleted: 30, status: { conditions } })?.[0]).toBe(reason);
  });
});

describe('an outage', () => {
  const deferContainers = [entry('pre'), postExit('post')];
  const timed = { deferContainers: [{ ...entry('pre'), timeoutSeconds: 15 }, postExit('post')] };
  const turn = { entry: 'pre', since: at(0) };
  const resumed = (from: number, to: number, more: Given = {}, so = {}) =>
    terminationOf({
      spec: { deferContainers },
      deleted: 30,
      ending: ending(30, 15, { turn, ...so }),
      now: to,
      ...more,
      observed: { outages: [{ from: at(from), to: at(to) }], ...more.observed },
    });
  const moves = (so: ReturnType<typeof resumed>) => [secondsOf(so?.preExitDeadline ?? 0), secondsOf(so?.deadline ?? 0)];

  it('an outage moves the end of the PreExit stage and the deadline by its length, and is recorded', () => {
    const so = resumed(3, 50);
    expect(moves(so)).toEqual([62, 77]);
    expect(so).toMatchObject({ outageSeconds: 47, outagesCountedUntil: at(50) });
  });
  it('an outage counts in a Pod without defer containers too', () => {
    const observed = { outages: [{ from: at(3), to: at(50) }] };
    expect(endsOf({ deleted: 30, ending: ending(30), observed, now: 50 })).toEqual(['Deleted', 77, 77]);
  });
  it('an outage moves nothing in a Pod whose list is over', () => {
    const so = resumed(3, 50, { status: { phase: 'Failed' }, runs: [exited('app', 0, 1)] });
    expect(moves(so)).toEqual([15, 30]);
    expect(so).not.toHaveProperty('outageSeconds');
  });
  it('an outage counts from the beginning of the termination', () => {
    expect(moves(resumed(-20, 10))).toEqual([25, 40]);
  });
  it('an outage is not counted twice', () => {
    expect(moves(resumed(3, 50, {}, { outageSeconds: 47, outagesCountedUntil: at(50) }))).toEqual([15, 30]);
    expect(moves(resumed(40, 60, {}, { outageSeconds: 47, outagesCountedUntil: at(50) }))).toEqual([25, 40]);
  });
  it('all outages together move the end by at most maxGracePeriodExtensionSeconds', () => {
    const node = { ips: ['192.0.2.1'], runtimeName: 'containerd', maxGracePeriodExtensionSeconds: 60 };
    const so = resumed(100, 150, { input: { node } }, { outageSeconds: 47, outagesCountedUntil: at(50) });
    expect([...moves(so), so?.outageSeconds]).toEqual([28, 43, 60]);
  });
  it('an outage moves the end by at most 3600 s by default', () => {
    expect(resumed(1, 5001)?.outageSeconds).toBe(3600);
  });
  it('an outage moves nothing if the limit was lowered below what was counted before', () => {
    const node = { ips: ['192.0.2.1'], runtimeName: 'containerd', maxGracePeriodExtensionSeconds: 60 };
    const so = ending(130, 130, { turn, outageSeconds: 100, outagesCountedUntil: at(100) });
    expect(moves(resumed(105, 110, { input: { node }, ending: so }))).toEqual([130, 130]);
  });
  it('an outage does not move the end of the PreExit stage once a PostExit entry has its turn', () => {
    const ended = { exitCode: 0, reason: 'Completed' };
    const pre = { name: 'pre', image: 'i', imageID: '', ready: false, restartCount: 0, state: { terminated: ended } };
    const status = { deferContainerStatuses: [pre] };
    const given: Given = { runs: [exited('app', 0, 5), running('post')] };
    const recorded = { ...given, spec: { deferContainers }, status };
    const so = terminationOf({
      ...recorded,
      deleted: 30,
      now: 50,
      observed: { outages: [{ from: at(20), to: at(50) }] },
      ending: ending(30, 15, { turn: { entry: 'post', since: at(6) } }),
    });
    expect(moves(so)).toEqual([15, 60]);
  });
  it('an outage does not count toward timeoutSeconds of an entry that did not run during it', () => {
    expect(resumed(3, 50)?.turn).toEqual({ entry: 'pre', since: at(47) });
  });
  it('an outage counts toward timeoutSeconds of an entry that ran during it', () => {
    expect(resumed(3, 50, { runs: [...runs, running('pre')] })?.turn).toEqual(turn);
    expect(resumed(3, 50, { runs: [...runs, exited('pre', 0, 20)] })?.turn).toEqual(turn);
  });
  it('an outage does not count toward timeoutSeconds of an entry that waits for its next attempt', () => {
    const retried = (at: number) => resumed(3, 50, { spec: timed, runs: [...runs, exited('pre', 1, at)] })?.turn;
    expect(retried(9)).toEqual({ entry: 'pre', since: at(41) });
    expect(retried(20)).toEqual(turn);
  });
  it('an outage does not count toward timeoutSeconds of an entry whose container ended with the machine', () => {
    const observed = { sandboxes: [sandbox(0, { ready: false })] };
    expect(resumed(3, 50, { runs: [exited('pre', 255, 49)], observed })?.turn).toEqual({ entry: 'pre', since: at(47) });
    expect(resumed(3, 50, { runs: [exited('pre', 0, 49)], observed })?.turn).toEqual(turn);
  });
});
