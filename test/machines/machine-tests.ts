/**
 * Defines the tests of each machine, in the order in which users take these steps. Each test continues in the state that the previous one
 * left.
 */
import { crashTests } from './crash-tests.ts';
import { endTests } from './end-tests.ts';
import { firstStartTests } from './first-start-tests.ts';
import { type ContainerdVersion, useMachine } from './machine.ts';
import { podTests } from './pod-tests.ts';

export function machineTests(version: ContainerdVersion): void {
  const machine = useMachine(version);
  firstStartTests(machine);
  podTests(machine);
  crashTests(machine);
  endTests(machine);
}
