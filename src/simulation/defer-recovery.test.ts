/** Tests the first decision of a new agent about a terminating Pod with defer containers (entries). */
import { describe, expect, it } from 'vitest';
import type { ContainerStatus, DeferContainer, Pod } from '../api/generated/types.ts';
import { decide } from '../lifecycle/decide.ts';
import { rebuildMemory } from '../lifecycle/initial-memory.ts';
import type { ContainerState, Decision, Observed, SandboxState } from '../lifecycle/types.ts';
import { formatMicroTime } from '../machinery/time.ts';
import { simulatedPod } from './simulated-pod.ts';

const now = 1_700_000_100_000;
const sandbox: SandboxState = {
  id: 's-0',
  attempt: 0,
  ready: true,
  stopped: false,
  createdAt: now - 90_000,
  ips: ['10.0.0.1'],
};
const run = (name: string, more: Partial<ContainerState>): ContainerState => ({
  id: `id-${name}`,
  sandboxId: 's-0',
  name,
  kind: name.startsWith('defer') ? 'defer' : 'app',
  attempt: 0,
  state: 'running',
  createdAt: now - 80_000,
  startedAt: now - 80_000,
  image: 'busybox:1.28',
  imageId: 'sha256:1',
  backoffSeconds: 1,
  ...more,
});
const waiting = (reason: string): Partial<ContainerStatus> => ({ state: { waiting: { reason } }, restartCount: 0 });

/** Returns the first decision of a new agent. `entries`: the statuses of the defer containers. */
function found(
  entries: Partial<ContainerStatus>[],
  {
    deadline = now + 20_000,
    entry,
    turnSince,
    ...observed
  }: Partial<Observed> & { deadline?: number; entry?: Partial<DeferContainer>; turnSince?: number },
): Decision {
  const pod: Pod = simulatedPod({ apps: ['app'], defers: entries.map(() => ({ trigger: 'PostExit', ...entry })) });
  pod.metadata.deletionTimestamp = '2023-11-14T22:15:20Z';
  pod.metadata.deletionGracePeriodSeconds = 30;
  pod.status = {
    phase: 'Terminating',
    startTime: '2023-11-14T22:13:30Z',
    termination: {
      reason: 'Deleted',
      startedAt: formatMicroTime(now - 10_000),
      deadline: formatMicroTime(deadline),
      ...(turnSince === undefined ? {} : { turn: { entry: 'defer-1', since: formatMicroTime(turnSince) } }),
    },
    containerStatuses: [
      { name: 'app', restartCount: 0, ready: false, image: '', imageID: '', containerID: 'simulated://id-app' },
    ],
    deferContainerStatuses: entries.map((entry, i) => ({
      name: `defer-${i + 1}`,
      restartCount: 0,
      ready: false,
      image: '',
      imageID: '',
      ...entry,
    })),
  };
  const given = {
    pod,
    removed: false,
    node: { ips: ['192.0.2.1'], runtimeName: 'simulated' },
    now,
    observed: {
      sandboxes: [sandbox],
      containers: [],
      images: {},
      volumes: 'mounted',
      underWay: [],
      outages: [],
      failures: [],
      probes: {},
      hooks: {},
      ...observed,
    } as Observed,
  };
  const { memory, hooks } = rebuildMemory(given, { stops: {} });
  return decide({ ...given, observed: { ...given.observed, hooks }, memory });
}

const ended = { state: 'exited', exitCode: 0, finishedAt: now - 5000 } as const;
const states = ({ status }: Decision) =>
  status?.deferContainerStatuses?.map(({ state, restartCount }) => [
    state?.terminated?.reason ?? state?.waiting?.reason ?? 'running',
    restartCount,
  ]);
const deferred = ({ status }: Decision) => status?.conditions?.find(({ type }) => type === 'Deferred');

