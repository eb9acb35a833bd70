/**
 * The sandboxes and containers of a simulated runtime: records that follow a script on the given timers. Changes that happen to them
 * without a call (a killed process, a lost record, a reboot) are here too.
 */
import type { Millis, Timers } from '../../platform/platform.ts';
import type {
  ContainerConfig,
  ContainerObservation,
  PodIdentity,
  PodObservation,
  SandboxConfig,
  SandboxObservation,
} from '../runtime.ts';

/** The course of one run of a container. */
export interface RunScript {
  /** How long the run lasts if it is not stopped; absent: forever. */
  runMillis?: number;
  /** Its exit code when it ends on its own. */
  exitCode?: number;
  /** The time from the stop signal to its end; absent: it ignores the signal. */
  stopMillis?: number;
  /** Its exit code after the stop signal; absent: that of a process that the signal ended. */
  stopExitCode?: number;
}

/** What ended a run that ended neither on its own nor at its stop signal. */
export type Cause = 'kill' | 'sandbox' | 'removal' | 'outside' | 'reboot';

export interface TraceEntry {
  at: Millis;
  what: 'sandbox' | 'start' | 'exit' | 'signal' | 'remove';
  /** Of the container, or of the sandbox if the entry is about a sandbox. */
  id: string;
  podUid: string;
  name: string;
  attempt: number;
  sandboxId: string;
  exitCode?: number;
  /** Of an exit that the script did not cause. */
  cause?: Cause;
}

export interface Run extends ContainerObservation {
  pod: PodIdentity;
  ending?: { cancel(): void };
  signalled?: boolean;
  /** A start that will fail is under way. */
  abandoned?: true;
  /** Until then, the runtime finds nothing behind the record, and removing it has no effect. */
  damagedUntil?: Millis;
}

export interface RecordOptions {
  timers: Timers;
  script: (run: { pod: PodIdentity; name: string; attempt: number }) => RunScript;
  changed(podUid: string): void;
}

export const SIGKILL_EXIT = 137;
const START_ERROR_EXIT = 128;
/** The exit code that containerd reports for a process whose end it has not seen. */
const UNKNOWN_EXIT = 255;

export type Records = ReturnType<typeof createRecords>;

