import { expect, test } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import { DEPLOYMENTS, JOBS, PODS, REPLICA_SETS } from '../../api/resources.ts';
import { registryBackend } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import type { KubeObject, ResourceRef } from '../../machinery/meta.ts';
import { forbidden } from '../../machinery/status.ts';
import { hintsFor } from '../hints.ts';
import { keptPodsLine } from './kept-pods.ts';
import { isTypingError, missingPod } from './missing-pod.ts';
import { requirePod } from './not-a-pod.ts';
import { findWorkload, workloadName } from './workloads.ts';

test.each([
  ['web', undefined],
  ['pod/web', undefined],
  ['po/web', undefined],
  ['job/x', ['Job', 'x']],
  ['Jobs/x', ['Job', 'x']],
  ['deployment.apps/x', ['Deployment', 'x']],
  ['sts/x', ['StatefulSet', 'x']],
])('%s names a Pod or a workload', (given, expected) => {
  const found = workloadName(given);
  expect(found && [found.type.kind, found.name]).toEqual(expected);
});

test.each(['service/x', 'job/', 'job/x/y', '/x'])('%s is neither a Pod nor a workload', (given) => {
  expect(() => workloadName(given)).toThrow(/^\S+ is neither a Pod nor a workload: .* job\/NAME, cronjob\/NAME$/);
});

test.each([
  ['myap-pod', 'myapp-pod', true],
  ['myappp-pod', 'myapp-pod', true],
  ['mxapp-pod', 'myapp-pod', true],
  ['ymapp-pod', 'myapp-pod', true],
  ['myapp-pdo', 'myapp-pod', true],
  ['yapp-po', 'myapp-pod', false],
  ['web', 'myapp-pod', false],
])('%s may be a typing error of %s: %s', (typed, meant, expected) => {
  expect(isTypingError(typed, meant)).toBe(expected);
});

const HINTS = hintsFor({ dataDir: '/d' }, { KUBECONFIG: '/d/kubeconfig' }, undefined, false);

async function cluster() {
  const backend = await registryBackend({ namespaces: ['a', 'b'] });
  const client = clientOf(backend);
  const spec = { containers: [{ name: 'app', image: 'x' }] };
  const template = { metadata: { labels: { app: 'w' } }, spec };
  const selector = { matchLabels: { app: 'w' } };
  const set = <T extends KubeObject>(
    ref: ResourceRef,
    kind: string,
    name: string,
    more: object,
    owner?: KubeObject,
  ): Promise<T> => {
    const apiVersion = ref.group === '' ? 'v1' : `${ref.group}/${ref.version}`;
    const owners = owner && [
      {
        apiVersion: owner.apiVersion,
        kind: owner.kind,
        name: owner.metadata.name,
        uid: owner.metadata.uid,
        controller: true,
      },
    ];
    const metadata = { name, namespace: 'a', labels: { app: 'w' }, ownerReferences: owners };
    return backend.set<T>(ref, { apiVersion, kind, metadata, ...more } as unknown as T);
  };
  const pod = (name: string, owner?: KubeObject): Promise<Pod> => set<Pod>(PODS, 'Pod', name, { spec }, owner);
  return {
    backend,
    client,
    set,
    pod,
    workload: { spec: { selector, template } },
    jobTemplate: { spec: { ...spec, restartPolicy: 'Never' } },
  };
}

test('the Pods of a workload are those that it owns, directly or through another object', async () => {
  const { client, set, pod, workload, jobTemplate } = await cluster();
  const web = await set(DEPLOYMENTS, 'Deployment', 'web', workload);
  const old = await set(REPLICA_SETS, 'ReplicaSet', 'web-1', workload, web);
  const job = await set(JOBS, 'Job', 'report', { spec: { template: jobTemplate } });
  await pod('web-1-x', old);
  await pod('report-x', job);
  await pod('bare');
  const podsOf = async (given: string) => {
    const wanted = workloadName(given);
    return wanted && (await findWorkload(client, 'a', wanted))?.pods.map(({ metadata }) => metadata.name);
  };
  expect(await podsOf('deployment/web')).toEqual(['web-1-x']);
  expect(await podsOf('rs/web-1')).toEqual(['web-1-x']);
  expect(await podsOf('job/report')).toEqual(['report-x']);
  expect(await podsOf('job/web')).toBeUndefined();
});

