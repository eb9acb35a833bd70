import { describe, expect, it } from 'vitest';
import { fieldErrorText } from '../../../../../machinery/field-error.ts';
import type { Pod, PodTermination } from '../../../../generated/types.ts';
import { podKind } from '../index.ts';
import { containerOf, defaulted, deferOf, podOf } from '../pod-fixtures.ts';

const valid: PodTermination = {
  reason: 'Deleted',
  startedAt: '2026-01-01T00:00:00.000000Z',
  deadline: '2026-01-01T00:00:30.000000Z',
  preExitDeadline: '2026-01-01T00:00:20.000000Z',
  outageSeconds: 1.5,
  turn: { entry: 'first', since: '2026-01-01T00:00:00.000000Z' },
  skip: ['second'],
  containers: [
    { name: 'init', kind: 'init', exitCode: 0, restartCount: 0 },
    { name: 'app', kind: 'app', exitCode: 137, reason: 'OOMKilled', signal: 9, restartCount: 2 },
  ],
};
const [init, app] = valid.containers ?? [];

const stored = (): Pod => {
  const pod = defaulted(
    podOf({ initContainers: [containerOf('init')], deferContainers: [deferOf('first'), deferOf('second')] }),
  );
  pod.metadata.resourceVersion = '1';
  podKind.prepareForCreate?.(pod, { now: 0 });
  return pod;
};

const errorsOf = (change: object, before?: PodTermination): string[] => {
  const old = stored();
  if (before !== undefined) old.status = { ...old.status, termination: before };
  const pod = { ...old, status: { ...old.status, termination: { ...valid, ...change } } } as Pod;
  return (podKind.subresources['status']?.validate?.(pod, old) ?? []).map(fieldErrorText);
};

const path = 'status.termination';

describe('status.termination', () => {
  it.each<[string, object, ...string[]]>([
    ['all fields', {}],
    [
      'only the required fields',
      { preExitDeadline: undefined, turn: undefined, skip: undefined, containers: undefined },
    ],
    [
      'an unknown reason',
      { reason: 'Bored' },
      `${path}.reason: Unsupported value: "Bored": supported values: "Deleted", "ScaledDown", "Replaced", "OwnerDeleted", "Evicted", "Preempted", "DeadlineExceeded", "NodeShutdown", "NodePressure", "Completed"`,
    ],
    [
      'no times',
      { startedAt: undefined, deadline: undefined },
      `${path}.startedAt: Required value`,
      `${path}.deadline: Required value`,
    ],
    [
      'negative seconds',
      { extendedSeconds: -1, outageSeconds: -0.5 },
      `${path}.extendedSeconds: Invalid value: -1: must be greater than or equal to 0`,
      `${path}.outageSeconds: Invalid value: -0.5: must be greater than or equal to 0`,
    ],
    [
      'a turn of an unknown entry',
      { turn: { entry: 'app', since: valid.startedAt } },
      `${path}.turn.entry: Not found: "app"`,
    ],
    ['a turn without its time', { turn: { entry: 'first' } }, `${path}.turn.since: Required value`],
    [
      'duplicate or unknown entries that were given up',
      { skip: ['first', 'first', 'third'] },
      `${path}.skip[1]: Duplicate value: "first"`,
      `${path}.skip[2]: Not found: "third"`,
    ],
    [
      'unknown or duplicate containers',
      { containers: [app, app, { ...app, name: 'first' }] },
      `${path}.containers[1].name: Duplicate value: "app"`,
      `${path}.containers[2].name: Not found: "first"`,
    ],
    [
      'containers with the wrong kind',
      {
        containers: [
          { ...init, kind: 'app' },
          { ...app, kind: 'defer' },
        ],
      },
      `${path}.containers[0].kind: Invalid value: "app": must be init`,
      `${path}.containers[1].kind: Unsupported value: "defer": supported values: "init", "app"`,
    ],
    [
      'a negative restart count',
      { containers: [{ ...app, restartCount: -1 }] },
      `${path}.containers[0].restartCount: Invalid value: -1: must be greater than or equal to 0`,
    ],
  ])('a changed status.termination is validated: %s', (_, change, ...expected) => {
    expect(errorsOf(change)).toEqual(expected);
  });

  it('an unchanged status.termination is not validated', () => {
    const other = { ...valid, reason: 'Bored', turn: undefined };
    expect(errorsOf(other, other)).toEqual([]);
  });
});
