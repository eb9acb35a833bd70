import { expect, test } from 'vitest';
import type { CoreV1Event } from '../../../api/generated/types.ts';
import {
  type Case,
  container,
  explains,
  of,
  READY,
  running,
  status,
  terminated,
  time,
  UNREADY,
} from '../explain-fixtures.ts';
import { failureEvent } from './probe-failure.ts';

const PROBE = { exec: { command: ['check'] } };
const unready: Pick<Case, 'spec' | 'status'> = {
  spec: { containers: [container('app', { readinessProbe: PROBE, startupProbe: PROBE })] },
  status: { conditions: UNREADY, containerStatuses: [running('app', { ready: false })] },
};
const FIX = 'fix what its readiness probe checks, or correct the probe\nsee its output: lifepod logs p -n n -c app';
const TEXT = 'Readiness probe failed: database refused';

explains({
  'a readiness probe whose command has no output any more': {
    ...unready,
    events: [
      ['Unhealthy', 'Readiness probe failed: ', 'app', 1, 19],
      ['Unhealthy', TEXT, 'app', 13],
    ],
    steps: [[13, 'ProbeFailing', { ...of('app'), reason: 'readiness', message: 'database refused' }]],
    sentence: 'p is not ready: the command of the readiness probe of container app fails without output.',
    advice: new RegExp(`^${FIX}$`),
  },
  'a readiness probe whose newest failure is in an Event with a later name': {
    ...unready,
    events: [
      ['Unhealthy', TEXT, 'app', 1],
      ['Unhealthy', 'Readiness probe errored and resulted in unknown state: no answer', 'app', 5],
    ],
    sentence: 'p is not ready: the readiness probe of container app fails, database refused.',
  },
  'a readiness probe without a result': {
    ...unready,
    events: [['Unhealthy', 'Readiness probe errored and resulted in unknown state: no answer', 'app', 5]],
    sentence: 'p is not ready: the readiness probe of container app fails, no answer.',
  },
  'a readiness probe that failed only in the run before': {
    ...unready,
    events: [['Unhealthy', TEXT, 'app', 25]],
    steps: [[25, 'ProbeFailing', { ...of('app'), reason: 'readiness', message: 'database refused' }]],
    sentence: 'p is not ready: the readiness probe of container app has not succeeded yet.',
    advice: /^see its output/,
  },
  'a readiness probe whose Events cannot be read': {
    ...unready,
    steps: [[13, 'ProbeFailing', { ...of('app'), reason: 'readiness' }]],
    sentence: 'p is not ready: the readiness probe of container app fails.',
    advice: new RegExp(`^${FIX}$`),
  },
  'a startup probe whose command has no output': {
    ...unready,
    status: { conditions: UNREADY, containerStatuses: [running('app', { ready: false, started: false })] },
    events: [['Unhealthy', 'Startup probe failed: ', 'app', 1, 19]],
    sentence: 'p is not ready: the command of the startup probe of container app fails without output.',
    advice: /^fix what its startup probe checks/,
  },
  'a container that was restarted because the command of its liveness probe failed without output': {
    status: {
      phase: 'Running',
      conditions: READY,
      containerStatuses: [running('app', { restartCount: 1, lastState: terminated(137, 'Error') })],
    },
    events: [
      ['Unhealthy', 'Liveness probe failed: ', 'app', 25, 35],
      ['Unhealthy', 'Liveness probe failed: no lock', 'app', 2, 2],
    ],
    steps: [
      [25, 'StopSignal', { ...of('app'), message: 'Container app failed liveness probe, will be restarted' }],
      [25, 'ProbeFailing', { ...of('app'), reason: 'liveness' }],
      [21, 'Exited', { ...of('app'), exitCode: 137, reason: 'Error' }],
      [20, 'Started', { ...of('app'), attempt: 1 }],
    ],
    sentence:
      'p is running again: the command of the liveness probe of container app failed without output; the container was restarted 20.0s ago.',
  },
  'a container that failed because its startup probe failed with another text than before': {
    status: { phase: 'Failed', containerStatuses: [status('app', { state: terminated(137, 'Error') })] },
    events: [
      ['Unhealthy', 'Startup probe failed: no file', 'app', 20, 30],
      ['Unhealthy', 'Startup probe failed: command "check" timed out', 'app', 9],
      ['Unhealthy', TEXT, 'app', 8],
    ],
    steps: [[9, 'StopSignal', { ...of('app'), message: 'Container app failed startup probe' }]],
    sentence: 'p has failed: the startup probe of container app failed, command "check" timed out.',
  },
});

test('the latest failure is that of the Event that was repeated last, also in a series', () => {
  const event = (name: string, more: Partial<CoreV1Event>): CoreV1Event =>
    ({
      metadata: { name },
      involvedObject: { fieldPath: 'spec.containers{app}' },
      reason: 'Unhealthy',
      message: TEXT,
      ...more,
    }) as CoreV1Event;
  const series = { count: 9, lastObservedTime: time(2) };
  const events = [event('a', { lastTimestamp: time(5) }), event('b', { series }), event('c', { eventTime: time(3) })];
  expect(failureEvent({ events }, 'readiness', 'app', {})?.metadata.name).toBe('b');
});
