import { describe, expect, it } from 'vitest';
import type { Container } from '../api/generated/types.ts';
import { decide } from './decide.ts';
import { asked, at, container, decided, ending, entry, type Given, inputOf, running, written } from './fixtures.ts';
import { periodMillis, timeoutMillis } from './probes.ts';
import type { ProbeKind, ProbeMemory, ProbeResult } from './types.ts';

const exec = { command: ['true'] };
const PROBE = { exec, periodSeconds: 10, timeoutSeconds: 1, successThreshold: 1, failureThreshold: 3 };
const FIELDS = { startup: 'startupProbe', liveness: 'livenessProbe', readiness: 'readinessProbe' } as const;
const withProbes = (probes: Partial<Record<ProbeKind, object>>, more: Partial<Container> = {}) => {
  const fields = Object.entries(probes).map(([kind, probe]) => [FIELDS[kind as ProbeKind], { ...PROBE, ...probe }]);
  return { containers: [container('app', { ...Object.fromEntries(fields), ...more })] };
};
const known = (more: Partial<ProbeMemory> = {}): ProbeMemory => ({
  serial: 0,
  dueAt: at(0),
  successes: 0,
  failures: 0,
  ...more,
});
const result = (kind: ProbeResult['result'], serial = 1): ProbeResult => ({ serial, result: kind, message: 'why' });
const runs = [running('app')];
const readiness = ({ status }: ReturnType<typeof decided>) => status?.containerStatuses?.[0]?.ready;

describe('when a probe is due', () => {
  it('a probe first runs initialDelaySeconds after the start of the container', () => {
    const given: Given = { spec: withProbes({ liveness: { initialDelaySeconds: 65 } }), runs };
    const early = decided({ ...given, now: 4 });
    expect([asked(early), early.wakeAt]).toEqual([[], at(5)]);
    expect(asked(decided({ ...given, now: 5 }))).toEqual(['runProbe/app-0/liveness']);
  });
  it('a probe runs every periodSeconds from its first time on, and missed probes are skipped', () => {
    const memory = { probes: { 'app-0/liveness': known({ dueAt: at(0) }) } };
    const decision = decided({ spec: withProbes({ liveness: {} }), runs, memory, now: 34 });
    expect(decision.memory.probes['app-0/liveness']?.dueAt).toBe(at(40));
  });
  it('a probe never runs twice at the same time', () => {
    const underWay = [{ kind: 'runProbe', container: 'app', id: 'app-0', probe: 'liveness' }] as const;
    const memory = { probes: { 'app-0/liveness': known({ dueAt: at(-5) }) } };
    const decision = decided({ spec: withProbes({ liveness: {} }), runs, observed: { underWay }, memory });
    expect([asked(decision), decision.memory.probes]).toEqual([[], memory.probes]);
  });
  it('liveness and readiness wait for the startup probe', () => {
    const given: Given = { spec: withProbes({ startup: {}, liveness: {}, readiness: {} }), runs };
    expect(asked(decided(given))).toEqual(['runProbe/app-0/startup']);
    const probes = { 'app-0/startup': result('Success') };
    expect(asked(decided({ ...given, observed: { probes } }))).toEqual([
      'runProbe/app-0/liveness',
      'runProbe/app-0/readiness',
    ]);
  });
  it('every probe waits for the postStart hook', () => {
    const spec = withProbes({ startup: {} }, { lifecycle: { postStart: { exec } } });
    expect(asked(decided({ spec, runs }))).toEqual(['runHook/app-0/postStart']);
    const hooks = { 'app-0/postStart': {} };
    expect(asked(decided({ spec, runs, observed: { hooks } }))).toEqual(['runProbe/app-0/startup']);
  });
});

