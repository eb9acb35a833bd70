/**
 * The worker of one Pod: it observes, decides and acts in a loop, one observation and one decision at a time.
 *
 * Boundary: decide() contains all rules; this file only passes observations in and carries actions out.
 * Invariants:
 *  1. The key of an action on the runtime stays in flight until an observation shows its effect or one that started after its end
 *     succeeds, so a decision never sees an action that is neither under way nor done. An action that succeeded without effect failed.
 *  2. Statuses are written one at a time, and the newest wins; the last one is written before the object is deleted.
 *     A run is removed only after its end is recorded.
 *  3. There is no polling: a runtime event, a change of the object, the end of an action or a timer wakes the worker.
 *  4. While the outcome of a call is unknown because the runtime did not answer, nothing is decided. The time until the next
 *     successful observation is an outage.
 */
import type { Pod } from '../../api/generated/types.ts';
import { decide } from '../../lifecycle/decide.ts';
import { rebuildMemory } from '../../lifecycle/memory.ts';
import { nodeEndAfter } from '../../lifecycle/termination.ts';
import type { Action, Input, Journal, Memory, NodeEnd, Observed, Outage } from '../../lifecycle/types.ts';
import { actionKey } from '../../lifecycle/types.ts';
import type { Timer } from '../../platform/platform.ts';
import { OutcomeUnknownError } from '../../runtime/runtime.ts';
import { createStatusWriter } from './status-writer.ts';
import { CHANGES_RUNTIME, FORGETS, LAST_STEPS, missingEffect, shows, unansweredSince } from './worker-effects.ts';
import { createWorkerFailures } from './worker-failures.ts';
import { createWorkerImages, mountsImage } from './worker-images.ts';
import { createWorkerOutages } from './worker-outages.ts';
import type { Outcome, PodWorker, RuntimeView, WorkerPorts } from './worker-ports.ts';
import { createWorkerResults } from './worker-results.ts';
import { inTurns } from './worker-turns.ts';

export type { PodWorker } from './worker-ports.ts';

