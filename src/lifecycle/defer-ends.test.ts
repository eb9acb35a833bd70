import { describe, expect, it } from 'vitest';
import type { DeferContainer } from '../api/generated/types.ts';
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
  settled,
  stamp,
  startOf,
} from './fixtures.ts';
import type { FailedAction, Stop } from './types.ts';

const app = running('app');
/** S (preExitDeadline) is at 25 and D (deadline) at 30, in seconds after START. */
const inTurn = (more: Partial<DeferContainer>, given: Given): Given => ({
  deleted: 30,
  ending: ending(30, 25, { turn: { entry: 'clean', since: at(0) } }),
  now: 10,
  ...given,
  spec: { deferContainers: [entry('clean', more)], ...given.spec },
  runs: [app, ...(given.runs ?? [])],
});
const endOf = (given: Given) => {
  const { reason, message, exitCode } = entryState(decided(given), 'clean')?.terminated ?? {};
  return reason === undefined ? undefined : [reason, exitCode, ...(message === undefined ? [] : [message])];
};
const OnFailure = { restartPolicy: 'OnFailure' };

describe('a running entry', () => {
  const runs = [running('clean', { startedAt: at(0) })];
  it('a running entry is not stopped before its time has passed', () => {
    const decision = decided(inTurn({ timeoutSeconds: 20 }, { runs, now: 19 }));
    expect([asked(decision), decision.wakeAt]).toEqual([[], at(20)]);
  });
  it.each<[string, Partial<DeferContainer>, Given, Partial<Stop>, kill: number]>([
    [
      'its timeoutSeconds, counted from its turn',
      { timeoutSeconds: 20 },
      { now: 20 },
      { entry: 'DeadlineExceeded', message: 'Container clean exceeded its timeoutSeconds' },
      22,
    ],
    [
      'the end of the PreExit stage',
      {},
      { now: 25 },
      { entry: 'DeadlineExceeded', message: 'the PreExit stage had ended' },
      27,
    ],
    ['a client that gives it up', {}, { skip: ['clean'] }, { entry: 'GivenUp', message: 'given up' }, 12],
  ])('a running entry is stopped by %s, and killed 2 s later', (_, more, given, stop, kill) => {
    const decision = decided(inTurn(more, { ...given, runs }));
    expect(asked(decision)).toContain(`stopContainer/clean-0/@${kill}`);
    expect(decision.journal?.stops['clean-0']).toMatchObject(stop);
  });
  it('a running PostExit entry is stopped at the deadline', () => {
    const turn = { entry: 'clean', since: at(1) };
    const given = { deleted: 30, ending: ending(30, 15, { turn }), runs: [exited('app', 0, 1), ...runs] };
    const decision = decided({ ...given, spec: { deferContainers: [postExit('clean')] }, now: 30 });
    expect(asked(decision)).toEqual(['stopContainer/clean-0/@32']);
    expect(decision.journal?.stops['clean-0']?.message).toBe('the grace period had passed');
  });
  it('a running entry in state unknown is killed immediately', () => {
    const unknown = [running('clean', { state: 'unknown' })];
    expect(asked(decided(inTurn({}, { runs: unknown })))).toEqual(['stopContainer/clean-0/@-60']);
  });
});

