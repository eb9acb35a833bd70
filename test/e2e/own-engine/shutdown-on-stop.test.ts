/** Tests `lifepod up --shutdown-on-stop`: SIGTERM shuts the node down, as a container with lifepod needs it. */
import { expect, test } from 'vitest';
import { pod } from '../../support/manifests.ts';
import { lifepod, record as pods, recordAgain, useOwnEngine } from '../../support/own-engine.ts';
import { inPhase, isReady, statusOf } from '../../support/pods.ts';

useOwnEngine({ options: ['--shutdown-on-stop'] });

test('with --shutdown-on-stop, SIGTERM terminates the Pods with their defer containers before the engine stops', async () => {
  await lifepod.apply(pod('with-list', { defer: [{ name: 'last', script: 'true' }] }));
  await pods.until('with-list', isReady);
  await lifepod.kill('SIGTERM');
  await lifepod.up();
  await recordAgain();
  const ended = await pods.until('with-list', inPhase('Failed'));
  expect(ended.status).toMatchObject({ reason: 'Terminated', termination: { reason: 'NodeShutdown' } });
  expect(statusOf(ended, 'last').state?.terminated).toMatchObject({ exitCode: 0, reason: 'Completed' });
});
