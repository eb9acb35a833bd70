import { describe, expect, it } from 'vitest';
import type { TerminationReason } from '../api/core/v1/pod/status/termination-reasons.ts';
import type { PodSpec } from '../api/generated/types.ts';
import { formatMicroTime } from '../machinery/time.ts';
import {
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
  stamp,
} from './fixtures.ts';
import type { NodeEnd } from './types.ts';

const STOPPED = { sandboxes: [sandbox(0, { ready: false, stopped: true })] };
const LIST: Partial<PodSpec> = { deferContainers: [entry('clean')] };
const node = { ips: ['192.0.2.1'], runtimeName: 'containerd' };
const app = running('app');
const turn = { turn: { entry: 'clean', since: at(0) } };

describe('the phase', () => {
  const phaseOf = (given: Given): string | undefined => decided(given).status?.phase;
  const TWO = { containers: [container('app'), container('web')] };
  const INIT = { initContainers: [container('init')] };
  const Never = { restartPolicy: 'Never' };
  const deletedNow: Given = { deleted: 30, ending: ending(30, 30, turn) };
  it.each<[string, Given, string]>([
    ['the phase is Pending when no container has started', { status: { phase: 'Pending' } }, 'Pending'],
    ['the phase is Pending when an init container runs', { spec: INIT, runs: [running('init')] }, 'Pending'],
    ['the phase is Pending when one of two app containers has not started', { spec: TWO, runs: [app] }, 'Pending'],
    [
      'the phase is Running when every app container has started',
      { spec: TWO, runs: [app, running('web')] },
      'Running',
    ],
    [
      'the phase is Running when an app container backs off',
      { runs: [exited('app', 1, 0, { backoffSeconds: 10 })] },
      'Running',
    ],
    [
      'the phase is Succeeded when all app containers succeeded',
      { spec: Never, runs: [exited('app', 0, 0)] },
      'Succeeded',
    ],
    [
      'the phase is Failed when one app container failed',
      { spec: { ...Never, ...TWO }, runs: [exited('app', 0, 0), exited('web', 1, 0)] },
      'Failed',
    ],
    ['the phase is Terminating when the list is due', { ...deletedNow, spec: LIST, runs: [app] }, 'Terminating'],
    [
      'the phase is Running when no entry of the list is due for the reason',
      { ...deletedNow, spec: { deferContainers: [postExit('clean', { onReasons: ['Completed'] })] }, runs: [app] },
      'Running',
    ],
    [
      'the phase is Terminating when the list is due after the exit work began',
      { spec: { ...LIST, ...Never }, runs: [exited('app', 0, 0)] },
      'Terminating',
    ],
    [
      'the phase is Running when the list is due, and the engine has --terminating-phase=false',
      { ...deletedNow, spec: LIST, runs: [app], input: { node: { ...node, terminatingPhase: false } } },
      'Running',
    ],
    [
      'the phase is Pending when the list of a Pod that initializes is due, and the engine has --terminating-phase=false',
      {
        ...deletedNow,
        spec: { ...LIST, ...INIT },
        runs: [running('init')],
        status: { phase: 'Pending' },
        input: { node: { ...node, terminatingPhase: false } },
      },
      'Pending',
    ],
    [
      'the phase is Running when the list has ended and app containers run',
      {
        ...deletedNow,
        spec: LIST,
        runs: [app],
        status: { phase: 'Terminating', deferContainerStatuses: [endedEntry('clean')] },
      },
      'Running',
    ],
    ['the phase is Running when a Pod without entries is deleted', { deleted: 30, runs: [app] }, 'Running'],
    [
      'the phase is Succeeded when a deleted Pod has stopped, with exit code 0',
      { deleted: 30, runs: [exited('app', 0, 0)], observed: STOPPED },
      'Succeeded',
    ],
    [
      'the phase is Failed when a deleted Pod has stopped, with exit code 143',
      { deleted: 30, runs: [exited('app', 143, 0)], observed: STOPPED },
      'Failed',
    ],
    [
      'the phase stays Succeeded once it is final',
      { status: { phase: 'Succeeded' }, runs: [exited('app', 1, 0)] },
      'Succeeded',
    ],
    [
      'the phase is Running when a container of a failed Pod still runs',
      { spec: { activeDeadlineSeconds: 1 }, runs: [app] },
      'Running',
    ],
    [
      'the phase is Running when a sidecar of a finished Pod still runs',
      {
        spec: { ...Never, initContainers: [container('proxy', { restartPolicy: 'Always' })] },
        runs: [exited('app', 0, 0), running('proxy')],
      },
      'Running',
    ],
  ])('%s', (_, given, phase) => {
    expect(phaseOf(given)).toBe(phase);
  });
  it('after a list that ended in a new sandbox the phase is the one from before the list', () => {
    const status = { phase: 'Terminating', deferContainerStatuses: [endedEntry('clean')] };
    const observed = { sandboxes: [sandbox(1)] };
    expect(phaseOf({ ...deletedNow, spec: LIST, runs: [exited('app', 137, 0)], observed, status })).toBe('Running');
  });
  it('the exit work of a Pod that is then deleted ends with the final phase', () => {
    const deferContainerStatuses = [endedEntry('clean')];
    const given: Given = { spec: { ...LIST, ...Never }, runs: [exited('app', 0, 0)], observed: STOPPED, deleted: 30 };
    const status = { phase: 'Terminating', deferContainerStatuses };
    expect(phaseOf({ ...given, ending: ending(30, 30, { reason: 'Completed' }), status })).toBe('Succeeded');
  });
});

