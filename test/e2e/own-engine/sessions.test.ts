import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isStarting } from '../../../src/engine/data-folder/lock-line.ts';
import { watchLeaks } from '../../support/leaks.ts';
import { type Lifepod, scratchFolder } from '../../support/lifepod.ts';
import { pod, WAIT } from '../../support/manifests.ts';
import { copyLauncher, engineRuns, markedKeys, startSession, stoppedLifepod } from '../../support/session-command.ts';

let lifepod: Lifepod;
beforeAll(async () => {
  lifepod = await stoppedLifepod();
});
afterAll(() => lifepod?.stop());

function fileOf(name: string, ...objects: object[]): string {
  const path = join(lifepod.dataDir, `${name}.json`);
  writeFileSync(path, objects.map((object) => JSON.stringify(object)).join('\n'));
  return path;
}
const config = (name: string): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data: { a: 'b' },
});

test('a session ends when its Pod has ended, with the exit code of its container, and leaves nothing behind, even after its package was uninstalled', async () => {
  const job = pod('job', {
    init: [{ name: 'init', script: 'echo first' }],
    app: [{ name: 'app', script: 'echo second; exit 3' }],
    defer: [{ name: 'last', script: 'echo third' }],
    spec: { restartPolicy: 'Never', terminationGracePeriodSeconds: 120 },
  });
  const input = `${JSON.stringify(config('c'))}${JSON.stringify(job)}`;
  const installed = scratchFolder();
  const launcher = copyLauncher(installed.path);
  const session = startSession(lifepod.dataDir, 'up', ['-'], input, process.env, launcher);
  await session.printed(/job\/init \| first/);
  await installed.remove();
  const { code, stdout, stderr } = await session.ended;
  // Each log is read by a separate request, so the lines of different containers may arrive in any order.
  expect(stdout.split('\n').sort(), stderr).toEqual(['', 'job/app | second', 'job/init | first', 'job/last | third']);
  expect(stderr).toContain('lifepod: pod/job has failed: exit code 3\n');
  expect(code).toBe(3);
  expect(engineRuns(lifepod)).toBe(false);
  expect(await (await watchLeaks(lifepod.dataDir)).left()).toEqual([]);
  expect(await markedKeys(lifepod)).toEqual([]);
});

test('Ctrl+C runs the destructors of all Pods, prints their logs, and leaves nothing behind', async () => {
  const template = pod('unused', {
    app: [{ name: 'app', script: `echo serves; ${WAIT}` }],
    defer: [{ name: 'bye', script: 'sleep 1; echo destructor' }],
    spec: { terminationGracePeriodSeconds: 120 },
  }) as { spec: object };
  const labels = { app: 'web' };
  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'shop' },
    spec: { replicas: 2, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: template.spec } },
  };
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } };
  const session = startSession(lifepod.dataDir, 'up', [fileOf('shop', deployment, namespace)]);
  await session.printed(/(\/app \| serves\n[\s\S]*){2}/);
  const leaks = await watchLeaks(lifepod.dataDir);
  expect(leaks.parts).toContainEqual(expect.stringMatching(/^link veth/));
  session.signal('SIGINT');
  await session.printed(/(\/bye \| destructor\n[\s\S]*){2}/);
  // The session stops its engine now. lifepod down waits for it, or does the same.
  expect(await lifepod.cliOk('down')).toContain(`nothing from ${lifepod.dataDir} is running or mounted any more\n`);
  const { code, stdout, stderr } = await session.ended;
  expect(stdout.match(/^web-\w+-\w+\/bye \| destructor$/gm), stderr).toHaveLength(2);
  expect(code, stderr).toBe(130);
  expect(engineRuns(lifepod)).toBe(false);
  expect(await leaks.left()).toEqual([]);
  expect(await markedKeys(lifepod)).toEqual([]);
});

