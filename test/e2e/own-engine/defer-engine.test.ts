import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { processesNaming } from '../../../src/engine/leftovers.ts';
import { uidOf } from '../../../src/machinery/meta.ts';
import { systemTimers } from '../../../src/platform/node-js.ts';
import { haveEnded } from '../../../src/platform/processes.ts';
import { deferPod, entry, gate, logOf, openGate, POST, TELLING, untilLogged } from '../../support/defer-pods.ts';
import { watchLeaks } from '../../support/leaks.ts';
import { lifepod, record, recordAgain, useOwnEngine } from '../../support/own-engine.ts';
import { condition, isReady, runs, statusOf } from '../../support/pods.ts';

useOwnEngine();

async function restart(): Promise<void> {
  await lifepod.kill('SIGTERM');
  await lifepod.up();
  await recordAgain();
}

test('volumes stay mounted until all defer containers have ended, even if the engine restarts', async () => {
  const volumeMounts = [
    { name: 'work', mountPath: '/work' },
    { name: 'memory', mountPath: '/memory' },
    { name: 'token', mountPath: '/token' },
  ];
  const app = {
    ...TELLING,
    script: 'trap "echo left behind >/memory/note; exit 0" TERM; while :; do sleep 3600 & wait $!; done',
    volumeMounts,
  };
  const read = 'cat /memory/note >>/work/log; test -s /token/token && echo token >>/work/log';
  await lifepod.apply(
    deferPod(
      lifepod,
      'mounted',
      [entry('one', gate('one'), { volumeMounts }), entry('two', `${gate('two')}; ${read}`, { ...POST, volumeMounts })],
      {
        app: [app],
        spec: {
          volumes: [
            { name: 'memory', emptyDir: { medium: 'Memory' } },
            { name: 'token', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } },
          ],
        },
      },
    ),
  );
  await record.until('mounted', isReady);
  await lifepod.delete('pod', 'mounted', '--wait=false');
  const before = await record.until('mounted', runs('one'));
  await restart();
  const after = await record.until('mounted', runs('one'));
  expect(statusOf(after, 'one')).toEqual(statusOf(before, 'one'));
  const { reason, startedAt, turn } = before.status?.termination ?? {};
  expect(after.status?.termination).toMatchObject({ reason, startedAt, turn });
  openGate(lifepod, 'mounted', 'one');
  await record.until('mounted', runs('two'));
  await restart();
  openGate(lifepod, 'mounted', 'two');
  await record.gone('mounted');
  expect(logOf(lifepod, 'mounted')).toEqual(['begin one', 'end one', 'begin two', 'left behind', 'token', 'end two']);
  expect(existsSync(join(lifepod.dataDir, 'pods', uidOf(before)))).toBe(false);
});

test('a static Pod whose manifest is removed runs its defer containers, even if the engine restarts', async () => {
  const manifest = join(lifepod.dataDir, 'manifests', 'static.yaml');
  const defer = [entry('one', gate('one')), entry('two', ':', POST)];
  writeFileSync(manifest, stringify(deferPod(lifepod, 'static', defer)));
  await record.until('static-node-1', isReady);
  rmSync(manifest);
  await untilLogged(lifepod, 'static', 'begin one');
  await restart();
  openGate(lifepod, 'static', 'one');
  await untilLogged(lifepod, 'static', 'end two');
  expect(logOf(lifepod, 'static')).toEqual(['begin one', 'end one', 'app stops', 'begin two', 'end two']);
  await lifepod.wait('--for=delete', 'pod/static-node-1');
  expect((await lifepod.kubectl('get', 'pod', 'static-node-1')).code).toBe(1);
});

test('with --terminating-phase=false, the phase stays Running while defer containers run, and the status shows their progress', async () => {
  lifepod.options.push('--terminating-phase=false');
  await restart();
  await lifepod.apply(deferPod(lifepod, 'plain', [entry('one', gate('one')), entry('two', ':', POST)]));
  await record.until('plain', isReady);
  await lifepod.delete('pod', 'plain', '--wait=false');
  const during = await record.until('plain', runs('one'));
  expect(condition(during, 'Deferred')).toMatchObject({ status: 'False', reason: 'DeferContainersRunning' });
  expect(await lifepod.kubectlOk('get', 'pod', 'plain')).toMatch(/^plain +1\/1 +Defer:0\/2 /m);
  openGate(lifepod, 'plain', 'one');
  await record.gone('plain');
  const phases = record.history('plain').map(({ pod }) => pod.status?.phase);
  expect(phases).toContain('Running');
  expect(phases).not.toContain('Terminating');
  expect(logOf(lifepod, 'plain')).toEqual(['begin one', 'end one', 'app stops', 'begin two', 'end two']);
  lifepod.options.pop();
  await restart();
});

test('lifepod down runs the defer containers of all Pods and waits until they have ended', async () => {
  const gated = (name: string) => deferPod(lifepod, name, [entry('one', gate('one')), entry('two', ':', POST)]);
  const manifest = join(lifepod.dataDir, 'manifests', 'static-2.yaml');
  writeFileSync(manifest, stringify(gated('static-2')));
  await lifepod.apply(gated('begun'));
  await lifepod.apply(gated('living'));
  for (const name of ['begun', 'living', 'static-2-node-1']) await record.until(name, isReady);
  const leaks = await watchLeaks(lifepod.dataDir);
  await lifepod.delete('pod', 'begun', '--wait=false');
  await record.until('begun', runs('one'));
  record.end();
  const pid = lifepod.pid();
  const down = lifepod.cli('down');
  for (const name of ['begun', 'living', 'static-2']) await untilLogged(lifepod, name, 'begin one');
  expect(processesNaming(lifepod.dataDir).map((each) => each.pid)).toContain(pid);
  for (const name of ['begun', 'living', 'static-2']) openGate(lifepod, name, 'one');
  expect(await down).toMatchObject({ code: 0, stderr: '' });
  for (const name of ['begun', 'living', 'static-2'])
    expect(logOf(lifepod, name)).toEqual(['begin one', 'end one', 'app stops', 'begin two', 'end two']);
  expect(await haveEnded([pid], 10_000, systemTimers())).toBe(true);
  expect(await leaks.left()).toEqual([]);
});