describe('an entry that ended', () => {
  const stop = (more: Partial<Stop>) => ({ 'clean-0': { at: at(9), deadline: at(9), restart: false, ...more } });
  const late = { entry: 'DeadlineExceeded', message: 'Container clean exceeded its timeoutSeconds' } as const;
  const killed = [exited('clean', 137, 9.5)];
  it.each<[string, Partial<DeferContainer>, Given, unknown[] | undefined]>([
    ['an entry with exit code 0 is Completed', {}, { runs: [exited('clean', 0, 9)] }, ['Completed', 0]],
    [
      'an entry with exit code 0 and restartPolicy OnFailure is Completed',
      OnFailure,
      { runs: [exited('clean', 0, 9)] },
      ['Completed', 0],
    ],
    [
      'an entry with exit code 0 and restartPolicy Always is Completed',
      { restartPolicy: 'Always' },
      { runs: [exited('clean', 0, 9)] },
      ['Completed', 0],
    ],
    [
      'an entry with a nonzero exit code ends with the reason Error',
      {},
      { runs: [exited('clean', 3, 9)] },
      ['Error', 3],
    ],
    [
      'an entry with a nonzero exit code and restartPolicy OnFailure is retried',
      OnFailure,
      { runs: [exited('clean', 3, 9)] },
      undefined,
    ],
    [
      'an entry killed for its memory ends with the reason OOMKilled',
      {},
      { runs: [exited('clean', 137, 9, { reason: 'OOMKilled' })] },
      ['OOMKilled', 137],
    ],
    [
      'an entry stopped at its timeoutSeconds ends with the reason DeadlineExceeded',
      {},
      { runs: killed, memory: { stops: stop(late) } },
      ['DeadlineExceeded', 137, late.message],
    ],
    [
      'an entry stopped at its timeoutSeconds is not retried, even with restartPolicy OnFailure',
      OnFailure,
      { runs: killed, memory: { stops: stop(late) } },
      ['DeadlineExceeded', 137, late.message],
    ],
    [
      'an entry given up while it ran ends with the reason GivenUp',
      OnFailure,
      { runs: killed, memory: { stops: stop({ entry: 'GivenUp', message: 'given up' }) }, skip: ['clean'] },
      ['GivenUp', 137, 'given up'],
    ],
    [
      'an entry given up between two attempts ends with the reason GivenUp',
      OnFailure,
      { runs: [exited('clean', 3, 9)], skip: ['clean'] },
      ['GivenUp', 3, 'given up'],
    ],
    [
      'an entry that exited with 0 before its stop is Completed',
      {},
      { runs: [exited('clean', 0, 8)], memory: { stops: stop(late) } },
      ['Completed', 0],
    ],
    [
      'an entry whose liveness probe failed ends with the reason Error',
      {},
      { runs: killed, memory: { stops: stop({ message: 'Container clean failed liveness probe' }) } },
      ['Error', 137, 'Container clean failed liveness probe'],
    ],
    [
      'an entry with restartPolicy OnFailure whose liveness probe failed is retried',
      OnFailure,
      { runs: killed, memory: { stops: stop({ message: 'Container clean failed liveness probe', restart: true }) } },
      undefined,
    ],
    [
      'an entry whose timeoutSeconds passed between two attempts ends with the reason DeadlineExceeded',
      { ...OnFailure, timeoutSeconds: 10 },
      { runs: [exited('clean', 3, 9, { backoffSeconds: 10 })] },
      ['DeadlineExceeded', 3, 'Container clean exceeded its timeoutSeconds'],
    ],
    [
      'an entry whose stage ended between two attempts keeps the reason of its last attempt',
      OnFailure,
      { runs: [exited('clean', 3, 9)], now: 25 },
      ['Error', 3],
    ],
  ])('%s', (_, more, given, expected) => {
    expect(endOf(inTurn(more, given))).toEqual(expected);
  });
  it('app containers stop only once the status has the end of a failed entry', () => {
    const given = inTurn({}, { runs: [exited('clean', 3, 9)] });
    expect(asked(decided(given))).toEqual([]);
    const status = { deferContainerStatuses: [endedEntry('clean', 'Error', 3)] };
    expect(asked(decided({ ...given, status }))).toEqual(['stopContainer/app-0/@25']);
  });
});

