import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { findUser } from '../../../src/engine/certificates/user-kubeconfigs.ts';
import { type CommandResult, runCommand } from '../../../src/platform/processes.ts';
import { KUBECTL } from '../../support/kubectl.ts';
import { LAUNCHER, launch, REPOSITORY } from '../../support/lifepod.ts';
import { pod, WAIT } from '../../support/manifests.ts';
import { lifepod, record, recordAgain, useOwnEngine } from '../../support/own-engine.ts';
import { isReady } from '../../support/pods.ts';

useOwnEngine();

/** A user that no machine has, without any rights. */
const JANE = ['--reuid=54321', '--regid=54322', '--clear-groups'];
const SUDO = { SUDO_UID: '54321', SUDO_GID: '54322', SUDO_USER: 'jane' };

const asJane = (kubeconfig: string, command: string, ...args: string[]): Promise<CommandResult> =>
  runCommand('setpriv', [...JANE, command, ...args], {
    env: { PATH: process.env['PATH'], HOME: '/nonexistent', KUBECONFIG: kubeconfig },
    signal: AbortSignal.timeout(120_000),
  });

/** A clone may be in a folder that only root can enter. */
const isPublic = (path: string): boolean => spawnSync('setpriv', [...JANE, 'test', '-x', path]).status === 0;

test('a user who starts lifepod with sudo can use kubectl and lifepod without sudo, other users cannot, until lifepod down', async () => {
  await lifepod.kill('SIGTERM');
  const started = await launch(['up', '--detach', '--data-dir', lifepod.dataDir], SUDO);
  expect(started.stderr).toContain('the user jane can use kubectl and lifepod without sudo, with all rights');
  const path = /^export KUBECONFIG=(\/run\/lifepod\/.*\/54321\.kubeconfig)\n$/.exec(started.stdout)?.[1] ?? '';
  await recordAgain();
  expect(statSync(path)).toMatchObject({ uid: 54_321, gid: 54_322 });
  expect(statSync(path).mode & 0o7777).toBe(0o600);
  expect(readFileSync(path, 'utf8')).toBe(readFileSync(lifepod.kubeconfig, 'utf8'));
  if (isPublic(KUBECTL)) {
    expect((await asJane(path, KUBECTL, 'auth', 'can-i', '*', '*', '-A')).stdout).toBe('yes\n');
    const joe = [
      '--reuid=54323',
      '--regid=54322',
      '--clear-groups',
      'env',
      `KUBECONFIG=${path}`,
      KUBECTL,
      'get',
      'pods',
    ];
    expect((await runCommand('setpriv', joe)).stderr).toContain('permission denied');
  }
  const again = await launch(['kubeconfig', '--data-dir', lifepod.dataDir], SUDO);
  expect(again).toMatchObject({ code: 0, stdout: `export KUBECONFIG=${path}\n` });

  await lifepod.cliOk('down');
  expect(existsSync(path)).toBe(false);
  await lifepod.up();
  await recordAgain();
  expect(existsSync(path)).toBe(false);
});

test.skipIf(!isPublic(LAUNCHER) || !isPublic(join(REPOSITORY, 'node_modules/node/bin/node')))(
  'commands of lifepod that need root say so to other users, and the others work with the copy of the kubeconfig',
  async () => {
    const run = (...args: string[]): Promise<CommandResult> =>
      asJane('/nonexistent', LAUNCHER, ...args, '--data-dir', lifepod.dataDir);
    const withSudo = (command: string): string => `sudo ${LAUNCHER} ${command} --data-dir ${lifepod.dataDir}`;
    const own = `'eval "$(${withSudo('kubeconfig')})"'`;
    const unreadable = `lifepod: only root can read the data folder ${lifepod.dataDir}: type `;
    const starts = [
      `${unreadable}'${withSudo('why seen')}', or get a kubeconfig of your own with ${own}, or `,
      `${unreadable}${own}, or '${withSudo('kubeconfig --user NAME')}' `,
      `lifepod: only root can run this command: type '${withSudo('down')}'`,
      `lifepod: only root can run this command: type '${withSudo('image list')}'`,
      `${unreadable}'${withSudo('certs check')}'`,
    ];
    const refusals = await Promise.all([
      run('why', 'seen'),
      run('kubeconfig'),
      run('down'),
      run('image', 'list'),
      run('certs', 'check'),
    ]);
    for (const [index, { code, stderr }] of refusals.entries()) {
      expect(code).toBe(1);
      const start = starts[index] ?? '';
      expect(stderr.slice(0, start.length)).toBe(start);
      expect(stderr.split('\n')).toHaveLength(2);
    }

    const copied = await launch(['kubeconfig', '--data-dir', lifepod.dataDir], SUDO);
    const copy = /^export KUBECONFIG=(\S+)\n$/.exec(copied.stdout)?.[1] ?? '';
    await lifepod.apply(pod('seen', { app: [{ name: 'app', script: `echo hello; ${WAIT}` }] }));
    await record.until('seen', isReady);
    const [logs, timeline, again] = await Promise.all([
      run('logs', 'seen'),
      run('timeline', 'seen'),
      run('kubeconfig'),
    ]);
    expect(logs).toMatchObject({ code: 0, stdout: 'hello\n' });
    expect(timeline.stdout).toMatch(/^app +app .* running$/m);
    expect(again.stdout).toBe(copied.stdout);

    // A command that finds the engine through the copy of the kubeconfig prints commands with the data folder of this engine. Without the
    // data folder, these commands would use another engine.
    await lifepod.apply({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'unseen' },
      spec: { containers: [{ name: 'app', image: 'local.example/missing:1', imagePullPolicy: 'Never' }] },
    });
    await record.until(
      'unseen',
      ({ status }) => status?.containerStatuses?.[0]?.state?.waiting?.reason === 'ErrImageNeverPull',
    );
    const throughCopy = (command: string, ...args: string[]): Promise<CommandResult> =>
      asJane('/nonexistent', LAUNCHER, command, ...args, '--kubeconfig', copy);
    const [status, why] = await Promise.all([throughCopy('status'), throughCopy('why', 'unseen')]);
    expect(status.stdout).toContain(
      `only root can read the data folder ${lifepod.dataDir}: type '${withSudo('status')}', which reports memory, `,
    );
    expect(why.stdout).toContain(`sudo ${LAUNCHER} image load FILE --data-dir ${lifepod.dataDir}`);
    const ofRoot = await launch(['status', '--kubeconfig', copy], SUDO);
    expect(ofRoot.stdout).toContain(`PID ${lifepod.pid()}`);
  },
);