describe('which probes run', () => {
  const stop = { 'app-0': { at: at(-1), deadline: at(20), restart: true } };
  it('a run that is being ended is probed for readiness only', () => {
    const spec = withProbes({ liveness: {}, readiness: {} });
    const keys = asked(decided({ spec, runs, memory: { stops: stop, signalledAt: { 'app-0': at(-1) } } }));
    expect(keys.filter((key) => key.startsWith('runProbe'))).toEqual(['runProbe/app-0/readiness']);
    const startup = asked(decided({ spec: withProbes({ startup: {}, readiness: {} }), runs, memory: { stops: stop } }));
    expect(startup.filter((key) => key.startsWith('runProbe'))).toEqual([]);
  });
  it('the startup probe does not run again once it has succeeded', () => {
    const memory = { probes: { 'app-0/startup': known({ passing: true }) } };
    expect(asked(decided({ spec: withProbes({ startup: {} }), runs, memory }))).toEqual([]);
  });
  it.each(['created', 'unknown', 'exited'] as const)('a run in the state %s is not probed', (state) => {
    const spec = { ...withProbes({ startup: {} }), restartPolicy: 'Never' };
    const keys = asked(decided({ spec, runs: [running('app', { state, exitCode: 1 })] }));
    expect(keys.filter((key) => key.startsWith('runProbe'))).toEqual([]);
  });
  it('a probe without times has a period of 10 s, a timeout of 1 s and no initial delay', () => {
    const spec = { containers: [container('app', { livenessProbe: { exec } })] };
    const decision = decided({ spec, runs: [running('app', { startedAt: at(0) })] });
    expect(asked(decision)).toEqual(['runProbe/app-0/liveness']);
    expect(decision.memory.probes['app-0/liveness']?.dueAt).toBe(at(10));
    expect([periodMillis(undefined), timeoutMillis(undefined)]).toEqual([10_000, 1000]);
    expect([periodMillis({ periodSeconds: 3 }), timeoutMillis({ timeoutSeconds: 2 })]).toEqual([3000, 2000]);
  });
});

describe('probe results', () => {
  const counting = (kind: ProbeKind, before: Partial<ProbeMemory>, seen: ProbeResult, probe: object = {}) => {
    const key = `app-0/${kind}`;
    const memory = { probes: { [key]: known({ dueAt: at(100), ...before }) } };
    const decision = decided({
      spec: withProbes({ [kind]: probe }),
      runs,
      memory,
      observed: { probes: { [key]: seen } },
    });
    return { ...decision, counted: decision.memory.probes[key] };
  };
  it.each<[string, number, ProbeResult['result'], boolean | undefined]>([
    ['failures below failureThreshold change nothing', 1, 'Failure', undefined],
    ['failureThreshold failures in a row fail the probe', 2, 'Failure', false],
    ['one success passes the probe', 2, 'Success', true],
    ['a warning counts as a success', 2, 'Warning', true],
    ['an unknown result does not count', 2, 'Unknown', undefined],
  ])('%s', (_, failures, seen, passing) => {
    expect(counting('readiness', { failures }, result(seen)).counted?.passing).toBe(passing);
  });
  it.each<[ProbeResult['result'], number]>([
    ['Success', 0],
    ['Warning', -7],
    ['Failure', -7],
    ['Unknown', -7],
  ])('the result %s sets the time of the last success to %d s', (seen, seconds) => {
    expect(counting('readiness', { succeededAt: at(-7) }, result(seen)).counted?.succeededAt).toBe(at(seconds));
  });
  it('a threshold that is absent is 1 for successes and 3 for failures', () => {
    const absent = { successThreshold: undefined, failureThreshold: undefined };
    expect(counting('readiness', {}, result('Success'), absent).counted?.passing).toBe(true);
    expect(counting('readiness', { failures: 1 }, result('Failure'), absent).counted?.passing).toBeUndefined();
    expect(counting('readiness', { failures: 2 }, result('Failure'), absent).counted?.passing).toBe(false);
  });
  it('successThreshold successes in a row make a container ready', () => {
    expect(readiness(counting('readiness', { successes: 0 }, result('Success'), { successThreshold: 2 }))).toBe(false);
    expect(readiness(counting('readiness', { successes: 1 }, result('Success'), { successThreshold: 2 }))).toBe(true);
  });
  it('a success resets the failure count', () => {
    expect(counting('liveness', { failures: 2 }, result('Success')).counted).toMatchObject({
      failures: 0,
      successes: 1,
    });
  });
  it('a result is counted once', () => {
    expect(counting('liveness', { serial: 1, failures: 2 }, result('Failure', 1)).counted?.passing).toBeUndefined();
  });
  it('a failed readiness probe makes the container unready but restarts nothing', () => {
    const decision = counting('readiness', { failures: 2, passing: true }, result('Failure'));
    expect([readiness(decision), asked(decision)]).toEqual([false, []]);
  });
  it('a container without a readiness probe is ready when it has started', () => {
    expect(readiness(decided({ runs }))).toBe(true);
  });
  it.each(['startup', 'liveness'] as const)('a failed %s probe ends the run within the grace period', (kind) => {
    const decision = counting(kind, { failures: 2 }, result('Failure'));
    expect(asked(decision)).toEqual(['stopContainer/app-0/@30']);
    expect(decision.events.map(({ message }) => message)).toContain(
      `Container app failed ${kind} probe, will be restarted`,
    );
  });
  it('terminationGracePeriodSeconds of a probe overrides the grace period of the run that it ends', () => {
    const decision = counting('liveness', { failures: 2 }, result('Failure'), { terminationGracePeriodSeconds: 7 });
    expect(asked(decision)).toEqual(['stopContainer/app-0/@7']);
  });
});

