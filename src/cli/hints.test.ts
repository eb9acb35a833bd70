import { expect, test } from 'vitest';
import { DEFAULT_DATA_DIR } from '../engine/settings.ts';
import { type HintOptions, hintsFor, missingKubeconfig, waysToStop } from './hints.ts';

const PLUGIN = { LIFEPOD_KUBECTL_PLUGIN: '1' };

test.each<[string, HintOptions, NodeJS.ProcessEnv, string[] | undefined, [string, string, string]]>([
  [
    'the default engine, whose kubeconfig kubectl does not read',
    {},
    { HOME: '/root' },
    undefined,
    ['lifepod why p', 'lifepod status', `kubectl get pods --kubeconfig ${DEFAULT_DATA_DIR}/kubeconfig`],
  ],
  [
    'the default engine, whose kubeconfig kubectl reads',
    {},
    { KUBECONFIG: `${DEFAULT_DATA_DIR}/kubeconfig` },
    undefined,
    ['lifepod why p', 'lifepod status', 'kubectl get pods'],
  ],
  [
    '--data-dir',
    { dataDir: '/my data' },
    { HOME: '/root' },
    undefined,
    [
      "lifepod why p --data-dir '/my data'",
      "lifepod status --data-dir '/my data'",
      "kubectl get pods --kubeconfig '/my data/kubeconfig'",
    ],
  ],
  [
    '--kubeconfig and --context',
    { kubeconfig: 'k', context: 'c' },
    { KUBECONFIG: 'k' },
    ['k'],
    ['lifepod why p --kubeconfig k --context c', 'lifepod status', 'kubectl get pods --kubeconfig k --context c'],
  ],
  [
    'kubectl lifepod with --context',
    { context: 'c' },
    { KUBECONFIG: 'a::b', ...PLUGIN },
    ['a', 'b'],
    ['kubectl lifepod why p --context c', 'lifepod status', 'kubectl get pods --context c'],
  ],
  [
    'kubectl lifepod with the default kubeconfig of kubectl',
    {},
    { HOME: '/home/me', ...PLUGIN },
    ['/home/me/.kube/config'],
    ['kubectl lifepod why p', 'lifepod status', 'kubectl get pods'],
  ],
])('commands in hints reach the server of a command that was called with %s', (_, options, env, paths, commands) => {
  const hints = hintsFor(options, env, paths, false);
  expect([hints.lifepod('why p'), hints.engine('status'), hints.kubectl('get pods')]).toEqual(commands);
});

test('commands that need root name a placeholder if the data folder of the engine is not known', () => {
  const engine = (options: HintOptions): string => hintsFor(options, {}, ['/k'], true).engine('image load FILE');
  expect(engine({ isFolderUnknown: true })).toBe('sudo lifepod image load FILE --data-dir FOLDER');
  expect(engine({ isFolderUnknown: true, dataDir: '/d' })).toBe('sudo lifepod image load FILE --data-dir /d');
});

test('commands that need root begin with sudo if the user is not root', () => {
  const plain = hintsFor({}, {}, undefined, true);
  expect([plain.engine('down'), plain.start(), plain.lifepod('why p')]).toEqual([
    'sudo lifepod down',
    'eval "$(sudo lifepod up --detach)"',
    'lifepod why p',
  ]);
  const through = hintsFor({ dataDir: '/d' }, { SUDO_UID: '1000' });
  expect(through.start()).toBe('eval "$(sudo lifepod up --detach --data-dir /d)"');
  expect(hintsFor({}, {}, undefined, false).start()).toBe('lifepod up --detach');
});

test.each<[string, HintOptions, string[] | undefined]>([
  ['--data-dir', { dataDir: '/d' }, undefined],
  ['--data-dir, whose kubeconfig the command has read', { dataDir: '/d' }, ['/d/kubeconfig']],
  ['the engine of KUBECONFIG', { engineFolder: '/d' }, ['/d/kubeconfig']],
  ['--kubeconfig', { kubeconfig: '/d/kubeconfig', engineFolder: '/d' }, ['/d/kubeconfig']],
])('with sudo and %s, no command without sudo names a kubeconfig that only root can read', (_, options, paths) => {
  const env = { SUDO_UID: '1000', KUBECONFIG: '/d/kubeconfig' };
  const commands = (copy: string | undefined): string[] => {
    const { kubectl, lifepod } = hintsFor(options, env, paths, true, () => copy);
    return [kubectl('get pods'), lifepod('why p')];
  };
  const folder = options.kubeconfig === undefined ? ' --data-dir /d' : '';
  const given = (path: string): string => (options.kubeconfig === undefined ? '' : ` --kubeconfig ${path}`);
  expect(commands('/run/1000')).toEqual([
    'kubectl get pods --kubeconfig /run/1000',
    `lifepod why p${folder}${given('/run/1000')}`,
  ]);
  expect(commands(undefined)).toEqual([
    'sudo kubectl get pods --kubeconfig /d/kubeconfig',
    `sudo lifepod why p${folder}${given('/d/kubeconfig')}`,
  ]);
});