export function createRecords({ timers, script, changed }: RecordOptions) {
  const sandboxes = new Map<string, SandboxObservation>();
  const containers = new Map<string, Run>();
  const exits = new Map<string, (() => void)[]>();
  const trace: TraceEntry[] = [];
  let serial = 0;

  const note = (what: TraceEntry['what'], run: Run, more: Pick<TraceEntry, 'exitCode' | 'cause'> = {}): void => {
    const { id, podUid, name, attempt, sandboxId } = run;
    trace.push({ at: timers.now(), what, id, podUid, name, attempt, sandboxId, ...more });
  };
  const onExit = (id: string, done: () => void): void => void exits.set(id, [...(exits.get(id) ?? []), done]);

  const end = (run: Run, exitCode: number, cause?: Cause): void => {
    if (run.state !== 'running' && !run.abandoned) return;
    run.ending?.cancel();
    run.state = 'exited';
    run.exitCode = exitCode;
    run.reason = cause === 'reboot' ? 'Unknown' : exitCode === 0 ? 'Completed' : 'Error';
    run.finishedAt = timers.now();
    if (run.startedAt !== undefined) note('exit', run, { exitCode, ...(cause === undefined ? {} : { cause }) });
    for (const done of exits.get(run.id) ?? []) done();
    exits.delete(run.id);
    changed(run.podUid);
  };
  const begin = (run: Run): void => {
    run.state = 'running';
    run.startedAt = timers.now();
    note('start', run);
    const { runMillis, exitCode = 0 } = script(run);
    if (runMillis !== undefined) run.ending = timers.at(timers.now() + runMillis, () => end(run, exitCode));
    changed(run.podUid);
  };
  const signalStop = (run: Run): void => {
    if (run.signalled) return;
    run.signalled = true;
    note('signal', run);
    const { stopMillis, stopExitCode = 143 } = script(run);
    if (stopMillis !== undefined) timers.at(timers.now() + stopMillis, () => end(run, stopExitCode));
  };
  const removeRun = (run: Run): void => {
    end(run, SIGKILL_EXIT, 'removal');
    containers.delete(run.id);
    note('remove', run);
  };
  const endSandbox = (sandbox: SandboxObservation, cause: Cause): void => {
    for (const run of containers.values())
      if (run.sandboxId === sandbox.id) end(run, cause === 'reboot' ? UNKNOWN_EXIT : SIGKILL_EXIT, cause);
    sandbox.ready = false;
    changed(sandbox.podUid);
  };
  const runsOf = (podUid: string, names: readonly string[], state: Run['state']): Run[] =>
    [...containers.values()].filter((run) => run.podUid === podUid && names.includes(run.name) && run.state === state);
  const isDamaged = ({ damagedUntil }: Run): boolean => damagedUntil !== undefined && damagedUntil > timers.now();

  return {
    ...{ trace, sandboxes, containers, onExit, end, begin, signalStop },

    runSandbox({ pod: { uid, namespace, name }, attempt }: SandboxConfig): string {
      for (const each of sandboxes.values()) if (each.podUid === uid && each.attempt === attempt) return each.id;
      const id = `sandbox-${++serial}`;
      const ips = [`10.0.${serial >> 8}.${serial & 255}`];
      const createdAt = timers.now();
      sandboxes.set(id, { id, podUid: uid, namespace, name, attempt, ready: true, createdAt, ips });
      trace.push({ at: createdAt, what: 'sandbox', id, podUid: uid, name: '', attempt, sandboxId: id });
      return id;
    },
    createContainer(sandboxId: string, config: ContainerConfig): string {
      const { pod, name, kind, attempt, imageName, imageId, annotations } = config;
      for (const each of containers.values())
        if (each.podUid === pod.uid && each.name === name && each.attempt === attempt) return each.id;
      if (sandboxes.get(sandboxId)?.ready !== true) throw new Error(`sandbox ${sandboxId} is not ready`);
      const id = `container-${++serial}`;
      const record = {
        id,
        sandboxId,
        pod,
        podUid: pod.uid,
        name,
        kind,
        attempt,
        image: imageName,
        imageId,
        annotations,
      };
      containers.set(id, { ...record, state: 'created', createdAt: timers.now() });
      return id;
    },
    /** Makes the start fail after `millis`; nothing else can start the container until then. */
    abandonStart(run: Run, millis: Millis): void {
      run.abandoned = true;
      timers.at(timers.now() + millis, () => end(run, START_ERROR_EXIT));
    },
    stopSandbox(id: string): void {
      const sandbox = sandboxes.get(id);
      if (sandbox !== undefined) endSandbox(sandbox, 'sandbox');
    },
    removeSandbox(id: string): void {
      const sandbox = sandboxes.get(id);
      if (sandbox === undefined) return;
      endSandbox(sandbox, 'sandbox');
      const contained = [...containers.values()].filter(({ sandboxId }) => sandboxId === id);
      if (contained.some(isDamaged)) return;
      for (const run of contained) removeRun(run);
      sandboxes.delete(id);
      changed(sandbox.podUid);
    },
    removeContainer(id: string): void {
      const run = containers.get(id);
      if (run !== undefined && !isDamaged(run)) removeRun(run);
    },
    observe(podUid: string): PodObservation {
      return {
        sandboxes: [...sandboxes.values()].filter((each) => each.podUid === podUid).map((each) => ({ ...each })),
        containers: [...containers.values()].filter((each) => each.podUid === podUid).map(plain),
      };
    },
    podUids(): Set<string> {
      return new Set([...sandboxes.values(), ...containers.values()].map(({ podUid }) => podUid));
    },

    loseSandbox(podUid: string): void {
      for (const sandbox of sandboxes.values())
        if (sandbox.podUid === podUid && sandbox.ready) {
          sandbox.ready = false;
          changed(podUid);
        }
    },
    loseRecords(podUid: string, names: readonly string[]): void {
      for (const run of runsOf(podUid, names, 'exited')) removeRun(run);
    },
    vanish(podUid: string, names: readonly string[]): void {
      for (const run of runsOf(podUid, names, 'running')) {
        end(run, SIGKILL_EXIT, 'outside');
        removeRun(run);
      }
    },
    damageRecords(podUid: string, names: readonly string[], millis: Millis): void {
      for (const run of runsOf(podUid, names, 'exited')) run.damagedUntil = timers.now() + millis;
    },
    reboot(): void {
      for (const sandbox of sandboxes.values()) if (sandbox.ready) endSandbox(sandbox, 'reboot');
    },
    kill(id: string, exitCode: number): void {
      const run = containers.get(id);
      if (run !== undefined) end(run, exitCode, 'outside');
    },
  };
}

/** The fields of a run that an observation shows. */
function plain(run: Run): ContainerObservation {
  const {
    pod: _pod,
    ending: _ending,
    signalled: _signalled,
    abandoned: _abandoned,
    damagedUntil: _until,
    ...seen
  } = run;
  return seen;
}
