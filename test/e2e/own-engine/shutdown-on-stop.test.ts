/** SIGTERM shuts the node down, as a container with lifepod needs it. */
import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { launch } from '../../support/lifepod.ts';
import { pod } from '../../support/manifests.ts';
import { lifepod, record as pods, recordAgain, useOwnEngine } from '../../support/own-engine.ts';
import { inPhase, isReady, statusOf } from '../../support/pods.ts';

useOwnEngine({ options: ['--shutdown-on-stop'] });

test('with --shutdown-on-stop, SIGTERM terminates the Pods with their defer containers and removes copies of the kubeconfig', async () => {
  await lifepod.apply(pod('with-list', { defer: [{ name: 'last', script: 'true' }] }));
  await pods.until('with-list', isReady);
  const sudo = { SUDO_UID: '54321', SUDO_GID: '54322', SUDO_USER: 'jane' };
  const { stdout } = await launch(['kubeconfig', '--data-dir', lifepod.dataDir], sudo);
  const copy = /^export KUBECONFIG=(\S+)\n$/.exec(stdout)?.[1] ?? '';
  expect(existsSync(copy)).toBe(true);
  await lifepod.kill('SIGTERM');
  expect(existsSync(copy)).toBe(false);
  await lifepod.up();
  await recordAgain();
  const ended = await pods.until('with-list', inPhase('Failed'));
  expect(ended.status).toMatchObject({ reason: 'Terminated', termination: { reason: 'NodeShutdown' } });
  expect(statusOf(ended, 'last').state?.terminated).toMatchObject({ exitCode: 0, reason: 'Completed' });
});
