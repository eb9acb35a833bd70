/**
 * A container runtime without containers: sandboxes and containers are records that follow a script on the timers given,
 * so that a whole life passes in virtual time. It keeps the contract of runtime.ts (test/contract holds it to it).
 *
 * A call takes effect after its latency even if its caller has gone, as with a real runtime; a stop whose caller has
 * gone never comes to its kill.
 */
import type { Millis, Timers } from '../../platform/platform.ts';
import type {
  ContainerConfig,
  ContainerObservation,
  ContainerRuntime,
  ImageInfo,
  PodIdentity,
  PodObservation,
  RuntimeEvent,
  SandboxConfig,
  SandboxObservation,
} from '../runtime.ts';
import { type ExecScript, execInTime } from './exec.ts';

/** How one run of a container goes. */
export interface RunScript {
  /** How long it runs by itself; absent: until it is stopped. */
  runMillis?: number;
  /** Its exit code when it ends by itself. */
  exitCode?: number;
  /** How long it takes from the stop signal to its end; absent: it ignores the signal. */
  stopMillis?: number;
  /** Its exit code then; absent: that of a process which the signal ends. */
  stopExitCode?: number;
}

export interface SimulatedRuntimeOptions {
  timers: Timers;
  script: (run: { pod: PodIdentity; name: string; attempt: number }) => RunScript;
  /** How a command in a container goes; absent: it succeeds at once. */
  exec?: (run: { pod: PodIdentity; name: string; attempt: number }, command: readonly string[]) => ExecScript;
  /** Latency of a call. */
  latencyMillis?: (call: string) => Millis;
  /** Throws to make a call fail. */
  fault?: (call: string) => void;
  /** References of the images that are there from the start. */
  images?: string[];
  /** Can an image be pulled? */
  pullable?: (reference: string) => boolean;
}

export interface SimulatedRuntime extends ContainerRuntime {
  /** Everything that ever started and ended, in order: for assertions. */
  readonly trace: TraceEntry[];
  /** Ends the sandbox's pause process, as an administrator could. */
  loseSandbox(podUid: string): void;
  /** Forgets what has ended of these containers, as an administrator could let it. */
  loseRecords(podUid: string, names: readonly string[]): void;
  /** Ends a running container from outside. */
  kill(containerId: string, exitCode: number): void;
  /** The next start loses its caller: it fails so much later, and until then nobody else can start it. As containerd does. */
  abandonNextStart(millis: Millis): void;
  addImage(reference: string): void;
}

export interface TraceEntry {
  at: Millis;
  what: 'sandbox' | 'start' | 'exit' | 'signal' | 'remove';
  podUid: string;
  name: string;
  attempt: number;
  sandboxId: string;
  exitCode?: number;
}

interface Run extends ContainerObservation {
  pod: PodIdentity;
  ending?: { cancel(): void };
  signalled?: boolean;
  /** A start of it is under way that will fail. */
  abandoned?: true;
}

const SIGKILL_EXIT = 137;
const START_ERROR_EXIT = 128;