it('status.termination.containers keeps a container that has ended and that the runtime has forgotten', () => {
  const state = {
    terminated: { exitCode: 143, reason: 'Error', finishedAt: stamp(1), containerID: 'containerd://app-0' },
  };
  const app = { name: 'app', image: 'i', imageID: '', ready: false, restartCount: 2, lastState: {}, state };
  const given = { spec: LIST, deleted: 30, now: 3, ending: ending(30, 15, { turn: { entry: 'clean', since: at(2) } }) };
  const { status } = decided({ ...given, status: { containerStatuses: [app] } });
  expect(status?.termination?.containers).toEqual([
    { name: 'app', kind: 'app', exitCode: 143, restartCount: 2, reason: 'Error', signal: 15, finishedAt: stamp(1) },
  ]);
});

describe('an end that fails the Pod', () => {
  const stopped: Given = { runs: [exited('app', 0, 0)], observed: STOPPED };
  it.each<[TerminationReason, string, string]>([
    ['DeadlineExceeded', 'DeadlineExceeded', 'Pod was active on the node longer than the specified deadline'],
    ['NodePressure', 'Evicted', 'low'],
    ['NodeShutdown', 'Terminated', 'low'],
    ['Preempted', 'Preempting', 'low'],
  ])('the termination reason %s gives the status reason %s', (reason, expected, message) => {
    const nodeEnd = { reason: reason as NodeEnd['reason'], message: 'low', at: at(0), graceSeconds: 30 };
    const byNode = reason === 'DeadlineExceeded' ? {} : { input: { nodeEnd } };
    const { status } = decided({ ...stopped, ...byNode, ending: ending(30, 30, { reason }) });
    expect(status).toMatchObject({ phase: 'Failed', reason: expected, message });
  });
  it.each(['Preempted', 'DeadlineExceeded', 'NodePressure', 'Completed'] as const)(
    'a Pod that a client deletes with reason %s gets its phase from its containers',
    (reason) => {
      const so = ending(30, 30, { reason, requested: true });
      expect(decided({ ...stopped, deleted: 30, ending: so }).status?.phase).toBe('Succeeded');
    },
  );
});

