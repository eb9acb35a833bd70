/**
 * Implements the interface of runtime.ts without processes: sandboxes and containers are records that follow a script on the given timers,
 * so that the whole life of a Pod passes in virtual time. test/contract tests this runtime.
 *
 * Invariants:
 *  1. A call takes effect after its latency even if its caller aborts it during the latency, as with a real runtime. Only an aborted
 *     stopContainer() or execSync() then has no effect.
 *  2. A stop that its caller has aborted never kills the container.
 *  3. While the runtime is unreachable, containers continue, only calls already under way can take effect, and no event is sent.
 * Exception: version(), notReady(), reopenContainerLog(), listImages(), removeImage() and close() have no latency and ignore outages.
 */
import type { Millis } from '../../machinery/time.ts';
import type { Timers } from '../../platform/platform.ts';
import type { ContainerRuntime, PodIdentity, RuntimeEvent } from '../runtime.ts';
import { type CallOptions, type Calls, createCalls, type Unreachable } from './calls.ts';
import { type ExecScript, execInTime } from './exec.ts';
import { type ImageOptions, imageCalls } from './images.ts';
import { createRecordFaults, type RecordFaults } from './record-faults.ts';
import { createRecords } from './records.ts';
import { createRuns, type RunScript, type Runs, SIGKILL_EXIT, type TraceEntry } from './runs.ts';

export type { Unreachable } from './calls.ts';
export type { RunScript, TraceEntry } from './runs.ts';

export interface SimulatedRuntimeOptions extends CallOptions, ImageOptions {
  script: (run: { pod: PodIdentity; name: string; attempt: number }) => RunScript;
  /** Absent: every command succeeds immediately. */
  exec?: (
    run: { pod: PodIdentity; name: string; attempt: number; startedAt?: Millis },
    command: readonly string[],
  ) => ExecScript;
  /** Absent: 10.0.x.y. */
  podIp?: (serial: number) => string;
}

export interface SimulatedRuntime extends ContainerRuntime, RecordFaults {
  /** All creations of sandboxes, and all starts, stop signals, exits and removals of containers, in order. For assertions. */
  readonly trace: TraceEntry[];
  /** Calls that have a latency. For assertions. */
  readonly calls: Calls['made'];
  /**
   * Starts an outage. During the interval, every call in `calls` that is made or under way rejects with an OutcomeUnknownError, and no
   * event is sent. When no outage lasts any more, a resync is sent. Containers continue to run. A stop that was under way never kills its
   * container.
   */
  goAway(interval: Unreachable): void;
  /** Rejects with an OutcomeUnknownError if the runtime is unreachable before `work` has ended. */
  through: Calls['through'];
  /**
   * Makes the next start of a container fail `millis` after its call has taken effect; the call itself resolves. Until then, no other call
   * can start the container. containerd behaves in this way if the client that calls StartContainer disconnects.
   */
  abandonNextStart(millis: Millis): void;
  addImage(reference: string): void;
}

