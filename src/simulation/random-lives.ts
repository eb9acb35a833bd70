/**
 * Random lives of Pods without defer containers. `lives` vary the Pod and what happens to it, including losses, faults of the runtime and
 * agent crashes. In `stopping`, a run is stopped although its Pod continues.
 */
import fc from 'fast-check';
import type { Pod } from '../api/generated/types.ts';
import type { RunScript } from '../runtime/simulated/simulated-runtime.ts';
import type { Life, LifeResult } from './pod-life.ts';
import { simulatedPod } from './simulated-pod.ts';

/** Undefined except in one of `lives` cases. (`freq` of fc.option() means the opposite: one in `freq` is undefined.) */
export const oneIn = <T>(lives: number, arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: lives - 1, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });

const run = fc.record<RunScript>(
  {
    runMillis: fc.integer({ min: 0, max: 20_000 }),
    exitCode: fc.constantFrom(0, 0, 1, 137),
    stopMillis: fc.integer({ min: 0, max: 5_000 }),
  },
  { requiredKeys: ['runMillis'] },
);
export const service = fc.record<RunScript>({ stopMillis: fc.integer({ min: 0, max: 5_000 }) }, { requiredKeys: [] });
export const scripts = fc.array(run, { minLength: 1, maxLength: 3 });
export const crashes = fc.array(fc.record({ action: fc.integer({ min: 1, max: 25 }), asked: fc.boolean() }), {
  maxLength: 4,
});

export const probe = fc.record({
  exec: fc.constant<{ command: string[] }>({ command: ['check'] }),
  initialDelaySeconds: fc.integer({ min: 0, max: 5 }),
  periodSeconds: fc.integer({ min: 1, max: 20 }),
  failureThreshold: fc.integer({ min: 1, max: 3 }),
});
const hook = fc.constant({ exec: { command: ['do'] } });
/** The probes and hooks of app containers. Sidecars get the hooks, too. */
const extras = oneIn(
  2,
  fc.record(
    {
      startupProbe: probe,
      livenessProbe: probe,
      readinessProbe: probe,
      lifecycle: fc.record({ postStart: hook, preStop: hook }, { requiredKeys: [] }),
    },
    { requiredKeys: [] },
  ),
);

/**
 * Lives that follow the scripts of their containers, unless a probe, hook, deletion, deadline, loss, fault or crash intervenes. Some do not
 * end on their own: their apps are restarted or run until they are stopped.
 */
