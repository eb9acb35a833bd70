import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { userKubeconfigPath } from '../../engine/certificates/user-kubeconfigs.ts';
import { lockForStart } from '../../engine/data-folder/lock-line.ts';
import { DEFAULT_DATA_DIR } from '../../engine/settings.ts';
import { realFolder, UserError } from '../../platform/files.ts';
import { apiHangs } from '../service/not-running.ts';
import type { ServiceState } from '../service/service-state.ts';
import { credentialsRefused, engineHangs, engineSilent, explainUnread, otherServer } from './lost-engine.ts';

const USER = { SUDO_UID: '1000', SUDO_GID: '1000' };
const COPY = userKubeconfigPath(DEFAULT_DATA_DIR, 1000);
const OTHER = userKubeconfigPath('/elsewhere', 1000);
// These functions replace the state of the engine and of the service of this machine.
const none = (): undefined => undefined;
const isRunning = (): boolean => false;
const unread = (
  code: string,
  path: string,
  dataDir?: string,
  service?: ServiceState,
  running: string[] = [],
): string => {
  const error = new UserError('as it was', { cause: Object.assign(new Error(code), { code }) });
  const found = explainUnread(
    error,
    [path],
    dataDir,
    USER,
    none,
    () => service,
    none,
    () => running,
  );
  return (found as Error).message;
};

test.each<[string, string, string | undefined, string]>([
  ['ENOENT', COPY, undefined, `start the engine with 'eval "$(sudo lifepod up --detach)"'`],
  [
    'ENOENT',
    OTHER,
    undefined,
    `start the engine with 'eval "$(sudo lifepod up --detach --data-dir FOLDER)"', with its data folder as FOLDER`,
  ],
  ['ENOENT', '/x', undefined, 'as it was'],
  ['EACCES', COPY, undefined, `belongs to another user: get one of your own with 'eval "$(sudo lifepod kubeconfig)"'`],
  [
    'EACCES',
    `${DEFAULT_DATA_DIR}/kubeconfig`,
    undefined,
    `belongs to another user: get one of your own with 'eval "$(sudo lifepod kubeconfig)"'`,
  ],
  ['EACCES', '/d/kubeconfig', '/d', `own with 'eval "$(sudo lifepod kubeconfig --data-dir /d)"'`],
  ['EACCES', '/x', undefined, 'as it was'],
  ['EISDIR', COPY, undefined, 'as it was'],
])('%s of the kubeconfig %s with --data-dir %s says what to type', (code, path, dataDir, end) => {
  expect(unread(code, path, dataDir).slice(-end.length)).toBe(end);
});

test('a copy that was removed is renewed with a command of its own if systemd runs the engine', () => {
  const renew = `get a new one with 'eval "$(sudo lifepod kubeconfig)"'`;
  expect(unread('ENOENT', COPY, undefined, 'stopped')).toBe(
    `the kubeconfig ${COPY} was removed when its engine or the machine stopped: start the engine with 'sudo systemctl start lifepod', then ${renew}`,
  );
  expect(unread('ENOENT', COPY, undefined, 'running')).toBe(
    `the kubeconfig ${COPY} was removed when its engine or the machine stopped: ${renew}`,
  );
});

test('a copy that was removed while its engine runs is renewed, also if only the process shows the data folder', () => {
  expect(unread('ENOENT', COPY, undefined, undefined, ['/elsewhere', DEFAULT_DATA_DIR])).toBe(
    `the kubeconfig ${COPY} was removed, and its engine is running or starting: when it is ready, get a new one with 'eval "$(sudo lifepod kubeconfig)"'`,
  );
  expect(unread('ENOENT', OTHER, undefined, undefined, ['/elsewhere', DEFAULT_DATA_DIR])).toBe(
    `the kubeconfig ${OTHER} was removed, and its engine is running or starting: when it is ready, get a new one with 'eval "$(sudo lifepod kubeconfig --data-dir /elsewhere)"'`,
  );
  expect(unread('ENOENT', OTHER, undefined, undefined, [DEFAULT_DATA_DIR])).toContain(' was stopped, which removed ');
});

test('the error for a removed copy suggests unsetting KUBECONFIG, unless the copy is that of the default engine', () => {
  const [error, env] = [new UserError('x', { cause: Object.assign(new Error(), { code: 'ENOENT' }) }), { ...USER }];
  const text = (path: string): string =>
    (explainUnread(error, [path], undefined, { ...env, KUBECONFIG: path }, none, none, none, () => []) as Error)
      .message;
  expect(text(OTHER)).toMatch(/, or type 'unset KUBECONFIG'$/);
  expect(text(COPY)).not.toContain('unset');
});

