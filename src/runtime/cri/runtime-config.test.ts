import { expect, test } from 'vitest';
import { driverOf } from './runtime-config.ts';

const config = (options: object | null): string =>
  JSON.stringify({ containerd: { defaultRuntimeName: 'runc', runtimes: { runc: { options } } } });

test.each([
  [undefined, undefined],
  ['{}', undefined],
  ['null', undefined],
  ['[crio]\ncgroup_manager = "systemd"', undefined],
  [JSON.stringify({ containerd: { defaultRuntimeName: 'kata', runtimes: {} } }), undefined],
  [config(null), 'cgroupfs'],
  [config({ SystemdCgroup: false }), 'cgroupfs'],
  [config({ SystemdCgroup: true }), 'systemd'],
] as const)('driverOf() returns for the configuration %s the cgroup driver %s', (text, driver) => {
  expect(driverOf(text)).toBe(driver);
});
