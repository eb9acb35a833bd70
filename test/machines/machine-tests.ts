/**
 * What is tried on each machine, in the order of a user's first days: containerd as its package left it, README's sections followed,
 * Pods, crashes, a reboot, the end; then the other cgroup driver and the private containerd. Each test goes on where the last one ended.
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
    if (started === undefined) throw new Error('there is no machine');
    return started;
  };
  firstStartTests(machine);
  podTests(machine);
  crashTests(machine);
  endTests(machine);
}
