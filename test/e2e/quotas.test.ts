import { expect } from 'vitest';
import type { ResourceQuota } from '../../src/api/generated/types.ts';
import { pod, WAIT } from '../support/manifests.ts';
import { lifepod, test } from '../support/shared-engine.ts';

const used = async (): Promise<Record<string, string> | undefined> =>
  (await lifepod.get<ResourceQuota>('quota', 'q')).status?.used;

async function createQuota(hard: string): Promise<void> {
  await lifepod.kubectlOk('create', 'quota', 'q', `--hard=${hard}`);
  await lifepod.wait('--for=jsonpath={.status.used}', 'quota/q');
}

const requesting = (name: string, cpu: string, initCpu: string): Record<string, unknown> =>
  pod(name, {
    app: [{ name: 'app', script: WAIT, resources: { requests: { cpu } } }],
    init: [{ name: 'init', script: 'true', resources: { requests: { cpu: initCpu } } }],
  });

test('a quota rejects a Pod because of the request of an init container, and the usage follows a deleted Pod at once', async () => {
  await createQuota('requests.cpu=50m,pods=3');
  const refused = await lifepod.kubectlInput(JSON.stringify(requesting('large', '1m', '60m')), 'create', '-f', '-');
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain(
    'pods "large" is forbidden: exceeded quota: q, requested: requests.cpu=60m, used: requests.cpu=0, limited: requests.cpu=50m',
  );
  await lifepod.apply(requesting('small', '1m', '40m'));
  expect(await used()).toEqual({ pods: '1', 'requests.cpu': '40m' });
  await lifepod.wait('--for=condition=Ready', 'pod/small');
  expect(await lifepod.kubectlOk('describe', 'quota', 'q')).toMatch(/requests\.cpu +40m +50m/);
  await lifepod.delete('pod', 'small', '--now');
  await lifepod.wait('--for=jsonpath={.status.used.pods}=0', 'quota/q');
  expect(await used()).toEqual({ pods: '0', 'requests.cpu': '0' });
});

test('a Deployment shows in its conditions that a quota rejects its Pods', async () => {
  await createQuota('pods=1');
  await lifepod.kubectlOk(
    'create',
    'deployment',
    'web',
    '--image=busybox:1.28',
    '--replicas=2',
    '--',
    'sh',
    '-c',
    WAIT,
  );
  await lifepod.wait('--for=condition=ReplicaFailure', 'deployment/web');
  expect(await lifepod.kubectlOk('describe', 'deployment', 'web')).toMatch(/ReplicaFailure +True +FailedCreate/);
  const events = await lifepod.kubectlOk('get', 'events');
  expect(events).toMatch(/FailedCreate.*exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1/);
});

test('a LimitRange gives a Pod its requests and limits, which a quota for limits demands', async () => {
  await createQuota('limits.memory=200Mi');
  const plain = JSON.stringify(pod('plain', { app: [{ name: 'app', script: WAIT }] }));
  const refused = await lifepod.kubectlInput(plain, 'create', '-f', '-');
  expect(refused.stderr).toContain('failed quota: q: must specify limits.memory for: app');
  await lifepod.apply({
    apiVersion: 'v1',
    kind: 'LimitRange',
    metadata: { name: 'defaults' },
    spec: { limits: [{ type: 'Container', default: { memory: '128Mi' } }] },
  });
  await lifepod.apply(plain);
  expect(await used()).toEqual({ 'limits.memory': '128Mi' });
});
