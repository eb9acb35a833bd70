import { expect, test } from 'vitest';
import type { Transition } from '../../lifecycle/types.ts';
import { type DrawOptions, drawLife, stepLines } from './draw.ts';

const START = Date.UTC(2026, 0, 31, 12);
const options: DrawOptions = { width: 80, color: false, now: START + 10_000, spec: [] };

/**
 * Returns a step, `at` milliseconds after the start. `where` is a run, such as `app#0` of an app container or `init:one#0` of an init
 * container, or a container, such as `defer:bye`; '' for a step of the whole Pod.
 */
function step(at: number, type: string, where = '', more: Partial<Transition> = {}): Transition {
  const [, kind = 'app', container, attempt] = /^(?:(\w+):)?([\w-]+)?(?:#(\d+))?$/.exec(where) ?? [];
  return {
    key: `${type}/${where}/${at}`,
    at: START + at,
    type,
    container,
    containerKind: container === undefined ? undefined : (kind as 'app'),
    attempt: attempt === undefined ? undefined : Number(attempt),
    ...more,
  };
}
const until = (at: number): Partial<Transition> => ({ deadline: START + at });

const WHOLE = [
  step(0, 'Created'),
  step(0, 'Scheduled', '', { message: 'to node n' }),
  step(500, 'SandboxReady', '', { attempt: 0 }),
  step(500, 'Pulling', 'init:one#0'),
  step(1500, 'Pulled', 'init:one#0'),
  step(1600, 'Started', 'init:one#0'),
  step(2600, 'Exited', 'init:one#0', { exitCode: 0, reason: 'Completed' }),
  step(2700, 'Started', 'app#0'),
  step(3000, 'ProbeFailing', 'app#0', { reason: 'readiness' }),
  step(4000, 'ProbePassing', 'app#0', { reason: 'readiness' }),
  step(2700, 'Started', 'side-with-quite-a-long-name#0'),
  step(3700, 'Exited', 'side-with-quite-a-long-name#0', { exitCode: 3, reason: 'Error' }),
  step(3700, 'BackOff', 'side-with-quite-a-long-name#0', until(5700)),
  step(5700, 'Started', 'side-with-quite-a-long-name#1'),
  step(7000, 'TerminationBegan', '', { reason: 'Deleted', ...until(12_000) }),
  step(7000, 'DeadlineSet', '', until(12_000)),
  step(7000, 'HookBegan', 'app#0', { reason: 'preStop' }),
  step(7100, 'DeferBegan', 'defer:bye'),
  step(7200, 'Started', 'defer:bye#0'),
  step(8000, 'DeadlineSet', '', { ...until(10_000), message: 'another deletion with a shorter grace period' }),
  step(8500, 'Exited', 'defer:bye#0', { exitCode: 0 }),
  step(8500, 'DeferEnded', 'defer:bye', { exitCode: 0 }),
  step(8500, 'HookFailed', 'app#0', { reason: 'preStop' }),
  step(8500, 'StopSignal', 'app#0', until(10_000)),
  step(8500, 'StopSignal', 'side-with-quite-a-long-name#1', until(10_000)),
  step(8600, 'Exited', 'side-with-quite-a-long-name#1', { exitCode: 143 }),
  step(9500, 'Exited', 'app#0', { exitCode: 137 }),
  step(9500, 'DeferSkipped', 'defer:last', { reason: 'Skipped' }),
  step(9600, 'SandboxStopped'),
  step(9800, 'Removed'),
  step(9900, 'Gone'),
];

/** Starts each line with `|`, so that leading blanks are visible. */
const shown = (lines: readonly string[]): string => lines.map((line) => `|${line}`).join('\n');

test('the timeline shows the whole life of a deleted Pod', () => {
  expect(shown(drawLife(WHOLE, options))).toMatchInlineSnapshot(`
    "|                               ╵0s    ╵2s    ╵4s     ╵6s    ╵8s    ┃
    |      sandbox                  ·━━━━━━━━━━━━━━━━━━━━━━━━▽━━━━━━━━━ ┃ stopped
    |init  one                       ▒▒▒▒████0                          ┃ exit 0
    |app   app                       ········██▼██▲██████████◆█████◇137 ┃ exit 137
    |      side-with-quite-a-long-…  ········████3░░░░░░░██████████▓143 ┃ exit 143 2×
    |defer bye                                               ·█████0    ┃ exit 0
    |      last                                              ··········∅┃ skipped
    |
    |from 2026-01-31T12:00:00Z, 9.90s, gone
    |Deleted at +7.00s, deadline 3.00s later (before: 5.00s, moved by another
    |deletion with a shorter grace period), gone after 2.90s
    |· waiting  ░ back-off  ▒ pulling  ━ sandbox  ▓ stopping  █ running
    |▲ probe passes  ▼ probe fails  ◆ hook  ◇ hook failed  ▽ termination begins
    |∅ skipped  ┃ deadline"
  `);
});

test('the timeline of a living Pod has bars up to now, waiting containers and the deadline ahead', () => {
  const spec = [
    { name: 'app', kind: 'app' },
    { name: 'side-with-quite-a-long-name', kind: 'app' },
    { name: 'one', kind: 'init' },
    { name: 'bye', kind: 'defer' },
    { name: 'last', kind: 'defer' },
  ] as const;
  const before = (millis: number): Transition[] => WHOLE.filter(({ at }) => at <= START + millis);
  expect(shown(drawLife(before(4500), { ...options, now: START + 5000, spec }))).toMatchInlineSnapshot(`
    "|                               ╵0s   ╵1s   ╵2s   ╵3s   ╵4s
    |      sandbox                  ···━━━━━━━━━━━━━━━━━━━━━━━━━━━  ready
    |init  one                         ▒▒▒▒▒▒███████0               exit 0
    |app   app                         ·············██▼█████▲█████  running
    |      side-with-quite-a-long-…    ·············██████3░░░░░░░  back-off (exit 3)
    |defer bye                                                      not yet due
    |      last                                                     not yet due
    |
    |from 2026-01-31T12:00:00Z, 5.00s until now
    |· waiting  ░ back-off  ▒ pulling  ━ sandbox  █ running  ▲ probe passes
    |▼ probe fails"
  `);
  expect(shown(drawLife(before(8200), { ...options, now: START + 8300, spec }))).toMatchInlineSnapshot(`
    "|                               ╵0s   ╵2s    ╵4s   ╵6s    ╵8s   ┃
    |      sandbox                  ·━━━━━━━━━━━━━━━━━━━━━━▽━━━     ┃ ready
    |init  one                       ▒▒▒·███0                       ┃ exit 0
    |app   app                       ·······█▼███▲█████████◆███     ┃ running
    |      side-with-quite-a-long-…  ·······████3░░░░░█████████     ┃ running (run 2)
    |defer bye                                             ████     ┃ running
    |      last                                            ····     ┃ waiting
    |
    |from 2026-01-31T12:00:00Z, 8.30s until now
    |Deleted at +7.00s, deadline 3.00s later (before: 5.00s, moved by another
    |deletion with a shorter grace period)
    |· waiting  ░ back-off  ▒ pulling  ━ sandbox  █ running  ▲ probe passes
    |▼ probe fails  ◆ hook  ▽ termination begins  ┃ deadline"
  `);
});

test('the legend explains no mark over which another one is drawn', () => {
  const steps = [
    step(0, 'Created'),
    step(0, 'SandboxReady', '', { attempt: 0 }),
    step(1000, 'Started', 'app#0'),
    step(5000, 'ProbeFailing', 'app#0', { reason: 'readiness' }),
    step(5000, 'ProbePassing', 'app#0', { reason: 'readiness' }),
  ];
  const drawn = drawLife(steps, options).join('\n');
  expect(drawn).toContain('▲ probe passes');
  expect(drawn).not.toContain('▼');
});

test('the timeline draws no deadline of a Pod that has ended by itself before it', () => {
  const ended = [
    step(0, 'Created'),
    step(500, 'SandboxReady', '', { attempt: 0 }),
    step(1000, 'Started', 'app#0'),
    step(3000, 'Exited', 'app#0', { exitCode: 0, reason: 'Completed' }),
    step(3000, 'TerminationBegan', '', { reason: 'Completed', ...until(33_000) }),
    step(3000, 'DeadlineSet', '', until(33_000)),
    step(3000, 'DeferBegan', 'defer:bye'),
    step(3100, 'Started', 'defer:bye#0'),
    step(3900, 'Exited', 'defer:bye#0', { exitCode: 0 }),
    step(3900, 'DeferEnded', 'defer:bye', { exitCode: 0 }),
    step(4000, 'Finished', '', { reason: 'Succeeded' }),
    step(4100, 'SandboxStopped'),
  ];
  const drawn = shown(drawLife(ended, options));
  expect(drawn).toMatchInlineSnapshot(`
    "|              ╵0s  ╵1s   ╵2s   ╵3s   ╵4s  ╵5s   ╵6s   ╵7s   ╵8s   ╵9s
    |      sandbox ··━━━━━━━━━━━━━━━▽━━━━━                                    stopped
    |app   app       ···████████████0                                         exit 0
    |defer bye                      █████0                                    exit 0
    |
    |from 2026-01-31T12:00:00Z, 10.0s until now
    |Completed at +3.00s, deadline 30.0s later, ended after 1.00s
    |· waiting  ━ sandbox  █ running  ▽ termination begins"
  `);
  for (const steps of [ended, [...ended, step(60_000, 'Gone')]])
    expect(drawLife(steps, { ...options, now: START + 60_000 }).join('\n')).not.toContain('┃');
});

test('the timeline shows the time reserved for PostExit entries and every outcome of an entry', () => {
  const steps = [
    step(0, 'SandboxReady', '', { attempt: 0 }),
    step(500, 'Started', 'app#0'),
    step(1000, 'TerminationBegan', '', { reason: 'ScaledDown', ...until(9000) }),
    step(1000, 'DeadlineSet', '', until(9000)),
    step(1000, 'DeferSkipped', 'defer:undue', { reason: 'Skipped', message: 'not due on ScaledDown' }),
    step(1100, 'Started', 'defer:hang#0'),
    step(2000, 'StopSignal', 'defer:hang#0', until(4000)),
    step(2100, 'Exited', 'defer:hang#0', { exitCode: 0 }),
    step(2100, 'DeferEnded', 'defer:hang', { exitCode: 0, reason: 'GivenUp' }),
    step(2200, 'Started', 'defer:slow#0'),
    step(3200, 'Exited', 'defer:slow#0', { exitCode: 1 }),
    step(3200, 'BackOff', 'defer:slow#0', until(4200)),
    step(4200, 'Started', 'defer:slow#1'),
    step(4600, 'Exited', 'defer:slow#1', { exitCode: 137 }),
    step(4600, 'DeferEnded', 'defer:slow', { exitCode: 137, reason: 'DeadlineExceeded' }),
    step(4700, 'DeferEnded', 'defer:unpulled', { exitCode: 128, reason: 'Error', message: 'ErrImagePull' }),
    step(4800, 'Exited', 'app#0', { exitCode: 0 }),
    step(4900, 'Started', 'defer:lost#0'),
    step(5000, 'DeferEnded', 'defer:lost', { exitCode: 137, reason: 'SandboxLost' }),
    step(5100, 'Started', 'defer:cut#0'),
    step(5200, 'DeferSkipped', 'defer:cut', { reason: 'Skipped', message: 'the node had no time' }),
    step(5200, 'DeferSkipped', 'defer:late', { reason: 'Skipped', message: 'the node had no time' }),
    step(5300, 'Started', 'defer:next#0'),
  ];
  const drawn = drawLife(steps, { ...options, now: START + 6000, reservedFrom: START + 5000 });
  expect(shown(drawn)).toMatchInlineSnapshot(`
    "|               ╵0s  ╵1s   ╵2s   ╵3s   ╵4s  ╎     ╵6s   ╵7s   ╵8s  ┃
    |      sandbox  ━━━━━▽━━━━━━━━━━━━━━━━━━━━━━━━━━━━                 ┃ ready
    |app   app      ··█████████████████████████0╎                      ┃ exit 0
    |defer undue         ∅                      ╎                      ┃ not due
    |      hang          ·█████▓0               ╎                      ┃ given up
    |      slow          ·······██████1░░░░░██137                      ┃ timed out 2×
    |      unpulled      ······················ ╎                      ┃ not started
    |      lost          ·······················█                      ┃ lost
    |      cut           ·······················╎█                     ┃ cut off
    |      late          ·······················╎·∅                    ┃ skipped
    |      next          ·······················╎·████                 ┃ running
    |
    |from 2026-01-31T12:00:00Z, 6.00s until now
    |ScaledDown at +1.00s, deadline 8.00s later, 4.00s of it for PostExit entries
    |· waiting  ░ back-off  ━ sandbox  ▓ stopping  █ running  ▽ termination begins
    |∅ skipped  ╎ reserved for PostExit from here  ┃ deadline"
  `);
  const late = drawLife(steps, { ...options, now: START + 6000, reservedFrom: START + 9000 });
  expect(late.join('\n')).not.toMatch(/PostExit/);
});

test('the timeline marks a run whose end was not recorded', () => {
  const [, , app] = drawLife([step(0, 'Started', 'app#0'), step(9000, 'Gone')], options);
  expect(app).toMatch(/^app +app .* end unknown$/);
});

test('the timeline shows a lost sandbox and failed pulls', () => {
  const steps = [
    step(0, 'Created'),
    step(1000, 'SandboxReady', '', { attempt: 0 }),
    step(1000, 'Pulling', 'app#0'),
    step(2000, 'PullFailed', 'app#0', { ...until(4000), reason: 'ErrImagePull' }),
    step(4000, 'Pulling', 'app#0'),
    step(5000, 'Pulled', 'app#0'),
    step(5000, 'Started', 'app#0'),
    step(6000, 'SandboxLost', '', { attempt: 0 }),
    step(6000, 'Exited', 'app#0', { exitCode: 137, reason: 'OOMKilled' }),
    step(7000, 'SandboxReady', '', { attempt: 1 }),
    step(7500, 'Started', 'app#1'),
  ];
  expect(shown(drawLife(steps, { ...options, now: START + 9000 }))).toMatchInlineSnapshot(`
    "|              ╵0s  ╵1s   ╵2s  ╵3s   ╵4s  ╵5s   ╵6s  ╵7s   ╵8s
    |      sandbox ·····━━━━━━━━━━━━━━━━━━━━━━━━━━━━✗    ━━━━━━━━━━━  lost 1×
    |app   app          ▒▒▒▒▒▒░░░░░░░░░░░▒▒▒▒▒██████137     ████████  running (run 2)
    |
    |from 2026-01-31T12:00:00Z, 9.00s until now
    |· waiting  ░ back-off  ▒ pulling  ━ sandbox  █ running  ✗ lost"
  `);
});

test('the exit codes of short runs never touch, because they would read as one', () => {
  const exits = [1000, 1100, 1200, 1400, 5000].flatMap((at, run) => [
    step(at - 50, 'Started', `app#${run}`),
    step(at, 'Exited', `app#${run}`, { exitCode: 17 }),
  ]);
  const steps = [step(0, 'SandboxReady'), ...exits];
  for (const width of [30, 40, 60, 80, 120]) {
    const app = drawLife(steps, { ...options, width, now: START + 9000 })[2] ?? '';
    expect(app).toMatch(/\D17\D/);
    expect(app).not.toMatch(/\d{3}/);
  }
});

test.each([
  ['its image', [step(1000, 'PullFailed', 'app#0', until(9000))], 'back-off (pull failed)'],
  ['its start', [step(1000, 'StartFailed', 'app#0')], 'back-off (start failed)'],
  [
    'its run',
    [1, 2].flatMap((run) => [
      step(run * 1000, 'Started', `app#${run}`),
      step(run * 1000 + 500, 'Exited', `app#${run}`, { exitCode: 3 }),
      step(run * 1000 + 500, 'BackOff', `app#${run}`, until(9000)),
    ]),
    'back-off (exit 3) 2×',
  ],
])('the timeline says what a container waits to repeat: %s', (_, steps, state) => {
  const [, , app] = drawLife([step(0, 'SandboxReady'), ...steps], { ...options, now: START + 5000 });
  expect(app?.endsWith(` ${state}`)).toBe(true);
});

test('the timeline shows nothing as running in a deleted Pod whose end was not observed', () => {
  const steps = [...WHOLE.slice(0, 8), step(9000, 'Gone')];
  const [, sandbox, , app] = drawLife(steps, options);
  expect(sandbox).toMatch(/^ +sandbox .*━ +stopped$/);
  expect(app).not.toContain('running');
});

test('the timeline leaves out days in which nothing happened', () => {
  const day = 24 * 3600 * 1000;
  const steps = [
    ...WHOLE.filter(({ at }) => at < START + 5000),
    ...WHOLE.filter(({ at }) => at >= START + 5000).map((each) => ({
      ...each,
      at: each.at + 3 * day,
      deadline: each.deadline === undefined ? undefined : each.deadline + 3 * day,
    })),
  ];
  expect(shown(drawLife(steps, options))).toMatchInlineSnapshot(`
    "|                               ╵0s  ╵2s   ╵4s    ≈      ╵3d6s      ┃
    |      sandbox                  ·━━━━━━━━━━━━━━━━━━━━━━━━━━━▽━━━━━━ ┃ stopped
    |init  one                       ▒▒▒███0                            ┃ exit 0
    |app   app                       ·······▼██▲████████████████◆███137 ┃ exit 137
    |      side-with-quite-a-long-…  ·······██3░░░░░░░░░░░░░████████▓143┃ exit 143 2×
    |defer bye                                                  ████0   ┃ exit 0
    |      last                                                 ·······∅┃ skipped
    |
    |from 2026-01-31T12:00:00Z, 3d00h, gone
    |Deleted at +3d00h, deadline 3.00s later (before: 5.00s, moved by another
    |deletion with a shorter grace period), gone after 2.90s
    |· waiting  ░ back-off  ▒ pulling  ━ sandbox  ▓ stopping  █ running
    |▲ probe passes  ▼ probe fails  ◆ hook  ▽ termination begins  ∅ skipped
    |┃ deadline  ≈ time left out"
  `);
});

test('colors are optional and are reset at the end of each line', () => {
  const lines = drawLife(WHOLE, { ...options, color: true });
  const plain = drawLife(WHOLE, options);
  expect(lines.map((line) => line.replaceAll(/\u001b\[[\d;]*m/g, ''))).toEqual(plain);
  for (const line of lines) if (line.includes('\u001b')) expect(line).toContain('\u001b[0m');
  expect(lines.join()).toMatch(/\[0;31m[◇▓]*137/);
});

test.each([20, 40, 60, 200])('the timeline fits into a terminal of %i columns', (width) => {
  for (const steps of [WHOLE, WHOLE.slice(0, 1), WHOLE.slice(0, 12)])
    for (const line of drawLife(steps, { ...options, width })) expect(line.length).toBeLessThanOrEqual(width);
});

test('the list of steps has a line per step with its time, its run and its details', () => {
  const steps = [...WHOLE.slice(0, 3), ...WHOLE.slice(10, 15)];
  expect(shown(stepLines(steps))).toMatchInlineSnapshot(`
    "|+0.000s                                 Created
    |+0.000s                                 Scheduled         to node n
    |+0.500s                                 SandboxReady
    |+2.700s  side-with-quite-a-long-name#0  Started
    |+3.700s  side-with-quite-a-long-name#0  Exited            3 Error
    |+3.700s  side-with-quite-a-long-name#0  BackOff           until +5.70s
    |+5.700s  side-with-quite-a-long-name#1  Started
    |+7.000s                                 TerminationBegan  Deleted until +12.0s"
  `);
});

test('the timeline names a defer container that was given up before its turn, during its turn, and after the end of the Pod', () => {
  const steps = [
    step(0, 'SandboxReady'),
    step(100, 'Started', 'app#0'),
    step(1000, 'TerminationBegan', '', { reason: 'Deleted', ...until(9000) }),
    step(1000, 'Started', 'defer:hang#0'),
  ];
  const spec = [
    { name: 'hang', kind: 'defer', isGivenUp: false },
    { name: 'later', kind: 'defer', isGivenUp: true },
  ] as const;
  const rowOf = (lines: readonly string[]): string | undefined => lines.find((line) => line.includes(' later '));
  expect(rowOf(drawLife(steps, { ...options, spec }))).toMatch(/ ·+.* given up$/);
  const begun = [
    step(2000, 'Pulling', 'defer:later'),
    step(2500, 'PullFailed', 'defer:later'),
    step(2600, 'Started', 'defer:later#0'),
    step(2700, 'Exited', 'defer:later#0', { exitCode: 1 }),
    step(2700, 'BackOff', 'defer:later#0'),
    step(2800, 'Started', 'defer:later#1'),
  ];
  for (const count of [1, 2, 3, 5, 6])
    expect(rowOf(drawLife([...steps, ...begun.slice(0, count)], { ...options, spec }))).toMatch(/ given up$/);
  const stopped = [...begun, step(2900, 'StopSignal', 'defer:later#1')];
  expect(rowOf(drawLife([...steps, ...stopped], { ...options, spec }))).toMatch(/ stopping$/);
  const ends = [
    step(3000, 'DeferSkipped', 'defer:later', { reason: 'Skipped', message: 'given up' }),
    step(4000, 'Gone'),
  ];
  expect(rowOf(drawLife([...steps, ...ends], options))).toMatch(/∅ +given up$/);
});

test.each([
  ['at once', 2000, 'gone after 1.00s'],
  ['later', 4000, 'ended after 1.00s, gone after 3.00s'],
  ['earlier', 1200, 'gone after 0.20s, its containers ended after 1.00s'],
])('the timeline shows when the Pod ended and its object was deleted %s', (_, gone, expected) => {
  const steps = [
    step(1000, 'TerminationBegan', '', { reason: 'Deleted', ...until(9000) }),
    step(2000, 'Finished', '', { reason: 'Failed' }),
    step(gone, 'Gone'),
  ];
  expect(drawLife(steps, options).join(' ')).toContain(`Deleted at +0s, ${expected}`);
});

test.each([
  ['', undefined],
  [
    ' (Usage of EmptyDir volume "v" exceeds the limit "1.5Mi")',
    'Usage of EmptyDir volume "v" exceeds the limit "1.5Mi". ',
  ],
  [' (The node was low on resource: memory)', 'The node was low on resource: memory. Threshold quantity: 1Gi. '],
])('the timeline shows why the node evicted the Pod:%s', (expected, message) => {
  const steps = [
    step(1000, 'TerminationBegan', '', { reason: 'NodePressure', ...until(1000) }),
    step(2000, 'Finished', '', { reason: 'Failed', ...(message && { message: `Evicted: ${message}` }) }),
  ];
  expect(drawLife(steps, { ...options, width: 200 }).join(' ')).toContain(
    `Evicted by its node${expected} at +0s, ended after 1.00s`,
  );
});

test('the timeline shows defer containers in the order of their list, although their images were prepared in another order', () => {
  const skipped = { reason: 'Skipped', message: 'the Pod was deleted with a grace period of 0' };
  const steps = [
    step(0, 'SandboxReady'),
    step(100, 'Started', 'app#0'),
    step(200, 'Pulling', 'defer:post#0'),
    step(210, 'Pulling', 'defer:pre#0'),
    step(215, 'StartFailed', 'defer:last#0', { reason: 'ErrImageNeverPull' }),
    step(220, 'PullFailed', 'defer:post#0'),
    step(230, 'PullFailed', 'defer:pre#0'),
    step(1000, 'TerminationBegan', '', { reason: 'Deleted', ...until(9000) }),
    step(1000, 'DeferSkipped', 'defer:pre', skipped),
    step(1000, 'DeferSkipped', 'defer:post', skipped),
    step(1000, 'DeferSkipped', 'defer:last', skipped),
    step(1000, 'Gone'),
  ];
  const rows = drawLife(steps, options).filter((line) => /∅.* skipped$/.test(line) && !line.includes('waiting'));
  expect(rows.map((line) => line.slice(0, 12).trim())).toEqual(['defer pre', 'post', 'last']);
});

test.each([
  ['a new record', 1300],
  ['a record of an older version, with an end in whole seconds', 1000],
])(
  'the timeline of %s shows no back-off of a container after its last end, or after the termination has begun',
  (_, endAt) => {
    const steps = [
      step(0, 'SandboxReady'),
      step(100, 'Started', 'app#0'),
      step(200, 'Started', 'crash#0'),
      step(300, 'Exited', 'crash#0', { exitCode: 3 }),
      step(300, 'BackOff', 'crash#0', until(20_000)),
      step(1200, 'TerminationBegan', '', { reason: 'Deleted', ...until(19_000) }),
      step(1250, 'Pulling', 'defer:pre#0'),
      step(1300, 'PullFailed', 'defer:pre#0'),
      step(endAt, 'DeferEnded', 'defer:pre', { exitCode: 128, reason: 'Error' }),
    ];
    const rows = drawLife(steps, options).filter((line) => /^(defer pre| {6}crash)/.test(line));
    expect(rows.map((line) => line.replace(/ {2,}/g, ' '))).toEqual([
      expect.stringMatching(/crash ·*█*3░{9,22} [┃ ]*exit 3$/),
      expect.stringMatching(/^defer pre [·▒░]{1,4} [┃ ]*not started$/),
    ]);
  },
);

test('the timeline does not name an earlier deadline that reads like the last one', () => {
  const steps = [
    step(1000, 'TerminationBegan', '', { reason: 'Deleted', ...until(11_000) }),
    step(1000, 'DeadlineSet', '', until(16_000)),
    step(1100, 'DeadlineSet', '', until(11_000)),
    step(1200, 'DeadlineSet', '', until(11_012)),
  ];
  expect(drawLife(steps, options).join(' ')).toContain('Deleted at +0s, deadline 10.0s later (before: 15.0s)');
});

test('an exit code in the last column covers the stopping bar that ends there', () => {
  const steps = [
    step(0, 'Started', 'app#0'),
    step(9990, 'StopSignal', 'app#0', until(40_000)),
    step(9995, 'Exited', 'app#0', { exitCode: 0 }),
  ];
  const [, , row] = drawLife(steps, { ...options, now: START + 10_000 });
  expect(row).toMatch(/██0 exit 0$/);
  const again = [...steps, step(9998, 'Started', 'app#1')];
  expect(drawLife(again, { ...options, now: START + 10_000 })[2]).toMatch(/█0█ running/);
});

test('the timeline names everything that moved the deadline', () => {
  const extension = 'an extension of the grace period';
  const steps = [
    step(0, 'Started', 'app#0'),
    step(1000, 'TerminationBegan', '', { reason: 'Deleted', ...until(5000) }),
    step(1000, 'DeadlineSet', '', until(5000)),
    step(4000, 'DeadlineSet', '', { ...until(8000), message: extension }),
    step(7000, 'DeadlineSet', '', { ...until(11_000), message: extension }),
    step(9000, 'DeadlineSet', '', { ...until(11_200), message: 'the reserve of the PostExit entries' }),
    step(9100, 'DeadlineSet', '', { ...until(11_203), message: 'an outage of the node' }),
  ];
  const drawn = drawLife(steps, { ...options, width: 200 });
  expect(drawn.find((line) => line.startsWith('Deleted'))).toBe(
    'Deleted at +1.00s, deadline 10.2s later (before: 4.00s, 7.00s, 10.0s, moved by an extension of the grace period and the reserve of the PostExit entries)',
  );
});