test('a missing kubeconfig that KUBECONFIG names is reported with the variable', () => {
  const error = new UserError('the kubeconfig /nope does not exist', { cause: { code: 'ENOENT' } });
  const text = (KUBECONFIG: string): string =>
    (explainUnread(error, ['/nope'], undefined, { ...USER, KUBECONFIG }, none, none, none, () => []) as Error).message;
  expect(text('/nope')).toBe(
    "the kubeconfig /nope does not exist: the variable KUBECONFIG names it; correct it, or type 'unset KUBECONFIG'",
  );
  expect(text('/other')).toBe('the kubeconfig /nope does not exist');
});

test('a missing kubeconfig of the default data folder is reported with the command that starts the engine', () => {
  const error = new UserError('the kubeconfig does not exist', { cause: { code: 'ENOENT' } });
  const text = (path: string, stopped: string | undefined): string => {
    const env = { ...USER, KUBECONFIG: path };
    const found = explainUnread(
      error,
      [path],
      undefined,
      env,
      none,
      none,
      none,
      () => [],
      () => stopped,
    );
    return (found as Error).message;
  };
  const start = "lifepod is not running: start it with 'lifepod up --detach'";
  expect(text(`${DEFAULT_DATA_DIR}/kubeconfig`, start)).toBe(start);
  expect(text(`${DEFAULT_DATA_DIR}/kubeconfig`, undefined)).toBe(error.message);
  expect(text('/d/kubeconfig', start)).toContain('the variable KUBECONFIG names it');
});

test('a kubeconfig in KUBECONFIG that only root can read is reported with the command that gets one of its engine', () => {
  expect(unread('EACCES', '/d/kubeconfig', undefined, undefined, ['/e', '/d'])).toBe(
    `the kubeconfig /d/kubeconfig belongs to another user: get one of your own with 'eval "$(sudo lifepod kubeconfig --data-dir /d)"'`,
  );
  const error = new UserError('the kubeconfig /nope cannot be read', { cause: { code: 'EACCES' } });
  const env = { ...USER, KUBECONFIG: '/nope' };
  const found = explainUnread(error, ['/nope'], undefined, env, none, none, none, () => ['/d']) as Error;
  expect(found.message).toBe(
    "the kubeconfig /nope cannot be read: the variable KUBECONFIG names it; correct it, or type 'unset KUBECONFIG'",
  );
});

test('several kubeconfigs, and other errors, are left as they are', () => {
  const error = new UserError('x', { cause: Object.assign(new Error(), { code: 'ENOENT' }) });
  expect(explainUnread(error, [COPY, '/y'], undefined, USER)).toBe(error);
  const other = new TypeError('y');
  expect(explainUnread(other, [COPY], undefined, USER)).toBe(other);
});

test('a silent engine is named only for a kubeconfig of lifepod', () => {
  const server = 'https://127.0.0.1:6443';
  expect(engineSilent(server, [COPY], undefined, USER, none, isRunning, none)).toBe(
    `lifepod does not answer at ${server}: 'sudo lifepod status' shows whether it runs, and 'eval "$(sudo lifepod up --detach)"' starts it`,
  );
  expect(engineSilent(server, ['/d/kubeconfig'], '/d', USER, none, isRunning, none)).toContain(
    `'sudo lifepod status --data-dir /d'`,
  );
});

test('a silent server of a kubeconfig that is not known to be of lifepod is named if it is on this machine', () => {
  const silent = (server: string): string | undefined =>
    engineSilent(server, ['/home/me/.kube/config'], undefined, USER);
  for (const server of ['https://127.0.0.1:6443', 'https://[::1]:6443', 'https://localhost:6443'])
    expect(silent(server)).toBe(
      `no API server listens at ${server}, the address on this machine that the kubeconfig /home/me/.kube/config names: start its engine, or ask the administrator to start it`,
    );
  for (const server of ['https://192.0.2.1:6443', 'https://127.example:6443']) expect(silent(server)).toBeUndefined();
});

test('an engine that has stopped is reported as by the other commands', () => {
  expect(engineSilent('https://h', ['/d/kubeconfig'], '/d', USER, undefined, () => true)).toBe(
    `lifepod is not running in /d: start it with 'eval "$(sudo lifepod up --detach --data-dir /d)"'`,
  );
});

test('the data folder beside a copy is named, also for the copy of another user', () => {
  const engineOf = ([path]: readonly string[]): string | undefined => (path === OTHER ? '/elsewhere' : undefined);
  expect(engineSilent('https://h', [OTHER], undefined, USER, engineOf)).toContain(
    `'sudo lifepod status --data-dir /elsewhere' shows whether it runs`,
  );
  const cause = Object.assign(new Error(), { code: 'EACCES' });
  const error = explainUnread(new UserError('x', { cause }), [OTHER], undefined, USER, engineOf) as Error;
  expect(error.message).toContain(`own with 'eval "$(sudo lifepod kubeconfig --data-dir /elsewhere)"'`);
});

test('a missing kubeconfig of a data folder that was deleted while its engine ran is explained', () => {
  const cause = Object.assign(new Error(), { code: 'ENOENT' });
  const error = new UserError('as it was', { cause });
  const explained = (path: string): unknown =>
    explainUnread(error, [path], undefined, USER, none, none, (folder) => (folder === '/d' ? 'deleted' : undefined));
  expect(explained('/d/kubeconfig')).toMatchObject({ name: 'UserError', message: 'deleted', cause });
  for (const path of ['/d/config', '/e/kubeconfig']) expect(explained(path)).toBe(error);
});

