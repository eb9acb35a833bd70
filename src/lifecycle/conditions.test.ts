import { describe, expect, it } from 'vitest';
import type { ContainerStatus, PodCondition } from '../api/generated/types.ts';
import type { Given } from './fixtures.ts';
import { at, container, decided, endedEntry, ending, entry, exited, running, sandbox, stamp } from './fixtures.ts';
import type { NodeEnd } from './types.ts';

const app = running('app');
const LIST = { deferContainers: [entry('one'), entry('two')] };
const PROBED = { containers: [container('app', { readinessProbe: { exec: { command: ['true'] } } })] };
const condition = (given: Given, type: string): PodCondition | undefined =>
  decided(given).status?.conditions?.find((each) => each.type === type);
const verdict = (given: Given, type: string): (string | undefined)[] => {
  const { status, reason, message } = condition(given, type) ?? {};
  return [status, reason, message].filter((each) => each !== undefined);
};

describe('Ready', () => {
  const passing = { 'app-0/readiness': { serial: 1, dueAt: at(60), successes: 1, failures: 0, passing: true } };
  const probes = { 'app-0/readiness': { serial: 2, result: 'Failure', message: 'no' } } as const;
  it.each<[string, Given, string[]]>([
    ['Ready is True while every container is ready', { runs: [app] }, ['True']],
    [
      'Ready is False while a container is not ready',
      { spec: PROBED, runs: [app] },
      ['False', 'ContainersNotReady', 'containers with unready status: [app]'],
    ],
    [
      'a deleted Pod stays ready while its probe succeeds, as upstream',
      { spec: { ...PROBED, ...LIST }, runs: [app], deleted: 30, memory: { probes: passing } },
      ['True'],
    ],
    [
      'a deleted Pod becomes unready once its probe fails',
      {
        spec: { ...PROBED, ...LIST },
        runs: [app],
        deleted: 30,
        observed: { probes },
        memory: { probes: { 'app-0/readiness': { ...passing['app-0/readiness'], failures: 2 } } },
      },
      ['False', 'ContainersNotReady', 'containers with unready status: [app]'],
    ],
    [
      'a Pod with defer containers that terminates without a deletion is not ready',
      { spec: { ...LIST, activeDeadlineSeconds: 1 }, runs: [app] },
      ['False', 'PodTerminating'],
    ],
    [
      'a Pod without defer containers that terminates without a deletion stays ready, as upstream',
      { spec: { activeDeadlineSeconds: 1 }, runs: [app] },
      ['True'],
    ],
    [
      'Ready is False in a Pod that succeeded',
      { spec: { restartPolicy: 'Never' }, runs: [exited('app', 0, 0)] },
      ['False', 'PodCompleted'],
    ],
    [
      'Ready is False in a Pod that failed',
      { spec: { restartPolicy: 'Never' }, runs: [exited('app', 1, 0)] },
      ['False', 'PodFailed'],
    ],
  ])('%s', (_, given, expected) => {
    expect(verdict(given, 'Ready')).toEqual(expected);
  });
  it('a sidecar counts like an app container for the readiness of the Pod', () => {
    const initContainers = [container('proxy', { restartPolicy: 'Always' })];
    const runs = [app, exited('proxy', 1, 0, { backoffSeconds: 10 })];
    expect(verdict({ spec: { initContainers }, runs }, 'Ready')[2]).toBe('containers with unready status: [proxy]');
  });
  it('every readiness gate requires its condition to be True', () => {
    const spec = { readinessGates: [{ conditionType: 'lb' }] };
    const gate = (status: string) => ({ conditions: [{ type: 'lb', status, lastTransitionTime: stamp(0) }] });
    expect(verdict({ spec, runs: [app] }, 'Ready')).toEqual([
      'False',
      'ReadinessGatesNotReady',
      'corresponding condition of pod readiness gate "lb" does not exist.',
    ]);
    expect(verdict({ spec, runs: [app], status: gate('False') }, 'Ready')[2]).toBe(
      'the status of pod readiness gate "lb" is not "True", but False',
    );
    expect(verdict({ spec, runs: [app], status: gate('True') }, 'Ready')).toEqual(['True']);
    expect(verdict({ spec, runs: [app] }, 'ContainersReady')).toEqual(['True']);
  });
});