export function createSimulatedRuntime(options: SimulatedRuntimeOptions): SimulatedRuntime {
  const { timers, script, podIp } = options;
  const calls = createCalls(options);
  const { send, events } = createEvents(calls);
  const changed = (podUid: string): void => send({ type: 'changed', podUid });
  const runs = createRuns({ timers, script, changed });
  const records = createRecords({ timers, runs, ...(podIp && { podIp }), changed });
  const { containers, trace } = runs;
  let abandonMillis: Millis | undefined;

  const startContainer = (id: string): void => {
    const failsAfterMillis = abandonMillis;
    abandonMillis = undefined;
    const run = containers.get(id);
    if (run === undefined) throw new Error(`container ${id} not found`);
    if (records.sandboxes.get(run.sandboxId)?.ready !== true) throw new Error(`sandbox ${run.sandboxId} is not ready`);
    if (run.state !== 'created') return;
    if (run.abandoned) throw new Error(`container ${id} is already in starting state`);
    if (failsAfterMillis === undefined) runs.begin(run);
    else runs.abandonStart(run, failsAfterMillis);
  };

  return {
    trace,
    calls: calls.made,
    version: async () => ({ name: 'simulated', version: '1', apiVersion: 'v1' }),
    notReady: async () => [],
    runSandbox: (config, signal) => calls.run('runSandbox', signal, () => records.runSandbox(config)),
    stopSandbox: (id, signal) => calls.run('stopSandbox', signal, () => records.stopSandbox(id)),
    removeSandbox: (id, signal) => calls.run('removeSandbox', signal, () => records.removeSandbox(id)),
    createContainer: (sandboxId, _sandbox, config, signal) =>
      calls.run('createContainer', signal, () => records.createContainer(sandboxId, config)),
    startContainer: (id, signal) => calls.run('startContainer', signal, () => startContainer(id)),
    stopContainer: (id, graceSeconds, signal) =>
      calls.run('stopContainer', signal, (caller) => stopContainer(runs, timers, id, graceSeconds, caller())),
    removeContainer: (id, signal) => calls.run('removeContainer', signal, () => records.removeContainer(id)),
    reopenContainerLog: async () => undefined,
    execSync: execCall(options, runs, calls),
    observeAll: (signal) =>
      calls.run(
        'observeAll',
        signal,
        () => new Map([...records.podUids()].map((uid) => [uid, records.observe(uid)] as const)),
      ),
    observe: (podUid, signal) => calls.run('observe', signal, () => records.observe(podUid)),
    events,
    ...imageCalls(options, calls),
    close: async () => undefined,
    goAway: (interval) => calls.cut(interval, () => send({ type: 'resync' })),
    through: calls.through,
    ...createRecordFaults({ timers, runs, records, changed }),
    abandonNextStart: (millis) => {
      abandonMillis = millis;
    },
  };
}

function createEvents(calls: Calls): { send(event: RuntimeEvent): void; events: ContainerRuntime['events'] } {
  const listeners = new Set<(event: RuntimeEvent) => void>();
  return {
    send: (event) => {
      if (calls.reachable) for (const listener of listeners) listener(event);
    },
    events: (listener, signal) =>
      new Promise((resolve) => {
        listeners.add(listener);
        const stop = (): void => {
          listeners.delete(listener);
          resolve();
        };
        if (signal.aborted) stop();
        else signal.addEventListener('abort', stop, { once: true });
      }),
  };
}

function execCall({ timers, exec }: SimulatedRuntimeOptions, runs: Runs, calls: Calls): ContainerRuntime['execSync'] {
  return (id, command, timeoutMillis, signal) =>
    calls.run('execSync', signal, (caller) => {
      const run = runs.containers.get(id);
      if (run?.state !== 'running') throw new Error(`container ${id} is not running`);
      const outcome = exec?.(run, command) ?? {};
      const onExit = (done: () => void): void => runs.onExit(id, done);
      return execInTime(timers, outcome, { command, timeoutMillis, onExit }, caller());
    });
}

/** Resolves when the container has ended, or when `caller` aborts; immediately if the container is not running. */
async function stopContainer(
  runs: Runs,
  timers: Timers,
  id: string,
  graceSeconds: number,
  caller: AbortSignal,
): Promise<void> {
  const run = runs.containers.get(id);
  if (caller.aborted || run === undefined || run.state !== 'running') return;
  if (graceSeconds <= 0) return runs.end(run, SIGKILL_EXIT, 'kill');
  runs.signalStop(run);
  await new Promise<void>((resolve) => {
    const kill = timers.at(timers.now() + graceSeconds * 1000, () => runs.end(run, SIGKILL_EXIT, 'kill'));
    const done = (): void => {
      kill.cancel();
      resolve();
    };
    caller.addEventListener('abort', done, { once: true });
    runs.onExit(id, done);
  });
}
