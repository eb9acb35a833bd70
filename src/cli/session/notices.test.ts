import { expect, test } from 'vitest';
import type { Container, ContainerStatus, Pod, PodRecord } from '../../api/generated/types.ts';
import { POD_RECORDS, recordName } from '../../api/lifepod.io/v1/pod-record/index.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { formatMicroTime } from '../../machinery/time.ts';
import { hintsFor } from '../hints.ts';
import { createInterrupts } from './interrupts.ts';
import { createNotices, createSlowReports, givenUp } from './notices.ts';

const COMMAND = 'pod/p cannot start: no image; make it: sudo bin/lifepod image make busybox:1.28';
const START = 'sudo bin/lifepod up --detach';

test.each([
  [COMMAND, START, `${COMMAND}; if the engine has stopped with this session, first start one: ${START}`],
  [COMMAND, undefined, COMMAND],
  ['pod/p cannot start: fix its command', START, 'pod/p cannot start: fix its command'],
])('a session that gives up says how to start the engine that its advice needs: %s, %s', (because, start, sentence) => {
  expect(givenUp(because, start)).toBe(sentence);
});

test('an interrupted session says why a Pod has not ended yet, until a second interruption ends the Pod', async () => {
  const backend = await registryBackend();
  const at = formatMicroTime(Date.now() - 5000);
  await backend.set<PodRecord>(POD_RECORDS, {
    apiVersion: 'lifepod.io/v1',
    kind: 'PodRecord',
    metadata: { name: recordName('u', 0), namespace: 'a' },
    podName: 'p',
    podUID: 'u',
    transitions: [
      { key: 'Created', type: 'Created', at },
      { key: 'StopSignal/app/0', type: 'StopSignal', at, container: 'app', containerKind: 'app' },
    ],
  });
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'a', uid: 'u', deletionTimestamp: at, deletionGracePeriodSeconds: 30 },
    spec: { containers: [{ name: 'app', image: 'i', command: ['sleep'] }] },
    status: {
      containerStatuses: [
        { name: 'app', image: 'i', imageID: 'i', ready: true, restartCount: 0, state: { running: { startedAt: at } } },
      ],
    },
  };
  const said: string[] = [];
  const interrupts = createInterrupts(() => undefined);
  const report = createSlowReports(
    { client: clientOf(backend), hints: hintsFor({}, {}), say: (line) => void said.push(line) },
    interrupts,
  );
  await report(pod);
  expect(said).toEqual([]);
  interrupts.interrupt(130);
  await report(pod);
  const kept = { ...pod.metadata, deletionGracePeriodSeconds: 0, finalizers: ['a.example/b'] };
  await report({ ...pod, metadata: kept, status: {} });
  interrupts.interrupt(130);
  await report(pod);
  expect(said).toEqual([
    expect.stringMatching(
      /^pod\/p is not gone yet: PID 1 of container app has ignored its stop signal for .*; Ctrl\+C again ends it at once$/,
    ),
  ]);
});

const START_TIME = Date.parse('2026-01-02T03:04:05Z');
const PROBE = { exec: { command: ['false'] }, periodSeconds: 2 };
const containerOf = (name: string, more: Partial<Container> = {}): Container => ({
  name,
  image: 'i',
  readinessProbe: PROBE,
  ...more,
});
const DATABASE = 'pod/p is not ready: the readiness probe of container app fails, no database';

/** Resolves with what a session says when probes of running containers fail. `failures`: seconds since the start, container, message. */
async function saidOf(
  containers: Container[],
  failures: [number, string, string][],
  status: Pick<ContainerStatus, 'started'> & Pick<NonNullable<Pod['status']>, 'termination'> = {},
): Promise<string[]> {
  const { started, ...more } = status;
  const running = { startedAt: new Date(START_TIME).toISOString() };
  const containerStatuses = containers.map(({ name }): ContainerStatus => {
    return { name, image: 'i', imageID: 'i', ready: false, restartCount: 0, state: { running }, started };
  });
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'a', uid: 'u' },
    spec: { containers },
    status: { containerStatuses, ...more },
  };
  const said: string[] = [];
  const notices = createNotices({
    client: clientOf(await registryBackend()),
    logs: { follow: () => Promise.resolve() },
    say: (line) => void said.push(line.replace(/; see '.*$/, '')),
    hints: hintsFor({}, {}),
    failed: () => undefined,
  });
  for (const [seconds, name, message] of failures)
    notices.unready(pod, {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'e', namespace: 'a' },
      involvedObject: { kind: 'Pod', uid: 'u', fieldPath: `spec.containers{${name}}` },
      reason: 'Unhealthy',
      message,
      lastTimestamp: new Date(START_TIME + seconds * 1000).toISOString(),
    });
  return said;
}

const appFailures = (...seconds: number[]) =>
  seconds.map((at): [number, string, string] => [at, 'app', 'Readiness probe failed: no database']);

test('a session says once that a container is not ready, after the time that its probe needs to fail', async () => {
  expect(await saidOf([containerOf('app')], appFailures(-3, 1, 3, 5))).toEqual([]);
  expect(await saidOf([containerOf('app')], appFailures(1, 3, 5, 7, 9))).toEqual([DATABASE]);
});

test('a session says nothing about the probes of a Pod that is ending', async () => {
  const time = new Date(START_TIME).toISOString();
  const termination = { reason: 'DeadlineExceeded', startedAt: time, deadline: time };
  expect(await saidOf([containerOf('app')], appFailures(1, 3, 5, 7, 9), { termination })).toEqual([]);
});

test('a session names the container whose probe fails', async () => {
  const failures = [1, 3, 5, 7, 9].flatMap((seconds): [number, string, string][] => [
    [seconds, 'other', 'Readiness probe failed: no cache'],
    [seconds, 'app', 'Readiness probe failed: no database'],
  ]);
  expect(await saidOf([containerOf('other'), containerOf('app')], failures)).toEqual([
    'pod/p is not ready: the readiness probe of container other fails, no cache',
    DATABASE,
  ]);
});

test('a startup probe that has succeeded does not delay what a session says about readiness', async () => {
  const app = containerOf('app', { startupProbe: { ...PROBE, failureThreshold: 300 } });
  const startup: [number, string, string] = [30, 'app', 'Startup probe failed: no file'];
  expect(await saidOf([app], [startup, ...appFailures(31, 33, 35)], { started: true })).toEqual([]);
  expect(await saidOf([app], [startup, ...appFailures(31, 33, 35, 37)], { started: true })).toEqual([DATABASE]);
});
