import { expect } from 'vitest';
import type { Pod } from '../../src/api/generated/types.ts';
import { pod, WAIT } from '../support/manifests.ts';
import { isReady, runs, statusOf, waitsFor } from '../support/pods.ts';
import { lifepod, record, test } from '../support/shared-engine.ts';

const terminated = (seen: Pod, name: string) => statusOf(seen, name).state?.terminated;

test('lifepod skip stops a running defer container, skips one that has not started, and the next one runs', async () => {
  const defer = [
    { name: 'hang', script: WAIT },
    { name: 'unwanted', script: 'exit 0' },
    { name: 'last', script: 'exit 0', trigger: 'PostExit' },
  ];
  await lifepod.apply(pod('stuck', { defer, spec: { terminationGracePeriodSeconds: 600 } }));
  await record.until('stuck', isReady);
  expect(await lifepod.cli('skip', 'stuck', 'hang')).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^lifepod: Pod stuck is not terminating, so there is nothing to skip: [^\n]+\n$/),
  });
  await lifepod.delete('pod', 'stuck', '--wait=false');
  await record.until('stuck', runs('hang'));
  expect(await lifepod.cli('skip', 'stuck', 'none')).toMatchObject({
    code: 1,
    stderr: 'lifepod: Pod stuck has no defer container none: it has hang, unwanted, last\n',
  });
  expect(await lifepod.cliOk('why', 'stuck')).toContain(`lifepod skip stuck hang -n ${lifepod.namespace}`);
  expect(await lifepod.cliOk('skip', 'stuck', 'unwanted')).toBe(
    'defer container unwanted of Pod stuck is given up: it will not run\n',
  );
  expect(await lifepod.cliOk('skip', 'pod/stuck', 'hang')).toBe(
    'defer container hang of Pod stuck is given up: its stop signal is sent now\n',
  );
  await record.gone('stuck');
  const last = record.now('stuck');
  expect(terminated(last, 'hang')).toMatchObject({ reason: 'GivenUp' });
  expect(terminated(last, 'unwanted')).toMatchObject({ reason: 'Skipped', message: 'given up' });
  expect(terminated(last, 'last')).toMatchObject({ exitCode: 0, reason: 'Completed' });
  expect(await lifepod.cliOk('why', 'stuck')).toMatch(/; its defer containers hang and unwanted were given up\.\n/);
  const timeline = await lifepod.cliOk('timeline', 'stuck');
  expect(timeline).toMatch(/^defer hang .* given up$/m);
  expect(timeline).toMatch(/^ +unwanted .* given up$/m);
  expect(await lifepod.cli('skip', 'stuck', 'hang')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(
      `lifepod: Pod stuck in namespace ${lifepod.namespace} no longer exists, so there is nothing to skip: 'lifepod why stuck `,
    ),
  });
});

test('lifepod why and lifepod status report while the Pod runs that the image of a defer container cannot be pulled', async () => {
  const image = '127.0.0.1:1/none:1';
  await lifepod.apply(pod('early', { defer: [{ name: 'bye', script: 'exit 0', image }] }));
  await record.until('early', isReady);
  await record.until('early', waitsFor('bye', 'ErrImagePull', 'ImagePullBackOff'));
  expect(await lifepod.cliOk('why', 'early')).toMatch(
    /^early runs, but the image 127\.0\.0\.1:1\/none:1 of its defer container bye cannot be pulled/,
  );
  expect((await lifepod.cli('status')).stdout).toMatch(
    new RegExp(
      `^ {2}Pod ${lifepod.namespace}/early: (ErrImagePull|ImagePullBackOff)\\b.* image 127\\.0\\.0\\.1:1/none:1 of its defer container bye `,
      'm',
    ),
  );
  expect(await lifepod.cliOk('logs', 'early', '--all-containers')).toBe('');
  await lifepod.delete('pod', 'early', '--wait=false');
  await record.gone('early');
  expect(await lifepod.cliOk('why', 'early')).toMatch(
    /; its defer container bye failed\.\n(.*\n)* {2}- defer container bye: could not start, /,
  );
  expect(await lifepod.cliOk('timeline', 'early')).toMatch(/^defer bye .* not started$/m);
});
