/** Lives of Pods without defer containers. */
import { withOtherImage } from '../random-lives.ts';
import { simulatedPod } from '../simulated-pod.ts';
import { check, forever, type LifeToRead, once, stubborn } from './life-to-read.ts';

export const starting: readonly LifeToRead[] = [
  {
    about: 'Two init containers run in order, then two apps together. The Pod is deleted at 10 s.',
    life: {
      pod: simulatedPod({ init: ['init-1', 'init-2'], apps: ['app-1', 'app-2'] }),
      scripts: { 'init-1': once(1000), 'init-2': once(500), 'app-1': forever, 'app-2': [{ stopMillis: 3000 }] },
      deletions: [{ at: 10_000, graceSeconds: 30 }],
    },
  },
  {
    about: 'An init container fails three times and is retried with back-off.',
    life: {
      pod: simulatedPod({ init: ['init'], apps: ['app'] }),
      scripts: { init: [...Array(3).fill({ runMillis: 100, exitCode: 1 }), { runMillis: 100 }], app: forever },
      limitMillis: 60_000,
    },
  },
  {
    about: 'An init container fails with restartPolicy Never: the Pod is Failed.',
    life: {
      pod: simulatedPod({ init: ['init'], apps: ['app'], restartPolicy: 'Never' }),
      scripts: { init: once(100, 3), app: forever },
      limitMillis: 20_000,
    },
  },
  {
    about: 'Two sidecars start before an init container and stop after the app, the last one first.',
    life: {
      pod: simulatedPod({ sidecars: ['side-1', 'side-2'], init: ['init'], apps: ['app'] }),
      scripts: { 'side-1': forever, 'side-2': forever, init: once(100), app: forever },
      deletions: [{ at: 5000, graceSeconds: 30 }],
    },
  },
  {
    about: 'The image is absent and is pulled.',
    life: {
      pod: simulatedPod({ apps: ['app'] }),
      scripts: { app: forever },
      absentImages: true,
      limitMillis: 10_000,
    },
  },
  {
    about: 'The image cannot be pulled: the pull is retried with back-off.',
    life: {
      pod: simulatedPod({ apps: ['app'] }),
      scripts: { app: forever },
      absentImages: true,
      pullable: () => false,
      limitMillis: 45_000,
    },
  },
  {
    about: 'A startup probe fails until 4 s, and delays the liveness probe.',
    life: {
      pod: simulatedPod({
        apps: ['app'],
        each: { startupProbe: { ...check, periodSeconds: 1, failureThreshold: 9 }, livenessProbe: check },
      }),
      scripts: { app: forever },
      probe: (_run, aliveMillis) => (aliveMillis < 4000 ? 'Failure' : 'Success'),
      limitMillis: 15_000,
    },
  },
  {
    about: 'A postStart hook fails: the container is stopped and started again.',
    life: {
      pod: simulatedPod({ apps: ['app'], each: { lifecycle: { postStart: check } } }),
      scripts: { app: forever },
      hook: ({ attempt }) => ({ millis: 200, ...(attempt === 0 ? { failure: 'simulated' } : {}) }),
      limitMillis: 10_000,
    },
  },
];

export const running: readonly LifeToRead[] = [
  {
    about: 'An app crashes in every run: it is restarted with back-off.',
    life: { pod: simulatedPod({ apps: ['app'] }), scripts: { app: once(1000, 1) }, limitMillis: 40_000 },
  },
  {
    about: 'A liveness probe fails twice: the container is stopped and started again.',
    life: {
      pod: simulatedPod({
        apps: ['app'],
        each: { livenessProbe: { ...check, periodSeconds: 5, failureThreshold: 2 } },
      }),
      scripts: { app: forever },
      probe: ({ attempt }) => (attempt === 0 ? 'Failure' : 'Success'),
      limitMillis: 15_000,
    },
  },
  {
    about: 'A readiness probe fails from 5 s to 9 s.',
    life: {
      pod: simulatedPod({
        apps: ['app'],
        each: { readinessProbe: { ...check, periodSeconds: 1, failureThreshold: 1 } },
      }),
      scripts: { app: forever },
      probe: (_run, aliveMillis) => (aliveMillis > 5000 && aliveMillis < 9000 ? 'Failure' : 'Success'),
      limitMillis: 12_000,
    },
  },
  {
    about: 'restartPolicy OnFailure: the app fails once, then succeeds; the Pod is Succeeded.',
    life: {
      pod: simulatedPod({ apps: ['app'], restartPolicy: 'OnFailure' }),
      scripts: { app: [{ runMillis: 1000, exitCode: 2 }, { runMillis: 1000 }] },
      limitMillis: 30_000,
    },
  },
  {
    about: 'The image of the app is changed at 5 s: the app is stopped, and started with the new image.',
    life: {
      pod: simulatedPod({ apps: ['app'] }),
      scripts: { app: forever },
      edits: [{ at: 5000, edit: withOtherImage }],
      limitMillis: 10_000,
    },
  },
  {
    about: 'The sandbox is lost at 5 s: all containers start again in a new sandbox.',
    life: {
      pod: simulatedPod({ sidecars: ['side'], init: ['init'], apps: ['app'] }),
      scripts: { side: forever, init: once(100), app: forever },
      sandboxLostAt: 5000,
      limitMillis: 10_000,
    },
  },
  {
    about: 'The agent dies when it starts the app, and no agent runs for 20 s; the start takes effect.',
    life: {
      pod: simulatedPod({ apps: ['app'] }),
      scripts: { app: forever },
      crashes: [{ action: 4, asked: true, millis: 20_000 }],
      limitMillis: 30_000,
    },
  },
];

