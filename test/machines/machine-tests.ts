/**
 * The tests of each machine, in the order in which users take these steps: containerd as its package configures it, the README's sections
 * applied, Pods, crashes, a reboot, and `lifepod down`; then the other cgroup driver and the private containerd. Each test continues in
 * the state that the previous one left.
 */
import { afterAll, beforeAll } from 'vitest';
import { crashTests } from './crash-tests.ts';
import { endTests } from './end-tests.ts';
import { firstStartTests } from './first-start-tests.ts';
import { type ContainerdVersion, type Machine, startMachine } from './machine.ts';
import { podTests } from './pod-tests.ts';

export function machineTests(version: ContainerdVersion): void {
  let started: Machine | undefined;
  beforeAll(async () => {
    started = await startMachine(version);
  });
  afterAll(() => started?.stop());
  const machine = (): Machine => {
    if (started === undefined) throw new Error('the machine has not started');
    return started;
  };
  firstStartTests(machine);
  podTests(machine);
  crashTests(machine);
  endTests(machine);
}