it.each(['Completed', 'DeadlineExceeded', 'NodePressure', 'NodeShutdown'] as const)(
  'Ready is False in a Pod with defer containers that ends with reason %s, even if its containers are ready',
  (reason) => {
    const so = ending(30, 30, { reason, turn: { entry: 'one', since: at(0) } });
    const runs = [reason === 'Completed' ? exited('app', 0, 0) : app];
    expect(verdict({ spec: LIST, runs, ending: so, now: 1 }, 'Ready')).toEqual(['False', 'PodTerminating']);
  },
);

describe('Initialized', () => {
  const spec = { initContainers: [container('first'), container('second')] };
  it.each<[string, Given, string[]]>([
    ['Initialized is True without init containers', {}, ['True']],
    [
      'Initialized is False while an init container has not succeeded',
      { spec, runs: [exited('first', 0, -1)] },
      ['False', 'ContainersNotInitialized', 'containers with incomplete status: [second]'],
    ],
    [
      'Initialized is True once all init containers have succeeded',
      { spec, runs: [exited('first', 0, -2), exited('second', 0, -1)] },
      ['True'],
    ],
    [
      'Initialized is True in a Pod that succeeded',
      { spec: { restartPolicy: 'Never' }, runs: [exited('app', 0, 0)] },
      ['True', 'PodCompleted'],
    ],
  ])('%s', (_, given, expected) => {
    expect(verdict(given, 'Initialized')).toEqual(expected);
  });
});

it.each([
  [true, 'True'],
  [false, 'False'],
])('PodReadyToStartContainers with sandbox ready=%s is %s', (ready, status) => {
  expect(verdict({ observed: { sandboxes: [sandbox(0, { ready })] } }, 'PodReadyToStartContainers')).toEqual([status]);
});

describe('Deferred', () => {
  const listed = (...ends: ContainerStatus[]): Given => ({
    spec: LIST,
    runs: [exited('app', 0, 1), ...ends.map(({ name }) => exited(name, 0, 1))],
    deleted: 30,
    ending: ending(30),
    status: { deferContainerStatuses: ends },
    now: 5,
  });
  const [one, two] = [endedEntry('one'), endedEntry('two')];
  it.each<[string, Given, string[]]>([
    ['Deferred is absent before the termination', { spec: LIST, runs: [app] }, []],
    ['Deferred is absent in a Pod without defer containers', { deleted: 30, runs: [app] }, []],
    [
      'Deferred is False while the list is due',
      { spec: LIST, deleted: 30, runs: [app] },
      ['False', 'DeferContainersRunning'],
    ],
    ['Deferred is True once all entries have succeeded', listed(one, two), ['True', 'DeferContainersSucceeded']],
    [
      'an entry that was not due does not count as failed',
      listed(one, endedEntry('two', 'Skipped', 137, 'not due on Deleted')),
      ['True', 'DeferContainersSucceeded'],
    ],
    [
      'Deferred is False once entries have failed',
      listed(endedEntry('one', 'Error', 1), endedEntry('two', 'GivenUp', 137, 'given up')),
      ['False', 'DeferContainersFailed', 'defer containers that failed: [one two]'],
    ],
    [
      'an entry that was given up before its turn counts as failed',
      listed(one, endedEntry('two', 'Skipped', 137, 'given up')),
      ['False', 'DeferContainersFailed', 'defer containers that failed: [two]'],
    ],
    [
      'Deferred has the reason DeferContainersSkipped if no entry was due',
      listed(...['one', 'two'].map((name) => endedEntry(name, 'Skipped', 137, 'not due on Deleted'))),
      ['False', 'DeferContainersSkipped', 'not due on Deleted'],
    ],
    [
      'Deferred has the reason GracePeriodExceeded if an entry was skipped because of a grace period of 0',
      { ...listed(one, endedEntry('two', 'Skipped', 137, 'the Pod was deleted with a grace period of 0')), deleted: 0 },
      ['False', 'GracePeriodExceeded', 'defer containers that did not complete: [two]'],
    ],
    [
      'Deferred has the reason GracePeriodExceeded if all entries were skipped, one of them for lack of time',
      listed(
        endedEntry('one', 'Skipped', 137, 'not due on Deleted'),
        endedEntry('two', 'Skipped', 137, 'the grace period had passed'),
      ),
      ['False', 'GracePeriodExceeded', 'defer containers that did not complete: [two]'],
    ],
    [
      'Deferred has the reason NodeLost if the sandbox was lost',
      listed(endedEntry('one', 'SandboxLost', 137, 'the sandbox was lost'), two),
      ['False', 'NodeLost', 'defer containers that did not complete: [one]'],
    ],
    [
      'Deferred has the reason DeferContainersFailed if an entry exceeded its own timeoutSeconds',
      listed(one, endedEntry('two', 'DeadlineExceeded', 137, 'Container two exceeded its timeoutSeconds')),
      ['False', 'DeferContainersFailed', 'defer containers that failed: [two]'],
    ],
    [
      'Deferred has the reason GracePeriodExceeded if an entry was stopped at the deadline',
      listed(endedEntry('one', 'Error', 1), endedEntry('two', 'DeadlineExceeded', 137, 'the grace period had passed')),
      [
        'False',
        'GracePeriodExceeded',
        'defer containers that did not complete: [two]; defer containers that failed: [one]',
      ],
    ],
    [
      'Deferred has the reason GracePeriodExceeded if an entry was stopped at the end of the PreExit stage',
      listed(one, endedEntry('two', 'DeadlineExceeded', 137, 'the PreExit stage had ended')),
      ['False', 'GracePeriodExceeded', 'defer containers that did not complete: [two]'],
    ],
    [
      'Deferred has the reason NodeLost if the node was lost',
      { ...listed(one, endedEntry('two', 'SandboxLost', 137)), observed: { sandboxes: [] } },
      ['False', 'NodeLost', 'defer containers that did not complete: [two]'],
    ],
    [
      'Deferred has the reason DeferContainersSkipped if the list did not run',
      { spec: LIST, deleted: 0, runs: [app] },
      ['False', 'DeferContainersSkipped', 'the Pod was deleted with a grace period of 0'],
    ],
    [
      'Deferred has the reason DeferContainersSkipped if no container had started',
      { spec: LIST, deleted: 30 },
      ['False', 'DeferContainersSkipped', 'no container of the Pod had started'],
    ],
  ])('%s', (_, given, expected) => {
    expect(verdict(given, 'Deferred')).toEqual(expected);
  });
  it('a sandbox that was lost in time does not count as an exceeded grace period', () => {
    const given = listed(endedEntry('one', 'SandboxLost', 137), two);
    const observed = { sandboxes: [sandbox(1)] };
    expect(verdict({ ...given, observed }, 'Deferred')[1]).not.toBe('GracePeriodExceeded');
  });
  it('Deferred does not change once it is final', () => {
    const before = {
      type: 'Deferred',
      status: 'True',
      reason: 'DeferContainersSucceeded',
      lastTransitionTime: stamp(2),
    };
    const given = listed(one, endedEntry('two', 'SandboxLost', 137));
    const status = { ...given.status, conditions: [before] };
    expect(condition({ ...given, status }, 'Deferred')).toEqual(before);
  });
});

