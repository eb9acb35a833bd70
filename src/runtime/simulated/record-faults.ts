/** Changes the records of a simulated runtime in ways that no call causes: killed processes, lost or damaged records, a reboot. */
import type { Millis } from '../../machinery/time.ts';
import type { Timers } from '../../platform/platform.ts';
import type { Records } from './records.ts';
import { type Run, type Runs, SIGKILL_EXIT } from './runs.ts';

export interface RecordFaultOptions {
  timers: Timers;
  runs: Runs;
  records: Records;
  /** Called after a sandbox of the Pod has ended. */
  changed(podUid: string): void;
}

export interface RecordFaults {
  /** Ends the pause process of each ready sandbox of the Pod, as an administrator could do. The Pod's containers keep running. */
  loseSandbox(podUid: string): void;
  /** Deletes the records of the exited containers with these names, as an administrator could do. Sends no event. */
  loseRecords(podUid: string, names: readonly string[]): void;
  /**
   * Kills the running containers with these names and deletes their records, as an administrator could do. Sends an event for each exit.
   */
  vanish(podUid: string, names: readonly string[]): void;
  /**
   * Prevents the removal of the exited containers with these names for `millis`: a removal of such a container resolves, as if NotFound had
   * been treated as success, but the runtime still lists the container. A removal of the container's sandbox only ends the sandbox.
   */
  damageRecords(podUid: string, names: readonly string[], millis: Millis): void;
  /** Ends all sandboxes and running containers, as a reboot of the machine does. The runtime keeps its records. */
  reboot(): void;
  /** Ends a running container without a call to the runtime. */
  kill(containerId: string, exitCode: number): void;
}

export function createRecordFaults({ timers, runs, records, changed }: RecordFaultOptions): RecordFaults {
  const { containers } = runs;
  const { sandboxes } = records;
  const runsOf = (podUid: string, names: readonly string[], state: Run['state']): Run[] =>
    [...containers.values()].filter((run) => run.podUid === podUid && names.includes(run.name) && run.state === state);
  return {
    loseSandbox(podUid) {
      for (const sandbox of sandboxes.values())
        if (sandbox.podUid === podUid && sandbox.ready) {
          sandbox.ready = false;
          changed(podUid);
        }
    },
    loseRecords(podUid, names) {
      for (const run of runsOf(podUid, names, 'exited')) runs.remove(run);
    },
    vanish(podUid, names) {
      for (const run of runsOf(podUid, names, 'running')) {
        runs.end(run, SIGKILL_EXIT, 'outside');
        runs.remove(run);
      }
    },
    damageRecords(podUid, names, millis) {
      for (const run of runsOf(podUid, names, 'exited')) run.damagedUntil = timers.now() + millis;
    },
    reboot() {
      for (const sandbox of sandboxes.values()) records.endSandbox(sandbox, 'reboot');
    },
    kill(id, exitCode) {
      const run = containers.get(id);
      if (run !== undefined) runs.end(run, exitCode, 'outside');
    },
  };
}
