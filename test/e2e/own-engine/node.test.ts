import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Node } from '../../../src/api/generated/types.ts';
import { cgroupRootOf } from '../../../src/node/resources/pod-cgroups.ts';
import { writeImageArchive } from '../../../src/runtime/images/archive-writer.ts';
import { containerdPid } from '../../support/containerd.ts';
import { limitsOf } from '../../support/control-groups.ts';
import { pod } from '../../support/manifests.ts';
import { lifepod, record as pods, recordAgain, useOwnEngine } from '../../support/own-engine.ts';
import { condition, inPhase, isReady, statusOf } from '../../support/pods.ts';

useOwnEngine({
  options: [
    '--kube-reserved',
    'cpu=100m,memory=64Mi,ephemeral-storage=1Mi',
    '--system-reserved',
    'memory=32Mi,pid=50',
    '--eviction-hard',
    'memory.available<100Mi',
    '--max-pods',
    '4',
    '--terminated-pod-gc-threshold',
    '2',
  ],
});

const node = (): Promise<Node> => lifepod.get<Node>('node', 'node-1');
const watched = async (path: string, satisfies: (line: string) => boolean, what = ['node', 'node-1']) =>
  (await lifepod.until(['get', ...what, '--watch', '-o', `jsonpath={${path}}{"\\n"}`], satisfies)).at(-1);
const taints = '.spec.taints[*].key';

it('allocatable excludes reserved resources and eviction thresholds', async () => {
  const { capacity = {}, allocatable = {} } = (await node()).status ?? {};
  const kibibytes = (text = ''): number => Number(text.replace('Ki', ''));
  expect(allocatable['cpu']).toBe(`${Number(capacity['cpu']) * 1000 - 100}m`);
  expect(kibibytes(capacity['memory']) - kibibytes(allocatable['memory'])).toBe((64 + 32 + 100) * 1024);
  expect(kibibytes(capacity['ephemeral-storage']) * 1024 - Number(allocatable['ephemeral-storage'])).toBe(2 ** 20);
  expect([capacity['pods'], allocatable['pods']]).toEqual(['4', '4']);
  const kubepods = limitsOf(join(cgroupRootOf(lifepod.dataDir), 'kubepods'));
  expect(Number(kubepods.memoryBytes)).toBe((kibibytes(capacity['memory']) - 96 * 1024) * 1024);
});

it('the status of the node lists its images, and changes when an image is added or removed', async () => {
  const names = '.status.images[*].names';
  expect(await watched(names, (line) => line.includes('docker.io/library/busybox:1.28'))).not.toContain('shown:1');
  const archive = join(lifepod.dataDir, 'shown.tar');
  await writeImageArchive(archive, 'example.com/shown:1', [], { env: ['A=B'] });
  await lifepod.cliOk('image', 'load', archive);
  await watched(names, (line) => line.includes('example.com/shown:1'));
  await lifepod.cliOk('image', 'rm', 'example.com/shown:1');
  await watched(names, (line) => !line.includes('example.com/shown:1'));
});

it('the node rejects Pods above --max-pods', async () => {
  const bound = ['one', 'two', 'three', 'four', 'five'].map((name) => pod(name, { spec: { nodeName: 'node-1' } }));
  for (const manifest of bound.slice(0, 4)) await lifepod.apply(manifest);
  for (const name of ['one', 'two', 'three', 'four']) await pods.until(name, isReady);
  await lifepod.apply(bound[4] as object);
  expect((await pods.until('five', inPhase('Failed'))).status).toMatchObject({
    reason: 'OutOfpods',
    message: "Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 4, capacity: 4",
  });
  await lifepod.delete('pod', '--all', '--now');
});

it('the oldest terminated Pods above --terminated-pod-gc-threshold are deleted', async () => {
  const over = { app: [{ name: 'app', script: 'true' }], spec: { restartPolicy: 'Never' } };
  for (const name of ['first', 'second', 'third']) {
    await lifepod.apply(pod(name, over));
    if (name !== 'third') await pods.until(name, inPhase('Succeeded'));
  }
  await pods.gone('first');
  await pods.until('third', inPhase('Succeeded'));
  expect(pods.now('second').metadata.deletionTimestamp).toBeUndefined();
  await lifepod.delete('pod', 'second', 'third', '--now');
});