export function startWorker(
  first: {
    pod: Pod;
    removed: boolean;
    nodeEnd?: NodeEnd | undefined;
    /** The journal that the previous worker of the Pod wrote. */
    journal?: Journal;
    /** The time without an agent that ends now. */
    outage?: Outage | undefined;
  },
  ports: WorkerPorts,
): PodWorker {
  let { pod, removed } = first;
  let { nodeEnd } = first;
  let runtime: RuntimeView = { sandboxes: [], containers: [] };
  let memory: Memory | undefined;
  let volumes: Observed['volumes'] = 'pending';
  let downward: string | undefined;
  const outages = createWorkerOutages(first.outage);
  const images = createWorkerImages();
  const failures = createWorkerFailures();
  const results = createWorkerResults();
  /** Sandboxes that the worker stopped. The runtime does not distinguish them from sandboxes that crashed. */
  const stoppedSandboxes = new Set<string>();
  const inFlight = new Map<string, { action: Action; abort: AbortController }>();
  /** The API accepted the deletion. The next change of the object shows its result. */
  let deletionAnswered = false;
  /** Actions that have ended and wait for an observation of their effect. */
  let ended: { action: Action; key: string; succeeded: boolean }[] = [];
  // A Pod whose status no agent has written needs no observation first: it has nothing in the runtime, or an agent died before it
  // wrote the status, in which case every call is idempotent by name. A Pod that is terminated must be observed completely.
  const traces = [nodeEnd, pod.status?.startTime, pod.metadata.deletionTimestamp];
  let mustObserve = removed || traces.some((each) => each !== undefined);
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
      failures: failures.observed(),
      ...results.observed(),
      underWay: [...inFlight.values()].map(({ action }) => action),
      outages: outages.observed(),
      ...(downward === undefined ? {} : { downward }),
    },
    now: ports.timers.now(),
  });

  /** A wake-up during an observation does not wait for its result: the decision uses the previous observation. */
  const wakeNow = (): void => {
    if (stepping || life.signal.aborted) return;
    if (!running) void run();
    else if (memory !== undefined) step();
  };
  const wake = inTurns(() => pod, wakeNow);

  /** Observes until no observation is pending, and decides after each one. */
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
    if (outages.isUnknown()) return;
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

  /** Actions that end and changes that arrive during the observation are left for the next one. */
  const observe = async (): Promise<void> => {
    mustObserve = false;
    const seen = ended;
    ended = [];
    const began = ports.timers.now();
    const answered = outages.observing();
    try {
      runtime = await ports.observe(pod, life.signal);
    } catch (error) {
      mustObserve = true;
      ended = [...seen, ...ended];
      if (error instanceof OutcomeUnknownError) outages.unanswered(began);
      throw error;
    }
    results.keep(new Set(runtime.containers.map(({ id }) => id)));
    for (const each of seen) settle(each);
    ended = ended.filter((each) => !shows(runtime, each.action) || settle(each));
    answered(ports.timers.now());
  };

  /** Processes the observed result of an action that has ended. Returns false, for use in a filter. */
  const settle = ({ action, key, succeeded }: (typeof ended)[number]): false => {
    inFlight.delete(key);
    const missing = succeeded ? missingEffect(runtime, action) : undefined;
    if (missing !== undefined) {
      if (action.kind === 'stopSandbox') stoppedSandboxes.delete(action.id);
      noteFailure(action, new Error(`${action.kind} succeeded and had no effect: ${missing}`));
    } else if (succeeded) failures.succeeded(key);
    return false;
  };

  const noteFailure = (action: Action, error: unknown): void => {
    const { message } = failures.failed(action, error, ports.timers.now());
    ports.log.warn('action failed', { pod: pod.metadata.name, message });
  };

  const decideAndAct = (): void => {
    if (memory === undefined) {
      const recovered = rebuildMemory(input(), first.journal ?? { stops: {} });
      results.recovered(recovered.hooks);
      memory = recovered.memory;
    }
    const decision = decide({ ...input(), memory });
    memory = decision.memory;
    outages.counted();
    timer?.cancel();
    timer = decision.wakeAt === undefined ? undefined : ports.timers.at(decision.wakeAt, wake);
    if (decision.journal !== undefined) ports.keep(pod, decision.journal);
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

  /** `recorded`: resolves when the record contains the evidence that the action destroys. */
  const perform = (action: Action, recorded: Promise<void> | undefined): void => {
    if (action.kind === 'cancel') {
      inFlight.get(action.key)?.abort.abort();
      return;
    }
    const key = actionKey(action);
    const abort = new AbortController();
    inFlight.set(key, { action, abort });
    const { signal } = abort;
    let began = ports.timers.now();
    const execute = (): Promise<Outcome> => {
      began = ports.timers.now();
      return ports.execute(action, pod, signal, (progress) => {
        images.progress(key, progress);
        wake();
      });
    };
    const isLast = action.kind === 'finalizeDeletion';
    const written = isLast ? Promise.all([statusWriter.flushed(), recorded]) : FORGETS.has(action.kind) && recorded;
    const result = written ? written.then(execute) : execute();
    const end = (outcome: 'succeeded' | 'failed' | 'unknown'): void => {
      images.ended(action, key);
      const each = { action, key, succeeded: outcome === 'succeeded' };
      const isSeen = !CHANGES_RUNTIME.has(action.kind) || shows(runtime, action);
      if (outcome !== 'unknown' && isSeen) settle(each);
      else ended.push(each);
      wake();
    };
    result.then(
      (outcome) => {
        absorb(action, outcome);
        // The next change of the object shows whether it was deleted or its finalizers keep it; the action is in flight until then.
        deletionAnswered = isLast && !removed;
        if (deletionAnswered) failures.succeeded(key);
        // A start whose image no longer exists has no effect, which its outcome reports.
        else end(action.kind === 'startContainer' && outcome.image !== undefined ? 'failed' : 'succeeded');
      },
      (error) => {
        if (abort.signal.aborted || life.signal.aborted) return end('failed');
        if (error instanceof OutcomeUnknownError) {
          const since = unansweredSince(action, began, ports.timers.now());
          if (since !== undefined) outages.unanswered(since);
          mustObserve = true;
          failures.unanswered(action, error, ports.timers.now());
          ports.log.warn('outcome unknown', { pod: pod.metadata.name, action: action.kind, message: error.message });
          return end('unknown');
        }
        noteFailure(action, error);
        end('failed');
      },
    );
  };

  const absorb = (action: Action, outcome: Outcome): void => {
    if (outcome.image !== undefined) {
      const pull = images.found(outcome.image);
      if (pull !== undefined) failures.succeeded(pull);
    }
    if (outcome.volumes !== undefined) volumes = outcome.volumes;
    if (outcome.downward !== undefined) downward = outcome.downward;
    if (outcome.removed) removed = true;
    if (action.kind === 'stopSandbox') stoppedSandboxes.add(action.id);
    results.absorb(action, outcome);
  };

  /** The runtime did not answer: retries once a second until its event stream triggers a resync. */
  const retryLater = (): void => {
    timer?.cancel();
    timer = ports.timers.at(ports.timers.now() + 1000, wake);
  };

  const stop = (): void => {
    timer?.cancel();
    life.abort();
    for (const { abort } of inFlight.values()) abort.abort();
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
      if (images.appeared(pod, name, failures.observed())) wake();
      if (mountsImage(pod, name)) this.retry('mountVolumes');
    },
    pod: () => pod,
    stop,
  };
}
