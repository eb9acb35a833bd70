import { describe, expect, it } from 'vitest';
import { decide } from './decide.ts';
import {
  asked,
  at,
  container,
  decided,
  ending,
  entry,
  exited,
  type Given,
  inputOf,
  postExit,
  running,
  sandbox,
} from './fixtures.ts';
import { type Action, actionKey, type FailedAction } from './types.ts';

const exec = { command: ['true'] };
const create = { kind: 'createSandbox', attempt: 0 } as const;
const failed = (more: Partial<FailedAction> = {}): FailedAction => ({
  action: create,
  at: at(-1),
  count: 3,
  reason: 'Failed',
  message: 'no',
  ...more,
});
const withFailure = (more: Partial<FailedAction> = {}, now = 0): Given => ({
  observed: { sandboxes: [], failures: [failed(more)] },
  now,
});

describe('an action', () => {
  it('a failed action is requested again once its back-off has passed', () => {
    const waits = decided(withFailure());
    expect([asked(waits), waits.wakeAt]).toEqual([[], at(3)]);
    expect(asked(decided(withFailure({}, 3)))).toEqual(['createSandbox/0']);
  });
  it('an action with an unknown outcome backs off in the same way', () => {
    expect(asked(decided(withFailure({ unknown: true })))).toEqual([]);
    expect(asked(decided(withFailure({ unknown: true }, 3)))).toEqual(['createSandbox/0']);
  });
  it('a failed action whose cause has changed is requested immediately', () => {
    expect(asked(decided(withFailure({ due: true })))).toEqual(['createSandbox/0']);
  });
  it('a failed action delays no other action', () => {
    expect(asked(decided({ ...withFailure({ action: { kind: 'createSandbox', attempt: 7 } }) }))).toEqual([
      'createSandbox/0',
    ]);
  });
  it('an action under way is not requested again', () => {
    expect(asked(decided({ observed: { sandboxes: [], underWay: [create] } }))).toEqual([]);
  });
});

const LIFE: [string, Given][] = [
  ['a Pod that starts', { observed: { sandboxes: [], volumes: 'pending', images: {} } }],
  [
    'a Pod that runs',
    { spec: { containers: [container('app', { livenessProbe: { exec } })] }, runs: [running('app')] },
  ],
  ['a lost sandbox', { runs: [running('app')], observed: { sandboxes: [sandbox(0, { ready: false })] } }],
  ['a Pod that is deleted', { runs: [running('app')], deleted: 30 }],
  [
    'two sandboxes that stop',
    { runs: [exited('app', 0, -1)], deleted: 30, observed: { sandboxes: [sandbox(0), sandbox(1)] } },
  ],
  [
    'a list at its end',
    {
      spec: { deferContainers: [entry('pre'), postExit('post')] },
      deleted: 30,
      now: 30,
      ending: ending(30, 15, { turn: { entry: 'pre', since: at(0) } }),
      runs: [running('app'), running('pre')],
    },
  ],
];

describe.each(LIFE)('a decision for %s', (_, given) => {
  it('a decision requests no action twice', () => {
    const keys = decided(given).actions.map(actionKey);
    expect(keys).not.toEqual([]);
    expect(new Set(keys).size).toBe(keys.length);
  });
  it('a decision requests nothing more while all its actions are under way', () => {
    const input = inputOf(given);
    const first = decide(input);
    const underWay: readonly Action[] = first.actions;
    const again = decide({ ...input, memory: first.memory, observed: { ...input.observed, underWay } });
    expect(asked(again)).toEqual([]);
  });
  it('a decision does not change its input, and is deterministic', () => {
    const input = inputOf(given);
    const before = structuredClone(input);
    const first = decide(input);
    expect(input).toEqual(before);
    expect(decide(input)).toEqual(first);
  });
});

it('wakeAt is the earliest time at which something is due', () => {
  const containers = [container('app'), container('web')];
  const runs = [exited('app', 1, 0, { backoffSeconds: 80 }), exited('web', 1, 0, { backoffSeconds: 20 })];
  expect(decided({ spec: { containers }, runs }).wakeAt).toBe(at(20));
});