export const lives = fc
  .record({
    init: fc.integer({ min: 0, max: 3 }),
    sidecars: fc.integer({ min: 0, max: 1 }),
    apps: fc.integer({ min: 1, max: 2 }),
    restartPolicy: fc.constantFrom('Always', 'OnFailure', 'Never'),
    graceSeconds: fc.integer({ min: 0, max: 40 }),
    activeDeadlineSeconds: oneIn(4, fc.integer({ min: 1, max: 100 })),
    initScripts: fc.array(scripts, { minLength: 3, maxLength: 3 }),
    appScripts: fc.array(fc.oneof(scripts, fc.tuple(service)), { minLength: 2, maxLength: 2 }),
    sidecarScript: fc.tuple(service),
    deletions: fc.array(
      fc.record({ at: fc.integer({ min: 0, max: 120_000 }), graceSeconds: fc.integer({ min: 0, max: 40 }) }),
      { maxLength: 3 },
    ),
    forcedAt: oneIn(5, fc.integer({ min: 0, max: 120_000 })),
    sandboxLostAt: oneIn(4, fc.integer({ min: 0, max: 60_000 })),
    crashes,
    faults: fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 5 }),
    absentImages: fc.boolean(),
    each: extras,
    /** Every probe of a run fails during one second out of this many; 0: no probe fails. */
    failingEvery: fc.integer({ min: 0, max: 4 }),
    hookMillis: fc.integer({ min: 0, max: 10_000 }),
    hookFails: fc.boolean(),
    initRecordsLostAt: oneIn(4, fc.integer({ min: 0, max: 60_000 })),
  })
  .map((given): Life => {
    const names = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}-${i + 1}`);
    const init = names('init', given.init);
    const apps = names('app', given.apps);
    const sidecars = names('side', given.sidecars);
    return {
      ...given,
      pod: simulatedPod({ ...given, init, apps, sidecars, eachSidecar: { lifecycle: given.each?.lifecycle } }),
      scripts: Object.fromEntries([
        ...init.map((name, i) => [name, given.initScripts[i] as RunScript[]]),
        ...apps.map((name, i) => [name, given.appScripts[i] as RunScript[]]),
        ...sidecars.map((name) => [name, given.sidecarScript as RunScript[]]),
      ]),
      probe: ({ attempt }, aliveMillis) =>
        given.failingEvery > 0 && (Math.floor(aliveMillis / 1000) + attempt) % given.failingEvery === 0
          ? 'Failure'
          : 'Success',
      hook: ({ attempt }) => ({
        millis: given.hookMillis,
        ...(given.hookFails && attempt % 2 === 0 ? { failure: 'simulated' } : {}),
      }),
      limitMillis: 400_000,
    };
  });

export function withOtherImage(pod: Pod): Pod {
  const containers = (pod.spec?.containers ?? []).map((container) => ({ ...container, image: 'other:1' }));
  return { ...pod, spec: { ...pod.spec, containers } };
}

/**
 * Lives in which the first run of an app is stopped although the Pod is not terminated. If a second run follows, it exits with 0 or, with
 * restartPolicy Always, does not end on its own.
 */
export const stopping = fc
  .record({
    why: fc.constantFrom('liveness', 'startup', 'postStart', 'image', 'sandbox'),
    restartPolicy: fc.constantFrom('Always', 'OnFailure', 'Never'),
    sidecar: fc.boolean(),
    /** The stop is so short that the result does not depend on the time that crashes cost; undefined: the run ends only by a kill. */
    stopMillis: oneIn(2, fc.integer({ min: 0, max: 1000 })),
    stopExitCode: fc.constantFrom(0, 1, 143),
    hookMillis: oneIn(2, fc.integer({ min: 0, max: 1000 })),
    crashes,
  })
  .map(({ why, restartPolicy, sidecar, stopMillis, stopExitCode, hookMillis, crashes: given }): Life => {
    const failing = { exec: { command: ['check'] }, periodSeconds: 3, failureThreshold: 2 };
    const hooks = {
      ...(why === 'postStart' ? { postStart: failing } : {}),
      ...(hookMillis === undefined ? {} : { preStop: failing }),
    };
    // Agents crash at actions. The readiness probe causes actions while the container stops.
    const readinessProbe = { exec: { command: ['check'] }, periodSeconds: 1 };
    const each = {
      readinessProbe,
      lifecycle: hooks,
      ...(why === 'liveness' || why === 'startup' ? { [`${why}Probe`]: failing } : {}),
    };
    // A run that ends on its own would be restarted forever under restartPolicy Always.
    const second = restartPolicy === 'Always' ? {} : { runMillis: 5000 };
    const first = { stopExitCode, stopMillis };
    return {
      pod: simulatedPod({ apps: ['app'], sidecars: sidecar ? ['side'] : [], restartPolicy, each, graceSeconds: 10 }),
      scripts: { app: [first, second], side: [{ stopMillis: 0 }] },
      probe: ({ attempt, probe: kind }) => (attempt === 0 && kind !== 'readiness' ? 'Failure' : 'Success'),
      hook: ({ attempt, hook: kind }) => ({
        millis: hookMillis ?? 0,
        ...(kind === 'postStart' && attempt === 0 ? { failure: 'simulated' } : {}),
      }),
      ...(why === 'sandbox' ? { sandboxLostAt: 15_000 } : {}),
      ...(why === 'image' ? { edits: [{ at: 15_000, edit: withOtherImage }] } : {}),
      crashes: given,
      limitMillis: 80_000,
    };
  });

/**
 * Returns the latest time from which an agent counts the grace period of the forced deletion; infinite without a forced deletion. Each new
 * agent counts from its start, because the object with the time of the deletion no longer exists. The result is the time of the crash
 * before that start; callers allow for the time in between.
 */
export function forcedSince({ actions, start }: LifeResult, { forcedAt, crashes = [] }: Life): number {
  if (forcedAt === undefined) return Number.POSITIVE_INFINITY;
  return Math.max(start + forcedAt, ...crashes.flatMap(({ action }) => actions[action - 1]?.at ?? []));
}
