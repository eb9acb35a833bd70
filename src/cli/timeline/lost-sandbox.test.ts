/** Checks the timeline of a Pod whose sandbox was lost, with the records of simulated lives. */
import { expect, test } from 'vitest';
import type { Transition } from '../../lifecycle/types.ts';
import { lifeOf } from '../../simulation/defer-life.ts';
import { drawLife } from './draw.ts';

const SPEC = [
  { name: 'app', kind: 'app' },
  { name: 'defer-1', kind: 'defer' },
] as const;
/** Returns the life of a Pod with a defer container whose machine loses its power at 5 s and runs again at 8 s. */
const powerLoss = (limitMillis: number, deletions: { at: number; graceSeconds: number }[] = []) =>
  lifeOf([{}], { absences: [{ at: 5000, millis: 3000, reboot: true }], deletions, limitMillis });
const rows = (transitions: readonly Transition[], now: number): string[] =>
  drawLife(transitions, { width: 80, color: false, now, spec: SPEC }).slice(1, 4);

test('the timeline shows a Pod that runs again after a power loss as running', async () => {
  const { transitions, now } = await powerLoss(40_000);
  expect(transitions.map(({ type }) => type)).toEqual(expect.arrayContaining(['SandboxLost', 'SandboxStopped']));
  const [sandbox, app, bye] = rows(transitions, now);
  expect(sandbox).toMatch(/^ +sandbox .*✗.*━ +lost 1×$/);
  expect(app).toMatch(/^app +app .*█255.*█ +running \(run 2\)$/);
  expect(bye).toMatch(/^defer defer-1 +not yet due$/);
});

test('the timeline does not show a Pod as ended at any step of its recovery from a power loss', async () => {
  const { transitions, now } = await powerLoss(40_000);
  const lost = transitions.findIndex(({ type }) => type === 'SandboxLost');
  expect(lost).toBeGreaterThan(0);
  for (let end = lost; end <= transitions.length; end++)
    expect(rows(transitions.slice(0, end), now)[2]).toMatch(/ not yet due$/);
});

test('a step about a lost sandbox that was recorded after its replacement does not end the Pod', () => {
  const step = (at: number, type: string, more: Partial<Transition> = {}): Transition => ({
    key: `${type}/${at}`,
    at,
    type,
    ...more,
  });
  const app = { container: 'app', containerKind: 'app' } as const;
  const steps = [
    step(0, 'SandboxReady', { attempt: 0 }),
    step(10, 'Started', { ...app, attempt: 0 }),
    step(5000, 'Exited', { ...app, attempt: 0, exitCode: 255 }),
    step(6000, 'SandboxReady', { attempt: 1 }),
    step(6000, 'SandboxStopped', { attempt: 0 }),
    step(6500, 'Started', { ...app, attempt: 1 }),
    step(8000, 'TerminationBegan', { reason: 'Deleted', deadline: 38_000 }),
  ];
  const [sandbox, row] = rows(steps, 9000);
  expect(sandbox).toMatch(/━.* ready$/);
  expect(row).toMatch(/ running \(run 2\)$/);
});

test('the timeline shows a container and a sandbox that a restore has lost as lost, also after the Pod has failed', () => {
  const step = (at: number, type: string, more: Partial<Transition> = {}): Transition => ({
    key: `${type}/${at}`,
    at,
    type,
    ...more,
  });
  const app = { container: 'app', containerKind: 'app', attempt: 0 } as const;
  const lost = [
    step(0, 'SandboxReady', { attempt: 0 }),
    step(10, 'Started', app),
    step(8000, 'SandboxLost'),
    step(8000, 'Exited', { ...app, exitCode: 137, reason: 'ContainerStatusUnknown' }),
  ];
  const failed = [...lost, step(8000, 'TerminationBegan', { reason: 'Completed' }), step(8050, 'Finished')];
  for (const steps of [lost, failed]) {
    const [sandbox, row] = rows(steps, 60_000);
    expect(sandbox).toMatch(/━[✗▽] +lost 1×$/);
    expect(row).toMatch(/█✗ +lost, end unknown$/);
  }
  expect(rows(failed, 60_000)[2]).toMatch(/never ran$/);
});

test('the timeline shows a Pod as ended that was deleted after a power loss', async () => {
  const { transitions, now } = await powerLoss(120_000, [{ at: 15_000, graceSeconds: 5 }]);
  const stopped = transitions.findLastIndex(({ type }) => type === 'SandboxStopped');
  const [, app, bye] = rows(transitions.slice(0, stopped + 1), now);
  expect(app).toMatch(/ exit \d+ 2×$/);
  expect(bye).toMatch(/ exit 0$/);
});

test('a long sentence about the termination is wrapped to the width of the terminal', () => {
  const steps: Transition[] = [
    { key: 'a', at: 0, type: 'Created' },
    { key: 'b', at: 141_000, type: 'TerminationBegan', reason: 'NodeShutdown', deadline: 161_000 },
    { key: 'c', at: 141_000, type: 'DeadlineSet', deadline: 161_000 },
    { key: 'd', at: 142_000, type: 'DeadlineSet', deadline: 162_500 },
  ];
  const lines = drawLife(steps, { width: 80, color: false, now: 143_000, spec: [], reservedFrom: 157_000 });
  const from = lines.findIndex((line) => line.startsWith('NodeShutdown'));
  expect(lines.slice(from, from + 2)).toEqual([
    'NodeShutdown at +2m21s, deadline 21.5s later (before: 20.0s), 5.50s of it for',
    'PostExit entries',
  ]);
});