describe('an entry that does not start', () => {
  const pull = { kind: 'pullImage', container: 'clean', attempt: 0, image: 'i' } as const;
  const failed = (seconds: number, more: Partial<FailedAction> = {}): Given['observed'] => ({
    failures: [{ action: pull, at: at(seconds), count: 1, reason: 'ErrImagePull', message: 'no', ...more }],
    images: { clean: { state: 'absent', attempt: 0, image: 'i' } },
  });
  it.each<[string, Partial<DeferContainer>, Given, unknown[] | undefined]>([
    [
      'an entry whose image cannot be pulled ends with the reason Error',
      {},
      { observed: failed(9) },
      ['Error', 128, 'ErrImagePull: no'],
    ],
    [
      'an entry with restartPolicy OnFailure whose image cannot be pulled is retried',
      OnFailure,
      { observed: failed(9) },
      undefined,
    ],
    ['a pull that failed before the turn of its entry does not end the entry', {}, { observed: failed(-1) }, undefined],
    [
      'a pull whose outcome is unknown does not end its entry',
      {},
      { observed: failed(9, { unknown: true }) },
      undefined,
    ],
    [
      'an entry whose image cannot be pulled within its timeoutSeconds ends with the reason DeadlineExceeded',
      { ...OnFailure, timeoutSeconds: 10 },
      { observed: failed(9) },
      ['DeadlineExceeded', 137, 'ErrImagePull: no'],
    ],
    [
      'an entry that does not start within its timeoutSeconds ends with the reason DeadlineExceeded',
      { timeoutSeconds: 10 },
      {},
      ['DeadlineExceeded', 137, 'Container clean did not start in its timeoutSeconds'],
    ],
    [
      'an entry whose image cannot be pulled until the end of its stage ends with the reason Error',
      OnFailure,
      { observed: failed(9), now: 25 },
      ['Error', 128, 'ErrImagePull: no'],
    ],
    [
      'an entry given up while its image is pulled is Skipped',
      OnFailure,
      { observed: failed(9), skip: ['clean'] },
      ['Skipped', 137, 'given up'],
    ],
  ])('%s', (_, more, given, expected) => {
    expect(endOf(inTurn(more, given))).toEqual(expected);
  });
  it('a failed pull in the turn of its entry is retried after 1 s, doubling', () => {
    expect(asked(decided(inTurn(OnFailure, { observed: failed(9) })))).toEqual(['pullImage/clean/0/i']);
    expect(decided(inTurn(OnFailure, { observed: failed(9, { count: 3 }) })).wakeAt).toBe(at(13));
    expect(decided(inTurn(OnFailure, { observed: failed(9, { count: 9 }) })).wakeAt).toBe(at(19));
  });
  it('a pull that failed before the turn of its entry is retried immediately', () => {
    expect(asked(decided(inTurn({}, { observed: failed(-1, { count: 9 }), now: 1 })))).toEqual(['pullImage/clean/0/i']);
  });
  it('a failed start ends an entry with restartPolicy Never', () => {
    const action = startOf('clean', 'defer', { backoffSeconds: 1 });
    const failures = [{ action, at: at(9), count: 1, reason: 'RunContainerError', message: 'no' }];
    expect(endOf(inTurn({}, { observed: { failures } }))).toEqual(['Error', 128, 'RunContainerError: no']);
    expect(endOf(inTurn(OnFailure, { observed: { failures } }))).toBeUndefined();
    // The agent found the container in the state created, so the start is retried.
    const runs = [running('clean', { state: 'created', startedAt: undefined })];
    const memory = { unstarted: new Set(['clean-0']) };
    expect(endOf(inTurn({}, { observed: { failures }, runs, memory }))).toBeUndefined();
  });
  it('a run that was stopped because the list is skipped has the exit code of a killed process', () => {
    const stop: Stop = { at: at(8), deadline: at(8), restart: false, entry: 'Skipped', message: 'no time' };
    const given = { runs: [exited('clean', 3, 9)], memory: { stops: { 'clean-0': stop } } };
    expect(endOf(inTurn({}, given))).toEqual(['Skipped', 137, 'no time']);
  });
  it('all but the last two runs of an entry are removed in its turn', () => {
    const runs = [2, 1, 0].map((attempt) =>
      attempt === 2 ? running('clean', { attempt }) : exited('clean', 1, attempt, { attempt }),
    );
    expect(asked(decided(inTurn(OnFailure, { runs })))).toEqual(['removeContainer/clean-0']);
  });
});

