import { describe, expect, it } from 'vitest';
import { recordedTermination, type Termination } from '../api/core/v1/pod/status/termination.ts';
import type { PodSpec } from '../api/generated/types.ts';
import { decide } from './decide.ts';
import {
  announcedEntry,
  asked,
  at,
  decided,
  endedEntry,
  ending,
  entry,
  entryState,
  exited,
  type Given,
  inputOf,
  postExit,
  running,
  secondsOf,
  stamp,
  startOf,
  written,
} from './fixtures.ts';
import type { Decision, ProbeMemory } from './types.ts';

const app = running('app');
const gone = exited('app', 0, 1);
const LIST = { deferContainers: [entry('pre'), postExit('post')] };
const livenessProbe = { exec: { command: ['true'] }, periodSeconds: 2, timeoutSeconds: 1, failureThreshold: 3 };

/** Returns S (preExitDeadline) and D (deadline), in seconds after START. */
const endsOf = ({ memory: { termination } }: Decision): number[] => [
  secondsOf(termination?.preExitDeadline ?? 0),
  secondsOf(termination?.deadline ?? 0),
];
/** The Pod is at the end of its PreExit stage, with S at 15 and D at 30. The entry `pre` runs. */
const inPreExit = (spec: Partial<PodSpec>, more: Given & { so?: Partial<Termination> } = {}): Given => ({
  deleted: 30,
  runs: [app, running('pre')],
  now: 15,
  ending: ending(30, 15, { turn: { entry: 'pre', since: at(0) }, ...more.so }),
  ...more,
  spec: { ...LIST, ...spec },
});
/** The Pod is at the end of its PostExit stage, with D at 30. The entry `post` runs. */
const inPostExit = (spec: Partial<PodSpec>, more: Given & { so?: Partial<Termination> } = {}): Given => ({
  deleted: 30,
  runs: [gone, running('post')],
  now: 30,
  status: { deferContainerStatuses: [endedEntry('pre')] },
  ending: ending(30, 15, { turn: { entry: 'post', since: at(2) }, ...more.so }),
  ...more,
  spec: { ...LIST, ...spec },
});

describe('the status has the termination before anything begins', () => {
  const preStop = { lifecycle: { preStop: { exec: { command: ['true'] } } } };
  const spec = { ...LIST, containers: [{ name: 'app', image: 'i', ...preStop }] };
  const given: Given = { deleted: 30, runs: [app], spec };
  it('nothing starts before the status has the later end of the PreExit stage', () => {
    const so = { turn: { entry: 'pre', since: at(0) } };
    const status = { deferContainerStatuses: [announcedEntry('pre')] };
    const moved: Given = { deleted: 30, runs: [app], spec: LIST, ending: ending(30, 15, so), status, now: 3 };
    expect(asked(decided(moved))).toEqual(['startContainer/pre/0']);
    expect(asked(decided({ ...moved, memory: { termination: ending(30, 20, so) } }))).toEqual([]);
  });
  it('nothing starts and nothing stops before the status has the termination', () => {
    const input = inputOf(given);
    const first = decide(input);
    expect(asked(first)).toEqual([]);
    expect(first.status?.termination).toMatchObject({ reason: 'Deleted', turn: { entry: 'pre' } });
    expect(asked(decide({ ...input, memory: first.memory }))).toEqual([]);
    expect(asked(decide(written(input, first)))).toEqual(['startContainer/pre/0', 'runHook/app-0/preStop']);
  });
  it('the journal has the termination too', () => {
    const { journal, memory } = decided(given);
    expect(journal?.termination).toEqual(memory.termination);
    expect(decided({ ...given, memory }).journal).toBeUndefined();
  });
  it('the status has the termination to the millisecond', () => {
    const input = { ...inputOf(given), now: at(1.234) };
    const { status, memory } = decide(input);
    expect(recordedTermination({ ...input.pod, status: status ?? {} })).toEqual(memory.termination);
  });
  it('a Pod without defer containers does not wait for its status', () => {
    expect(asked(decided({ ...given, spec: {}, runs: [app] }))).toEqual(['stopContainer/app-0/@30']);
  });
  it('a list that does not run does not wait for its status', () => {
    expect(asked(decided({ ...given, spec: LIST, deleted: 0 }))).toContain('stopContainer/app-0/@2');
  });
  it('a later deadline delays all actions until the status has it', () => {
    const decision = decided(inPreExit({}, { observed: { outages: [{ from: at(5), to: at(15) }] } }));
    expect([asked(decision), endsOf(decision)]).toEqual([[], [25, 40]]);
  });
  it('a status that cannot be written delays nothing after the deadline', () => {
    const input = inputOf(given);
    const late = { ...input, memory: decide(input).memory };
    expect(asked(decide({ ...late, now: at(29) }))).toEqual([]);
    expect(asked(decide({ ...late, now: at(30) }))).toContain('stopContainer/app-0/@32');
  });
  it('an earlier deadline does not wait for the status', () => {
    const given = inPreExit({}, { so: { deletionGracePeriodSeconds: 30 }, deleted: 1, now: 14 });
    expect(asked(decided(given))).toEqual(['stopContainer/pre-0/@16']);
  });
});

