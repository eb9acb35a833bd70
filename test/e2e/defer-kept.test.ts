/** Objects and fields that defer containers need are kept until the containers run, and missing images are reported while the Pod runs. */
import { expect } from 'vitest';
import type { Pod } from '../../src/api/generated/types.ts';
import { inNamespace } from '../support/defer-fleet.ts';
import { deferPod, entry, gate, logOf, openGate, POST } from '../support/defer-pods.ts';
import { isReady, runs, statusOf, waitsFor } from '../support/pods.ts';
import { lifepod, record, test } from '../support/shared-engine.ts';

const deletion = (name: string): Promise<void> => lifepod.delete('pod', name, '--wait=false');
const log = (name: string): string[] => logOf(lifepod, name);

/** The defer containers read the ConfigMap and the Secret with envFrom, single keys and an optional key. */
function application(name: string): object {
  const from = { envFrom: [{ configMapRef: { name } }, { prefix: 'SECRET_', secretRef: { name } }] };
  const keys = {
    env: [
      { name: 'PLACE', valueFrom: { configMapKeyRef: { name, key: 'place' } } },
      { name: 'PASSWORD', valueFrom: { secretKeyRef: { name, key: 'password' } } },
      { name: 'ABSENT', valueFrom: { secretKeyRef: { name, key: 'absent', optional: true } } },
    ],
  };
  const entries = [
    entry('one', `${gate('one')}; echo "$place $SECRET_password" >>/work/log`, from),
    entry('two', 'echo "$PLACE $PASSWORD [$ABSENT]" >>/work/log', { ...POST, ...keys }),
  ];
  const metadata = { name };
  return {
    apiVersion: 'v1',
    kind: 'List',
    items: [
      { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { place: 'shard-3' } },
      { apiVersion: 'v1', kind: 'Secret', metadata, stringData: { password: 'hunter2' } },
      deferPod(lifepod, name, entries),
    ],
  };
}

const EXPECTED = ['begin one', 'shard-3 hunter2', 'end one', 'app stops', 'begin two', 'shard-3 hunter2 []', 'end two'];

test('defer containers read the ConfigMap and Secret of a namespace that is being deleted', async () => {
  await lifepod.kubectlOk('create', 'namespace', 'leaving');
  const { items, ...list } = application('inside') as { items: Record<string, unknown>[] };
  await lifepod.apply({ ...list, items: items.map((item) => inNamespace(item, 'leaving')) });
  await lifepod.wait('-n', 'leaving', 'pod/inside', '--for=condition=Ready');
  openGate(lifepod, 'inside', 'one');
  await lifepod.delete('namespace', 'leaving');
  expect(log('inside')).toEqual(EXPECTED);
});

test('the status of a running Pod, lifepod why and lifepod status report that the image of a defer container cannot be pulled', async () => {
  const absent = '127.0.0.1:1/absent:1';
  await lifepod.apply(deferPod(lifepod, 'imageless', [entry('one'), entry('two', ':', { image: absent })]));
  const unpulled = waitsFor('two', 'ErrImagePull', 'ImagePullBackOff');
  const pod = await record.until('imageless', (each) => isReady(each) && unpulled(each));
  expect(pod.status?.phase).toBe('Running');
  expect(statusOf(pod, 'two').state?.waiting?.message).toContain(absent);
  expect(statusOf(pod, 'one').state?.waiting?.reason).toBe('PodRunning');
  expect(await lifepod.cliOk('why', 'imageless')).toMatch(
    /^imageless runs, but the image 127\.0\.0\.1:1\/absent:1 of its defer container two cannot be pulled/,
  );
  const { stdout } = await lifepod.cli('status');
  expect(stdout).toMatch(/imageless.*two|two.*imageless/);
  await deletion('imageless');
  await record.gone('imageless');
  expect(log('imageless')).toEqual(['begin one', 'end one', 'app stops']);
  expect(statusOf(record.now('imageless'), 'two').state?.terminated?.reason).toBe('Error');
});

test('a typed client can replace a Pod without sending the defer fields, and the Pod keeps the fields', async () => {
  const settings = { postExitGracePeriodSeconds: 5, preStopPolicy: 'AfterPreExit' };
  await lifepod.apply(deferPod(lifepod, 'typed', [entry('one'), entry('two', ':', POST)], { spec: settings }));
  const { spec: before, ...live } = await record.until('typed', isReady);
  const { deferContainers, ...rest } = before ?? { containers: [] };
  const own = ['postExitGracePeriodSeconds', 'preStopPolicy', 'prePullDeferImages'];
  const spec = Object.fromEntries(Object.entries(rest).filter(([field]) => !own.includes(field)));
  const { deferContainerStatuses: _, ...status } = live.status ?? {};
  const labels = { written: 'back' };
  const written = { ...live, spec, status, metadata: { ...live.metadata, labels, resourceVersion: undefined } };
  const replaced = await lifepod.kubectlInput(JSON.stringify(written), 'replace', '-f', '-');
  expect(replaced.code, replaced.stderr).toBe(0);
  const after: Pod = await record.until('typed', ({ metadata }) => metadata.labels?.['written'] === 'back');
  expect(deferContainers).toHaveLength(2);
  expect(after.spec).toEqual(before);
  expect(after.metadata.generation).toBe(live.metadata.generation);
  expect(after.status?.deferContainerStatuses).toHaveLength(2);
  await deletion('typed');
  await record.gone('typed');
  expect(log('typed')).toEqual(['begin one', 'end one', 'app stops', 'begin two', 'end two']);
});

// This test comes last, because the restarted engine may listen on another port.
test('copies of the objects that defer containers refer to survive kill -9 of the engine', async () => {
  const manifest = JSON.stringify(application('killed'));
  await lifepod.apply(manifest);
  await record.until('killed', isReady);
  expect((await lifepod.kubectlInput(manifest, 'delete', '-f', '-', '--wait=false')).code).toBe(0);
  await record.until('killed', runs('one'));
  record.end();
  await lifepod.kill('SIGKILL');
  openGate(lifepod, 'killed', 'one');
  await lifepod.up();
  await lifepod.delete('pod', 'killed', '--ignore-not-found');
  expect(log('killed')).toEqual(EXPECTED);
});