test('a user with a certificate of lifepod kubeconfig has the rights of its RoleBindings and no more', async () => {
  await lifepod.kubectlOk('create', 'namespace', 'team');
  await lifepod.kubectlOk('create', 'rolebinding', 'team', '-n', 'team', '--clusterrole=view', '--group=developers');
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-user-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  // The user `daemon`, which every machine has, gets the file in a folder of its own.
  const { uid, gid } = findUser('daemon') ?? { uid: 0, gid: 0 };
  expect(uid).not.toBe(0);
  chmodSync(folder, 0o755);
  chownSync(folder, uid, gid);
  const file = join(folder, 'kubeconfig');
  const groups = ['--group', 'developers', '--group', 'a "quoted", #group'];
  const options = [...groups, '-n', 'team', '--expires', '24h', '--output', file, '--owner', 'daemon'];
  const { code, stdout, stderr } = await lifepod.cli('kubeconfig', '--user', 'joe', ...options);
  expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
  expect(stderr).toMatch(
    /^\S+kubeconfig is valid for the user joe in the groups developers, a "quoted", #group until \d{4}-\d\d-\d\d \d\d:\d\d UTC, /,
  );
  expect(statSync(file)).toMatchObject({ uid, gid });
  expect(statSync(file).mode & 0o7777).toBe(0o600);

  const as = (...args: string[]): Promise<CommandResult> => lifepod.kubectl('--kubeconfig', file, ...args);
  const { status } = JSON.parse((await as('auth', 'whoami', '-o', 'json')).stdout);
  expect(status.userInfo).toMatchObject({
    username: 'joe',
    groups: ['developers', 'a "quoted", #group', 'system:authenticated'],
  });
  expect(await as('get', 'pods')).toMatchObject({ code: 0, stderr: 'No resources found in team namespace.\n' });
  for (const args of [
    ['get', 'pods', '-n', 'default'],
    ['get', 'nodes'],
    ['delete', 'pod', 'x'],
  ])
    expect(await as(...args)).toMatchObject({ code: 1, stderr: expect.stringContaining('User "joe" cannot ') });
  expect(await as('get', 'podrecords')).toMatchObject({ code: 0, stderr: 'No resources found in team namespace.\n' });
  expect(await launch(['status', '-n', 'default', '--kubeconfig', file])).toEqual({
    code: 1,
    stdout: '',
    stderr:
      'lifepod: this user may not read Pods in namespace default: give another namespace with -n, or ask an administrator for the role view in this one\n',
  });
  expect((await lifepod.cli('timeline', 'none', '--kubeconfig', file)).stderr).toContain(
    'lifepod: no Pod none in namespace team, and no record of one',
  );

  const missing = join(folder, 'none', 'kubeconfig');
  const refusals: [string[], string][] = [
    [
      ['--user', 'joe', '--output', file],
      `its folder belongs to the user daemon, who could redirect root to another one`,
    ],
    [
      ['--user', 'joe', '--output', file, '--owner', 'daemon'],
      `${file} cannot be created as daemon: it exists already; remove it, or give`,
    ],
    [
      ['--user', 'joe', '--output', missing, '--owner', 'daemon'],
      `${missing} cannot be created as daemon: its folder does`,
    ],
    [['--user', 'joe', '--output', missing, '--owner', 'no-such-user'], '--owner no-such-user is not a user of this'],
    [['--user', 'joe', '--owner', 'daemon'], '--owner is for a file: add --output FILE'],
    [['--group', 'developers'], '--group is for the kubeconfig of another user: add --user NAME'],
    [['--user', 'joe', '--group', 'system:masters'], 'the group system:masters gives all rights until'],
  ];
  const results = await Promise.all(refusals.map(([args]) => lifepod.cli('kubeconfig', ...args)));
  for (const [index, result] of results.entries())
    expect(result).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(refusals[index]?.[1] ?? '') });
  const { stdout: printed, stderr: warned } = await lifepod.cli(
    'kubeconfig',
    '--user',
    'ann',
    '--group',
    'system:masters',
    '--force',
  );
  expect(warned).toMatch(/^warning: ann gets all rights as a member of system:masters, /);
  expect(JSON.parse(printed)).toMatchObject({ 'current-context': 'lifepod', users: [{ name: 'ann' }] });
});