it('decide() wakes when timeoutSeconds of the entry have passed, at the end of the PreExit stage, and at the deadline', () => {
  const wakeAt = (given: Given): number => secondsOf(decided(given).wakeAt ?? 0);
  const timed = { deferContainers: [entry('pre', { timeoutSeconds: 9 }), postExit('post')] };
  expect(wakeAt(inPreExit(timed, { now: 8 }))).toBe(9);
  expect(wakeAt(inPreExit({}, { now: 8 }))).toBe(15);
  expect(wakeAt(inPostExit({}, { now: 20 }))).toBe(30);
});

describe('the extension by count', () => {
  const spec = { deferContainerGracePeriodExtensionInterval: 10, deferContainerGracePeriodExtensionCount: 2 };
  const by = (extendedSeconds: number) => ({ so: { extendedSeconds } });
  it.each<[string, Given, number[], number | undefined]>([
    [
      'an entry that runs at the end of the PreExit stage moves this end and the deadline',
      inPreExit(spec),
      [25, 40],
      10,
    ],
    [
      'an entry that is yet to run at the end of the PreExit stage moves this end and the deadline',
      inPreExit(spec, { runs: [app] }),
      [25, 40],
      10,
    ],
    [
      'an extension by count moves nothing before the end of the PreExit stage',
      inPreExit(spec, { now: 14.9 }),
      [15, 30],
      undefined,
    ],
    ['the last interval of the count is granted as well', inPreExit(spec, by(10)), [25, 40], 20],
    ['a stage is not extended more often than the count', inPreExit(spec, by(20)), [15, 30], 20],
    ['a PostExit entry that runs at the deadline moves only the deadline', inPostExit(spec), [15, 40], 10],
    [
      'a PostExit entry that is yet to run at the deadline moves only the deadline',
      inPostExit(spec, { runs: [gone] }),
      [15, 40],
      10,
    ],
    ['the count of extensions applies to both stages together', inPostExit(spec, by(20)), [15, 30], 20],
    [
      'a PreExit stage that is over is not extended',
      inPreExit(spec, { runs: [app], status: { deferContainerStatuses: [endedEntry('pre')] } }),
      [15, 30],
      undefined,
    ],
  ])('%s', (_, given, ends, extendedSeconds) => {
    const decision = decided(given);
    expect([endsOf(decision), decision.memory.termination?.extendedSeconds]).toEqual([ends, extendedSeconds]);
  });
  const starting = startOf('app', 'app', { attempt: 1 });
  it.each<[string, Given, PodSpec['deferContainers']]>([
    ['was given up', { skip: ['pre'] }, [entry('pre'), postExit('post')]],
    ['has used up its timeoutSeconds', {}, [entry('pre', { timeoutSeconds: 15 }), postExit('post')]],
  ])('an entry that %s extends nothing', (_, more, deferContainers) => {
    expect(endsOf(decided(inPreExit({ ...spec, deferContainers }, more)))).toEqual([15, 30]);
  });
  it('an entry that is not due extends nothing', () => {
    const stops = { 'pre-0': { at: at(14), deadline: at(14), restart: false } } as const;
    const deferContainers = [entry('pre'), entry('other', { onReasons: ['Completed'] }), postExit('post')];
    expect(endsOf(decided(inPreExit({ ...spec, deferContainers }, { memory: { stops } })))).toEqual([15, 30]);
  });
  it('a late decision extends by as many intervals as have passed', () => {
    expect(endsOf(decided(inPreExit(spec, { now: 26 })))).toEqual([35, 50]);
  });
  it('an entry that waits for a start in flight counts as yet to run', () => {
    const given = inPreExit(spec, { runs: [exited('app', 1, 0)], observed: { underWay: [starting] } });
    expect(endsOf(decided(given))).toEqual([25, 40]);
  });
  it('a PostExit stage that has not begun is not extended: its reserve counts from the last exit', () => {
    const status = { deferContainerStatuses: [endedEntry('pre')] };
    expect(endsOf(decided(inPreExit(spec, { runs: [app], status, now: 30 })))).toEqual([15, 30]);
  });
  it('an entry that was stopped before extends nothing', () => {
    const stops = { 'pre-0': { at: at(14), deadline: at(14), restart: false, entry: 'GivenUp' } } as const;
    expect(endsOf(decided(inPreExit(spec, { memory: { stops } })))).toEqual([15, 30]);
  });
  it('an entry whose run is stopped for its probe, and that is to be retried, counts as yet to run', () => {
    const stops = { 'pre-0': { at: at(14), deadline: at(16), restart: true } } as const;
    const deferContainers = [entry('pre', { restartPolicy: 'OnFailure' }), postExit('post')];
    expect(endsOf(decided(inPreExit({ ...spec, deferContainers }, { memory: { stops } })))).toEqual([25, 40]);
    expect(endsOf(decided(inPreExit(spec, { memory: { stops } })))).toEqual([15, 30]);
  });
  it('the entry is not stopped while the extension is being written', () => {
    const input = inputOf(inPreExit(spec));
    const first = decide(input);
    expect(asked(first)).toEqual([]);
    const second = decide(written(input, first));
    expect([asked(second), endsOf(second)]).toEqual([[], [25, 40]]);
  });
  it('all extensions of a termination together are at most maxGracePeriodExtensionSeconds', () => {
    const node = { ips: ['192.0.2.1'], runtimeName: 'containerd', maxGracePeriodExtensionSeconds: 14 };
    expect(endsOf(decided(inPreExit(spec, { ...by(10), input: { node } })))).toEqual([19, 34]);
  });
  it('each extension is reported as an Event', () => {
    expect(decided(inPreExit(spec)).events).toContainEqual({
      type: 'Normal',
      reason: 'ExtendGracePeriod',
      fieldPath: 'spec.deferContainers{pre}',
      message: 'defer containers are still due: the grace period is extended until 2026-01-31T00:00:25Z',
    });
  });
});