describe('an agent that finds a list under way', () => {
  it('a new agent adopts the running entry', () => {
    const decision = found([{ state: { running: {} }, containerID: 'simulated://id-defer-1' }], {
      containers: [run('app', ended), run('defer-1', {})],
    });
    expect(decision.actions).toEqual([]);
    expect(states(decision)).toEqual([['running', 0]]);
  });

  it('a new agent does not run an entry again that has ended, even if only the runtime shows its end', () => {
    const decision = found(
      [{ state: { terminated: { exitCode: 0, reason: 'Completed' } } }, waiting('ContainerCreating')],
      {
        containers: [run('app', ended), run('defer-2', { ...ended, finishedAt: now - 1000 })],
      },
    );
    expect(states(decision)).toEqual([
      ['Completed', 0],
      ['Completed', 0],
    ]);
    expect(decision.actions).toEqual([]);
  });

  it('an entry that succeeded after its timeoutSeconds, while no agent could stop it, has the reason DeadlineExceeded', () => {
    const running = { state: { running: {} }, containerID: 'simulated://id-defer-1' };
    for (const [millis, reason] of [
      [2900, 'Completed'],
      [3000, 'DeadlineExceeded'],
    ] as const) {
      const decision = found([running], {
        entry: { timeoutSeconds: 3 },
        turnSince: ended.finishedAt,
        containers: [run('app', ended), run('defer-1', { ...ended, finishedAt: ended.finishedAt + millis })],
      });
      expect(states(decision)).toEqual([[reason, 0]]);
    }
  });

  it('a run that failed before the status recorded its start is repeated once, even with restartPolicy Never', () => {
    const decision = found([waiting('ContainerCreating')], {
      containers: [run('app', ended), run('defer-1', { state: 'exited', exitCode: 137, finishedAt: now - 1000 })],
    });
    expect(states(decision)).toEqual([['ContainerCreating', 1]]);
  });

  it('a repeated attempt that the previous agent has announced is still made', () => {
    const failed = { state: 'exited', exitCode: 128, finishedAt: now - 1000 } as const;
    const terminated = { exitCode: 128, reason: 'StartError', containerID: 'simulated://id-defer-1' };
    const decision = found([{ ...waiting('ContainerCreating'), restartCount: 1, lastState: { terminated } }], {
      containers: [run('app', ended), run('defer-1', failed)],
    });
    expect(states(decision)).toEqual([['ContainerCreating', 1]]);
  });

  it('a run in state unknown whose start the status has not recorded is stopped and repeated', () => {
    const decision = found([waiting('ContainerCreating')], {
      containers: [run('app', ended), run('defer-1', { state: 'unknown' })],
    });
    expect(decision.actions).toContainEqual(expect.objectContaining({ kind: 'stopContainer', id: 'id-defer-1' }));
    expect(decision.memory.interrupted).toContain('id-defer-1');
  });

  it('a run that failed after the status recorded its start counts as failed', () => {
    const decision = found([{ state: { running: {} }, containerID: 'simulated://id-defer-1' }], {
      containers: [run('app', ended), run('defer-1', { state: 'exited', exitCode: 1, finishedAt: now - 1000 })],
    });
    expect(states(decision)).toEqual([['Error', 0]]);
    expect(deferred(decision)?.reason).toBe('DeferContainersFailed');
  });

  it.each([0, 1999])('a new agent does not move a deadline that is %i ms later than the deletionTimestamp', (late) => {
    const deadline = now + 20_000 + late;
    const decision = found([waiting('PendingDefer')], { containers: [run('app', {})], deadline });
    expect(decision.status?.termination?.deadline).toBe(formatMicroTime(deadline));
  });

  it('a new agent moves the deadline earlier if a delete while no agent ran leaves less time', () => {
    const decision = found([waiting('PendingDefer')], { containers: [run('app', {})], deadline: now + 40_000 });
    // The grace period of 30 s counts from the time at which the agent first receives the deletion.
    expect(decision.status?.termination?.deadline).toBe(formatMicroTime(now + 30_000));
  });

  it('a new agent creates a sandbox for PostExit entries if the old one is lost and there is time', () => {
    const decision = found([waiting('PendingDefer')], {
      sandboxes: [{ ...sandbox, ready: false, stopped: true }],
      containers: [run('app', { ...ended, exitCode: 255 })],
    });
    expect(decision.actions).toContainEqual({ kind: 'createSandbox', attempt: 1 });
  });

  it('a new agent records NodeLost if the sandbox is lost and the deadline has passed', () => {
    const lost = { containers: [run('app', { ...ended, exitCode: 255 })], deadline: now - 5000 };
    for (const sandboxes of [[{ ...sandbox, ready: false }], []]) {
      const decision = found([waiting('PendingDefer')], { ...lost, sandboxes });
      expect(states(decision)).toEqual([['Skipped', 0]]);
      expect(deferred(decision)).toMatchObject({ status: 'False', reason: 'NodeLost' });
    }
  });
});
