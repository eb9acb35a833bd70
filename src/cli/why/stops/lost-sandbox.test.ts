/** The steps are those of real Pods whose pause process was killed, apart from names and times. */
import { expect, test } from 'vitest';
import type { Pod } from '../../../api/generated/types.ts';
import { failureOf } from '../../session/session-state.ts';
import {
  type Case,
  explains,
  NOW,
  of,
  READY,
  running,
  status,
  terminated,
  time,
  UNREADY,
  until,
} from '../explain-fixtures.ts';

const LOST = 'its sandbox was lost, probably because the pause process of the sandbox was killed';
const stop: Case['steps'] = [
  [90, 'SandboxReady', { attempt: 0 }],
  [89, 'Started', of('app')],
  [34, 'SandboxLost', { attempt: 0 }],
  [34, 'StopSignal', { ...of('app'), ...until(-4) }],
];
const killed: Case['steps'] = [...stop, [4, 'Exited', { ...of('app'), exitCode: 137, reason: 'Error' }]];
const failed: Case['steps'] = [
  ...killed,
  [4, 'TerminationBegan', { reason: 'Completed', ...until(26) }],
  [4, 'SandboxStopped', { attempt: 0 }],
  [4, 'Finished', { reason: 'Failed' }],
];
const DEAF = 'PID 1 did not end after its stop signal and was killed 30s later';
const WHY = `${LOST}, so its node stopped container app`;
const never = { restartPolicy: 'Never' };

explains({
  'a container that is stopped because its sandbox was lost': {
    spec: never,
    status: { conditions: READY, containerStatuses: [running('app', { state: { running: { startedAt: time(89) } } })] },
    steps: stop.map(([ago, ...rest]) => [ago - 24, ...rest]),
    sentence:
      /^p is stopping container app: its sandbox was lost, probably because the pause process of the sandbox was /,
    evidence: [
      'stop signal sent 10.0s ago: its sandbox was lost',
      'the kernel ignores SIGTERM for a PID 1 that installs no handler for it',
    ],
  },
  'a Pod that failed because its sandbox was lost': {
    spec: never,
    status: { phase: 'Failed', containerStatuses: [status('app', { state: terminated(137, 'Error') })] },
    steps: failed,
    sentence: `p has failed: ${WHY}, which restartPolicy Never does not start again.`,
    evidence: ['container app: exit code 137 (Error)', 'it was stopped: its sandbox was lost', DEAF],
    advice: /^delete it: .*\nthen run it again .*\nfind out what killed the pause process: .*\nsee its output: [^\n]*$/,
  },
  'a Pod whose program ended with an error at its stop because the sandbox was lost': {
    spec: never,
    metadata: { ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: 'j', uid: 'j', controller: true }] },
    status: { phase: 'Failed', containerStatuses: [status('app', { state: terminated(3, 'Error') })] },
    steps: [...stop, [33, 'Exited', { ...of('app'), exitCode: 3, reason: 'Error' }]],
    sentence: `p has failed: ${WHY}, which restartPolicy Never does not start again.`,
    advice: /^find out what killed the pause process/,
  },
  'a Pod that completed because its sandbox was lost': {
    spec: never,
    status: { phase: 'Succeeded', containerStatuses: [status('app', { state: terminated(0, 'Completed') })] },
    steps: [...stop, [33, 'Exited', { ...of('app'), exitCode: 0, reason: 'Completed' }]],
    sentence: `p has completed, but not by itself: ${LOST}, and all its app containers ended with code 0.`,
  },
  'a container that was restarted because its sandbox was lost': {
    status: {
      phase: 'Running',
      conditions: READY,
      containerStatuses: [
        running('app', {
          restartCount: 1,
          state: { running: { startedAt: time(3) } },
          lastState: terminated(137, 'Error'),
        }),
      ],
    },
    steps: [...killed, [3, 'SandboxReady', { attempt: 1 }], [3, 'Started', { ...of('app'), attempt: 1 }]],
    sentence: `p is running again: ${WHY}; the container was restarted 3.00s ago.`,
    evidence: [
      'it was restarted 1×, the last time after code 137 (Error)',
      'it was stopped: its sandbox was lost',
      DEAF,
    ],
  },
  'a container that still runs after the stop signal of a deletion after another sandbox was lost': {
    metadata: { deletionTimestamp: time(-20), deletionGracePeriodSeconds: 30 },
    status: { conditions: UNREADY, containerStatuses: [running('app', { restartCount: 1 })] },
    steps: [
      ...killed.map(([ago, ...rest]): NonNullable<Case['steps']>[number] => [ago + 60, ...rest]),
      [61, 'SandboxReady', { attempt: 1 }],
      [60, 'Started', { ...of('app'), attempt: 1 }],
      [10, 'TerminationBegan', { reason: 'Deleted', ...until(20) }],
      [10, 'StopSignal', { ...of('app'), attempt: 1, ...until(20) }],
    ],
    sentence: /^p is not gone yet: PID 1 of container app still runs 10\.0s after its stop signal/,
  },
  'a Pod that is gone and had failed because its sandbox was lost': {
    gone: true,
    steps: [...failed, [1, 'Gone']],
    sentence: `p has been gone since 11:59:59 UTC: it had failed because ${LOST}, and its termination took 0s of the 30.0s allowed.`,
    advice: /^see its life: /,
  },
});

test('a session says that the sandbox of a failed Pod was lost', () => {
  const transitions = killed.map(([ago, type, more], i) => ({ key: `${i}`, at: NOW - ago * 1000, type, ...more }));
  const object = {
    metadata: { name: 'p', uid: 'u' },
    spec: { containers: [{ name: 'app' }] },
    status: { phase: 'Failed', containerStatuses: [status('app', { state: terminated(137, 'Error') })] },
  } as Pod;
  expect(failureOf({ object, isGone: false }, transitions)).toMatchObject({ exitCode: 137, cause: LOST });
});