test('with sudo, commands do not name the default data folder', () => {
  const kubeconfig = `${DEFAULT_DATA_DIR}/kubeconfig`;
  const env = { SUDO_UID: '1000', KUBECONFIG: kubeconfig };
  const lifepod = (copy: string | undefined): string =>
    hintsFor({ engineFolder: DEFAULT_DATA_DIR }, env, [kubeconfig], true, () => copy).lifepod('why p');
  expect([lifepod('/run/1000'), lifepod(undefined)]).toEqual(['lifepod why p', 'sudo lifepod why p']);
});

test('with sudo, commands keep a kubeconfig that is not that of the engine', () => {
  const { kubectl, lifepod } = hintsFor({ kubeconfig: 'k' }, { SUDO_UID: '1000' }, ['k'], true, () => '/run/1000');
  expect([kubectl('get pods'), lifepod('why p')]).toEqual([
    'kubectl get pods --kubeconfig k',
    'lifepod why p --kubeconfig k',
  ]);
});

test('commands that need root name the data folder of the engine whose kubeconfig is used', () => {
  const commandsFor = (engineFolder: string, options: HintOptions = {}): string[] => {
    const { engine, lifepod, start } = hintsFor({ ...options, engineFolder }, {}, ['/copy'], true);
    return [engine('image list'), start(), lifepod('why p')];
  };
  expect(commandsFor('/d')).toEqual([
    'sudo lifepod image list --data-dir /d',
    'eval "$(sudo lifepod up --detach --data-dir /d)"',
    'lifepod why p',
  ]);
  expect(commandsFor(DEFAULT_DATA_DIR)[0]).toBe('sudo lifepod image list');
  expect(commandsFor('/d', { dataDir: '/other' })[0]).toBe('sudo lifepod image list --data-dir /other');
});

test('commands name the default data folder if a command without it would use the engine of KUBECONFIG', () => {
  const commands = (options: HintOptions, KUBECONFIG?: string): string[] => {
    const { engine, lifepod } = hintsFor(options, { KUBECONFIG }, undefined, false);
    return [lifepod('why p'), engine('down')];
  };
  const named = `lifepod why p --data-dir ${DEFAULT_DATA_DIR}`;
  expect(commands({ dataDir: DEFAULT_DATA_DIR })).toEqual(['lifepod why p', 'lifepod down']);
  expect(commands({ dataDir: DEFAULT_DATA_DIR }, `${DEFAULT_DATA_DIR}/kubeconfig`)[0]).toBe('lifepod why p');
  expect(commands({ dataDir: DEFAULT_DATA_DIR }, '/d/kubeconfig')).toEqual([named, 'lifepod down']);
  expect(commands({ engineFolder: DEFAULT_DATA_DIR, isOneOfSeveral: true })).toEqual([named, 'lifepod down']);
});

test('an answer names the data folder of the engine, or its server', () => {
  const answering = (options: HintOptions) => hintsFor(options, {}).answering;
  expect(answering({ dataDir: '/d', engineFolder: '/e', server: 'https://h' })).toBe('the engine in /d');
  expect(answering({ engineFolder: '/e', server: 'https://h' })).toBe('the engine in /e');
  expect(answering({ server: 'https://h' })).toBe('the server https://h');
});

test('commands name the typed path of lifepod if it is not on the PATH', () => {
  const env = { LIFEPOD_PROGRAM: 'bin/lifepod', PATH: '/nonexistent' };
  const { engine, lifepod, start } = hintsFor({}, env, undefined, true);
  expect([engine('down'), start(), lifepod('why p')]).toEqual([
    'sudo bin/lifepod down',
    'eval "$(sudo bin/lifepod up --detach)"',
    'bin/lifepod why p',
  ]);
  const plugin = hintsFor({}, { ...env, ...PLUGIN }, undefined, true);
  expect([plugin.engine('down'), plugin.lifepod('why p')]).toEqual(['sudo bin/lifepod down', 'kubectl lifepod why p']);
});

test('a deleted kubeconfig is explained with the commands that write it again', () => {
  expect(missingKubeconfig('/d', 7, { SUDO_UID: '1000' })).toBe(
    "/d/kubeconfig is missing, so the running engine (PID 7) cannot be reached: type 'sudo kill 7', which leaves its Pods running, " +
      `then 'eval "$(sudo lifepod up --detach --data-dir /d)"', which writes the file again`,
  );
});

test('an engine that systemd runs is stopped and restarted with systemctl', () => {
  expect(waysToStop('/d', 7, { SUDO_UID: '1000' }, true)).toBe(
    "'sudo systemctl stop lifepod' leaves its Pods running, and 'sudo lifepod down --data-dir /d' ends them, too",
  );
  expect(missingKubeconfig('/d', 7, { SUDO_UID: '1000' }, true)).toBe(
    "/d/kubeconfig is missing, so the running engine (PID 7) cannot be reached: type 'sudo systemctl restart lifepod', which leaves its Pods " +
      'running and writes the file again',
  );
});

test('an engine whose PID means another process here is stopped where it runs', () => {
  expect(waysToStop('/d', 7, {}, false, false)).toBe(
    "'lifepod down' where it runs, for example in a container that has the folder as a volume, ends it and its Pods",
  );
});

test('options of a hint precede the arguments of a program', () => {
  const { kubectl } = hintsFor({ kubeconfig: 'k' }, {});
  expect(kubectl('exec p -- sh -c true')).toBe('kubectl exec p --kubeconfig k -- sh -c true');
});