describe('the states of entries', () => {
  const spec = { deferContainers: [entry('one'), entry('two')] };
  const stateOf = (given: Given, name = 'one') => entryState(decided({ spec, runs: [app], ...given }), name);
  const ended = { deleted: 30, ending: ending(30, 30, { turn: { entry: 'one', since: at(0) } }) };
  const failed = (seconds: number, reason = 'ErrImagePull'): Given['observed'] => ({
    images: { one: { state: 'absent', attempt: 0, image: 'i' } },
    failures: [
      {
        action: { kind: 'pullImage', container: 'one', attempt: 0, image: 'i' },
        at: at(seconds),
        count: 1,
        reason,
        message: 'no',
      },
    ],
  });
  it('before the termination every entry waits with the reason PodRunning', () => {
    expect(stateOf({})).toEqual({ waiting: { reason: 'PodRunning' } });
  });
  it('a failed pull ahead of the turn is shown in the entry', () => {
    for (const reason of ['ErrImagePull', 'RegistryUnavailable', 'SignatureValidationFailed'])
      expect(stateOf({ observed: failed(0, reason) })).toEqual({ waiting: { reason, message: 'no' } });
    expect(stateOf({ observed: failed(-2) })?.waiting?.reason).toBe('ImagePullBackOff');
  });
  it.each(['InvalidImageName', 'ImageInspectError', 'ErrImageNeverPull'])(
    'an image that is not pulled ahead of the turn because of %s is shown in the entry',
    (reason) => {
      const mustExist = reason === 'ErrImageNeverPull';
      const action = { kind: 'checkImage', container: 'one', attempt: 0, image: 'i', mustExist } as const;
      const observed = { images: {}, failures: [{ action, at: at(-2), count: 1, reason, message: 'no' }] };
      expect(stateOf({ observed })).toEqual({ waiting: { reason, message: 'no' } });
    },
  );
  it('a failed pull is shown as ImagePullBackOff after 1 s, and as ErrImagePull while it is retried', () => {
    const observed = failed(0);
    expect(decided({ spec, runs: [app], observed }).wakeAt).toBe(at(1));
    expect(stateOf({ observed, now: 1 })?.waiting?.reason).toBe('ImagePullBackOff');
    const underWay = observed?.failures?.map(({ action }) => action) ?? [];
    expect(stateOf({ observed: { ...observed, underWay }, now: 1 })?.waiting?.reason).toBe('ErrImagePull');
  });
  it('an entry that waits for an earlier one has the reason PendingDefer', () => {
    expect(stateOf(ended, 'two')).toEqual({ waiting: { reason: 'PendingDefer' } });
  });
  it('the entry in turn is announced with ContainerCreating', () => {
    expect(stateOf(ended)).toEqual({ waiting: { reason: 'ContainerCreating' } });
  });
  it('the entry in turn shows how its pull failed', () => {
    const spec = { deferContainers: [entry('one', { restartPolicy: 'OnFailure' })] };
    expect(stateOf({ ...ended, spec, observed: failed(1), now: 1 })?.waiting?.reason).toBe('ErrImagePull');
  });
  it('a running entry has the state running', () => {
    expect(stateOf({ ...ended, runs: [app, running('one', { startedAt: at(1) })] })).toEqual({
      running: { startedAt: stamp(1) },
    });
  });
  it('an entry that ended has exit code, reason and times', () => {
    const run = exited('one', 3, 2, { startedAt: at(1) });
    expect(stateOf({ ...ended, runs: [app, run], now: 3 })).toEqual({
      terminated: {
        exitCode: 3,
        reason: 'Error',
        startedAt: stamp(1),
        finishedAt: stamp(2),
        containerID: 'containerd://one-0',
      },
    });
  });
});

describe('status.termination', () => {
  const termination = (given: Given) => decided({ spec: LIST, runs: [app], deleted: 30, ...given }).status?.termination;
  it('status.termination has the reason, the times and the entry in turn', () => {
    expect(termination({})).toMatchObject({
      reason: 'Deleted',
      startedAt: formatMicroTime(at(0)),
      deadline: formatMicroTime(at(30)),
      preExitDeadline: formatMicroTime(at(30)),
      deletionGracePeriodSeconds: 30,
      turn: { entry: 'clean', since: formatMicroTime(at(0)) },
    });
  });
  it('status.termination keeps the entries that clients gave up', () => {
    expect(termination({ ending: ending(30), skip: ['clean'] })?.skip).toEqual(['clean']);
  });
  it('status.termination has the init and app containers that have ended', () => {
    const spec = { ...LIST, initContainers: [container('init')], containers: [container('app'), container('web')] };
    const runs = [exited('init', 0, -9), exited('app', 137, 1, { attempt: 2, reason: 'OOMKilled' }), running('web')];
    expect(termination({ spec, runs })?.containers).toEqual([
      { name: 'init', kind: 'init', exitCode: 0, reason: 'Completed', restartCount: 0, finishedAt: stamp(-9) },
      {
        name: 'app',
        kind: 'app',
        exitCode: 137,
        reason: 'OOMKilled',
        signal: 9,
        restartCount: 2,
        finishedAt: stamp(1),
      },
    ]);
  });
  it('status.termination is absent in a Pod without defer containers, and in a Pod that is not terminating', () => {
    expect(termination({ spec: {} })).toBeUndefined();
    expect(decided({ spec: LIST, runs: [app] }).status?.termination).toBeUndefined();
  });
});

