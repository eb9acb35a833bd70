import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { kubeconfigPaths, orSelected, type TargetOptions } from './target.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-target-'));
  writeFileSync(join(folder, 'kubeconfig'), '');
  mkdirSync(join(folder, 'home', '.kube'), { recursive: true });
  writeFileSync(join(folder, 'home', '.kube', 'config'), '');
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Replaces the default data folder of this machine, which an engine may use. */
const DEFAULT = '/nonexistent/lifepod';
const PLUGIN = { LIFEPOD_KUBECTL_PLUGIN: '1' };
const paths = (options: TargetOptions, env: NodeJS.ProcessEnv, engine: boolean, own?: string): string[] =>
  kubeconfigPaths(
    options,
    { HOME: join(folder, 'none'), ...env },
    () => engine,
    () => own,
    DEFAULT,
  );

test('--kubeconfig and --data-dir take precedence over everything else', () => {
  for (const env of [{ KUBECONFIG: 'x' }, { KUBECONFIG: 'x', ...PLUGIN }]) {
    expect(paths({ kubeconfig: 'a', dataDir: folder }, env, true)).toEqual(['a']);
    expect(paths({ dataDir: folder }, env, true)).toEqual([join(folder, 'kubeconfig')]);
  }
});

test('lifepod uses KUBECONFIG, else the engine of the default data folder if it runs, else the usual file of kubectl', () => {
  const HOME = join(folder, 'home');
  for (const runs of [true, false]) {
    expect(paths({}, { KUBECONFIG: 'x' }, runs)).toEqual(['x']);
    expect(paths({}, { KUBECONFIG: 'x::y' }, runs, 'own')).toEqual(['x', 'y']);
  }
  expect(paths({}, { HOME }, true)).toEqual([join(DEFAULT, 'kubeconfig')]);
  expect(paths({}, { HOME }, true, 'own')).toEqual(['own']);
  expect(paths({}, { HOME }, false)).toEqual([join(HOME, '.kube', 'config')]);
  expect(paths({}, { HOME }, false, 'own')).toEqual([join(HOME, '.kube', 'config')]);
});

test('kubectl lifepod uses the kubeconfig of kubectl even if an engine runs', () => {
  expect(paths({}, { KUBECONFIG: 'x', ...PLUGIN }, true)).toEqual(['x']);
  const HOME = join(folder, 'home');
  expect(paths({}, { HOME, ...PLUGIN }, true)).toEqual([join(HOME, '.kube', 'config')]);
});

test('kubectl lifepod uses the engine of the default data folder, as lifepod does, if kubectl has no kubeconfig', () => {
  expect(paths({}, PLUGIN, true)).toEqual([join(DEFAULT, 'kubeconfig')]);
  expect(paths({}, PLUGIN, true, 'own')).toEqual(['own']);
  expect(() => paths({}, PLUGIN, false)).toThrow('lifepod is not running in');
});

test('a user who is not root uses the copy of the kubeconfig that belongs to this user', () => {
  expect(paths({}, {}, true, 'own')).toEqual(['own']);
  expect(paths({ dataDir: '/none' }, {}, false, 'own')).toEqual(['own']);
  expect(paths({ kubeconfig: 'a' }, {}, false, 'own')).toEqual(['a']);
  expect(paths({}, { KUBECONFIG: 'x', ...PLUGIN }, true, 'own')).toEqual(['x']);
});

test('without an engine or kubeconfig the error says how to start or select one', () => {
  expect(() => paths({}, { SUDO_UID: '1000' }, false)).toThrow(
    `lifepod is not running in ${DEFAULT}: start it with 'eval "$(sudo lifepod up --detach --data-dir ${DEFAULT})"', ` +
      'or name a --data-dir or --kubeconfig',
  );
  expect(orSelected("start it, or add '--data-dir /d' to use another engine")).toBe(
    "start it, or add '--data-dir /d' to use another engine, or name a --kubeconfig",
  );
  expect(() => paths({ dataDir: '/none' }, { KUBECONFIG: 'x' }, false)).toThrow('lifepod is not running in /none');
});