export function createSimulatedRuntime(options: SimulatedRuntimeOptions): SimulatedRuntime {
  const { timers, script } = options;
  const sandboxes = new Map<string, SandboxObservation>();
  const containers = new Map<string, Run>();
  const images = new Set(options.images ?? []);
  const listeners = new Set<(event: RuntimeEvent) => void>();
  const exits = new Map<string, (() => void)[]>();
  const trace: TraceEntry[] = [];
  let serial = 0;
  let abandonMillis: Millis | undefined;

  const changed = (podUid: string): void => {
    for (const listener of listeners) listener({ type: 'changed', podUid });
  };
  const note = (what: TraceEntry['what'], run: Run, exitCode?: number): void => {
    const { podUid, name, attempt, sandboxId } = run;
    const code = exitCode === undefined ? {} : { exitCode };
    trace.push({ at: timers.now(), what, podUid, name, attempt, sandboxId, ...code });
  };
  const onExit = (id: string, done: () => void): void => void exits.set(id, [...(exits.get(id) ?? []), done]);
  const wait = (millis: Millis): Promise<void> =>
    new Promise((resolve) => void timers.at(timers.now() + millis, resolve));
  /** One call: its latency, its fault, its effect. */
  const call = async <T>(name: string, signal: AbortSignal, effect: () => T | Promise<T>): Promise<T> => {
    signal.throwIfAborted();
    await wait(options.latencyMillis?.(name) ?? 1);
    options.fault?.(name);
    const result = await effect();
    signal.throwIfAborted();
    return result;
  };

  const end = (run: Run, exitCode: number): void => {
    if (run.state !== 'running' && !run.abandoned) return;
    run.ending?.cancel();
    run.state = 'exited';
    run.exitCode = exitCode;
    run.reason = exitCode === 0 ? 'Completed' : 'Error';
    run.finishedAt = timers.now();
    if (run.startedAt !== undefined) note('exit', run, exitCode);
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
    if (stopMillis === undefined) return;
    timers.at(timers.now() + stopMillis, () => end(run, stopExitCode));
  };
  const removeRun = (run: Run): void => {
    end(run, SIGKILL_EXIT);
    containers.delete(run.id);
    note('remove', run);
  };
  const endSandbox = (sandbox: SandboxObservation): void => {
    for (const run of containers.values()) if (run.sandboxId === sandbox.id) end(run, SIGKILL_EXIT);
    sandbox.ready = false;
    changed(sandbox.podUid);
  };

  const plain = ({
    pod: _pod,
    ending: _ending,
    signalled: _signalled,
    abandoned: _abandoned,
    ...seen
  }: Run): ContainerObservation => seen;
  const observe = (podUid: string): PodObservation => ({
    sandboxes: [...sandboxes.values()].filter((each) => each.podUid === podUid).map((each) => ({ ...each })),
    containers: [...containers.values()].filter((each) => each.podUid === podUid).map(plain),
  });
  const imageInfo = (reference: string): ImageInfo => ({
    id: `sha256:${reference}`,
    tags: [reference],
    digests: [],
    sizeBytes: 1000,
  });

  const runSandbox = (config: SandboxConfig): string => {
    const { uid, namespace, name } = config.pod;
    for (const each of sandboxes.values()) if (each.podUid === uid && each.attempt === config.attempt) return each.id;
    const id = `sandbox-${++serial}`;
    const ips = [`10.0.${serial >> 8}.${serial & 255}`];
    sandboxes.set(id, {
      id,
      podUid: uid,
      namespace,
      name,
      attempt: config.attempt,
      ready: true,
      createdAt: timers.now(),
      ips,
    });
    trace.push({ at: timers.now(), what: 'sandbox', podUid: uid, name: '', attempt: config.attempt, sandboxId: id });
    return id;
  };
  const createContainer = (sandboxId: string, config: ContainerConfig): string => {
    for (const each of containers.values())
      if (each.podUid === config.pod.uid && each.name === config.name && each.attempt === config.attempt)
        return each.id;
    if (sandboxes.get(sandboxId)?.ready !== true) throw new Error(`sandbox ${sandboxId} is not ready`);
    const id = `container-${++serial}`;
    containers.set(id, {
      id,
      sandboxId,
      pod: config.pod,
      podUid: config.pod.uid,
      name: config.name,
      kind: config.kind,
      attempt: config.attempt,
      state: 'created',
      createdAt: timers.now(),
      image: config.imageName,
      imageId: config.imageId,
      annotations: config.annotations,
    });
    return id;
  };
  const stopContainer = async (id: string, graceSeconds: number, signal: AbortSignal): Promise<void> => {
    const run = containers.get(id);
    if (signal.aborted || run === undefined || run.state !== 'running') return;
    if (graceSeconds <= 0) return end(run, SIGKILL_EXIT);
    signalStop(run);
    await new Promise<void>((resolve) => {
      const kill = timers.at(timers.now() + graceSeconds * 1000, () => end(run, SIGKILL_EXIT));
      const done = (): void => {
        kill.cancel();
        resolve();
      };
      signal.addEventListener('abort', done, { once: true });
      onExit(id, done);
    });
  };

  return {
    trace,
    version: async () => ({ name: 'simulated', version: '1', apiVersion: 'v1' }),
    notReady: async () => [],
    runSandbox: (config, signal) => call('runSandbox', signal, () => runSandbox(config)),
    stopSandbox: (id, signal) =>
      call('stopSandbox', signal, () => {
        const sandbox = sandboxes.get(id);
        if (sandbox !== undefined) endSandbox(sandbox);
      }),
    removeSandbox: (id, signal) =>
      call('removeSandbox', signal, () => {
        const sandbox = sandboxes.get(id);
        if (sandbox === undefined) return;
        endSandbox(sandbox);
        for (const run of [...containers.values()]) if (run.sandboxId === id) removeRun(run);
        sandboxes.delete(id);
        changed(sandbox.podUid);
      }),
    createContainer: (sandboxId, _sandbox, config, signal) =>
      call('createContainer', signal, () => createContainer(sandboxId, config)),
    startContainer: (id, signal) =>
      call('startContainer', signal, () => {
        const failsAfterMillis = abandonMillis;
        abandonMillis = undefined;
        const run = containers.get(id);
        if (run === undefined) throw new Error(`container ${id} not found`);
        if (sandboxes.get(run.sandboxId)?.ready !== true) throw new Error(`sandbox ${run.sandboxId} is not ready`);
        if (run.abandoned && run.state === 'created') throw new Error(`container ${id} is already in starting state`);
        if (failsAfterMillis !== undefined && run.state === 'created') {
          run.abandoned = true;
          timers.at(timers.now() + failsAfterMillis, () => end(run, START_ERROR_EXIT));
        } else if (run.state === 'created') begin(run);
      }),
    stopContainer: (id, graceSeconds, signal) =>
      call('stopContainer', signal, () => stopContainer(id, graceSeconds, signal)),
    removeContainer: (id, signal) =>
      call('removeContainer', signal, () => {
        const run = containers.get(id);
        if (run !== undefined) removeRun(run);
      }),
    reopenContainerLog: async () => undefined,
    execSync: (id, command, timeoutMillis, signal) =>
      call('execSync', signal, () => {
        const run = containers.get(id);
        if (run?.state !== 'running') throw new Error(`container ${id} is not running`);
        const outcome = options.exec?.(run, command) ?? {};
        return execInTime(timers, outcome, { command, timeoutMillis, onExit: (done) => onExit(id, done) }, signal);
      }),
    observeAll: (signal) =>
      call('observeAll', signal, () => {
        const uids = new Set([...sandboxes.values(), ...containers.values()].map(({ podUid }) => podUid));
        return new Map([...uids].map((uid) => [uid, observe(uid)]));
      }),
    observe: (podUid, signal) => call('observe', signal, () => observe(podUid)),
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
      call('imageStatus', signal, () =>
        [...images].map(imageInfo).find(({ id, tags }) => id === reference || tags.includes(reference)),
      ),
    pullImage: (reference, _sandbox, signal) =>
      call('pullImage', signal, () => {
        if (options.pullable?.(reference) === false) throw new Error(`${reference}: not found`);
        images.add(reference);
        return imageInfo(reference).id;
      }),
    listImages: async () => [...images].map(imageInfo),
    removeImage: async (id) => {
      for (const reference of images) if (imageInfo(reference).id === id) images.delete(reference);
    },
    close: async () => undefined,
    loseSandbox: (podUid) => {
      for (const sandbox of sandboxes.values())
        if (sandbox.podUid === podUid && sandbox.ready) {
          sandbox.ready = false;
          changed(podUid);
        }
    },
    loseRecords: (podUid, names) => {
      for (const run of containers.values())
        if (run.podUid === podUid && names.includes(run.name) && run.state === 'exited') removeRun(run);
    },
    kill: (id, exitCode) => {
      const run = containers.get(id);
      if (run !== undefined) end(run, exitCode);
    },
    abandonNextStart: (millis) => {
      abandonMillis = millis;
    },
    addImage: (reference) => void images.add(reference),
  };
}
