import { expect, test } from 'vitest';
import { recordOf, resolveSettings } from '../settings.ts';
import { differentOptions, hasEngineOptions, unappliedOptions } from './different-options.ts';

const record = recordOf(resolveSettings({ dataDir: '/d' }, undefined), 7000);

test('an option counts as different only if the engine runs with another value', () => {
  expect(differentOptions({ dataDir: '/d', maxPods: '60', port: 0 }, record)).toEqual(['--max-pods']);
  expect(differentOptions({ dataDir: '/d', maxPods: '110' }, record)).toEqual([]);
});

test('a session of `lifepod run` has no options for the engine, one of `lifepod up FILE` may have some', () => {
  expect(hasEngineOptions({ dataDir: '/d', forSessions: true, podCidr: undefined })).toBe(false);
  expect(hasEngineOptions({ dataDir: '/d', forSessions: true, podCidr: '10.1.0.0/16' })).toBe(true);
});

test('the runtime of the machine is another one than the private containerd', () => {
  const options = { dataDir: '/d', containerRuntimeEndpoint: '/run/containerd/containerd.sock' };
  expect(differentOptions(options, record)).toEqual(['--container-runtime-endpoint']);
  const back = { dataDir: '/d', containerRuntimeEndpoint: '' };
  expect(differentOptions(back, recordOf(resolveSettings(options, record), 7000))).toEqual([
    '--container-runtime-endpoint',
  ]);
  expect(differentOptions(back, record)).toEqual([]);
});

test('options that are not recorded apply only if the command line of the engine has them', () => {
  const options = { dataDir: '/d', logLevel: 'debug', shutdownOnStop: true } as const;
  expect(unappliedOptions(options, record, [])).toEqual(['--log-level', '--shutdown-on-stop']);
  expect(unappliedOptions(options, record, ['--log-level', 'info'])).toEqual(['--log-level', '--shutdown-on-stop']);
  expect(unappliedOptions(options, record, ['--log-level=debug', '--shutdown-on-stop'])).toEqual([]);
});
