/** The worker of a Pod as others see it, and what it is given to observe with and to act with. */

import type { PullProgress } from '../../api/core/v1/pod/status/pull-progress.ts';
import type { Pod, PodStatus } from '../../api/generated/types.ts';
import type {
  Action,
  ContainerState,
  HookResult,
  ImageState,
  Journal,
  NodeEnd,
  NodeFacts,
  Observed,
  PodEvent,
  ProbeResult,
  SandboxState,
  Transition,
} from '../../lifecycle/types.ts';
import type { Log, Timers } from '../../platform/platform.ts';

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
  /** The version that the downward API files show now. */
  downward?: string;
  /** The object is known to be gone from the API. */
  removed?: true;
}

export interface WorkerPorts {
  timers: Timers;
  log: Log;
  node: NodeFacts;
  observe(pod: Pod, signal: AbortSignal): Promise<RuntimeView>;
  /** `progress`: is told how a pull goes that takes its time. */
  execute(action: Action, pod: Pod, signal: AbortSignal, progress: (progress: PullProgress) => void): Promise<Outcome>;
  writeStatus(pod: Pod, status: PodStatus): Promise<void>;
  /** Writes it for the next worker of the Pod, at once. */
  keep(pod: Pod, journal: Journal): void;
  event(pod: Pod, event: PodEvent): void;
  /** Keeps steps of the Pod's life; may be told of one again by another worker of the Pod. */
  record(pod: Pod, transitions: Transition[]): void;
  /** Resolves when what was told until now is kept, or cannot be; undefined: it is. */
  recorded(): Promise<void> | undefined;
  /** Nothing of the Pod is left on the node. */
  done(): void;
}

export interface PodWorker {
  /** The object changed; `removed`: it is gone from the API. */
  update(pod: Pod, removed: boolean): void;
  /** The node ends the Pod; the shorter grace period counts, and the first reason. */
  end(by: Omit<NodeEnd, 'at'>): void;
  /** The runtime may have something new of this Pod. */
  changed(): void;
  /** The cause of the action's failure has changed: it is tried again now. `key` as actionKey() makes it. */
  retry(key: string): void;
  /** The runtime has an image of that name (storedName) now; undefined: it may have any. */
  imageAppeared(name: string | undefined): void;
  /** The object as it is known now. */
  pod(): Pod;
  /** Ends the worker and what it has under way; containers go on. */
  stop(): void;
}