describe('the extension by liveness', () => {
  const spec = {
    deferContainerGracePeriodExtension: true,
    deferContainers: [entry('pre', { livenessProbe }), entry('next', { livenessProbe }), postExit('post')],
  };
  const probed = (more: Partial<ProbeMemory>): Given => ({
    memory: {
      probes: { 'pre-0/liveness': { serial: 5, dueAt: at(16), successes: 1, failures: 0, passing: true, ...more } },
    },
  });
  it.each<[string, Given, number[]]>([
    ['the stage ends at the last success + periodSeconds + timeoutSeconds', probed({ succeededAt: at(14) }), [17, 32]],
    ['a success that is too old extends nothing', probed({ succeededAt: at(12) }), [15, 30]],
    ['a probe without a success extends nothing', probed({}), [15, 30]],
    ['a probe that failed extends nothing', probed({ succeededAt: at(14), passing: false }), [15, 30]],
    [
      'an extension by liveness moves nothing before the end of the PreExit stage',
      { ...probed({ succeededAt: at(14) }), now: 14.5 },
      [15, 30],
    ],
  ])('%s', (_, more, ends) => {
    expect(endsOf(decided(inPreExit(spec, more)))).toEqual(ends);
  });
  it('failures below failureThreshold do not shorten an extension', () => {
    expect(endsOf(decided(inPreExit(spec, probed({ succeededAt: at(14), failures: 2 }))))).toEqual([17, 32]);
  });
  it('at the deadline, a success of the probe of a PostExit entry moves only the deadline', () => {
    const deferContainers = [entry('pre'), postExit('post', { livenessProbe })];
    const probe: ProbeMemory = { serial: 5, dueAt: at(31), successes: 1, failures: 0, passing: true };
    const memory = { probes: { 'post-0/liveness': { ...probe, succeededAt: at(29) } } };
    expect(endsOf(decided(inPostExit({ ...spec, deferContainers }, { memory })))).toEqual([15, 32]);
  });
  it('a probe that is due at the end of the PreExit stage is awaited', () => {
    const decision = decided(inPreExit(spec, probed({ dueAt: at(15) })));
    expect([asked(decision), endsOf(decision)]).toEqual([['runProbe/pre-0/liveness'], [15, 30]]);
  });
  it('a probe that is under way at the end of the PreExit stage is awaited', () => {
    const underWay = [{ kind: 'runProbe', container: 'pre', id: 'pre-0', probe: 'liveness' }] as const;
    const given = inPreExit(spec, { ...probed({}), observed: { underWay } });
    expect(asked(decided(given))).toEqual([]);
    const probes = { 'pre-0/liveness': { serial: 6, result: 'Success', message: '' } } as const;
    expect(endsOf(decided(inPreExit(spec, { ...probed({}), observed: { probes } })))).toEqual([18, 33]);
    const failed = { 'pre-0/liveness': { serial: 6, result: 'Failure', message: '' } } as const;
    expect(asked(decided(inPreExit(spec, { ...probed({}), observed: { probes: failed } })))).toContain(
      'stopContainer/pre-0/@17',
    );
  });
  const ended = { status: { deferContainerStatuses: [endedEntry('pre')] }, runs: [app], now: 15 };
  const extended = {
    so: { extendedSeconds: 1, extendedStage: 'PreExit', preExitDeadline: at(16), deadline: at(31) },
  } as const;
  it('the next entry of an extended stage has time for its first probe', () => {
    expect(endsOf(decided(inPreExit(spec, { ...ended, ...extended })))).toEqual([18, 33]);
  });
  it('initialDelaySeconds of the next entry count toward its minimum', () => {
    const slow = entry('next', { livenessProbe: { ...livenessProbe, initialDelaySeconds: 4 } });
    const deferContainers = [entry('pre', { livenessProbe }), slow, postExit('post')];
    expect(endsOf(decided(inPreExit({ ...spec, deferContainers }, { ...ended, ...extended })))).toEqual([22, 37]);
  });
  it('the next entry of an extended stage without a probe has 10 s', () => {
    const deferContainers = [entry('pre', { livenessProbe }), entry('next'), postExit('post')];
    const decision = decided(inPreExit({ ...spec, deferContainers }, { ...ended, ...extended }));
    expect([endsOf(decision), decision.memory.termination?.extendedSeconds]).toEqual([[25, 40], 10]);
  });
  it('the next entry of a stage that was not extended has no minimum', () => {
    expect(endsOf(decided(inPreExit(spec, { ...ended, now: 14 })))).toEqual([15, 30]);
  });
});

