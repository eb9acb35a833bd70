/**
 * The worker of one Pod: observes, decides, acts, again. One at a time, whatever happens meanwhile.
 *
 * Boundary: every rule is decide()'s; this file only carries what is observed in and what is asked for out.
 * Invariants:
 *  1. The key of an action on the runtime stays in flight until an observation made after its end has come in, so that a decision never sees
 *     a world in which an action is neither under way nor done.
 *  2. Statuses are written one after the other, the newest wins; the last one is written before the object is deleted.
 *  3. Nothing is polled: a runtime event, a change of the object, an action's end or one timer wakes the worker.
 */
import type { Pod, PodStatus } from '../api/generated/types.ts';
import { decide } from '../lifecycle/decide.ts';
import { rebuildMemory } from '../lifecycle/memory.ts';
import {
  type Action,
  actionKey,
  type ContainerState,
  type Failure,
  type HookResult,
  type ImageState,
  type Input,
  type Memory,
  type NodeFacts,
  type Observed,
  type PodEvent,
  type ProbeResult,
  runKey,
  type SandboxState,
} from '../lifecycle/types.ts';
import type { Log, Timer, Timers } from '../platform/platform.ts';
import { createStatusWriter } from './status-writer.ts';

/** What the runtime has of the Pod. */
export interface RuntimeView {
  sandboxes: Omit<SandboxState, 'stopped'>[];
  containers: ContainerState[];
}

/** What an action left behind beside what the runtime shows. */
export interface Outcome {
  image?: { container: string; state: ImageState };
  volumes?: Observed['volumes'];
  probe?: Omit<ProbeResult, 'serial'>;
  hook?: HookResult;
  /** The object is known to be gone from the API. */
  removed?: true;
}

/** A failure with the reason that the waiting container shows. */
export class ActionError extends Error {
  override readonly name = 'ActionError';
  readonly reason: string;
  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}

export interface WorkerPorts {
  timers: Timers;
  log: Log;
  node: NodeFacts;
  observe(pod: Pod, signal: AbortSignal): Promise<RuntimeView>;
  execute(action: Action, pod: Pod, signal: AbortSignal): Promise<Outcome>;
  writeStatus(pod: Pod, status: PodStatus): Promise<void>;
  event(pod: Pod, event: PodEvent): void;
  /** Nothing of the Pod is left on the node. */
  done(): void;
}

export interface PodWorker {
  /** The object changed; `removed`: it is gone from the API. */
  update(pod: Pod, removed: boolean): void;
  /** The runtime may have something new of this Pod. */
  changed(): void;
  /** The object as it is known now. */
  pod(): Pod;
  /** Ends the worker and what it has under way; containers go on. */
  stop(): void;
}

/** After these the runtime shows something new; the others bring all that they have to say. */
const CHANGES_RUNTIME: ReadonlySet<Action['kind']> = new Set<Action['kind']>([
  'createSandbox',
  'startContainer',
  'stopContainer',
  'removeContainer',
  'stopSandbox',
  'removeSandbox',
]);

/** What is known of runs that are still there; keys are runKey's. */
const ofRuns = <T>(record: Record<string, T>, ids: ReadonlySet<string>): Record<string, T> =>
  Object.fromEntries(Object.entries(record).filter(([key]) => ids.has(key.split('/')[0] ?? '')));