describe('DisruptionTarget', () => {
  const byNode = (reason: NodeEnd['reason']): Given => ({
    runs: [app],
    input: { nodeEnd: { reason, message: 'low', at: at(0), graceSeconds: 30 } },
  });
  it.each<[NodeEnd['reason'], string]>([
    ['NodePressure', 'low'],
    ['NodeShutdown', 'low'],
    ['Preempted', 'Pod was preempted by Kubelet to accommodate a critical pod.'],
  ])('the node sets DisruptionTarget for %s', (reason, message) => {
    expect(verdict(byNode(reason), 'DisruptionTarget')).toEqual(['True', 'TerminationByKubelet', message]);
  });
  it('DisruptionTarget is not set if the Pod was already terminating for another reason', () => {
    const given = { ...byNode('NodeShutdown'), deleted: 30, ending: ending(30) };
    expect(verdict(given, 'DisruptionTarget')).toEqual([]);
  });
});

describe('the list of conditions', () => {
  it('the list of conditions keeps conditions of other writers', () => {
    const own = { type: 'DeletionReason', status: 'True', reason: 'ScaledDown', lastTransitionTime: stamp(0) };
    expect(condition({ runs: [app], status: { conditions: [own] } }, 'DeletionReason')).toEqual(own);
  });
  it('lastTransitionTime changes only with the status', () => {
    const ready = (status: string) => ({ conditions: [{ type: 'Ready', status, lastTransitionTime: stamp(-50) }] });
    expect(condition({ runs: [app], status: ready('True') }, 'Ready')?.lastTransitionTime).toBe(stamp(-50));
    expect(condition({ runs: [app], status: ready('False') }, 'Ready')?.lastTransitionTime).toBe(stamp(0));
  });
});