const preStop = { lifecycle: { preStop: check } };

export const ending: readonly LifeToRead[] = [
  {
    about: 'Deleted with a grace period of 10 s: the app ignores its stop signal and is killed.',
    life: {
      pod: simulatedPod({ apps: ['app'] }),
      scripts: { app: stubborn },
      deletions: [{ at: 5000, graceSeconds: 10 }],
    },
  },
  {
    about: 'Deleted with a grace period of 10 s, of which a preStop hook takes 4 s.',
    life: {
      pod: simulatedPod({ apps: ['app'], each: preStop }),
      scripts: { app: stubborn },
      hook: () => ({ millis: 4000 }),
      deletions: [{ at: 5000, graceSeconds: 10 }],
    },
  },
  {
    about: 'Deleted with a grace period of 5 s: a preStop hook takes longer; the app has 2 s between signal and kill.',
    life: {
      pod: simulatedPod({ apps: ['app'], each: preStop }),
      scripts: { app: stubborn },
      hook: () => ({ millis: 60_000 }),
      deletions: [{ at: 5000, graceSeconds: 5 }],
    },
  },
  {
    about: 'Deleted with a grace period of 300 s, and 2 s later with a grace period of 5 s.',
    life: {
      pod: simulatedPod({ apps: ['app'] }),
      scripts: { app: stubborn },
      deletions: [
        { at: 5000, graceSeconds: 300 },
        { at: 7000, graceSeconds: 5 },
      ],
    },
  },
  {
    about: 'The object is removed from the API by force at 5 s.',
    life: { pod: simulatedPod({ apps: ['app'] }), scripts: { app: stubborn }, forcedAt: 5000 },
  },
  {
    about: 'activeDeadlineSeconds pass while the app runs.',
    life: {
      pod: simulatedPod({ apps: ['app'], activeDeadlineSeconds: 5 }),
      scripts: { app: [{ stopMillis: 2000 }] },
      limitMillis: 15_000,
    },
  },
  {
    about: 'A node shutdown leaves 8 s to an app that ignores its stop signal.',
    life: {
      pod: simulatedPod({ apps: ['app'] }),
      scripts: { app: stubborn },
      nodeEnd: { at: 5000, by: { reason: 'NodeShutdown', message: 'bye', graceSeconds: 8 } },
      limitMillis: 30_000,
    },
  },
  {
    about: 'A hard eviction threshold is met at 5 s.',
    life: {
      pod: simulatedPod({ apps: ['app'] }),
      scripts: { app: stubborn },
      nodeEnd: { at: 5000, by: { reason: 'NodePressure', message: 'low on memory', graceSeconds: 0 } },
      limitMillis: 30_000,
    },
  },
  {
    about: 'The manifest of a static Pod is removed at 5 s.',
    life: {
      pod: {
        ...simulatedPod({ apps: ['app'] }),
        metadata: {
          ...simulatedPod({ apps: ['app'] }).metadata,
          annotations: { 'kubernetes.io/config.source': 'file' },
        },
      },
      scripts: { app: forever },
      deletions: [{ at: 5000, graceSeconds: 30 }],
    },
  },
  {
    about:
      'No agent runs from 12 s to 22 s, after a delete at 10 s: the kill moves by 12 s, the time since the last sign of life.',
    life: {
      pod: simulatedPod({ apps: ['app'] }),
      scripts: { app: stubborn },
      deletions: [{ at: 10_000, graceSeconds: 20 }],
      absences: [{ at: 12_000, millis: 10_000 }],
    },
  },
  {
    about: 'The runtime does not answer from 6 s to 16 s, after a delete at 5 s with a grace period of 20 s.',
    life: {
      pod: simulatedPod({ apps: ['app'] }),
      scripts: { app: stubborn },
      deletions: [{ at: 5000, graceSeconds: 20 }],
      outages: [{ at: 6000, millis: 10_000 }],
    },
  },
  {
    about: 'The record of an init container is damaged for 10 s while the Pod is deleted.',
    life: {
      pod: simulatedPod({ init: ['init'], apps: ['app'] }),
      scripts: { init: once(100), app: forever },
      deletions: [{ at: 5000, graceSeconds: 20 }],
      losses: [{ at: 4000, what: 'damage', names: ['init'], millis: 10_000 }],
      limitMillis: 60_000,
    },
  },
];