describe('probes in a terminating Pod', () => {
  const spec = withProbes({ liveness: {}, readiness: {} });
  it('an app container is probed for readiness only', () => {
    expect(asked(decided({ spec, runs, deleted: 30 }))).toEqual([
      'stopContainer/app-0/@30',
      'runProbe/app-0/readiness',
    ]);
  });
  it('a liveness probe that fails in a terminating Pod does not end the run', () => {
    const observed = { probes: { 'app-0/liveness': result('Failure') } };
    const memory = { probes: { 'app-0/liveness': known({ failures: 2 }) } };
    const given: Given = { spec: { ...spec, deferContainers: [entry('clean')] }, runs: [...runs, running('clean')] };
    const turn = { entry: 'clean', since: at(0) };
    const decision = decided({ ...given, observed, memory, deleted: 30, ending: ending(30, 30, { turn }) });
    expect(asked(decision)).toEqual(['runProbe/app-0/readiness']);
    expect(decision.journal?.stops ?? {}).toEqual({});
  });
  it('sidecars and defer containers are probed for liveness while defer containers run', () => {
    const livenessProbe = PROBE;
    const initContainers = [container('proxy', { restartPolicy: 'Always', livenessProbe })];
    const lists = { initContainers, deferContainers: [entry('clean', { livenessProbe })] };
    const turn = { entry: 'clean', since: at(0) };
    const given: Given = { spec: lists, runs: [running('proxy'), ...runs, running('clean')] };
    expect(asked(decided({ ...given, deleted: 30, ending: ending(30, 30, { turn }) }))).toEqual([
      'runProbe/proxy-0/liveness',
      'runProbe/clean-0/liveness',
    ]);
    const overdue = decided({ ...given, deleted: 30, ending: ending(30, 30, { turn }), now: 31 });
    expect(asked(overdue)).not.toContain('runProbe/proxy-0/liveness');
  });
  it.each([
    ['Never', false],
    [undefined, false],
    ['OnFailure', true],
  ])('a defer container with restartPolicy %s restarts after a failed liveness probe: %s', (restartPolicy, restart) => {
    const policy = restartPolicy === undefined ? {} : { restartPolicy };
    const deferContainers = [entry('clean', { livenessProbe: PROBE, ...policy })];
    const memory = { probes: { 'clean-0/liveness': known({ failures: 2 }) } };
    const decision = decided({
      spec: { deferContainers },
      runs: [...runs, running('clean')],
      observed: { probes: { 'clean-0/liveness': result('Failure') } },
      memory,
      deleted: 30,
      ending: ending(30, 30, { turn: { entry: 'clean', since: at(0) } }),
    });
    expect(decision.memory.stops['clean-0']?.restart).toBe(restart);
  });
  it('a defer container whose liveness probe failed has 2 s between signal and kill', () => {
    const deferContainers = [entry('clean', { livenessProbe: PROBE })];
    const turn = { entry: 'clean', since: at(0) };
    const observed = { probes: { 'clean-0/liveness': result('Failure') } };
    const memory = { probes: { 'clean-0/liveness': known({ failures: 2 }) } };
    const given: Given = { spec: { deferContainers }, runs: [...runs, running('clean')], deleted: 30 };
    const decision = decided({ ...given, observed, memory, ending: ending(30, 30, { turn }) });
    expect(asked(decision)).toEqual(['stopContainer/clean-0/@2']);
  });
});

it('a container is ready after one success of its readiness probe', () => {
  const given: Given = { spec: withProbes({ readiness: {} }), runs };
  const input = inputOf(given);
  const first = decide(input);
  expect(readiness(first)).toBe(false);
  const observed = { ...input.observed, probes: { 'app-0/readiness': result('Success') } };
  expect(readiness(decide({ ...written(input, first), observed }))).toBe(true);
});
