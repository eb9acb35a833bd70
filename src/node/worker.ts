/**
 * The worker of one Pod: observes, decides, acts, again. One at a time, whatever happens meanwhile.
 *
 * Boundary: every rule is decide()'s; this file only carries what is observed in and what is asked for out.
 * Invariants:
 *  1. The key of an action on the runtime stays in flight until an observation shows its effect, or was made after its end: a decision
 *     never sees a world in which an action is neither under way nor done.
 *  2. Statuses are written one after the other, the newest wins; the last one is written before the object is deleted.
 *     What shows how a run ended goes once the record tells of it.
 *  3. Nothing is polled: a runtime event, a change of the object, an action's end or one timer wakes the worker.
 */
import type { Pod } from '../api/generated/types.ts';
import { decide } from '../lifecycle/decide.ts';
import { rebuildMemory } from '../lifecycle/memory.ts';
import type { Stops } from '../lifecycle/stops.ts';
import { nodeEndAfter } from '../lifecycle/termination.ts';
import { type Action, actionKey, type Input, type Memory, type NodeEnd, type Observed } from '../lifecycle/types.ts';
import type { Timer } from '../platform/platform.ts';
import { createStatusWriter } from './status-writer.ts';
import { CHANGES_RUNTIME, FORGETS, LAST_STEPS, shows } from './worker-effects.ts';
import { createWorkerFailures } from './worker-failures.ts';
import { createWorkerImages, showsImage } from './worker-images.ts';
import type { Outcome, RuntimeView, WorkerPorts } from './worker-ports.ts';
import { createWorkerResults } from './worker-results.ts';

export interface PodWorker {
  /** The object changed; `removed`: it is gone from the API. */
  update(pod: Pod, removed: boolean): void;
  /** The node ends the Pod; the shorter grace period counts, and the first reason. */
  end(by: Omit<NodeEnd, 'at'>): void;
  /** The runtime may have something new of this Pod. */
  changed(): void;
  /** What the action failed for has changed: it is tried again now. `key` as actionKey() makes it. */
  retry(key: string): void;
  /** The runtime has an image of that name (storedName) now; undefined: it may have any. */
  imageAppeared(name: string | undefined): void;
  /** The object as it is known now. */
  pod(): Pod;
  /** Ends the worker and what it has under way; containers go on. */
  stop(): void;
}

