import { describe, expect, it } from 'vitest';
import type { Container, ContainerState, ContainerStatus, PodSpec, PodStatus } from '../../../generated/types.ts';
import { podKind } from './index.ts';
import { containerOf, podOf, statusOf } from './pod-fixtures.ts';

/** Five minutes after the creation of the Pods in the fixtures. */
const context = { now: Date.parse('2026-01-01T00:05:00Z') };

const running = (name: string, more: Partial<ContainerStatus> = {}): ContainerStatus =>
  statusOf(name, { ready: true, started: true, state: { running: {} }, ...more });
const waiting = (name: string, reason: string): ContainerStatus => statusOf(name, { state: { waiting: { reason } } });
const ended = (name: string, terminated: NonNullable<ContainerState['terminated']>): ContainerStatus =>
  statusOf(name, { state: { terminated } });
const done = (name: string): ContainerStatus => ended(name, { exitCode: 0, reason: 'Completed' });
const restarted = (count: number, finishedAt?: string): Partial<ContainerStatus> => ({
  restartCount: count,
  lastState: finishedAt === undefined ? undefined : { terminated: { exitCode: 1, finishedAt } },
});
const app = containerOf('app');
const inits = [containerOf('i0'), containerOf('i1')];
const sidecar: Container = containerOf('s', { restartPolicy: 'Always' });
const ready = [{ type: 'Ready', status: 'True' }];
const initialized = [{ type: 'Initialized', status: 'True' }];
const pending = waiting('app', 'PodInitializing');

type Golden = [row: string, spec: Partial<PodSpec>, status: PodStatus, deleted?: boolean];

