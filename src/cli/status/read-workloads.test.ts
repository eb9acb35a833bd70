import { expect, test } from 'vitest';
import type { CoreV1Event, Deployment } from '../../api/generated/types.ts';
import { DAEMON_SETS, DEPLOYMENTS, EVENTS, JOBS, REPLICA_SETS, STATEFUL_SETS } from '../../api/resources.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { type KubeObject, type ResourceRef, uidOf } from '../../machinery/meta.ts';
import { forbidden } from '../../machinery/status.ts';
import { hintsFor } from '../hints.ts';
import { readWorkloads } from './read-workloads.ts';

const SINCE = '2026-01-31T11:00:00Z';
const HINTS = hintsFor({}, {}, undefined, false);

async function start() {
  const backend = await registryBackend({ namespaces: ['a', 'b'] });
  const put = async (
    ref: ResourceRef,
    kind: string,
    namespace: string,
    name: string,
    reason?: string,
    owner?: string,
  ): Promise<string> => {
    const labels = { app: name };
    const ownerReferences = owner && [
      { apiVersion: 'apps/v1', kind: 'Deployment', name: owner, uid: owner, controller: true },
    ];
    const object = {
      apiVersion: 'apps/v1',
      kind,
      metadata: { name, namespace, ...(ownerReferences && { ownerReferences }) },
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'app', image: 'i' }] } },
      },
    };
    const created = await backend.set(ref, object as KubeObject);
    const condition = {
      type: 'ReplicaFailure',
      status: 'True',
      reason,
      message: 'no\naccount',
      lastTransitionTime: SINCE,
    };
    await backend.setStatus(ref, namespace, name, { replicas: 0, conditions: reason === undefined ? [] : [condition] });
    return uidOf(created);
  };
  const web = await put(DEPLOYMENTS, 'Deployment', 'a', 'web', 'FailedCreate');
  await put(DEPLOYMENTS, 'Deployment', 'a', 'well');
  const set = await put(REPLICA_SETS, 'ReplicaSet', 'a', 'web-1', 'FailedCreate', web);
  await put(REPLICA_SETS, 'ReplicaSet', 'b', 'alone', 'FailedDelete');
  return { backend, set, read: (namespace?: string) => readWorkloads(clientOf(backend), namespace, HINTS) };
}

test('workloads that cannot create or delete Pods are troubles, but not those whose owner reports it', async () => {
  const { read } = await start();
  const { troubles, unread } = await read();
  expect(unread).toEqual([]);
  expect(troubles).toEqual([
    {
      kind: 'Deployment',
      namespace: 'a',
      name: 'web',
      uid: expect.any(String),
      reason: 'FailedCreate',
      since: Date.parse(SINCE),
      message: 'web cannot create Pods: no account',
      command: 'lifepod why deployment/web -n a',
    },
    expect.objectContaining({
      kind: 'ReplicaSet',
      namespace: 'b',
      message: 'alone cannot delete Pods: no account',
      command: 'lifepod why replicaset/alone -n b',
    }),
  ]);
  expect((await read('b')).troubles).toHaveLength(1);
});

test('the newest Event of the ReplicaSet, not the message of the condition, says why a Deployment lacks Pods', async () => {
  const { backend, set, read } = await start();
  await backend.set<CoreV1Event>(EVENTS, {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'web-1.1', namespace: 'a' },
    involvedObject: { apiVersion: 'apps/v1', kind: 'ReplicaSet', namespace: 'a', name: 'web-1', uid: set },
    ...{ type: 'Warning', reason: 'FailedCreate', message: 'Error creating: no quota', lastTimestamp: SINCE },
  } as CoreV1Event);
  const web = backend.objects(DEPLOYMENTS).find(({ metadata }) => metadata.name === 'web') as Deployment;
  await backend.setStatus(DEPLOYMENTS, 'a', 'web', { ...web.status, replicas: 2 });
  // A user of another namespace can create an Event about any UID there.
  await backend.set<CoreV1Event>(EVENTS, {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'web-1.2', namespace: 'b' },
    involvedObject: { apiVersion: 'apps/v1', kind: 'ReplicaSet', namespace: 'b', name: 'web-1', uid: set },
    ...{ type: 'Warning', reason: 'FailedCreate', message: 'forged', lastTimestamp: '2026-01-31T11:09:00Z' },
  } as CoreV1Event);
  expect((await read()).troubles.map(({ message }) => message)).toContain('web cannot create more Pods: no quota');
  const { troubles } = await read('a');
  expect(troubles.map(({ message }) => message)).toEqual(['web cannot create more Pods: no quota']);
});