describe('the next attempt', () => {
  const given = inTurn(OnFailure, { runs: [exited('clean', 3, 9, { backoffSeconds: 4, startedAt: at(8) })] });
  it('the next attempt waits for the back-off, and is shown as CrashLoopBackOff', () => {
    const decision = decided(given);
    expect([asked(decision), decision.wakeAt]).toEqual([[], at(13)]);
    expect(entryState(decision, 'clean')?.waiting?.reason).toBe('CrashLoopBackOff');
  });
  it('the next attempt is announced in the status with its number, then started', () => {
    const decision = decided({ ...given, now: 13 });
    expect(asked(decision)).toEqual([]);
    expect(decision.status?.deferContainerStatuses?.[0]).toMatchObject({
      restartCount: 1,
      state: { waiting: { reason: 'ContainerCreating' } },
    });
    const status = { deferContainerStatuses: [{ ...announcedEntry('clean', 1), containerID: 'containerd://clean-0' }] };
    expect(asked(decided({ ...given, now: 13, status }))).toEqual(['startContainer/clean/1']);
  });
});

describe('the start of an entry', () => {
  const observed = { underWay: [startOf('clean', 'defer')] };
  it('the start of an entry is awaited until the end of its stage, even past its timeoutSeconds, and then canceled', () => {
    expect(endOf(inTurn({ timeoutSeconds: 20 }, { observed, now: 24 }))).toBeUndefined();
    const late = inTurn({}, { observed, now: 25 });
    expect(endOf(late)).toEqual(['DeadlineExceeded', 137, 'the PreExit stage had ended']);
    expect(asked(decided(late))).toContain('cancel/startContainer/clean/0');
  });
  it('the start of an entry that a client gave up is awaited, and the entry is then stopped', () => {
    const skip = ['clean'];
    expect(endOf({ ...inTurn({}, { observed }), skip })).toBeUndefined();
    const started = decided({ ...inTurn({}, { runs: [running('clean')] }), skip });
    expect(asked(started)).toContain('stopContainer/clean-0/@12');
    expect(started.journal?.stops['clean-0']).toMatchObject({ entry: 'GivenUp', restart: false });
  });
  it('the start of an entry is not awaited if the node has no time', () => {
    const nodeEnd = { reason: 'NodePressure', message: '', at: at(10), graceSeconds: 0 } as const;
    expect(endOf(inTurn({}, { observed, input: { nodeEnd } }))).toEqual(['Skipped', 137, 'the node had no time']);
  });
});

describe('an entry that waits for its next attempt', () => {
  it('an entry whose next attempt was created but did not start in time is not Skipped', () => {
    const made = running('clean', { id: 'clean-1', attempt: 1, state: 'created', startedAt: undefined });
    const given = inTurn(OnFailure, { runs: [exited('clean', 1, 4), made], now: 25 });
    expect(endOf(given)).toEqual(['DeadlineExceeded', 137, 'the PreExit stage had ended']);
    expect(endOf({ ...given, now: 10, skip: ['clean'] })).toEqual(['GivenUp', 137, 'given up']);
    expect(endOf({ ...given, now: 10, skip: ['clean'], deleted: 0 })).toEqual(['GivenUp', 137, 'given up']);
  });
  it('an entry that waits for its next attempt is Skipped if the node has no time', () => {
    const nodeEnd = { reason: 'NodePressure', message: '', at: at(5), graceSeconds: 0 } as const;
    const given = inTurn(OnFailure, { runs: [exited('clean', 1, 4)], now: 5, input: { nodeEnd } });
    expect(endOf(given)).toEqual(['Skipped', 137, 'the node had no time']);
  });
});

