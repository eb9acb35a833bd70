import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../../machinery/meta.ts';
import type { ApiError } from '../../../../machinery/status.ts';
import type { Pod, PodStatus } from '../../../generated/types.ts';
import { podKind } from './index.ts';
import { defaulted, deferOf, podOf, statusOf } from './pod-fixtures.ts';

const { apply, response, events } = podKind.subresources['defer'] ?? {};
const termination = {
  reason: 'Deleted',
  startedAt: '2026-01-01T00:00:00.000000Z',
  deadline: '2026-01-01T00:00:30.000000Z',
};
const control = (skip?: string): KubeObject =>
  ({
    apiVersion: 'lifepod.io/v1',
    kind: 'DeferControl',
    metadata: { name: 'web' },
    skip,
  }) as KubeObject;

function ending(status: PodStatus = {}): Pod {
  const pod = defaulted(podOf({ deferContainers: [deferOf('first'), deferOf('second')] }));
  const deferContainerStatuses = [
    statusOf('first', { state: { terminated: { exitCode: 0, reason: 'Completed' } } }),
    statusOf('second', { state: { running: {} } }),
  ];
  return { ...pod, status: { phase: 'Terminating', termination, deferContainerStatuses, ...status } };
}
const giveUp = (pod: Pod, skip?: string): Pod => apply?.(pod, control(skip), { now: 0 }) as Pod;

function refusal(pod: Pod, skip?: string): unknown[] {
  try {
    giveUp(pod, skip);
  } catch (error) {
    const { code, reason, message, status } = error as ApiError;
    return [code, reason, message, status.details?.causes?.map(({ field }) => field)];
  }
  throw new Error('expected a refusal');
}

describe('the subresource defer', () => {
  it.each([
    ['a running entry', ending()],
    [
      'an entry that has not started',
      ending({ deferContainerStatuses: [statusOf('second', { state: { waiting: { reason: 'PendingDefer' } } })] }),
    ],
    ['an entry without a status', ending({ deferContainerStatuses: undefined })],
    ['an entry in a Pod whose phase is still Running', ending({ phase: 'Running' })],
  ])('giving up an entry is recorded in the status: %s', (_, pod) => {
    const after = giveUp(pod, 'second');
    expect(after).toEqual({ ...pod, status: { ...pod.status, termination: { ...termination, skip: ['second'] } } });
    expect(pod.status?.termination).toEqual(termination);
  });

  it('the entries that are given up accumulate', () => {
    const pod = ending({ termination: { ...termination, skip: ['second'] }, deferContainerStatuses: [] });
    expect(giveUp(pod, 'first').status?.termination?.skip).toEqual(['second', 'first']);
  });

  it.each([
    ['an entry that has terminated', ending(), 'first'],
    ['an entry that has terminated, in a Pod that has terminated', ending({ phase: 'Succeeded' }), 'first'],
    [
      'an entry that has already been given up',
      ending({ termination: { ...termination, skip: ['second'] } }),
      'second',
    ],
  ])('giving up an entry changes nothing: %s', (_, pod, name) => {
    expect(giveUp(pod, name)).toBe(pod);
  });

  const conflicts = 'Operation cannot be fulfilled on pods/defer "web": ';
  it('giving up an entry is a conflict in a Pod that is not terminating', () => {
    const deleted = ending({ termination: undefined });
    deleted.metadata.deletionTimestamp = '2026-01-01T00:00:30Z';
    for (const pod of [ending({ phase: 'Running', termination: undefined }), deleted]) {
      expect(refusal(pod, 'second').slice(0, 3)).toEqual([
        409,
        'Conflict',
        `${conflicts}the pod is not terminating: its node has not set status.termination`,
      ]);
    }
  });

  it('giving up an entry is a conflict in a Pod that has terminated', () => {
    expect(refusal(ending({ phase: 'Failed' }), 'second').slice(0, 3)).toEqual([
      409,
      'Conflict',
      `${conflicts}the pod has terminated: its defer containers can no longer run`,
    ]);
  });

  it('giving up an entry is a conflict in the mirror of a static Pod', () => {
    const pod = ending();
    pod.metadata.annotations = { 'kubernetes.io/config.mirror': 'hash' };
    expect(refusal(pod, 'second').slice(0, 3)).toEqual([
      409,
      'Conflict',
      `${conflicts}the pod mirrors a static pod of its node, whose defer containers cannot be given up through the API`,
    ]);
  });

  it.each<[string, string | undefined, string]>([
    ['an unknown entry', 'app', 'skip: Unsupported value: "app": supported values: "first", "second"'],
    ['no entry', undefined, 'skip: Required value'],
  ])('giving up %s is invalid', (_, skip, text) => {
    expect(refusal(ending(), skip)).toEqual([
      422,
      'Invalid',
      `DeferControl.lifepod.io "web" is invalid: ${text}`,
      ['skip'],
    ]);
  });

  it('giving up an entry returns the request and records an Event that names the user', () => {
    const pod = ending();
    expect(response?.(pod, control('second'))).toMatchObject({
      apiVersion: 'lifepod.io/v1',
      kind: 'DeferControl',
      metadata: { name: 'web', namespace: 'default', uid: 'u1' },
      skip: 'second',
    });
    expect(events?.(giveUp(pod, 'second'), pod, 'jane')).toEqual([
      {
        type: 'Normal',
        reason: 'DeferContainerGivenUp',
        message: 'User "jane" gave up defer container "second"',
        fieldPath: 'spec.deferContainers{second}',
      },
    ]);
    expect(events?.(pod, pod, 'jane')).toEqual([]);
  });
});