test('a failed Job is a trouble if no Pod of it is, and a Job of a CronJob only if it is the last one', async () => {
  const backend = await registryBackend({ namespaces: ['a'] });
  const put = async (name: string, type: string, second: number, cron?: string): Promise<string> => {
    const containers = [{ name: 'app', image: 'i' }];
    const owner = { apiVersion: 'batch/v1', kind: 'CronJob', name: cron, uid: cron, controller: true };
    const job = await backend.set(JOBS, {
      ...{ apiVersion: 'batch/v1', kind: 'Job' },
      metadata: { name, namespace: 'a', ...(cron !== undefined && { ownerReferences: [owner] }) },
      spec: { template: { spec: { restartPolicy: 'Never', containers } } },
    } as KubeObject);
    const at = `2026-01-31T11:00:0${second}Z`;
    const end = { status: 'True', reason: 'DeadlineExceeded', message: 'too late', lastTransitionTime: at };
    const isDone = type === 'Complete';
    await backend.setStatus(JOBS, 'a', name, {
      startTime: SINCE,
      ...(isDone && { completionTime: at, succeeded: 1 }),
      conditions: [
        { ...end, type: isDone ? 'SuccessCriteriaMet' : 'FailureTarget' },
        { ...end, type },
      ],
    });
    return uidOf(job);
  };
  await put('alone', 'Failed', 1);
  await put('done', 'Complete', 1);
  const shown = await put('shown', 'Failed', 1);
  await put('c-1', 'Failed', 1, 'c');
  await put('c-2', 'Failed', 2, 'c');
  await put('e-1', 'Failed', 1, 'e');
  await put('e-2', 'Complete', 2, 'e');
  const ownerReferences = [{ apiVersion: 'batch/v1', kind: 'Job', name: 'shown', uid: shown, controller: true }];
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'a', ownerReferences } };
  const { troubles } = await readWorkloads(clientOf(backend), undefined, HINTS, [pod]);
  expect(troubles.map(({ name }) => name).sort()).toEqual(['alone', 'c-2']);
  expect(troubles.find(({ name }) => name === 'alone')).toEqual({
    ...{ kind: 'Job', namespace: 'a', name: 'alone', uid: expect.any(String), reason: 'DeadlineExceeded' },
    since: Date.parse('2026-01-31T11:00:01Z'),
    message: 'alone has failed: too late',
    command: 'lifepod why job/alone -n a',
  });
});

test('a user who may not read a kind gets a sentence about it', async () => {
  const { backend, read } = await start();
  backend.failNext('list deployments', forbidden(DEPLOYMENTS, '', 'no'));
  const { troubles, unread } = await read('a');
  expect(troubles).toEqual([]);
  expect(unread).toEqual([expect.stringMatching(/^Deployments: deployments\S* is forbidden: no$/)]);
});

test('Jobs, StatefulSets and DaemonSets whose last Pods were refused are troubles while they lack Pods', async () => {
  const backend = await registryBackend({ namespaces: ['a', 'b'] });
  const labels = { app: 'x' };
  const containers = [{ name: 'app', image: 'i' }];
  const put = async (
    ref: ResourceRef,
    kind: string,
    name: string,
    refused: string,
    created?: string,
    more?: object,
  ) => {
    const isJob = kind === 'Job';
    const object = await backend.set(ref, {
      apiVersion: isJob ? 'batch/v1' : 'apps/v1',
      kind,
      metadata: { name, namespace: 'a' },
      spec: {
        ...(isJob ? {} : { selector: { matchLabels: labels }, serviceName: 's' }),
        template: { metadata: { labels }, spec: { containers, ...(isJob && { restartPolicy: 'Never' }) } },
        ...more,
      },
    } as KubeObject);
    const report = async (reason: string, at: string, message: string): Promise<void> => {
      const involvedObject = { apiVersion: object.apiVersion, kind, namespace: 'a', name, uid: uidOf(object) };
      const [first, last] = ['00', at].map((second) => `2026-01-31T11:00:${second}Z`);
      await backend.set<CoreV1Event>(EVENTS, {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { name: `${name}.${reason.toLowerCase()}.${at}`, namespace: 'a' },
        ...{ type: 'Warning', reason, message, involvedObject, firstTimestamp: first, lastTimestamp: last },
      } as CoreV1Event);
    };
    await report('FailedCreate', '01', 'Error creating: other');
    await report(
      'FailedCreate',
      refused,
      kind === 'StatefulSet' ? 'create Pod s-0 in StatefulSet s failed error: no' : 'Error creating: no',
    );
    if (created !== undefined) await report('SuccessfulCreate', created, 'Created pod: x');
  };
  await put(JOBS, 'Job', 'refused', '05');
  await put(JOBS, 'Job', 'again', '05', '04');
  await put(JOBS, 'Job', 'well', '05', '05');
  await put(JOBS, 'Job', 'idle', '05', undefined, { suspend: true });
  await put(JOBS, 'Job', 'busy', '05');
  await backend.setStatus(JOBS, 'a', 'busy', { startTime: SINCE, active: 1, ready: 0 });
  await put(STATEFUL_SETS, 'StatefulSet', 's', '05');
  await put(STATEFUL_SETS, 'StatefulSet', 'none', '05', undefined, { replicas: 0 });
  await put(DAEMON_SETS, 'DaemonSet', 'd', '05');
  const daemons = { currentNumberScheduled: 0, desiredNumberScheduled: 1, numberMisscheduled: 0, numberReady: 0 };
  await backend.setStatus(DAEMON_SETS, 'a', 'd', daemons);
  const { troubles, unread } = await readWorkloads(clientOf(backend), undefined, HINTS);
  expect(unread).toEqual([]);
  const found = troubles.map(({ kind, name, message, command }) => ({ kind, name, message, command }));
  expect(found.sort((a, b) => (a.name ?? '').localeCompare(b.name ?? ''))).toEqual(
    [
      ['Job', 'again'],
      ['DaemonSet', 'd'],
      ['Job', 'refused'],
      ['StatefulSet', 's'],
    ].map(([kind = '', name]) => ({
      ...{ kind, name, message: `${name} cannot create Pods: no` },
      command: `lifepod why ${kind.toLowerCase()}/${name} -n a`,
    })),
  );
  expect(troubles[0]).toMatchObject({ reason: 'FailedCreate', namespace: 'a', since: Date.parse(SINCE) });
  expect((await readWorkloads(clientOf(backend), 'b', HINTS)).troubles).toEqual([]);
  backend.failNext('list events', forbidden(EVENTS, '', 'no'));
  expect((await readWorkloads(clientOf(backend), 'a', HINTS)).unread).toEqual([
    expect.stringMatching(
      /^Events: events\S* is forbidden: no: Jobs, StatefulSets and DaemonSets that cannot create Pods are not reported$/,
    ),
  ]);
});