test('the error for a workload in place of a Pod names its Pods', async () => {
  const { backend, client, set, pod, workload, jobTemplate } = await cluster();
  const web = await set(DEPLOYMENTS, 'Deployment', 'web', workload);
  const old = await set(REPLICA_SETS, 'ReplicaSet', 'web-1', workload, web);
  await set(JOBS, 'Job', 'report', { spec: { template: jobTemplate } });
  await pod('web-1-x', old);
  const require = (given: string) => requirePod({ client, namespace: 'a', hints: HINTS }, given);
  for (const given of ['web', 'pod/web', 'Po/web', 'deploy']) await require(given);
  await expect(require('deploy/web')).rejects.toThrow(
    '"deploy/web" is not a Pod: give the name of one of its Pods (web-1-x)',
  );
  await expect(require('job/report')).rejects.toThrow(
    `"job/report" is not a Pod: it has no Pods now, and 'lifepod why job/report -n a --data-dir /d' explains why`,
  );
  await expect(require('job/none')).rejects.toThrow("no Job none in namespace a: 'kubectl get jobs -A' lists all Jobs");
  for (const given of ['', 'service/web', 'pod/', 'pod/a/b', 'deploy/', 'deploy/a/b'])
    await expect(require(given)).rejects.toThrow(`"${given}" is not a Pod: give POD or pod/POD`);
  backend.failNext('get deployments', forbidden(DEPLOYMENTS, 'web', 'no'));
  await expect(require('deploy/web')).rejects.toThrow('is not a Pod: give the name of one of its Pods');
});

test('the line about Pods that keep an engine running names the workloads that create them, each once', async () => {
  const { client, set, pod, workload, jobTemplate } = await cluster();
  const web = await set(DEPLOYMENTS, 'Deployment', 'web', workload);
  const old = await set(REPLICA_SETS, 'ReplicaSet', 'web-1', workload, web);
  const job = await set(JOBS, 'Job', 'report', { spec: { template: jobTemplate } });
  const bare = await pod('bare');
  const begin = 'the engine keeps running, because no session has created these Pods';
  const down = "'lifepod down --data-dir /d' ends them";
  expect(await keptPodsLine(client, [bare], HINTS)).toBe(`${begin}: a/bare; ${down}`);
  const removed = hintsFor({ dataDir: '/d' }, { LIFEPOD_PROGRAM: '/gone/lifepod', PATH: '/gone' }, undefined, false);
  expect(await keptPodsLine(client, [bare], removed)).toBe(
    `${begin}: a/bare; '/gone/lifepod down --data-dir /d' ends them (first install lifepod again, because /gone/lifepod has been removed)`,
  );
  const pods = [await pod('web-1-x', old), await pod('web-1-y', old), await pod('report-x', job), bare];
  expect(await keptPodsLine(client, pods, HINTS)).toBe(
    `${begin}: a/web-1-x, a/web-1-y, a/report-x, a/bare; ${down}; a workload creates its Pods again at the next start until it is deleted: ` +
      "'kubectl delete deployment/web -n a', 'kubectl delete job/report -n a'",
  );
});

test('the error for a missing Pod names the workload, the namespace or the Pods that the user may have meant', async () => {
  const { backend, client, set, pod, workload } = await cluster();
  await set(DEPLOYMENTS, 'Deployment', 'web', workload);
  await pod('other-1');
  const text = async (namespace: string, name: string): Promise<string> =>
    (await missingPod(client, namespace, name, HINTS)).message;
  expect(await text('a', 'web')).toBe(
    "no Pod web in namespace a, and no record of one, but a Deployment of this name: 'lifepod why deployment/web -n a --data-dir /d' explains its Pods",
  );
  expect(await text('b', 'other-1')).toBe(
    "no Pod other-1 in namespace b, and no record of one, but in namespace a: 'lifepod why other-1 -n a --data-dir /d' explains it",
  );
  expect(await text('a', 'other')).toMatch(
    /^no Pod other in namespace a, and no record of one; there is other-1: 'kubectl get pods -A'/,
  );
  expect(await text('a', 'othr-1')).toMatch(/^no Pod othr-1 in namespace a, and no record of one; there is other-1: /);
  expect(await text('a', 'none')).toMatch(
    /^no Pod none in namespace a, and no record of one: 'kubectl get pods -A' lists all Pods, /,
  );
  expect(await text('a', 'none')).toMatch(
    / all records, which are deleted some time after the end of their Pods \(see --record-age of 'lifepod up'\) \(answered by the engine in \/d\)$/,
  );
  expect(await text('c', 'none')).toMatch(
    /^the namespace c does not exist: 'kubectl get namespaces' lists those that exist \(answered by the engine in \/d\)$/,
  );
  expect(await text('c', 'other-1')).toMatch(
    /^the namespace c does not exist, so there is no Pod other-1 in it, but there is one in namespace a: 'lifepod why other-1 -n a /,
  );
  const refuse = (): void => {
    backend.failNext('list pods /', forbidden(PODS, '', 'no'));
    backend.failNext('list pods /', forbidden(PODS, '', 'no'));
  };
  refuse();
  expect(await text('b', 'other-1')).toMatch(
    /: 'kubectl get pods -n b' lists the Pods of this namespace, 'kubectl get podrecords -n b' its records, which are deleted /,
  );
});
