/** Simulates the runs of containers. A run is a record that follows a script on the given timers. */
import type { Millis } from '../../machinery/time.ts';
import type { Timers } from '../../platform/platform.ts';
import type { ContainerObservation, PodIdentity } from '../runtime.ts';

export interface RunScript {
  /** When the run ends on its own; absent: never. */
  runMillis?: number;
  /** The exit code if the run ends on its own; absent: 0. */
  exitCode?: number;
  /** The time from the stop signal to the end of the run; absent: the run ignores the signal. */
  stopMillis?: number;
  /** Absent: 143, as for a process that SIGTERM ended. */
  stopExitCode?: number;
  /** The message of the error with which the container fails to start; absent: the container starts. */
  startError?: string;
}

/** The causes of an end that the script of the run does not define. */
export type Cause = 'kill' | 'sandbox' | 'removal' | 'outside' | 'reboot';

export interface TraceEntry {
  at: Millis;
  what: 'sandbox' | 'start' | 'exit' | 'signal' | 'remove';
  /** The ID of the container, or of the sandbox if the entry is about a sandbox. */
  id: string;
  podUid: string;
  name: string;
  attempt: number;
  sandboxId: string;
  exitCode?: number;
  /** The cause of an exit; absent if the run's script defines the exit, and for other entries. */
  cause?: Cause;
}

export interface Run extends ContainerObservation {
  pod: PodIdentity;
  ending?: { cancel(): void };
  signalled?: boolean;
  /** A start of the container will fail or has failed: see abandonStart(). */
  abandoned?: true;
  /** Until this time, the removal of the container has no effect: see damageRecords(). */
  damagedUntil?: Millis;
}

export interface RunOptions {
  timers: Timers;
  script: (run: { pod: PodIdentity; name: string; attempt: number }) => RunScript;
  /** Called after a container of the Pod has started or ended. */
  changed(podUid: string): void;
}

export interface Runs {
  readonly containers: Map<string, Run>;
  readonly trace: TraceEntry[];
  /** Starts the container. If its script has a startError, ends it instead and throws. */
  begin(run: Run): void;
  /** Ends the run if its container is running, or if its start was abandoned and has not failed yet. */
  end(run: Run, exitCode: number, cause?: Cause): void;
  signalStop(run: Run): void;
  /** Makes the start of the container fail after `millis`. Until then, no other call can start the container. */
  abandonStart(run: Run, millis: Millis): void;
  remove(run: Run): void;
  /** Calls `done` when the container ends. */
  onExit(id: string, done: () => void): void;
}

export const SIGKILL_EXIT = 137;
const SIGTERM_EXIT = 143;
const START_ERROR_EXIT = 128;

export function createRuns({ timers, script, changed }: RunOptions): Runs {
  const containers = new Map<string, Run>();
  const exits = new Map<string, (() => void)[]>();
  const trace: TraceEntry[] = [];

  const note = (what: TraceEntry['what'], run: Run, more: Pick<TraceEntry, 'exitCode' | 'cause'> = {}): void => {
    const { id, podUid, name, attempt, sandboxId } = run;
    trace.push({ at: timers.now(), what, id, podUid, name, attempt, sandboxId, ...more });
  };
  const end = (run: Run, exitCode: number, cause?: Cause): void => {
    const isStarting = run.state === 'created' && run.abandoned === true;
    if (run.state !== 'running' && !isStarting) return;
    run.ending?.cancel();
    run.state = 'exited';
    run.exitCode = exitCode;
    run.reason = cause === 'reboot' ? 'Unknown' : exitCode === 0 ? 'Completed' : 'Error';
    run.finishedAt = timers.now();
    if (run.startedAt !== undefined) note('exit', run, { exitCode, cause });
    for (const done of exits.get(run.id) ?? []) done();
    exits.delete(run.id);
    changed(run.podUid);
  };
  return {
    containers,
    trace,
    end,
    begin(run) {
      const { runMillis, exitCode = 0, startError } = script(run);
      if (startError !== undefined) {
        Object.assign(run, { state: 'exited', exitCode: START_ERROR_EXIT, reason: 'StartError', message: startError });
        run.finishedAt = timers.now();
        changed(run.podUid);
        throw new Error(startError);
      }
      run.state = 'running';
      run.startedAt = timers.now();
      note('start', run);
      if (runMillis !== undefined) run.ending = timers.at(timers.now() + runMillis, () => end(run, exitCode));
      changed(run.podUid);
    },
    signalStop(run) {
      if (run.signalled) return;
      run.signalled = true;
      note('signal', run);
      const { stopMillis, stopExitCode = SIGTERM_EXIT } = script(run);
      if (stopMillis !== undefined) timers.at(timers.now() + stopMillis, () => end(run, stopExitCode));
    },
    abandonStart(run, millis) {
      run.abandoned = true;
      timers.at(timers.now() + millis, () => end(run, START_ERROR_EXIT));
    },
    remove(run) {
      end(run, SIGKILL_EXIT, 'removal');
      containers.delete(run.id);
      note('remove', run);
    },
    onExit: (id, done) => void exits.set(id, [...(exits.get(id) ?? []), done]),
  };
}