it('at the end of the PreExit stage, both kinds of extension keep the whole reserve, even if the node allows less', () => {
  const count = { deferContainerGracePeriodExtensionInterval: 10, deferContainerGracePeriodExtensionCount: 2 };
  const liveness = {
    deferContainerGracePeriodExtension: true,
    deferContainers: [entry('pre', { livenessProbe }), postExit('post')],
  };
  const probe: ProbeMemory = { serial: 5, dueAt: at(16), successes: 1, failures: 0, passing: true };
  const memory = { probes: { 'pre-0/liveness': { ...probe, succeededAt: at(14) } } };
  for (const maxGracePeriodExtensionSeconds of [1, 3600])
    for (const spec of [count, liveness]) {
      const node = { ips: ['192.0.2.1'], runtimeName: 'containerd', maxGracePeriodExtensionSeconds };
      const [S = 0, D = 0] = endsOf(decided(inPreExit(spec, { memory, input: { node } })));
      expect(S).toBeGreaterThan(15);
      expect(D - S).toBe(15);
    }
});

it('the next entry of an extended PostExit stage has time for its first probe too', () => {
  const deferContainers = [postExit('post', { livenessProbe }), postExit('last', { livenessProbe })];
  const spec = { deferContainerGracePeriodExtension: true, deferContainers };
  const so = { deadline: at(31), extendedSeconds: 1, extendedStage: 'PostExit' } as const;
  const decision = decided(inPostExit(spec, { so, runs: [gone, exited('post', 0, 30)], status: {}, now: 30 }));
  expect(endsOf(decision)).toEqual([15, 33]);
});

