/**
 * A container runtime without containers: sandboxes and containers are records that follow a script on the given timers,
 * so that a whole life passes in virtual time. It implements the contract of runtime.ts (tested by test/contract).
 *
 * Boundary: records.ts has the sandboxes and containers, calls.ts the latency and failures of calls to them.
 * Invariants:
 *  1. A call takes effect after its latency even if its caller has gone, as with a real runtime.
 *  2. A stop whose caller has gone never kills.
 *  3. While the runtime is unreachable, containers continue, only calls already under way can take effect, and no event is sent.
 */
import type { Millis, Timers } from '../../platform/platform.ts';
import type { ContainerRuntime, ImageInfo, PodIdentity, RuntimeEvent } from '../runtime.ts';
import { type CallOptions, type Calls, createCalls, type Unreachable } from './calls.ts';
import { type ExecScript, execInTime } from './exec.ts';
import { createRecords, type Records, type RunScript, SIGKILL_EXIT, type TraceEntry } from './records.ts';

export type { Unreachable } from './calls.ts';
export type { RunScript, TraceEntry } from './records.ts';

export interface SimulatedRuntimeOptions extends CallOptions {
  script: (run: { pod: PodIdentity; name: string; attempt: number }) => RunScript;
  /** The course of a command in a container; absent: it succeeds at once. */
  exec?: (run: { pod: PodIdentity; name: string; attempt: number }, command: readonly string[]) => ExecScript;
  /** References of the images that are present at the start. */
  images?: string[];
  /** Whether an image can be pulled. */
  pullable?: (reference: string) => boolean;
}

export interface SimulatedRuntime extends ContainerRuntime {
  /** Everything that ever started and ended, in order: for assertions. */
  readonly trace: TraceEntry[];
  /** Every call, in order: for assertions. */
  readonly calls: Calls['made'];
  /**
   * For the interval, every call that is made or under way rejects with an OutcomeUnknownError, and no event is sent; a resync
   * follows. Containers continue, and a stop that was under way never kills.
   */
  goAway(interval: Unreachable): void;
  /** Rejects with an OutcomeUnknownError if the runtime is unreachable, or becomes so before `work` has ended. */
  through: Calls['through'];
  /** Ends the sandbox's pause process, as an administrator could. */
  loseSandbox(podUid: string): void;
  /** Forgets the exited containers of these names, as an administrator could cause; no event is sent. */
  loseRecords(podUid: string, names: readonly string[]): void;
  /** Kills the running containers of these names and forgets them, as an administrator could. */
  vanish(podUid: string, names: readonly string[]): void;
  /**
   * For this time, the runtime lists the exited containers of these names but finds nothing behind their records: the removal of
   * one, or of its sandbox, returns NotFound, which is success to the caller, and has no effect.
   */
  damageRecords(podUid: string, names: readonly string[], millis: Millis): void;
  /** Ends every process of the machine; the records stay. */
  reboot(): void;
  /** Ends a running container from outside. */
  kill(containerId: string, exitCode: number): void;
  /** The next start loses its caller: it fails after `millis`, and nothing else can start the container until then, as with containerd. */
  abandonNextStart(millis: Millis): void;
  addImage(reference: string): void;
}

export function createSimulatedRuntime(options: SimulatedRuntimeOptions): SimulatedRuntime {
  const { timers } = options;
  const listeners = new Set<(event: RuntimeEvent) => void>();
  const calls = createCalls(options);
  const send = (event: RuntimeEvent): void => {
    if (calls.reachable) for (const listener of listeners) listener(event);
  };
  const records = createRecords({ ...options, changed: (podUid) => send({ type: 'changed', podUid }) });
  const { containers, sandboxes, trace } = records;
  const images = new Set(options.images ?? []);
  let abandonMillis: Millis | undefined;

  const startContainer = (id: string): void => {
    const failsAfterMillis = abandonMillis;
    abandonMillis = undefined;
    const run = containers.get(id);
    if (run === undefined) throw new Error(`container ${id} not found`);
    if (sandboxes.get(run.sandboxId)?.ready !== true) throw new Error(`sandbox ${run.sandboxId} is not ready`);
    if (run.state !== 'created') return;
    if (run.abandoned) throw new Error(`container ${id} is already in starting state`);
    if (failsAfterMillis === undefined) records.begin(run);
    else records.abandonStart(run, failsAfterMillis);
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
      calls.run('stopContainer', signal, (caller) => stopContainer(records, timers, id, graceSeconds, caller())),
    removeContainer: (id, signal) => calls.run('removeContainer', signal, () => records.removeContainer(id)),
    reopenContainerLog: async () => undefined,
    execSync: (id, command, timeoutMillis, signal) =>
      calls.run('execSync', signal, (caller) => {
        const run = containers.get(id);
        if (run?.state !== 'running') throw new Error(`container ${id} is not running`);
        const outcome = options.exec?.(run, command) ?? {};
        const onExit = (done: () => void): void => records.onExit(id, done);
        return execInTime(timers, outcome, { command, timeoutMillis, onExit }, caller());
      }),
    observeAll: (signal) =>
      calls.run(
        'observeAll',
        signal,
        () => new Map([...records.podUids()].map((uid) => [uid, records.observe(uid)] as const)),
      ),
    observe: (podUid, signal) => calls.run('observe', signal, () => records.observe(podUid)),
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
    imageStatus: (reference, signal) =>
      calls.run('imageStatus', signal, () =>
        [...images].map(imageInfo).find(({ id, tags }) => id === reference || tags.includes(reference)),
      ),
    pullImage: (reference, _credential, signal) =>
      calls.run('pullImage', signal, () => {
        if (options.pullable?.(reference) === false) throw new Error(`${reference}: not found`);
        images.add(reference);
        return imageInfo(reference).id;
      }),
    listImages: async () => [...images].map(imageInfo),
    removeImage: async (id) => {
      for (const reference of images) if (imageInfo(reference).id === id) images.delete(reference);
    },
    close: async () => undefined,
    goAway: (interval) => calls.cut(interval, () => send({ type: 'resync' })),
    through: calls.through,
    loseSandbox: records.loseSandbox,
    loseRecords: records.loseRecords,
    vanish: records.vanish,
    damageRecords: records.damageRecords,
    reboot: records.reboot,
    kill: records.kill,
    abandonNextStart: (millis) => {
      abandonMillis = millis;
    },
    addImage: (reference) => void images.add(reference),
  };
}

/** Resolves when the container has ended, or the caller has gone. */
async function stopContainer(
  records: Records,
  timers: Timers,
  id: string,
  graceSeconds: number,
  caller: AbortSignal,
): Promise<void> {
  const run = records.containers.get(id);
  if (caller.aborted || run === undefined || run.state !== 'running') return;
  if (graceSeconds <= 0) return records.end(run, SIGKILL_EXIT, 'kill');
  records.signalStop(run);
  await new Promise<void>((resolve) => {
    const kill = timers.at(timers.now() + graceSeconds * 1000, () => records.end(run, SIGKILL_EXIT, 'kill'));
    const done = (): void => {
      kill.cancel();
      resolve();
    };
    caller.addEventListener('abort', done, { once: true });
    records.onExit(id, done);
  });
}

const imageInfo = (reference: string): ImageInfo => ({
  id: `sha256:${reference}`,
  tags: [reference],
  digests: [],
  sizeBytes: 1000,
});