describe('an entry that ended on its own', () => {
  it('an entry that ended on its own keeps its end if a second delete moves the end of its stage to an earlier time', () => {
    const given = inTurn({}, { runs: [exited('clean', 1, 4.2)], now: 5, deleted: 1 });
    expect(endOf(given)).toEqual(['Error', 1]);
  });
});

describe('a run that is stopped for its probe', () => {
  it('a run being stopped for its probe is killed at its timeoutSeconds, or once its entry is given up', () => {
    const stops = { 'clean-0': { at: at(1), deadline: at(301), restart: false } };
    const given: Given = { runs: [running('clean')], memory: { stops, signalledAt: { 'clean-0': at(1) } }, now: 8 };
    expect(asked(decided(inTurn({ timeoutSeconds: 8 }, given)))).toContain('stopContainer/clean-0/@8');
    expect(asked(decided(inTurn({}, { ...given, skip: ['clean'] })))).toContain('stopContainer/clean-0/@8');
  });
});

describe('a run that the runtime has lost', () => {
  const shown: Given['status'] = {
    deferContainerStatuses: [
      {
        name: 'clean',
        restartCount: 0,
        containerID: 'containerd://clean-0',
        image: 'i',
        imageID: 'sha',
        ready: false,
        started: true,
        lastState: {},
        state: { running: { startedAt: stamp(1) } },
      },
    ],
  };
  it('a lost run ends an entry with restartPolicy Never, which never runs twice', () => {
    const given = inTurn({}, { status: shown });
    expect(endOf(given)).toEqual(['Error', 137, 'the runtime has lost the container']);
  });
  it('a lost run counts as an attempt of an entry with restartPolicy OnFailure', () => {
    expect(endOf(inTurn(OnFailure, { status: shown }))).toBeUndefined();
    const again = settled({ ...inTurn(OnFailure, { status: shown }), now: 12 });
    expect(asked(again)).toContain('checkImage/clean/1/i');
  });
});

describe('a lost sandbox', () => {
  const lost: Given['observed'] = { sandboxes: [sandbox(1)] };
  it('a lost sandbox ends a PreExit entry that ran in it', () => {
    expect(endOf(inTurn({}, { runs: [exited('clean', 137, 9)], observed: lost }))).toEqual([
      'SandboxLost',
      137,
      'the sandbox was lost',
    ]);
  });
  it('a lost sandbox ends a PreExit entry that was starting in it, because its app does not run in the new one', () => {
    const observed = { underWay: [startOf('clean', 'defer')], sandboxes: [sandbox(0, { ready: false })] };
    expect(endOf(inTurn(OnFailure, { observed }))).toEqual(['SandboxLost', 137, 'the sandbox was lost']);
  });
  it('a lost sandbox does not undo a success', () => {
    expect(endOf(inTurn({}, { runs: [exited('clean', 0, 9)], observed: lost }))).toEqual(['Completed', 0]);
  });
  const turn = { entry: 'clean', since: at(1) };
  const post: Given = {
    deleted: 30,
    ending: ending(30, 15, { turn }),
    now: 10,
    spec: { deferContainers: [postExit('clean')] },
    runs: [exited('app', 137, 1), exited('clean', 137, 9)],
  };
  it('a lost sandbox gives a PostExit entry another attempt in the new sandbox', () => {
    expect(endOf({ ...post, observed: lost })).toBeUndefined();
    const deferContainerStatuses = [{ ...announcedEntry('clean', 1), containerID: 'containerd://clean-0' }];
    const again = { ...post, observed: lost, status: { deferContainerStatuses } };
    expect(asked(decided(again))).toEqual(['startContainer/clean/1']);
  });
  it('a lost sandbox is replaced for a PostExit entry only once nothing runs in it', () => {
    const sandboxes = [sandbox(0, { ready: false })];
    expect(asked(decided({ ...post, observed: { sandboxes } }))).toEqual(['stopSandbox/s0']);
    const runs = [exited('app', 137, 1), running('clean')];
    expect(asked(decided({ ...post, runs, observed: { sandboxes } }))).toEqual(['stopContainer/clean-0/@12']);
    const sidecar = { initContainers: [container('proxy', { restartPolicy: 'Always' })] };
    const withSidecar = { ...post, spec: { ...post.spec, ...sidecar }, runs: [exited('app', 0, 1), running('proxy')] };
    expect(asked(decided({ ...withSidecar, observed: { sandboxes } }))).toEqual(['stopContainer/proxy-0/@12']);
  });
  it('a lost sandbox ends a PostExit entry whose stage is over', () => {
    expect(endOf({ ...post, observed: lost, now: 30 })).toEqual(['SandboxLost', 137, 'the sandbox was lost']);
  });
});

