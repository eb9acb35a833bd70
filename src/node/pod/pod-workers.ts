import type { Pod, PodStatus } from '../../api/generated/types.ts';
import type { EventRecorder } from '../../client/events.ts';
import type { NodeEnd, NodeFacts } from '../../lifecycle/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import type { PodRecorder } from '../record/recorder.ts';
import type { OutageClock } from '../status/sign-of-life.ts';
import type { KeptJournal } from './journal-file.ts';
import type { PodSource } from './pod-source.ts';
import type { RuntimeView, WorkerPorts } from './worker/ports.ts';
import { type PodWorker, startWorker } from './worker/worker.ts';

/** Functions of one part of the agent, called at the stages of a Pod's life. The parts are called in the order of `hooks`. */
export interface PodHooks {
  /** `removed`: whether the Pod's object no longer exists. */
  started?(pod: Pod, removed: boolean): void;
  observed?(podUid: string, view: RuntimeView): void;
  /**
   * Called when nothing of the Pod runs and its volumes are unmounted, but its object remains. For a deleted Pod, `ended` is called
   * instead.
   */
  cleared?(pod: Pod): void;
  /** Called when the worker has ended, because nothing of the Pod is left in the runtime. */
  ended?(pod: Pod): void;
  /** Called after `ended` of all parts. Removes files or control groups of the Pod. A failure is logged. */
  release?(pod: Pod): Promise<void>;
  /** Called after `release` of all parts has ended. A Pod with the same UID may start from now on. */
  released?(podUid: string): void;
}

export interface PodWorkersOptions {
  timers: Timers;
  log: Log;
  signal: AbortSignal;
  node: NodeFacts;
  outages: OutageClock;
  journals: KeptJournal;
  recorder: PodRecorder;
  events: EventRecorder;
  sourceOf(pod: Pod): PodSource;
  /** Returns the termination of the Pod that the node began under an earlier agent; undefined if there is none. */
  nodeEnd(pod: Pod): NodeEnd | undefined;
  lookAt(pod: Pod): (pod: Pod, signal: AbortSignal) => Promise<RuntimeView>;
  execute: WorkerPorts['execute'];
  hooks: readonly PodHooks[];
}

/** The returned function starts the worker of a Pod and adds it to `workers`. A worker is removed when nothing of its Pod is left. */
export function createPodWorkers(
  workers: Map<string, PodWorker>,
  options: PodWorkersOptions,
): (pod: Pod, removed: boolean) => void {
  const { timers, log, signal, recorder, events, hooks } = options;

  const execute: WorkerPorts['execute'] = async (action, pod, abort, progress) => {
    const outcome = await options.execute(action, pod, abort, progress);
    // Skip deleted Pods: their `ended` hooks have the same effect.
    if (action.kind === 'unmountVolumes' && pod.metadata.deletionTimestamp === undefined)
      for (const part of hooks) part.cleared?.(pod);
    return outcome;
  };
  const end = (pod: Pod): void => {
    const uid = uidOf(pod);
    workers.delete(uid);
    for (const part of hooks) part.ended?.(pod);
    const releasing = hooks.map(async (part) => part.release?.(pod));
    void Promise.allSettled(releasing).then((results) => {
      for (const result of results)
        if (result.status === 'rejected')
          log.warn('files or groups of a Pod that has ended remain', { podUid: uid, error: String(result.reason) });
      for (const part of hooks) part.released?.(uid);
    });
  };
  const portsOf = (pod: Pod): WorkerPorts => {
    const { uid = '', namespace, name } = pod.metadata;
    const look = options.lookAt(pod);
    return {
      timers,
      log: log.child({ pod: `${namespace}/${name}` }),
      node: options.node,
      async observe(of, abort) {
        const view = await look(of, abort);
        for (const part of hooks) part.observed?.(uid, view);
        return view;
      },
      execute,
      // This function is async, so that an error thrown by sourceOf() becomes a rejection.
      writeStatus: async (of: Pod, status: PodStatus) => options.sourceOf(of).writeStatus(of, status),
      record: (of, transitions) => recorder.record(of, transitions),
      keep: options.journals.keep,
      recorded: () => recorder.written(uid),
      event: (of, { type, reason, message, fieldPath }) => events.event(of, type, reason, message, fieldPath),
      done: () => end(pod),
    };
  };

  return (pod, removed) => {
    const journal = options.journals.read(pod);
    const first = { pod, removed, nodeEnd: options.nodeEnd(pod), journal, ...options.outages.of() };
    const worker = startWorker(first, portsOf(pod));
    workers.set(uidOf(pod), worker);
    for (const part of hooks) part.started?.(pod, removed);
    if (signal.aborted) worker.stop();
  };
}
