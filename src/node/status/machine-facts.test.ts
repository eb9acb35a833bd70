import { readFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import { NOTHING } from '../admission/allocatable.ts';
import { readCapacity, readSystemInfo } from './machine-facts.ts';

const folder = tmpdir();

test('the Node reports whole CPUs as a number, and other amounts in thousandths', async () => {
  const cpus = availableParallelism();
  const whole = await readCapacity({ folder, maxPods: 7 });
  expect([whole.capacity['cpu'], whole.allocatable['cpu']]).toEqual([`${cpus}`, `${cpus}`]);
  expect([whole.capacity['pods'], whole.allocatable['pods']]).toEqual(['7', '7']);
  expect(whole.podLimits).toMatchObject({ cpuMilli: cpus * 1000, memoryBytes: whole.memoryBytes });
  const part = await readCapacity({ folder, reserved: { ...NOTHING, cpuMilli: 100, memoryBytes: 1024 } });
  expect([part.capacity['cpu'], part.allocatable['cpu']]).toEqual([`${cpus}`, `${cpus * 1000 - 100}m`]);
  expect(part.podLimits).toMatchObject({ cpuMilli: cpus * 1000 - 100, memoryBytes: whole.memoryBytes - 1024 });
  expect(part.capacity['memory']).toBe(`${whole.memoryBytes / 1024}Ki`);
});

test('the Node has the UUID of the system, or the machine ID if there is none', async () => {
  const read = (path: string): string => {
    try {
      return readFileSync(path, 'utf8').trim();
    } catch {
      return '';
    }
  };
  const machineID = read('/etc/machine-id');
  expect(await readSystemInfo('runtime://1', 'v1')).toMatchObject({
    machineID,
    systemUUID: read('/sys/class/dmi/id/product_uuid') || machineID,
    bootID: read('/proc/sys/kernel/random/boot_id'),
    containerRuntimeVersion: 'runtime://1',
    kubeletVersion: 'v1',
  });
});