describe('unknown ends', () => {
  const UNKNOWN = { exitCode: 137, reason: 'ContainerStatusUnknown' };
  it('a container of a stopped Pod counts as failed if its end is unknown', () => {
    const { status } = decided({ deleted: 30, observed: STOPPED });
    expect(status?.containerStatuses?.[0]?.state?.terminated).toMatchObject(UNKNOWN);
    expect(status?.phase).toBe('Failed');
  });
  it('a lost run has an unknown end and still counts as a restart, even if the previous run is known', () => {
    const known = {
      name: 'app',
      image: 'i',
      imageID: '',
      ready: true,
      restartCount: 1,
      containerID: 'containerd://lost',
    };
    const containerStatuses = [{ ...known, state: { running: { startedAt: stamp(2) } } }];
    const { status } = decided({ runs: [exited('app', 3, 1)], status: { containerStatuses } });
    expect(status?.containerStatuses?.[0]).toMatchObject({ restartCount: 1, lastState: { terminated: UNKNOWN } });
  });
  it('a container whose turn had not come keeps waiting', () => {
    const spec = { initContainers: [container('init'), container('later')] };
    const { status } = decided({ deleted: 30, spec, runs: [exited('init', 1, 0)], observed: STOPPED });
    expect(status?.initContainerStatuses?.map(({ state }) => Object.keys(state ?? {})[0])).toEqual([
      'terminated',
      'waiting',
    ]);
    expect(status?.containerStatuses?.[0]?.state?.waiting?.reason).toBe('PodInitializing');
  });
});

describe('addresses and times', () => {
  it('the Pod has the addresses of its sandbox and of its node', () => {
    expect(decided({ runs: [app] }).status).toMatchObject({
      podIP: '10.0.0.2',
      podIPs: [{ ip: '10.0.0.2' }],
      hostIP: '192.0.2.1',
      hostIPs: [{ ip: '192.0.2.1' }],
    });
  });
  it('with hostNetwork the Pod has the addresses of its node', () => {
    expect(decided({ runs: [app], spec: { hostNetwork: true } }).status?.podIP).toBe('192.0.2.1');
  });
  it('with two IP families the Pod has two addresses, and so has its node', () => {
    const [pods, hosts] = [
      ['10.0.0.2', 'fd00::2'],
      ['192.0.2.1', '2001:db8::1'],
    ];
    const listed = (ips: string[] | undefined) => ips?.map((ip) => ({ ip }));
    const given: Given = {
      runs: [app],
      input: { node: { ...node, ips: hosts ?? [] } },
      observed: { sandboxes: [sandbox(0, { ips: pods ?? [] })] },
    };
    expect(decided(given).status).toMatchObject({
      podIP: '10.0.0.2',
      podIPs: listed(pods),
      hostIP: '192.0.2.1',
      hostIPs: listed(hosts),
    });
    expect(decided({ ...given, spec: { hostNetwork: true } }).status?.podIPs).toEqual(listed(hosts));
  });
  it('the address is kept once the sandbox has stopped', () => {
    const status = { podIP: '10.0.0.9', podIPs: [{ ip: '10.0.0.9' }] };
    expect(decided({ deleted: 30, runs: [app], observed: STOPPED, status }).status?.podIP).toBe('10.0.0.9');
  });
  it('no container ends before it started, even if the runtime records the start late', () => {
    const runs = [exited('app', 0, 5, { startedAt: at(6) })];
    const { status } = decided({ spec: { restartPolicy: 'Never' }, runs });
    expect(status?.containerStatuses?.[0]?.state?.terminated).toMatchObject({
      startedAt: stamp(6),
      finishedAt: stamp(6),
    });
  });
  it('startTime is the time of the first decision, and never changes', () => {
    expect(decided({}).status?.startTime).toBe(stamp(-100));
    expect(decided({ status: { phase: 'Pending', startTime: undefined } as never }).status?.startTime).toBe(stamp(0));
  });
  it('observedGeneration is the generation of the object', () => {
    expect(decided({ metadata: { generation: 4 } }).status?.observedGeneration).toBe(4);
  });
});

it('a PostExit entry keeps the phase Terminating after the app containers', () => {
  const spec = { deferContainers: [postExit('clean')] };
  const { status } = decided({ spec, runs: [exited('app', 0, 1)], deleted: 30, ending: ending(30, 15, turn), now: 2 });
  expect(status?.phase).toBe('Terminating');
});
