import { expect, test } from 'vitest';
import { containerOf, defaulted, podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Node, Pod, PodSpec, PodStatus } from '../../api/generated/types.ts';
import { NODES } from '../../api/resources.ts';
import { registryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { type AdmissionOptions, createAdmission } from './admission.ts';

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

/** The node has two CPUs. */
function setUp(more: Partial<AdmissionOptions> = {}, isOpen = true) {
  const timers = createVirtualTimers();
  const running = new Map<string, Pod>();
  const ending = new Set<string>();
  const calls: string[] = [];
  const failures: Error[] = [];
  const statuses: PodStatus[] = [];
  const admission = createAdmission({
    ...withInformers({ client: clientOf(backend), timers, log: silentLog }),

    nodeName: 'n',
    allocatable: { cpu: '2', pods: '9' },

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
    ...more,
  });
  if (isOpen) admission.open();
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

test('open() begins the Pods of the API that have waited for it; static Pods wait only if they choose their nodes', () => {
  const isStatic = ({ metadata }: Pod): boolean => metadata.name.startsWith('static');
  const { admission, calls } = setUp({ isStatic }, false);
  const labels = { 'kubernetes.io/os': 'linux' };
  const terms = [{ matchExpressions: [{ key: 'kubernetes.io/os', operator: 'Exists' }] }];
  const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } } };
  for (const pod of [
    podNamed('api', '100m'),
    podNamed('gone', '100m'),
    podNamed('static', '100m'),
    podNamed('static-empty', '100m', { nodeSelector: {}, affinity: {} }),
    podNamed('static-selector', '100m', { nodeSelector: labels }),
    podNamed('static-affinity', '100m', { affinity }),
    { ...podNamed('started', '100m'), status: { phase: 'Pending', startTime: '2026-01-31T00:00:00Z' } },
    { ...podNamed('running', '100m'), status: { phase: 'Running' } },
    { ...podNamed('fresh', '100m'), status: { phase: 'Pending' } },
    deleted(podNamed('deleted', '100m')),
  ])
    admission.admit(pod);
  expect(calls).toEqual(['static', 'static-empty', 'started', 'running', 'deleted'].map((name) => `begin ${name}`));
  calls.length = 0;
  admission.forget(podNamed('gone', '100m'));
  admission.open();
  const waited = ['api', 'static-selector', 'static-affinity', 'fresh'].map((name) => `begin ${name}`);
  expect(calls).toEqual(waited);
  admission.open();
  expect(calls).toHaveLength(4);
});

test('admission ignores a Pod that was refused before, but begins one that failed with containers or is being deleted', () => {
  const { admission, calls } = setUp();
  const failed = (name: string, status: PodStatus = {}): Pod => ({
    ...podNamed(name, '1'),
    status: { phase: 'Failed', ...status },
  });
  admission.admit(failed('refused'));
  admission.admit(failed('ran', { containerStatuses: [] }));
  admission.admit(deleted(failed('deleted')));
  admission.admit({ ...podNamed('done', '1'), status: { phase: 'Succeeded' } });
  expect(calls).toEqual(['begin ran', 'begin deleted', 'begin done']);
});

test('a Pod that is cleared while no Pod waits for room counts until its status or its removal shows the end', () => {
  const { admission, calls, running } = setUp();
  const pod = podNamed('a', '2');
  admission.admit(pod);
  admission.cleared(pod);
  admission.admit(podNamed('b', '1'));
  expect(calls).toEqual(['begin a', 'refuse b OutOfcpu']);
  running.delete('a');
  admission.admit(podNamed('c', '1'));
  expect(calls.slice(2)).toEqual(['begin c']);
});

test('Pods that are cleared while a Pod waits for room do not count for it, and count again for later Pods', () => {
  const { admission, calls, running } = setUp();
  const [a, b] = [podNamed('a', '1'), podNamed('b', '1')];
  for (const pod of [a, b]) admission.admit(pod);
  admission.admit(critical('critical', '2'));
  calls.length = 0;
  // The cleared Pods count as ended although their statuses do not show the end yet.
  admission.cleared(a);
  admission.admit(podNamed('early', '3'));
  admission.cleared(b);
  expect(calls).toEqual(['refuse early OutOfcpu', 'begin critical']);
  running.delete('critical');
  admission.admit(podNamed('later', '1'));
  expect(calls.slice(2)).toEqual(['refuse later OutOfcpu']);
});

test('admission uses the allocatable resources of the Node object as soon as it has them', async () => {
  const ownBackend = await registryBackend();
  const node: Node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } };
  for (const [allocatable, call] of [
    [undefined, 'begin a'],
    [{ cpu: '1', pods: '9' }, 'refuse a OutOfcpu'],
  ] as const) {
    await ownBackend.set(NODES, { ...node, status: { capacity: { cpu: '8' }, ...(allocatable && { allocatable }) } });
    const { informers } = withInformers({
      client: clientOf(ownBackend),
      timers: createVirtualTimers(),
      log: silentLog,
    });
    const { admission, calls } = setUp({ informers });
    await admission.synced;
    admission.admit(podNamed('a', '2'));
    expect(calls).toEqual([call]);
  }
});
