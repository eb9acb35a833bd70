/**
 * The worker of one Pod: observes, decides, acts, again. One at a time, whatever happens meanwhile.
 *
 * Boundary: every rule is decide()'s; this file only carries observations in and actions out.
 * Invariants:
 *  1. The key of an action on the runtime stays in flight until an observation shows its effect, or was made after its end: a decision
 *     never sees a world in which an action is neither under way nor done. An action that succeeded without effect has failed.
 *  2. Statuses are written one after the other, the newest wins; the last one is written before the object is deleted.
 *     A run is removed once the record has its end.
 *  3. Nothing is polled: a runtime event, a change of the object, an action's end or one timer wakes the worker.
 *  4. While the outcome of a call is unknown, because the runtime did not answer, nothing is decided. The time until the next
 *     observation is an outage.
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
import { createWorkerImages, showsImage } from './worker-images.ts';
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
    /** That the worker before has kept. */
    journal?: Journal;
    /** The time in which no agent ran, until now. */
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
  /** The runtime does not tell a sandbox that was stopped from one that broke down. */
  const stoppedSandboxes = new Set<string>();
  const inFlight = new Map<string, { action: Action; abort: AbortController }>();
  /** The object's next change tells what came of its deletion. */
  let deletionAnswered = false;
  /** Actions that have ended and wait for the observation that shows it. */
  let ended: { action: Action; key: string; succeeded: boolean }[] = [];
  // A Pod that no agent has spoken of has nothing in the runtime; should one have died before it spoke, every call is
  // idempotent by name. Of one that goes nothing may be left unseen.
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

  /** What comes in while the runtime is asked does not wait for its answer: what it showed last holds until then. */
  const wakeNow = (): void => {
    if (stepping || life.signal.aborted) return;
    if (!running) void run();
    else if (memory !== undefined) step();
  };
  const wake = inTurns(() => pod, wakeNow);

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

  /** What ends or changes while this runs is for the next round. */
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

  /** An observation shows what came of an action that has ended: false, for filters. */
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

  /** `recorded`: resolves when the record has what the action removes. */
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
        // Whether the object goes or its finalizers keep it, its next change shows: until then there is nothing more to say.
        deletionAnswered = isLast && !removed;
        if (deletionAnswered) failures.succeeded(key);
        // An image that is gone leaves a start without effect, and the outcome says so.
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

  /** The runtime did not answer: its events stream brings a resync when it is back; until then, once a second. */
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
      if (showsImage(pod, name)) this.retry('mountVolumes');
    },
    pod: () => pod,
    stop,
  };
}