describe('taints', () => {
  it('no Pod is scheduled to a cordoned node, and waiting Pods are scheduled after uncordon', async () => {
    await lifepod.kubectlOk('cordon', 'node-1');
    expect(await watched(taints, (line) => line !== '')).toBe('node.kubernetes.io/unschedulable');
    await lifepod.apply(pod('waits'));
    expect(await pods.event('waits', /FailedScheduling/)).toContain('1 node(s) were unschedulable');
    await lifepod.kubectlOk('uncordon', 'node-1');
    await pods.until('waits', isReady);
    await watched(taints, (line) => line === '');
    await pods.event('node-1', /NodeSchedulable/);
    expect(pods.events('node-1')).toContain('Normal NodeNotSchedulable: Node node-1 status is now: NodeNotSchedulable');
  });

  it('draining the node deletes its Pods after their defer containers have run', async () => {
    await lifepod.apply(pod('drained', { defer: [{ name: 'last', script: 'echo bye' }] }));
    await pods.until('drained', isReady);
    await lifepod.kubectlOk('drain', 'node-1', '--force', '--ignore-daemonsets');
    await pods.gone('drained');
    const { pod: last } = pods.history('drained').at(-1) ?? {};
    expect(last && statusOf(last, 'last').state?.terminated?.reason).toBe('Completed');
    expect(last?.status?.termination?.reason).toBe('Evicted');
    await lifepod.kubectlOk('uncordon', 'node-1');
  });

  it('a NoExecute taint evicts Pods that do not tolerate the taint, and their defer containers run first', async () => {
    const tolerations = [{ key: 'maintenance', operator: 'Exists' }];
    await lifepod.apply(pod('driven-away', { defer: [{ name: 'last', script: 'echo bye' }] }));
    await lifepod.apply(pod('tolerant', { spec: { tolerations } }));
    for (const name of ['driven-away', 'tolerant']) await pods.until(name, isReady);
    await lifepod.kubectlOk('taint', 'node', 'node-1', 'maintenance=now:NoExecute');
    await pods.gone('driven-away');
    const { pod: last } = pods.history('driven-away').at(-1) ?? {};
    expect(last && statusOf(last, 'last').state?.terminated?.reason).toBe('Completed');
    expect(last?.status?.termination?.reason).toBe('Evicted');
    expect(last && condition(last, 'DisruptionTarget')).toMatchObject({
      reason: 'DeletionByTaintManager',
      message: 'Taint manager: deleting due to NoExecute taint',
    });
    await pods.event('driven-away', /TaintManagerEviction: Marking for deletion Pod default\/driven-away/);
    expect(pods.now('tolerant').status?.phase).toBe('Running');
    await lifepod.kubectlOk('taint', 'node', 'node-1', 'maintenance-');
  });
});

it('a node whose runtime hangs is not Ready but renews its Lease, and is Ready again when the runtime continues', async () => {
  const ready = '.status.conditions[?(@.type=="Ready")].status';
  const pid = containerdPid(lifepod);
  const lease = ['lease', 'node-1', '-n', 'kube-node-lease'];
  const renewedAt = async (): Promise<number> =>
    Date.parse((await lifepod.get<{ spec: { renewTime: string } }>(...lease)).spec.renewTime);
  const before = await renewedAt();
  process.kill(pid, 'SIGSTOP');
  try {
    await watched(ready, (line) => line === 'False');
    expect(await lifepod.kubectlOk('get', 'node', 'node-1', '-o', 'yaml')).toContain(
      'container runtime is down: it has not answered for 30 s',
    );
    expect((await renewedAt()) - before).toBeGreaterThanOrEqual(20_000);
    expect((await node()).spec?.taints?.map(({ effect }) => effect)).toEqual(['NoSchedule']);
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  await watched(ready, (line) => line === 'True');
  expect(pods.now('tolerant').status?.phase).toBe('Running');
  expect(pods.now('tolerant').metadata.deletionTimestamp).toBeUndefined();
});

it('a start of the engine removes files that deleted Pods have left on the disk', async () => {
  pods.end();
  await lifepod.kill('SIGTERM');
  const uid = '00000000-0000-4000-8000-000000000000';
  const left = [
    join(lifepod.dataDir, 'pods', uid, 'volumes', 'kubernetes.io~empty-dir', 'data'),
    join(lifepod.dataDir, 'logs', 'pods', `default_gone_${uid}`, 'app'),
  ];
  for (const folder of left) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, '0.log'), 'of old');
  }
  await lifepod.up();
  await recordAgain();
  expect(left.filter((folder) => existsSync(folder))).toEqual([]);
  await pods.until('tolerant', isReady);
});
