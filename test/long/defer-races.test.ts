/**
 * Tests races between a deletion and the start of a container, and between a deletion and the death of containerd. Each race runs with many
 * Pods.
 */

import { describe, expect, test } from 'vitest';
import type { Pod } from '../../src/api/generated/types.ts';
import { PODS } from '../../src/api/resources.ts';
import { clientFromKubeconfig } from '../../src/client/kubeconfig.ts';
import { systemTimers } from '../../src/platform/node-js.ts';
import { killContainerd } from '../support/containerd.ts';
import { type Fleet, fleet, inNamespace } from '../support/defer-fleet.ts';
import { deferPod, entry, POST, TELLING } from '../support/defer-pods.ts';
import { container } from '../support/manifests.ts';
import { lifepod, useOwnEngine } from '../support/own-engine.ts';
import { recordPods } from '../support/pods.ts';

useOwnEngine();

const timers = systemTimers();
const after = (millis: number): Promise<void> =>
  new Promise((resolve) => void timers.at(timers.now() + millis, resolve));
const WORK = TELLING['volumeMounts'];

describe('a Pod is deleted while its init container starts', () => {
  const REPETITIONS = 30;
  const SIDE_BY_SIDE = 3;
  const LONGEST_DELAY_MILLIS = 250;
  const INITS = [
    'echo begin init >>/work/log',
    'trap "exit 1" TERM; echo begin init >>/work/log; sleep 3600 & wait $!',
  ];

  const manifest = (name: string, index: number): Record<string, unknown> =>
    deferPod(lifepod, name, [entry('post', ':', POST)], {
      spec: {
        initContainers: [container({ name: 'init', script: INITS[index % 2] ?? '', volumeMounts: WORK })],
      },
    });

  /** Deletes each Pod 0 to 250 ms after it got an address, when its sandbox runs and its init container is about to start. */
  async function deleteSoonAfterItsAddress({ names, namespace }: Fleet): Promise<void> {
    const pods = (await clientFromKubeconfig(lifepod.kubeconfig)).resource<Pod>(PODS);
    const record = await recordPods(lifepod, namespace);
    const queue = names.map((name, index) => ({ name, index }));
    const work = async (): Promise<void> => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        const { name, index } = next;
        await pods.create(inNamespace(manifest(name, index), namespace) as unknown as Pod);
        await record.until(name, ({ status }) => status?.podIP !== undefined);
        await after((LONGEST_DELAY_MILLIS * index) / (REPETITIONS - 1));
        await pods.delete(name, namespace);
        await record.gone(name);
      }
    };
    await Promise.all(Array.from({ length: SIDE_BY_SIDE }, work));
    record.end();
  }

  test('a PostExit entry runs whenever the init container ran, even if the Pod is deleted while the init container starts', async () => {
    const pods = await fleet(lifepod, 'starting', REPETITIONS);
    await deleteSoonAfterItsAddress(pods);
    const count = (log: readonly string[], line: string): number => log.filter((each) => each === line).length;
    const ran = pods.names.filter((name) => pods.log(name).includes('begin init'));
    // If fewer init containers ran, the deletions came too early for a race.
    expect(ran.length).toBeGreaterThanOrEqual(20);
    const skipped = await pods.problems(
      (log, { post }) => !log.includes('begin init') || (count(log, 'end post') === 1 && post?.exitCode === 0),
    );
    expect(skipped, `of ${ran.length} Pods whose init container ran`).toEqual([]);
  });
});

describe('containerd is killed, and Pods are deleted immediately', () => {
  const DELETED_AFTER_EACH = 8;
  /** Suffices for RACES races, although containerd is often back before a Pod needs it. */
  const MOST_KILLS = 6;
  const RACES = 20;
  const hook = { exec: { command: ['sh', '-c', 'echo hook >>/work/log'] } };

  test('entries run once each, and preStop hooks run, in Pods that are deleted while containerd is down', async () => {
    const pods = await fleet(lifepod, 'cut-off', MOST_KILLS * DELETED_AFTER_EACH);
    await pods.start((name) =>
      deferPod(lifepod, name, [entry('pre'), entry('post', ':', POST)], {
        app: [{ ...TELLING, lifecycle: { preStop: hook } }],
        spec: { terminationGracePeriodSeconds: 60 },
      }),
    );
    const record = await recordPods(lifepod, pods.namespace);
    const hadOutage = (name: string): boolean =>
      record.history(name).some(({ pod }) => (pod.status?.termination?.outageSeconds ?? 0) > 0);
    const races = (): number => pods.names.filter(hadOutage).length;
    let kill = 0;
    for (; kill < MOST_KILLS && races() < RACES; kill++) {
      const group = pods.names.slice(kill * DELETED_AFTER_EACH, (kill + 1) * DELETED_AFTER_EACH);
      killContainerd(lifepod);
      await pods.delete(group);
      await pods.gone(group);
    }
    expect(races()).toBeGreaterThanOrEqual(RACES);
    record.end();
    await pods.delete(pods.names.slice(kill * DELETED_AFTER_EACH));
    await pods.gone();
    const problems = await pods.problems((log, { pre, post }) => {
      const hooks = log.filter((line) => line === 'hook').length;
      const rest = log.filter((line) => line !== 'hook').join();
      const ran = rest === 'begin pre,end pre,app stops,begin post,end post' && (hooks === 1 || hooks === 2);
      return ran && [pre, post].every((end) => end?.exitCode === 0);
    });
    expect(problems).toEqual([]);
  });
});
