import { expect, test } from 'vitest';
import { containerOf, defaulted, podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Pod, PodSpec, PodStatus } from '../../api/generated/types.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { inProcessClient } from '../../client/typed-client.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { createAdmission } from './admission.ts';

const backend = await registryBackend();

const podNamed = (name: string, cpu: string, spec: Partial<PodSpec> = {}): Pod => {
  const pod = defaulted(podOf({ containers: [containerOf('app', { resources: { requests: { cpu } } })], ...spec }));
  return { ...pod, metadata: { ...pod.metadata, name, uid: name } };
};
const critical = (name: string, cpu: string): Pod => podNamed(name, cpu, { priority: 2_000_000_000 });
const deleted = (pod: Pod): Pod => ({
  ...pod,
  metadata: { ...pod.metadata, deletionTimestamp: '2026-01-31T00:00:00Z', finalizers: ['a/b'] },
});

/** Creates the admission of a node with two CPUs. `calls`: the Pods that admission has started, refused and preempted, in order. */
function setUp() {
  const timers = createVirtualTimers();
  const running = new Map<string, Pod>();
  const ending = new Set<string>();
  const calls: string[] = [];
  const failures: Error[] = [];
  const statuses: PodStatus[] = [];
  const admission = createAdmission({
    client: inProcessClient(backend),
    nodeName: 'n',
    allocatable: { cpu: '2', pods: '9' },
    timers,
    log: silentLog,
    signal: new AbortController().signal,
    pods: () => running.values(),
    isStatic: () => false,
    strictGroups: false,
    unwanted: () => undefined,
    begin(pod) {
      running.set(pod.metadata.name, pod);
      calls.push(`begin ${pod.metadata.name}`);
    },
    refused: ({ metadata }, { reason }) => calls.push(`refuse ${metadata.name} ${reason}`),
    async writeStatus(_, status) {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      statuses.push(status);
    },
    isEnding: ({ metadata }) => ending.has(metadata.name),
    preempt({ metadata }) {
      ending.add(metadata.name);
      calls.push(`preempt ${metadata.name}`);
    },
  });
  admission.open();
  const clear = (name: string): void => {
    const pod = running.get(name) as Pod;
    running.delete(name);
    admission.cleared(pod);
  };
  return { admission, timers, calls, failures, statuses, running, clear };
}

test('admission retries writing a refusal until the API accepts it, and reports it once', async () => {
  const { admission, timers, calls, failures, statuses } = setUp();
  const pod = podNamed('large', '3');
  failures.push(new Error('not now'), new Error('nor now'));
  admission.admit(pod);
  for (let tries = 0; tries < 2; tries++) {
    await new Promise(setImmediate);
    expect(statuses).toEqual([]);
    admission.admit(pod);
    timers.advance(1000);
  }
  await new Promise(setImmediate);
  expect(statuses).toMatchObject([{ phase: 'Failed', reason: 'OutOfcpu' }]);
  expect(calls).toEqual(['refuse large OutOfcpu']);
});

test('admission starts a worker for a refused Pod that is deleted, and checks a new Pod of the same UID again', () => {
  const { admission, calls, running } = setUp();
  const pod = podNamed('large', '3');
  admission.admit(pod);
  admission.admit(deleted(pod));
  running.clear();
  admission.admit(pod);
  expect(calls).toEqual(['refuse large OutOfcpu', 'begin large', 'refuse large OutOfcpu']);
});

test('admission starts a critical Pod when its victims have been cleared, and reserves their room for it', () => {
  const { admission, calls, clear } = setUp();
  for (const pod of [podNamed('a', '1'), podNamed('b', '1')]) admission.admit(pod);
  calls.length = 0;
  const pod = critical('critical', '2');
  admission.admit(pod);
  expect(calls).toEqual(['preempt a', 'preempt b']);
  admission.admit(pod);
  clear('a');
  admission.admit(podNamed('late', '1'));
  expect(calls.slice(2)).toEqual(['refuse late OutOfcpu']);
  clear('b');
  expect(calls.slice(3)).toEqual(['begin critical']);
});

test('admission waits for Pods that are already ending before it preempts others', () => {
  const { admission, calls, clear } = setUp();
  for (const pod of [podNamed('a', '1'), podNamed('b', '1')]) admission.admit(pod);
  admission.admit(critical('first', '1'));
  calls.length = 0;
  admission.admit(critical('second', '1'));
  expect(calls).toEqual(['preempt b']);
  clear('b');
  clear('a');
  expect(calls.slice(1).sort()).toEqual(['begin first', 'begin second']);
});

test('admission starts the worker of a waiting critical Pod that is deleted, without waiting for room', () => {
  const { admission, calls, clear } = setUp();
  admission.admit(podNamed('a', '2'));
  const pod = critical('critical', '1');
  admission.admit(pod);
  admission.admit(deleted(pod));
  clear('a');
  expect(calls).toEqual(['begin a', 'preempt a', 'begin critical']);
});

test('adopt() starts a waiting critical Pod and ignores other Pods', () => {
  const { admission, calls, clear } = setUp();
  admission.admit(podNamed('a', '2'));
  admission.admit(critical('critical', '1'));
  calls.length = 0;
  expect([admission.adopt('critical'), admission.adopt('critical'), admission.adopt('a')]).toEqual([
    true,
    false,
    false,
  ]);
  clear('a');
  expect(calls).toEqual(['begin critical']);
});

test('roomMade() starts a critical Pod once the status of its victim is terminal', () => {
  const { admission, calls, running } = setUp();
  const victim = podNamed('a', '2');
  admission.admit(victim);
  admission.admit(critical('critical', '1'));
  admission.roomMade();
  expect(calls).toEqual(['begin a', 'preempt a']);
  running.set('a', { ...victim, status: { phase: 'Failed' } });
  admission.roomMade();
  expect(calls.slice(2)).toEqual(['begin critical']);
});