it('once the deadline has passed, the next entry of an extended PostExit stage is Skipped', () => {
  const deferContainers = [postExit('post', { livenessProbe }), postExit('last', { livenessProbe })];
  const spec = { deferContainerGracePeriodExtension: true, deferContainers };
  const so = { deadline: at(31), extendedSeconds: 1, extendedStage: 'PostExit' } as const;
  const stops = { 'post-0': { at: at(31), deadline: at(31), restart: false, entry: 'DeadlineExceeded' } } as const;
  const runs = [gone, exited('post', 143, 33)];
  const decision = decided(inPostExit(spec, { so, runs, status: {}, memory: { stops }, now: 33 }));
  expect(endsOf(decision)).toEqual([15, 31]);
  expect(entryState(decision, 'last')?.terminated).toMatchObject({
    reason: 'Skipped',
    message: 'the grace period had passed',
  });
});

describe('no extension', () => {
  const spec = { deferContainerGracePeriodExtensionInterval: 10, deferContainerGracePeriodExtensionCount: 2 };
  it.each<[string, Given]>([
    ['in a shutdown of the node', inPreExit(spec, { so: { reason: 'NodeShutdown' } })],
    ['under pressure', inPreExit(spec, { so: { reason: 'NodePressure' } })],
    [
      'when the node preempts the Pod, and then shuts down',
      inPreExit(spec, {
        so: { reason: 'Preempted', nodeGracePeriodSeconds: 40 },
        input: { nodeEnd: { reason: 'Preempted', message: '', at: at(0), graceSeconds: 40 } },
      }),
    ],
    [
      'once the node terminates the Pod for a second cause',
      inPreExit(spec, {
        so: { nodeGracePeriodSeconds: 40 },
        input: { nodeEnd: { reason: 'NodeShutdown', message: '', at: at(0), graceSeconds: 40 } },
      }),
    ],
    [
      'while the Pod is being deleted and the node preempts it',
      inPreExit(spec, { so: { nodeGracePeriodSeconds: 30 } }),
    ],
    ['with a grace period of 1 s', inPreExit(spec, { deleted: 1, so: { deletionGracePeriodSeconds: 1 } })],
  ])('there is no extension %s', (_, given) => {
    const decision = decided(given);
    expect(endsOf(decision)).toEqual([15, 30]);
    expect(asked(decision)).toContain('stopContainer/pre-0/@17');
  });
});

describe('no extension according to the specification', () => {
  const spec = { deferContainerGracePeriodExtensionInterval: 10, deferContainerGracePeriodExtensionCount: 2 };
  it('there is no extension for a Pod that completed on its own with a grace period of 1 s', () => {
    const so = { reason: 'Completed', deadline: at(1), preExitDeadline: at(1) } as const;
    const { deleted: _, ...given } = inPreExit({ ...spec, terminationGracePeriodSeconds: 1 }, { so, now: 1 });
    expect(endsOf(decided(given))).toEqual([1, 1]);
  });
  it('there is no extension by a new agent after the node had shortened a deletion', () => {
    expect(endsOf(decided(inPreExit(spec, { so: { nodeGracePeriodSeconds: 20 } })))).toEqual([15, 30]);
  });
  it('the first PostExit entry after an extended PreExit stage has its reserve, but no minimum', () => {
    const liveness = { deferContainerGracePeriodExtension: true };
    const so = { extendedSeconds: 5, preExitDeadline: at(20), deadline: at(23) };
    const status = { deferContainerStatuses: [endedEntry('pre')] };
    const given = inPreExit(liveness, { so, status, runs: [exited('app', 0, 21)], now: 21 });
    expect(endsOf(decided(given))).toEqual([20, 24]);
  });
});

