import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type DataDirLock, lockDataDir, UserError } from '../../platform/files.ts';
import type { TargetOptions } from '../target.ts';
import { selectEngine } from './engine-folder.ts';

let folder: string;
let lock: DataDirLock;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-status-'));
  for (const name of ['running', 'stopped', 'elsewhere']) {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, 'kubeconfig'), '');
    if (name !== 'elsewhere') writeFileSync(join(folder, name, 'engine.json'), '{}');
  }
  lock = lockDataDir(join(folder, 'running'));
});
afterAll(() => {
  lock.release();
  rmSync(folder, { recursive: true });
});

const PLUGIN = { LIFEPOD_KUBECTL_PLUGIN: '1' };

/** Paths are relative to the test's folder. `default`: the state of the default data folder. */
interface Case {
  options?: TargetOptions;
  kubeconfig?: string;
  plugin?: boolean;
  default: 'running' | 'stopped' | 'none';
  selects: string | undefined;
}

test.each<[string, Case]>([
  ['the running default engine', { default: 'running', selects: 'running' }],
  [
    'KUBECONFIG before the running default engine',
    { default: 'running', kubeconfig: 'stopped/kubeconfig', selects: 'stopped' },
  ],
  ['the stopped default engine', { default: 'stopped', selects: 'stopped' }],
  [
    'a foreign KUBECONFIG before the default engine',
    { default: 'running', kubeconfig: 'elsewhere/kubeconfig', selects: undefined },
  ],
  ['the engine of KUBECONFIG', { default: 'none', kubeconfig: 'running/kubeconfig', selects: 'running' }],
  ['the default folder that does not exist', { default: 'none', selects: 'none' }],
  [
    'a foreign KUBECONFIG if there is no default folder',
    { default: 'none', kubeconfig: 'elsewhere/kubeconfig', selects: undefined },
  ],
  ['--data-dir before all', { default: 'running', options: { dataDir: 'x', kubeconfig: 'y' }, selects: 'x' }],
  ['--kubeconfig', { default: 'running', options: { kubeconfig: 'elsewhere/kubeconfig' }, selects: undefined }],
  ['--kubeconfig of an engine', { default: 'none', options: { kubeconfig: 'stopped/kubeconfig' }, selects: 'stopped' }],
  [
    '--context',
    { default: 'running', options: { context: 'c' }, kubeconfig: 'running/kubeconfig', selects: undefined },
  ],
  ['kubectl lifepod', { default: 'running', plugin: true, kubeconfig: 'elsewhere/kubeconfig', selects: undefined }],
  [
    'the running default engine for kubectl without a kubeconfig',
    { default: 'running', plugin: true, selects: 'running' },
  ],
  [
    'kubectl lifepod with an engine',
    { default: 'stopped', plugin: true, kubeconfig: 'running/kubeconfig', selects: 'running' },
  ],
])('lifepod status selects %s', (_, { options = {}, kubeconfig, plugin, selects, ...given }) => {
  const within = (name: string): string => join(folder, name);
  const env = {
    HOME: within('none'),
    ...(kubeconfig === undefined ? {} : { KUBECONFIG: within(kubeconfig) }),
    ...(plugin === true ? PLUGIN : {}),
  };
  const full = {
    ...options,
    ...(options.kubeconfig === undefined ? {} : { kubeconfig: within(options.kubeconfig) }),
    ...(options.dataDir === undefined ? {} : { dataDir: within(options.dataDir) }),
  };
  const { dataDir, unread } = selectEngine(full, env, within(given.default));
  expect(dataDir).toBe(selects === undefined ? undefined : within(selects));
  expect(unread).toHaveLength(selects === undefined ? 1 : 0);
});

test('what cannot be read of an engine whose folder is not known can be read with its data folder', () => {
  const { unread } = selectEngine({ kubeconfig: join(folder, 'elsewhere/kubeconfig') }, {}, join(folder, 'none'));
  expect(unread).toEqual([
    expect.stringMatching(
      /type '(?:sudo|doas|pkexec) \S+ status --data-dir FOLDER' on its machine, with its data folder as FOLDER$/,
    ),
  ]);
});

test('lifepod status selects the engine of a copy of a kubeconfig', () => {
  const [copy, running] = [join(folder, '7.kubeconfig'), join(folder, 'running')];
  const ofCopy = ([path]: readonly string[]) => (path === copy ? running : undefined);
  expect(selectEngine({}, { KUBECONFIG: copy }, join(folder, 'none'), ofCopy).dataDir).toBe(running);
  expect(selectEngine({ kubeconfig: copy }, {}, join(folder, 'stopped'), ofCopy).dataDir).toBe(running);
});

test('lifepod status does not use a copy in ~/.kube/config, whether or not the user may read the default data folder', () => {
  mkdirSync(join(folder, 'home/.kube'), { recursive: true });
  writeFileSync(join(folder, 'home/.kube/config'), '');
  const select = (refusal?: UserError) =>
    selectEngine({}, { HOME: join(folder, 'home') }, join(folder, 'none'), undefined, () => refusal);
  expect(select().dataDir).toBe(join(folder, 'none'));
  expect(() => select(new UserError('only root'))).toThrow('only root');
});