export function startWorker(
  first: {
    pod: Pod;
    removed: boolean;
    nodeEnd?: NodeEnd | undefined;
    /** That the worker before has kept. */
    stops?: Stops;
  },
  ports: WorkerPorts,
): PodWorker {
  let { pod, removed } = first;
  let { nodeEnd } = first;
  let runtime: RuntimeView = { sandboxes: [], containers: [] };
  let memory: Memory | undefined;
  let volumes: Observed['volumes'] = 'pending';
  const images = createWorkerImages();
  const failures = createWorkerFailures();
  const results = createWorkerResults();
  /** The runtime does not tell a sandbox that was stopped from one that broke down. */
  const stoppedSandboxes = new Set<string>();
  const inFlight = new Map<string, AbortController>();
  /** The object's next change tells what came of its deletion. */
  let deletionAnswered = false;
  /** Actions that have ended and wait for the observation that shows it. */
  let ended: { action: Action; key: string }[] = [];
  // A Pod that no agent has spoken of has nothing in the runtime; should one have died before it spoke, every call is
  // idempotent by name. Of one that goes nothing may be left unseen.
  let mustObserve = removed || pod.status?.startTime !== undefined || pod.metadata.deletionTimestamp !== undefined;
  let running = false;
  let stepping = false;
  let timer: Timer | undefined;
  const life = new AbortController();
  const statusWriter = createStatusWriter(ports, life.signal);

  const input = (): Omit<Input, 'memory'> => ({
    pod,
    removed,
    node: ports.node,
    ...(nodeEnd === undefined ? {} : { nodeEnd }),
    observed: {
      ...runtime,
      sandboxes: runtime.sandboxes.map((sandbox) => ({ ...sandbox, stopped: stoppedSandboxes.has(sandbox.id) })),
      ...images.observed(),
      volumes,
      failures: failures.observed,
      ...results.observed(),
      inFlight: new Set(inFlight.keys()),
    },
    now: ports.timers.now(),
  });

  /** What comes in while the runtime is asked does not wait for its answer: what it showed last holds until then. */
  const wake = (): void => {
    if (stepping || life.signal.aborted) return;
    if (!running) void run();
    else if (memory !== undefined) step();
  };

  /** Observes as long as there is something to observe, and decides after each observation. */
  const run = async (): Promise<void> => {
    running = true;
    try {
      do {
        if (mustObserve || ended.length > 0) await observe();
        if (!life.signal.aborted) step();
      } while ((mustObserve || ended.length > 0) && !life.signal.aborted);
    } catch (error) {
      failed(error);
    } finally {
      running = false;
    }
  };

  const step = (): void => {
    stepping = true;
    try {
      decideAndAct();
    } catch (error) {
      failed(error);
    } finally {
      stepping = false;
    }
  };

  const failed = (error: unknown): void => {
    if (life.signal.aborted) return;
    ports.log.error('pod worker failed', { pod: pod.metadata.name, error: String(error) });
    retryLater();
  };

  /** What ends or changes while this runs is for the next round. */
  const observe = async (): Promise<void> => {
    mustObserve = false;
    const seen = ended;
    ended = [];
    try {
      runtime = await ports.observe(pod, life.signal);
      results.keep(new Set(runtime.containers.map(({ id }) => id)));
      for (const { key } of seen) inFlight.delete(key);
      ended = ended.filter(({ action, key }) => !shows(runtime, action) || !inFlight.delete(key));
    } catch (error) {
      mustObserve = true;
      ended = [...seen, ...ended];
      throw error;
    }
  };

  const decideAndAct = (): void => {
    if (memory === undefined) {
      const recovered = rebuildMemory(input(), first.stops ?? {});
      results.recovered(recovered.hooks);
      memory = recovered.memory;
    }
    const decision = decide({ ...input(), memory });
    memory = decision.memory;
    timer?.cancel();
    timer = decision.wakeAt === undefined ? undefined : ports.timers.at(decision.wakeAt, wake);
    if (decision.stops !== undefined) ports.keepStops(pod, decision.stops);
    for (const event of decision.events) ports.event(pod, event);
    const forgets = decision.actions.some(({ kind }) => FORGETS.has(kind));
    let recorded = forgets ? ports.recorded() : undefined;
    if (decision.transitions.length > 0) ports.record(pod, decision.transitions);
    if (forgets && decision.transitions.some(({ type }) => !LAST_STEPS.has(type))) recorded = ports.recorded();
    for (const action of decision.actions) perform(action, recorded);
    if (decision.status !== undefined) statusWriter.write(pod, decision.status);
    if (decision.done) {
      stop();
      ports.done();
    }
  };

  /** `recorded`: when the record tells what it must before anything that shows it goes. */
  const perform = (action: Action, recorded: Promise<void> | undefined): void => {
    if (action.kind === 'cancel') {
      inFlight.get(action.key)?.abort();
      return;
    }
    const key = actionKey(action);
    const abort = new AbortController();
    inFlight.set(key, abort);
    const { signal } = abort;
    const execute = (): Promise<Outcome> =>
      ports.execute(action, pod, signal, (progress) => {
        images.progress(key, progress);
        wake();
      });
    const isLast = action.kind === 'finalizeDeletion';
    const written = isLast ? Promise.all([statusWriter.flushed(), recorded]) : FORGETS.has(action.kind) && recorded;
    const result = written ? written.then(execute) : execute();
    const end = (staysInFlight: boolean): void => {
      images.ended(action, key);
      if (staysInFlight) return;
      if (CHANGES_RUNTIME.has(action.kind) && !shows(runtime, action)) ended.push({ action, key });
      else inFlight.delete(key);
      wake();
    };
    // That it has ended shows together with what came of it.
    result.then(
      (outcome) => {
        failures.succeeded(key);
        absorb(action, outcome);
        // Whether the object goes or its finalizers keep it, its change tells: until then there is nothing more to say.
        deletionAnswered = isLast && !removed;
        end(deletionAnswered);
      },
      (error) => {
        if (!abort.signal.aborted && !life.signal.aborted) {
          const { message } = failures.failed(key, error, ports.timers.now());
          ports.log.warn('action failed', { pod: pod.metadata.name, message });
        }
        end(false);
      },
    );
  };

  const absorb = (action: Action, outcome: Outcome): void => {
    if (outcome.image !== undefined) images.found(outcome.image, failures.observed);
    if (outcome.volumes !== undefined) volumes = outcome.volumes;
    if (outcome.removed) removed = true;
    if (action.kind === 'stopSandbox') stoppedSandboxes.add(action.id);
    results.absorb(action, outcome);
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
      if (deletionAnswered) inFlight.delete('finalizeDeletion');
      wake();
    },
    end(by) {
      nodeEnd = nodeEndAfter(nodeEnd, by, ports.timers.now());
      wake();
    },
    changed() {
      mustObserve = true;
      wake();
    },
    retry(key) {
      failures.retry(key, inFlight.has(key));
      wake();
    },
    imageAppeared(name) {
      if (images.appeared(pod, name, failures.observed)) wake();
      if (showsImage(pod, name)) this.retry('mountVolumes');
    },
    pod: () => pod,
    stop,
  };
}