export function startWorker(first: { pod: Pod; removed: boolean }, ports: WorkerPorts): PodWorker {
  let { pod, removed } = first;
  let runtime: RuntimeView = { sandboxes: [], containers: [] };
  let memory: Memory | undefined;
  let volumes: Observed['volumes'] = 'pending';
  const images: Record<string, ImageState> = {};
  const failures: Record<string, Failure> = {};
  let probes: Record<string, ProbeResult> = {};
  let hooks: Record<string, HookResult> = {};
  /** The runtime does not tell a sandbox that was stopped from one that broke down. */
  const stoppedSandboxes = new Set<string>();
  const inFlight = new Map<string, AbortController>();
  /** Keys whose actions have ended and wait for the observation that shows it. */
  let ended: string[] = [];
  // A Pod that no agent has spoken of has nothing in the runtime; should one have died before it spoke, every call is
  // idempotent by name.
  let mustObserve = first.removed || pod.status?.startTime !== undefined;
  let running = false;
  let timer: Timer | undefined;
  const life = new AbortController();
  const statusWriter = createStatusWriter(ports, life.signal);

  const input = (): Omit<Input, 'memory'> => ({
    pod,
    removed,
    node: ports.node,
    observed: {
      ...runtime,
      sandboxes: runtime.sandboxes.map((sandbox) => ({ ...sandbox, stopped: stoppedSandboxes.has(sandbox.id) })),
      images,
      volumes,
      failures,
      probes,
      hooks,
      inFlight: new Set(inFlight.keys()),
    },
    now: ports.timers.now(),
  });

  const wake = (): void => {
    if (!running && !life.signal.aborted) void run();
  };

  /** Observes as long as there is something to observe, and decides after each observation. */
  const run = async (): Promise<void> => {
    running = true;
    try {
      do {
        if (mustObserve) await observe();
        if (!life.signal.aborted) step();
      } while (mustObserve && !life.signal.aborted);
    } catch (error) {
      if (!life.signal.aborted) {
        ports.log.error('pod worker failed', { pod: pod.metadata.name, error: String(error) });
        retryLater();
      }
    } finally {
      running = false;
    }
  };

  /** What ends or changes while this runs is for the next round. */
  const observe = async (): Promise<void> => {
    mustObserve = false;
    const seen = ended;
    ended = [];
    try {
      runtime = await ports.observe(pod, life.signal);
      const ids = new Set(runtime.containers.map(({ id }) => id));
      probes = ofRuns(probes, ids);
      hooks = ofRuns(hooks, ids);
      for (const key of seen) inFlight.delete(key);
    } catch (error) {
      mustObserve = true;
      ended = [...seen, ...ended];
      throw error;
    }
  };

  const step = (): void => {
    if (memory === undefined) {
      const recovered = rebuildMemory(input());
      hooks = recovered.hooks;
      memory = recovered.memory;
    }
    const decision = decide({ ...input(), memory });
    memory = decision.memory;
    timer?.cancel();
    timer = decision.wakeAt === undefined ? undefined : ports.timers.at(decision.wakeAt, wake);
    for (const event of decision.events) ports.event(pod, event);
    for (const action of decision.actions) perform(action);
    if (decision.status !== undefined) statusWriter.write(pod, decision.status);
    if (decision.done) {
      stop();
      ports.done();
    }
  };

  const perform = (action: Action): void => {
    if (action.kind === 'cancel') {
      inFlight.get(action.key)?.abort();
      return;
    }
    const key = actionKey(action);
    const abort = new AbortController();
    inFlight.set(key, abort);
    const { signal } = abort;
    const result =
      action.kind === 'finalizeDeletion'
        ? statusWriter.flushed().then(() => ports.execute(action, pod, signal))
        : ports.execute(action, pod, signal);
    result
      .then(
        (outcome) => {
          delete failures[key];
          absorb(action, outcome);
          // Whether the object goes or its finalizers keep it, its change tells: until then there is nothing more to say.
          return action.kind === 'finalizeDeletion' && !removed;
        },
        (error) => {
          if (!abort.signal.aborted && !life.signal.aborted) failures[key] = failureOf(error, failures[key]);
          return false;
        },
      )
      .then((staysInFlight) => {
        if (staysInFlight) return;
        if (CHANGES_RUNTIME.has(action.kind)) {
          ended.push(key);
          mustObserve = true;
        } else inFlight.delete(key);
        wake();
      });
  };

  const absorb = (action: Action, outcome: Outcome): void => {
    if (outcome.image !== undefined) images[outcome.image.container] = outcome.image.state;
    if (outcome.volumes !== undefined) volumes = outcome.volumes;
    if (outcome.removed) removed = true;
    if (action.kind === 'stopSandbox') stoppedSandboxes.add(action.id);
    if (action.kind === 'runProbe' && outcome.probe !== undefined) {
      const probe = runKey(action.id, action.probe);
      probes[probe] = { ...outcome.probe, serial: (probes[probe]?.serial ?? 0) + 1 };
    }
    if (action.kind === 'runHook' && outcome.hook !== undefined) hooks[runKey(action.id, action.hook)] = outcome.hook;
  };

  const failureOf = (error: unknown, before: Failure | undefined): Failure => {
    const message = error instanceof Error ? error.message : String(error);
    ports.log.warn('action failed', { pod: pod.metadata.name, message });
    return {
      at: ports.timers.now(),
      count: (before?.count ?? 0) + 1,
      reason: error instanceof Error && 'reason' in error ? String(error.reason) : 'Error',
      message,
    };
  };

  /** The runtime did not answer: its events stream brings a resync when it is back; until then, once a second. */
  const retryLater = (): void => {
    timer?.cancel();
    timer = ports.timers.at(ports.timers.now() + 1000, wake);
  };

  const stop = (): void => {
    timer?.cancel();
    life.abort();
    for (const abort of inFlight.values()) abort.abort();
  };

  wake();
  return {
    update(next, isRemoved) {
      pod = next;
      removed = removed || isRemoved;
      inFlight.delete('finalizeDeletion');
      wake();
    },
    changed() {
      mustObserve = true;
      wake();
    },
    pod: () => pod,
    stop,
  };
}