test('a session on an engine that is starting creates nothing if one object is wrong, and leaves the engine running', async () => {
  // The engine before had another port and another value of the option.
  const option = ['--record-age', '25h'];
  const up = lifepod.cliOk('up', '--detach', ...lifepod.options, ...option);
  await expect.poll(() => isStarting(lifepod.dataDir), { timeout: 60_000, interval: 10 }).toBe(true);
  const engine = lifepod.pid();
  process.kill(engine, 'SIGSTOP');
  const wrong = pod('wrong', { app: [{ name: 'not_valid', script: 'true' }] });
  const session = startSession(lifepod.dataDir, 'up', [...option, fileOf('wrong', config('fine'), wrong)]);
  await session.printed(/waiting until the engine has started\n/).finally(() => process.kill(engine, 'SIGCONT'));
  await up;
  const { code, stderr } = await session.ended;
  expect(stderr).toMatch(/wrong\.json, document 2: pod\/wrong in namespace default: .*not_valid/);
  expect(stderr).not.toContain('created');
  expect([code, engineRuns(lifepod)]).toEqual([1, true]);
  expect((await lifepod.kubectl('get', 'configmap', 'fine')).stderr).toContain('NotFound');

  await lifepod.apply(config('mine'));
  const existing = await startSession(lifepod.dataDir, 'up', [fileOf('mine', config('mine'), config('fine'))]).ended;
  expect(existing.stderr).toContain('configmap/mine in namespace default exists already');
  expect(existing.code).toBe(1);
  expect(await lifepod.kubectlOk('get', 'configmap', 'mine', '-o', 'name')).toBe('configmap/mine\n');

  const ran = await startSession(lifepod.dataDir, 'run', [
    'busybox:1.28',
    '--env',
    'A=7',
    '--',
    'sh',
    '-c',
    'echo hi; exit $A',
  ]).ended;
  expect(ran).toMatchObject({ code: 7, stdout: 'hi\n' });
  expect(await lifepod.kubectlOk('get', 'pods', '-A', '-o', 'name')).toBe('');
});

test('a session whose Pods lifepod down ends has the exit code 1, whether their programs exit with 0 or are killed', async () => {
  const app = (name: string, script: string): object =>
    pod(name, { app: [{ name: 'app', script }], spec: { terminationGracePeriodSeconds: 2 } });
  const pods = fileOf('pods', app('kind', `echo ready; ${WAIT}`), app('deaf', 'echo ready; exec sleep 1000'));
  const session = startSession(lifepod.dataDir, 'up', [pods]);
  await session.printed(/ready\n[\s\S]*ready\n/);
  const down = await lifepod.cliOk('down');
  expect(down).toMatch(/ending default\/deaf \(grace 2 s\)\n[\s\S]*pod\/deaf deleted\n/);
  const { code, stdout, stderr } = await session.ended;
  expect([code, stdout.split('\n').sort()], stderr).toEqual([1, ['', 'deaf/app | ready', 'kind/app | ready']]);
  expect(stderr).not.toContain('has failed');
  expect(stderr).toContain("lifepod: 'lifepod down' ends the engine and all its Pods\n");
});

test('up --detach takes over the engine that a session leaves running for a Pod that the session has not created', async () => {
  const session = startSession(lifepod.dataDir, 'run', ['busybox:1.28', '--', 'sh', '-c', `echo ready; ${WAIT}`]);
  await session.printed(/^ready$/m);
  expect((await lifepod.cli('up', '--detach')).stderr).toContain(
    'was started by a session, and stops when its last session ends',
  );
  await lifepod.apply(pod('keep', { app: [{ name: 'app', script: WAIT }] }));
  session.signal('SIGINT');
  expect((await session.ended).stderr).toContain('no session has created these Pods: default/keep; ');

  await lifepod.cliOk('up', '--detach');
  await lifepod.delete('pod', 'keep');
  const last = await startSession(lifepod.dataDir, 'run', ['busybox:1.28', '--', 'true']).ended;
  expect([last.code, engineRuns(lifepod)], last.stderr).toEqual([0, true]);
});
