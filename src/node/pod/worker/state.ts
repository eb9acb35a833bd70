/** The state from which the input of each decision is built. This file performs no I/O. */
import type { Pod } from '../../../api/generated/types.ts';
import type { Action, Input, Journal, NodeEnd, NodeFacts, Observed, Outage } from '../../../lifecycle/types.ts';
import type { Millis } from '../../../machinery/time.ts';
import { createWorkerFailures, type WorkerFailures } from './failures.ts';
import { createWorkerImages, type WorkerImages } from './images.ts';
import { createWorkerOutages, type WorkerOutages } from './outages.ts';
import type { Outcome, RuntimeView } from './ports.ts';
import { createWorkerResults, type WorkerResults } from './results.ts';

export interface WorkerStart {
  pod: Pod;
  removed: boolean;
  nodeEnd?: NodeEnd | undefined;
  journal?: Journal;
  /** The time before this agent in which no agent ran; undefined: it is not known, or there was none. */
  outage?: Outage | undefined;
}

export interface WorkerState extends Pick<WorkerStart, 'pod' | 'removed' | 'nodeEnd'> {
  runtime: RuntimeView;
  volumes: Observed['volumes'];
  downward?: string;
  /** The IDs of the sandboxes that the worker stopped. The runtime does not distinguish them from sandboxes that crashed. */
  stoppedSandboxes: Set<string>;
  images: WorkerImages;
  failures: WorkerFailures;
  results: WorkerResults;
  outages: WorkerOutages;
}

export const initialState = ({ pod, removed, nodeEnd, outage }: WorkerStart): WorkerState => ({
  pod,
  removed,
  nodeEnd,
  runtime: { sandboxes: [], containers: [] },
  volumes: 'pending',
  stoppedSandboxes: new Set(),
  images: createWorkerImages(),
  failures: createWorkerFailures(),
  results: createWorkerResults(),
  outages: createWorkerOutages(outage),
});

export function inputOf(
  state: WorkerState,
  { node, underWay, now }: { node: NodeFacts; underWay: Action[]; now: Millis },
): Omit<Input, 'memory'> {
  const { pod, removed, nodeEnd, runtime, volumes, downward, stoppedSandboxes } = state;
  return {
    pod,
    removed,
    node,
    nodeEnd,
    observed: {
      ...runtime,
      sandboxes: runtime.sandboxes.map((sandbox) => ({ ...sandbox, stopped: stoppedSandboxes.has(sandbox.id) })),
      ...state.images.observed(),
      volumes,
      failures: state.failures.observed(),
      ...state.results.observed(),
      underWay,
      outages: state.outages.observed(),
      downward,
    },
    now,
  };
}

export function observed(state: WorkerState, view: RuntimeView): void {
  state.runtime = view;
  state.results.keep(new Set(view.containers.map(({ id }) => id)));
}

export function absorb(state: WorkerState, action: Action, outcome: Outcome): void {
  if (outcome.image !== undefined) {
    const pull = state.images.found(outcome.image);
    if (pull !== undefined) state.failures.succeeded(pull);
  }
  if (outcome.volumes !== undefined) state.volumes = outcome.volumes;
  if (outcome.downward !== undefined) state.downward = outcome.downward;
  if (outcome.removed) state.removed = true;
  if (action.kind === 'stopSandbox') state.stoppedSandboxes.add(action.id);
  state.results.absorb(action, outcome);
}