const golden: Golden[] = [
  ['0/1 Pending 0', {}, { phase: 'Pending' }],
  [
    '0/1 SchedulingGated 0',
    {},
    { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }] },
  ],
  ['0/1 Evicted 0', {}, { phase: 'Failed', reason: 'Evicted' }],
  ['0/1 ContainerCreating 0', {}, { phase: 'Pending', containerStatuses: [waiting('app', 'ContainerCreating')] }],
  ['0/1 ImagePullBackOff 0', {}, { phase: 'Pending', containerStatuses: [waiting('app', 'ImagePullBackOff')] }],
  ['1/1 Running 0', {}, { phase: 'Running', conditions: ready, containerStatuses: [running('app')] }],
  ['0/1 Running 0', {}, { phase: 'Running', containerStatuses: [running('app', { ready: false })] }],

  [
    '0/1 Init:0/2 0',
    { initContainers: inits },
    {
      phase: 'Pending',
      initContainerStatuses: [waiting('i0', 'PodInitializing'), waiting('i1', 'PodInitializing')],
      containerStatuses: [pending],
    },
  ],
  [
    '0/1 Init:0/2 0',
    { initContainers: inits },
    {
      phase: 'Pending',
      initContainerStatuses: [running('i0', { ready: false }), waiting('i1', 'PodInitializing')],
      containerStatuses: [pending],
    },
  ],
  [
    '0/1 Init:1/2 0',
    { initContainers: inits },
    {
      phase: 'Pending',
      initContainerStatuses: [done('i0'), running('i1', { ready: false })],
      containerStatuses: [pending],
    },
  ],
  [
    '0/1 PodInitializing 0',
    { initContainers: inits },
    {
      phase: 'Pending',
      conditions: initialized,
      initContainerStatuses: [done('i0'), done('i1')],
      containerStatuses: [pending],
    },
  ],
  [
    '0/1 Init:Error 0',
    { initContainers: inits },
    {
      phase: 'Pending',
      initContainerStatuses: [ended('i0', { exitCode: 1, reason: 'Error' })],
      containerStatuses: [pending],
    },
  ],
  [
    '0/1 Init:ExitCode:3 0',
    { initContainers: inits },
    { phase: 'Pending', initContainerStatuses: [ended('i0', { exitCode: 3 })] },
  ],
  [
    '0/1 Init:Signal:9 0',
    { initContainers: inits },
    { phase: 'Pending', initContainerStatuses: [ended('i0', { exitCode: 137, signal: 9 })] },
  ],
  [
    '0/1 Init:CrashLoopBackOff 3 (2m10s ago)',
    { initContainers: inits },
    {
      phase: 'Pending',
      initContainerStatuses: [
        { ...waiting('i0', 'CrashLoopBackOff'), ...restarted(3, '2026-01-01T00:02:50Z') },
        waiting('i1', 'PodInitializing'),
      ],
      containerStatuses: [pending],
    },
  ],
  [
    '0/1 Init:ImagePullBackOff 0',
    { initContainers: inits },
    { phase: 'Pending', initContainerStatuses: [waiting('i0', 'ImagePullBackOff')] },
  ],
  [
    '0/1 Init:Error 0',
    { initContainers: inits },
    {
      phase: 'Failed',
      initContainerStatuses: [done('i0'), ended('i1', { exitCode: 1, reason: 'Error' })],
      containerStatuses: [pending],
    },
  ],
  [
    '1/1 Running 0',
    { initContainers: inits },
    {
      phase: 'Running',
      conditions: [...initialized, ...ready],
      initContainerStatuses: [{ ...done('i0'), ...restarted(2, '2026-01-01T00:01:00Z') }, done('i1')],
      containerStatuses: [running('app')],
    },
  ],

  [
    '1/2 Init:1/2 0',
    { initContainers: [sidecar, containerOf('i1')] },
    {
      phase: 'Pending',
      initContainerStatuses: [running('s'), running('i1', { ready: false })],
      containerStatuses: [pending],
    },
  ],
  [
    '0/2 Init:0/1 0',
    { initContainers: [sidecar] },
    {
      phase: 'Pending',
      initContainerStatuses: [statusOf('s', { started: false, state: { running: {} } })],
      containerStatuses: [pending],
    },
  ],
  [
    '2/2 Running 4 (10s ago)',
    { initContainers: [sidecar] },
    {
      phase: 'Running',
      conditions: [...initialized, ...ready],
      initContainerStatuses: [running('s', restarted(3, '2026-01-01T00:04:50Z'))],
      containerStatuses: [running('app', restarted(1, '2026-01-01T00:01:00Z'))],
    },
  ],
  [
    '1/2 Init:CrashLoopBackOff 1',
    { initContainers: [sidecar] },
    {
      phase: 'Running',
      conditions: initialized,
      initContainerStatuses: [{ ...waiting('s', 'CrashLoopBackOff'), restartCount: 1 }],
      containerStatuses: [running('app')],
    },
  ],

  ['0/1 Completed 0', {}, { phase: 'Succeeded', containerStatuses: [done('app')] }],
  ['0/1 Error 0', {}, { phase: 'Failed', containerStatuses: [ended('app', { exitCode: 1, reason: 'Error' })] }],
  [
    '0/1 OOMKilled 0',
    {},
    { phase: 'Failed', containerStatuses: [ended('app', { exitCode: 137, reason: 'OOMKilled' })] },
  ],
  ['0/1 ExitCode:2 0', {}, { phase: 'Failed', containerStatuses: [ended('app', { exitCode: 2 })] }],
  ['0/1 Signal:15 0', {}, { phase: 'Failed', containerStatuses: [ended('app', { exitCode: 143, signal: 15 })] }],
  [
    '0/1 CrashLoopBackOff 5 (30s ago)',
    {},
    {
      phase: 'Running',
      containerStatuses: [{ ...waiting('app', 'CrashLoopBackOff'), ...restarted(5, '2026-01-01T00:04:30Z') }],
    },
  ],
  ['1/1 Running 2', {}, { phase: 'Running', containerStatuses: [running('app', restarted(2))] }],
  [
    '1/2 Running 0',
    { containers: [app, containerOf('b')] },
    { phase: 'Running', conditions: ready, containerStatuses: [done('app'), running('b')] },
  ],
  [
    '1/2 NotReady 0',
    { containers: [app, containerOf('b')] },
    { phase: 'Running', containerStatuses: [done('app'), running('b')] },
  ],
  [
    '1/2 Error 0',
    { containers: [app, containerOf('b')] },
    { phase: 'Running', containerStatuses: [ended('app', { exitCode: 1, reason: 'Error' }), running('b')] },
  ],

  ['1/1 Terminating 0', {}, { phase: 'Running', containerStatuses: [running('app')] }, true],
  [
    '0/1 Terminating 0',
    { initContainers: inits },
    { phase: 'Pending', initContainerStatuses: [running('i0', { ready: false })] },
    true,
  ],
  ['0/1 Completed 0', {}, { phase: 'Succeeded', containerStatuses: [done('app')] }, true],
  ['1/1 Unknown 0', {}, { phase: 'Running', reason: 'NodeLost', containerStatuses: [running('app')] }, true],
];

describe('table of Pods', () => {
  it('the table of Pods has the columns of v1.33', () => {
    expect(podKind.columns.map(({ name, priority }) => `${name}:${priority}`).join(' ')).toBe(
      'Name:0 Ready:0 Status:0 Restarts:0 Age:0 IP:1 Node:1 Nominated Node:1 Readiness Gates:1',
    );
  });

  it.each(golden)(
    'ready, status and restarts of a Pod in kubectl get pods: %s',
    (expected, spec, status, deleted = false) => {
      const pod = podOf(spec, status);
      if (deleted) pod.metadata.deletionTimestamp = '2026-01-01T00:04:00Z';
      const row = podKind.row(pod, context);
      expect(row.slice(1, 4).join(' ')).toBe(expected);
      expect([row[0], ...row.slice(4)]).toEqual(['web', '5m', '<none>', '<none>', '<none>', '<none>']);
    },
  );

  it('the wide table of Pods shows addresses, nodes and readiness gates', () => {
    const pod = podOf(
      { nodeName: 'node-1', readinessGates: [{ conditionType: 'a' }, { conditionType: 'b' }] },
      {
        phase: 'Running',
        podIPs: [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }],
        nominatedNodeName: 'node-2',
        conditions: [
          { type: 'a', status: 'True' },
          { type: 'b', status: 'False' },
        ],
      },
    );
    expect(podKind.row(pod, context).slice(5)).toEqual(['10.0.0.1', 'node-1', 'node-2', '1/2']);
  });
});
