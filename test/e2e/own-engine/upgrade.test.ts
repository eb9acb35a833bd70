/**
 * Uses data folders of older versions (test/data-folders). The older engine was killed while defer containers ran. Its containers do not
 * exist, as after a reboot. test/long/upgrade.test.ts replaces a real older engine.
 */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Pod } from '../../../src/api/generated/types.ts';
import { DATA_FORMAT_VERSION } from '../../../src/engine/data-folder/format.ts';
import { runCommandOk } from '../../../src/platform/processes.ts';
import { busyboxArchive } from '../../support/images.ts';
import { clientOf, launch, REPOSITORY, scratchFolder } from '../../support/lifepod.ts';
import { condition, statusOf } from '../../support/pods.ts';

const PASSWORD = 'correct horse battery staple';

/** The archive replaces all other parts of the data folder. */
const KEPT = ['containerd', 'run', 'lifepod.log'];

const finishedAt = (pod: Pod, container: string): string | undefined =>
  statusOf(pod, container).state?.terminated?.finishedAt;

test.each([1, 2])('an engine continues the Pods of a data folder of format %i', async (format) => {
  const scratch = scratchFolder();
  const dataDir = scratch.path;
  const lifepod = clientOf(dataDir, join(dataDir, 'kubeconfig'));
  // The records in the archives are as old as the archives.
  const up = ['up', '--detach', '--port', '0', '--record-age', '36500d'] as const;
  try {
    // An engine loads the image first, so that the containers of the older folder can start.
    const archive = join(REPOSITORY, `test/data-folders/format-${format}.tar.gz`);
    const record = await runCommandOk('tar', ['-xzOf', archive, './engine.json']);
    const { podCidr, serviceCidr } = JSON.parse(record) as Record<string, string>;
    const ranges = ['--pod-cidr', podCidr ?? '', '--service-cidr', serviceCidr ?? ''];
    await lifepod.cliOk(...up, '--node-name', 'node-1', ...ranges, '--image-gc-high-threshold', '100');
    await lifepod.cliOk('image', 'load', await busyboxArchive());
    await lifepod.cliOk('down');
    const others = (await runCommandOk('ls', ['-A', dataDir]))
      .trim()
      .split('\n')
      .filter((name) => !KEPT.includes(name));
    for (const name of others) rmSync(join(dataDir, name), { recursive: true, force: true });
    await runCommandOk('tar', ['-xzf', archive, '-C', dataDir]);
    expect(readFileSync(join(dataDir, 'format-version'), 'utf8')).toBe(`${format}\n`);

    await lifepod.cliOk(...up);
    expect(readFileSync(join(dataDir, 'format-version'), 'utf8')).toBe(`${DATA_FORMAT_VERSION}\n`);
    expect(existsSync(join(dataDir, 'migrating-from'))).toBe(false);
    // Objects and Secrets still exist, but the store no longer contains a Secret as plain text.
    expect(await lifepod.kubectlOk('get', 'configmap', 'settings', '-o', 'jsonpath={.data.color}')).toBe('blue');
    const secret = await lifepod.kubectlOk('get', 'secret', 'db', '-o', 'jsonpath={.data.password}');
    expect(Buffer.from(secret, 'base64').toString()).toBe(PASSWORD);
    const stored = readFileSync(join(dataDir, 'store/data.mdb'));
    expect([stored.includes(PASSWORD), stored.includes(secret)]).toEqual([false, false]);
    expect(await lifepod.cliOk('timeline', 'gone')).toContain('exit');

    // Running Pods start again, with their volumes; a completed Pod does not.
    await lifepod.wait('--for=condition=Ready', 'pod/keeper', 'pod/static-node-1');
    expect(await lifepod.execOk('keeper', '--', 'cat', '/db/password')).toBe(PASSWORD);
    expect((await lifepod.get<Pod>('pod', 'finished')).status).toMatchObject({
      phase: 'Succeeded',
      containerStatuses: [{ restartCount: 0 }],
    });
    if (format > 1) {
      await lifepod.kubectlOk('rollout', 'status', 'statefulset/web', '--timeout=100s');
      expect((await lifepod.get<Pod>('pod', 'web-1')).metadata.labels?.['app']).toBe('web');
    }

    // The lists of defer containers continue: entries that had completed have not run again.
    const isOver = ['wait', '--for=jsonpath={.metadata.deletionGracePeriodSeconds}=0', '--timeout=100s'];
    await lifepod.kubectlOk(...isOver, 'pod/half-run', 'pod/half-drained');
    const halfRun = await lifepod.get<Pod>('pod', 'half-run');
    expect(statusOf(halfRun, 'one').state?.terminated?.exitCode).toBe(11);
    for (const entry of ['two', 'three', 'four', 'five']) {
      expect(statusOf(halfRun, entry).state?.terminated, entry).toMatchObject({ exitCode: 0, reason: 'Completed' });
    }
    const archived = JSON.parse(await runCommandOk('tar', ['-xzOf', archive, './pods-at-kill.json'])) as {
      items: Pod[];
    };
    const atKill = archived.items.find(({ metadata }) => metadata.name === 'half-run') as Pod;
    for (const entry of ['one', 'two', 'three']) expect(finishedAt(halfRun, entry)).toBe(finishedAt(atKill, entry));
    expect(finishedAt(atKill, 'four')).toBeUndefined();
    expect(condition(halfRun, 'Deferred')?.reason).toBe('DeferContainersFailed');
    const halfDrained = await lifepod.get<Pod>('pod', 'half-drained');
    expect(statusOf(halfDrained, 'release').state?.terminated?.exitCode).toBe(0);
    const patch = JSON.stringify({ metadata: { finalizers: null } });
    for (const name of ['half-run', 'half-drained']) {
      await lifepod.kubectlOk('patch', 'pod', name, '--type=merge', `--patch=${patch}`);
    }
    await lifepod.wait('--for=delete', 'pod/half-run', 'pod/half-drained');
  } finally {
    await launch(['down', '--data-dir', dataDir]);
    await scratch.remove();
  }
});
