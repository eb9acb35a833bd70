/**
 * Another program has removed a container of the Pod from containerd. containerd refuses to remove the sandbox of the Pod until containerd
 * is restarted.
 */

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { containerdPaths } from '../../src/runtime/containerd/paths.ts';
import { ctr, killContainerd } from '../support/containerd.ts';
import { deferPod, entry, logOf, POST, TELLING } from '../support/defer-pods.ts';
import { container } from '../support/manifests.ts';
import { lifepod, record, useOwnEngine } from '../support/own-engine.ts';
import { isReady, statusOf } from '../support/pods.ts';

/** Ten times the number of attempts that a back-off of 1, 2, 4, … s allows in one minute, the time limit of the test. */
const MOST_CALLS = 60;
useOwnEngine();

const failedRemovals = (sandbox: string): number =>
  readFileSync(containerdPaths(lifepod.dataDir).log, 'utf8')
    .split('\n')
    .filter((line) => line.includes('level=error') && line.includes(`RemovePodSandbox for \\"${sandbox}`)).length;

test('a Pod that lost a container ends in order; removal of its sandbox backs off and is reported', async () => {
  const init = container({ name: 'init', script: 'echo init >>/work/log', volumeMounts: TELLING['volumeMounts'] });
  const spec = { initContainers: [init] };
  await lifepod.apply(deferPod(lifepod, 'robbed', [entry('one'), entry('two', ':', POST)], { spec }));
  const pod = await record.until('robbed', isReady);
  const ofPod = `labels."io.kubernetes.pod.uid"==${pod.metadata.uid},labels."io.cri-containerd.kind"==sandbox`;
  const sandbox = (await ctr(lifepod, 'containers', 'ls', '-q', ofPod)).trim();
  await ctr(lifepod, 'containers', 'rm', statusOf(pod, 'init').containerID?.replace('containerd://', '') ?? '');
  await lifepod.kubectlOk('delete', 'pod', 'robbed', '--wait=false');
  try {
    const reported = record.event('robbed', /^Warning FailedKillPod: /).then(async (line) => {
      expect(line).toContain('sandbox');
      expect(await lifepod.cliOk('why', 'robbed')).toMatch(/^robbed is not gone yet: .*sandbox.* cannot be removed/);
      return undefined;
    });
    await Promise.race([record.gone('robbed'), reported]);
    expect(logOf(lifepod, 'robbed')).toEqual(['init', 'begin one', 'end one', 'app stops', 'begin two', 'end two']);
    expect(failedRemovals(sandbox)).toBeLessThanOrEqual(MOST_CALLS);
  } finally {
    // A new containerd does not know the lost container, and therefore removes the sandbox.
    killContainerd(lifepod);
  }
  await record.gone('robbed');
  expect(failedRemovals(sandbox)).toBeLessThanOrEqual(MOST_CALLS);
});
