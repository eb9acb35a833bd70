import { expect } from 'vitest';
import type { Pod } from '../../src/api/generated/types.ts';
import { lifepod, test } from '../support/shared-engine.ts';

const RUN = 'hostname >> /data/names; touch /tmp/ready; trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done';

const create = async (replicas: number, spec: object = {}): Promise<void> => {
  const labels = { app: 'db' };
  const volumeMounts = [{ name: 'data', mountPath: '/data' }];
  const readinessProbe = { exec: { command: ['test', '-e', '/tmp/ready'] }, periodSeconds: 1 };
  const container = { name: 'app', image: 'busybox:1.28', command: ['sh', '-c', RUN], volumeMounts, readinessProbe };
  const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } };
  const metadata = { name: 'db' };
  await lifepod.apply({
    apiVersion: 'v1',
    kind: 'Service',
    metadata,
    spec: { clusterIP: 'None', selector: labels, ports: [{ port: 80 }] },
  });
  await lifepod.apply({
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata,
    spec: {
      replicas,
      serviceName: 'db',
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [container] } },
      volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: claim }],
      ...spec,
    },
  });
  await rolledOut();
};
const rollout = (...args: string[]): Promise<string> => lifepod.kubectlOk('rollout', ...args);
const rolledOut = async (): Promise<string> => rollout('status', 'statefulset/db', '--timeout=180s');
const set = (variable: string): Promise<string> => lifepod.kubectlOk('set', 'env', 'statefulset/db', variable);
const pods = async (): Promise<Pod[]> => {
  const { items } = await lifepod.get<{ items: Pod[] }>('pods', '-l', 'app=db');
  return items;
};
const valuesOf = (all: readonly Pod[]): (string | undefined)[] =>
  all.map(({ spec }) => spec?.containers[0]?.env?.find(({ name }) => name === 'V')?.value);

test('a StatefulSet is scaled up and down in order, and its Pods keep their names and claims', async () => {
  await create(1);
  expect(await lifepod.kubectlOk('scale', 'statefulset/db', '--replicas=3')).toBe('statefulset.apps/db scaled\n');
  await rolledOut();
  expect(await lifepod.kubectlOk('get', 'statefulset', 'db')).toMatch(/^db +3\/3 +\S+$/m);
  expect((await pods()).map(({ metadata, spec }) => [metadata.name, spec?.hostname, spec?.subdomain])).toEqual([
    ['db-0', 'db-0', 'db'],
    ['db-1', 'db-1', 'db'],
    ['db-2', 'db-2', 'db'],
  ]);
  await lifepod.kubectlOk('scale', 'statefulset/db', '--replicas=1');
  await lifepod.wait('pod/db-2', 'pod/db-1', '--for=delete');
  const claims = await lifepod.kubectlOk('get', 'persistentvolumeclaims', '-o', 'name');
  expect(claims.match(/data-db-\d/g)).toEqual(['data-db-0', 'data-db-1', 'data-db-2']);
  await lifepod.kubectlOk('scale', 'statefulset/db', '--replicas=2');
  await rolledOut();
  expect(await lifepod.execOk('db-1', '--', 'cat', '/data/names')).toBe('db-1\ndb-1\n');
  expect(await lifepod.kubectlOk('describe', 'statefulset', 'db')).toMatch(
    /Normal +SuccessfulDelete .* statefulset-controller +delete Pod db-2 in StatefulSet db successful/,
  );
});

test('a StatefulSet is updated from the highest ordinal to a partition, and is undone and restarted', async () => {
  const updateStrategy = { type: 'RollingUpdate', rollingUpdate: { partition: 1 } };
  await create(2, { updateStrategy });
  await set('V=2');
  expect(await rolledOut()).toMatch(/partitioned roll out complete: 1 new pods have been updated\.\.\.\n$/);
  expect(valuesOf(await pods())).toEqual([undefined, '2']);
  const whole = JSON.stringify({ spec: { updateStrategy: { rollingUpdate: { partition: 0 } } } });
  await lifepod.kubectlOk('patch', 'statefulset', 'db', '-p', whole);
  await rolledOut();
  expect(valuesOf(await pods())).toEqual(['2', '2']);
  expect(await rollout('history', 'statefulset/db')).toMatch(
    /^statefulset\.apps\/db \nREVISION +CHANGE-CAUSE\n1 +<none>\n2 +<none>\n/,
  );

  expect(await rollout('undo', 'statefulset/db')).toBe('statefulset.apps/db rolled back\n');
  await rolledOut();
  const undone = await pods();
  expect(valuesOf(undone)).toEqual([undefined, undefined]);
  expect(await rollout('history', 'statefulset/db')).toMatch(/\n2 +<none>\n3 +<none>\n/);
  expect(await rollout('restart', 'statefulset/db')).toBe('statefulset.apps/db restarted\n');
  await rolledOut();
  const before = undone.map(({ metadata }) => metadata.uid);
  expect((await pods()).filter(({ metadata }) => before.includes(metadata.uid))).toEqual([]);
  expect(await lifepod.execOk('db-0', '--', 'cat', '/data/names')).toBe('db-0\n'.repeat(4));
});