test('a server with a certificate of another authority is reported with the command that gets its kubeconfig', () => {
  const server = 'https://127.0.0.1:6443';
  const start = (path: string): string =>
    `the server at ${server} is not that of the kubeconfig ${path}, because its certificate is from another certificate authority: ` +
    'another or a newer engine, or another program, uses the port; get the kubeconfig of an engine with ';
  expect(otherServer(server, [COPY], undefined, USER, none)).toBe(`${start(COPY)}'eval "$(sudo lifepod kubeconfig)"'`);
  expect(otherServer(server, ['/home/me/.kube/config'], undefined, USER, none)).toBe(
    `${start('/home/me/.kube/config')}'eval "$(sudo lifepod kubeconfig --data-dir FOLDER)"', with its data folder as FOLDER`,
  );
  expect(otherServer(server, ['/d/kubeconfig'], '/d', USER, none)).toContain(
    `'eval "$(sudo lifepod kubeconfig --data-dir FOLDER)"', with its data folder as FOLDER`,
  );
  expect(otherServer(server, [OTHER], '/elsewhere', USER, none)).toContain(
    `'eval "$(sudo lifepod kubeconfig --data-dir /elsewhere)"'`,
  );
  expect(otherServer('https://192.0.2.1:6443', [COPY], undefined, USER, none)).toBeUndefined();
  expect(otherServer(server, [COPY, '/y'], undefined, USER, none)).toBeUndefined();
});

test('refused credentials are reported with the kubeconfig, the server and the command that gets other ones', () => {
  const server = 'https://127.0.0.1:6443';
  const start = (path: string, at = server): string =>
    `the server at ${at} does not accept the credentials in the kubeconfig ${path}: ` +
    'they are wrong, have expired or are those of another server; ';
  const own = "get the kubeconfig of an engine with 'eval";
  expect(credentialsRefused(server, [COPY], undefined, USER, none)).toBe(
    `${start(COPY)}${own} "$(sudo lifepod kubeconfig)"'`,
  );
  expect(credentialsRefused(server, ['/d/kubeconfig'], '/d', USER, none)).toBe(
    `${start('/d/kubeconfig')}${own} "$(sudo lifepod kubeconfig --data-dir /d)"'`,
  );
  expect(credentialsRefused(server, ['/x'], undefined, USER, none)).toBe(
    `${start('/x')}${own} "$(sudo lifepod kubeconfig --data-dir FOLDER)"', with its data folder as FOLDER`,
  );
  const elsewhere = 'https://192.0.2.1:6443';
  const ask = 'ask the administrator of the server for a kubeconfig';
  expect(credentialsRefused(elsewhere, ['/x'], undefined, USER, none)).toBe(`${start('/x', elsewhere)}${ask}`);
  expect(credentialsRefused(server, ['/x', '/y'], undefined, USER, none)).toBe(`${start('/x:/y')}${ask}`);
});

test('another server at the port of the engine before is not reported while an engine is starting', () => {
  const folder = realFolder(mkdtempSync(join(tmpdir(), 'lifepod-lost-')));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const lock = lockForStart(folder, 'engine');
  onTestFinished(() => lock.release());
  expect(otherServer('https://127.0.0.1:6443', [`${folder}/kubeconfig`], folder, USER)).toBe(
    `lifepod is starting in ${folder} (PID ${process.pid}): try again when it is ready`,
  );
});

test('an engine that accepts connections but does not answer is reported as running, not as starting or stopped', () => {
  const server = 'https://127.0.0.1:6443';
  const hangs = (paths: string[], dataDir: string | undefined, pid: number | undefined): string =>
    engineHangs(
      server,
      30_000,
      paths,
      dataDir,
      USER,
      () => undefined,
      () => pid,
    );
  const silent = `the API server at ${server} has not answered for 30 s`;
  expect(hangs(['/d/kubeconfig'], '/d', 7)).toBe(
    `lifepod is running (PID 7), but its API does not answer at ${server}: see its output`,
  );
  expect(apiHangs('/d', 7, server, undefined, true)).toMatch(
    / does not answer at \S+: the process is suspended, and '(?:sudo )?kill -CONT 7' continues it$/,
  );
  expect(hangs([COPY], undefined, undefined)).toBe(`${silent}: 'sudo lifepod status' shows whether its engine runs`);
  expect(hangs([OTHER], undefined, undefined)).toBe(
    `${silent}: 'sudo lifepod status --data-dir FOLDER' shows whether its engine runs, with its data folder as FOLDER`,
  );
  expect(hangs(['/x'], undefined, undefined)).toBe(silent);
  expect(hangs(['/x', '/y'], undefined, undefined)).toBe(silent);
});