describe('the reserve when the PostExit stage begins', () => {
  const begins = (lastExit: number, more: Given = {}) =>
    decided({
      ...inPreExit(
        {},
        { runs: [exited('app', 137, lastExit)], status: { deferContainerStatuses: [endedEntry('pre')] } },
      ),
      now: lastExit + 0.5,
      ...more,
    });
  it.each([
    [10, 30],
    [15, 30],
    [19, 34],
    [40, 55],
  ])('with a last exit at %i s, the PostExit stage begins with the deadline at %i s', (lastExit, D) => {
    const decision = begins(lastExit);
    expect(endsOf(decision)).toEqual([15, D]);
    expect(decision.memory.termination?.turn).toEqual({ entry: 'post', since: at(lastExit + 0.5) });
  });
  it('a run that the runtime has lost counts as ending now, even if an earlier run of the container is known', () => {
    const shown = { name: 'app', image: 'i', imageID: '', ready: false, containerID: 'containerd://app-1' };
    const state = { running: { startedAt: stamp(5) } };
    const decision = begins(19, {
      runs: [exited('app', 137, 1)],
      status: {
        containerStatuses: [{ ...shown, restartCount: 1, state }],
        deferContainerStatuses: [endedEntry('pre')],
      },
    });
    expect(endsOf(decision)).toEqual([15, 34.5]);
  });
  it('the reserve is not an extension, and also applies in a node shutdown', () => {
    const so = ending(30, 15, { reason: 'NodeShutdown', turn: { entry: 'pre', since: at(0) } });
    const decision = begins(19, { ending: so });
    expect([endsOf(decision), decision.memory.termination?.extendedSeconds]).toEqual([[15, 34], undefined]);
  });
  it.each([16.5, 31])(
    'if the PreExit stage ends with skipped entries, an entry that exits at %f s uses none of the reserve',
    (last) => {
      const deferContainers = [entry('pre'), entry('next'), postExit('post')];
      const given = inPreExit(
        { deferContainers },
        { runs: [exited('app', 0, 1), exited('pre', 143, last)], now: last },
      );
      const decision = decided(given);
      expect(entryState(decision, 'next')?.terminated?.message).toBe('the PreExit stage had ended');
      expect([endsOf(decision), decision.memory.termination?.turn?.entry]).toEqual([[15, last + 15], 'post']);
    },
  );
  it('an app that exited before the termination uses none of the reserve', () => {
    const nodeEnd = { at: at(90), graceSeconds: 1, reason: 'NodePressure', message: 'low' } as const;
    const spec = { terminationGracePeriodSeconds: 3, deferContainers: [postExit('post')] };
    const given: Given = { spec, runs: [gone], now: 90, input: { nodeEnd } };
    expect(endsOf(decided(given))).toEqual([89.5, 91.5]);
  });
  it('an app that exited in an outage uses none of the reserve, however little of the outage the node may add', () => {
    const node = { ips: [], runtimeName: 'containerd', maxGracePeriodExtensionSeconds: 10 };
    const observed = { outages: [{ from: at(5), to: at(105) }] };
    expect(endsOf(begins(20, { observed, now: 105, input: { node } }))).toEqual([25, 120]);
  });
  it('the reserve counts from now if the runtime has lost an app container that the status shows as running', () => {
    const app = {
      name: 'app',
      restartCount: 0,
      state: { running: { startedAt: undefined } },
      containerID: 'containerd://app-0',
    };
    const status = { containerStatuses: [app], deferContainerStatuses: [endedEntry('pre')] };
    const runs = [exited('pre', 0, 18)];
    expect(endsOf(begins(19, { runs, status: status as Given['status'], now: 21 }))).toEqual([15, 36]);
  });
  it('the moved deadline is written before the entry starts', () => {
    expect(asked(begins(19))).toEqual([]);
  });
  it('the reserve counts once: the next PostExit entry has the same deadline', () => {
    const deferContainers = [entry('pre'), postExit('post'), postExit('last')];
    const status = { deferContainerStatuses: [endedEntry('pre'), endedEntry('post')] };
    const given = inPostExit({ deferContainers }, { status, runs: [exited('app', 137, 25)], now: 29 });
    expect(endsOf(decided(given))).toEqual([15, 30]);
  });
});