describe('failurePolicy', () => {
  const phaseAfter = (end: [reason: string, exitCode?: number, message?: string], more = {}, reason = 'Completed') => {
    const { status } = decided({
      spec: { restartPolicy: 'Never', deferContainers: [postExit('clean', { failurePolicy: 'FailPod', ...more })] },
      runs: [exited('app', 0, 0)],
      ending: ending(30, 15, { reason: reason as 'Completed' }),
      now: 10,
      status: { deferContainerStatuses: [endedEntry('clean', ...end)] },
    });
    return [status?.phase, ...(status?.reason === undefined ? [] : [status.reason])];
  };
  it.each<[string, [string, number?, string?], object, boolean]>([
    ['an entry that completed does not fail the Pod', ['Completed'], {}, false],
    ['an entry that failed fails the Pod', ['Error', 1], {}, true],
    ['a failed entry with Ignore does not fail the Pod', ['Error', 1], { failurePolicy: 'Ignore' }, false],
    ['an entry that was given up fails the Pod', ['GivenUp', 137, 'given up'], {}, true],
    ['an entry given up before its turn fails the Pod', ['Skipped', 137, 'given up'], { when: 'Failed' }, true],
    ['an entry that exceeded its deadline fails the Pod', ['DeadlineExceeded', 137], {}, true],
    ['an entry without time fails the Pod', ['Skipped', 137, 'the grace period had passed'], {}, true],
    ['an entry whose sandbox was lost fails the Pod', ['SandboxLost', 137, 'the sandbox was lost'], {}, true],
    [
      'an entry that was not due does not fail the Pod',
      ['Skipped', 137, 'not due on Completed'],
      { onReasons: ['Deleted'] },
      false,
    ],
    [
      'an entry ruled out by its `when` does not fail the Pod',
      ['Skipped', 137, 'the app containers did not fail'],
      { when: 'Failed' },
      false,
    ],
  ])('FailPod: %s', (_, end, more, fails) => {
    expect(phaseAfter(end, more)).toEqual(fails ? ['Failed', 'DeferContainerFailed'] : ['Succeeded']);
  });
  it('FailPod does not fail a Pod that was deleted', () => {
    expect(phaseAfter(['Error', 1], {}, 'Deleted')).toEqual(['Succeeded']);
  });
});

it('an entry with imageFrom starts from the image of the other container at its turn', () => {
  const clean = { name: 'clean', imageFrom: 'app', imagePullPolicy: 'IfNotPresent' };
  const spec = { containers: [container('app', { image: 'new' })], deferContainers: [clean] };
  const images = { clean: { state: 'present', attempt: 0, image: 'new', imageId: 'sha2' } } as const;
  const status = { deferContainerStatuses: [announcedEntry('clean')] };
  const [start] = decided(inTurn({}, { spec, observed: { images }, status })).actions;
  expect(start).toMatchObject({ kind: 'startContainer', container: 'clean', image: 'new', imageId: 'sha2' });
});
