import type { PullProgress } from '../../../api/core/v1/pod/status/pull-progress.ts';
import type { Pod, PodStatus } from '../../../api/generated/types.ts';
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
} from '../../../lifecycle/types.ts';
import type { Log, Timers } from '../../../platform/platform.ts';

export interface RuntimeView {
  sandboxes: Omit<SandboxState, 'stopped'>[];
  containers: ContainerState[];
}

/** The results of an action that observations of the runtime do not show. */
export interface Outcome {
  image?: { container: string; state: ImageState };
  volumes?: Observed['volumes'];
  probe?: Omit<ProbeResult, 'serial'>;
  hook?: HookResult;
  /** The version of the Pod's fields that the downward API files now contain. */
  downward?: string;
  /** Set if the object no longer exists in the API. */
  removed?: true;
}

export interface WorkerPorts {
  timers: Timers;
  log: Log;
  node: NodeFacts;
  observe(pod: Pod, signal: AbortSignal): Promise<RuntimeView>;
  /** `progress`: called when a pull waits for other pulls, and with the progress of a long pull. */
  execute(action: Action, pod: Pod, signal: AbortSignal, progress: (progress: PullProgress) => void): Promise<Outcome>;
  writeStatus(pod: Pod, status: PodStatus): Promise<void>;
  /** Writes the journal for the next worker of the Pod, synchronously. */
  keep(pod: Pod, journal: Journal): void;
  event(pod: Pod, event: PodEvent): void;
  /** A later worker of the Pod may report the same step again. */
  record(pod: Pod, transitions: Transition[]): void;
  /** Resolves when all steps reported so far are stored, or cannot be stored now. Undefined if there is no need to wait. */
  recorded(): Promise<void> | undefined;
  /** Called when nothing of the Pod is left on the node. */
  done(): void;
}

export interface PodWorker {
  /** `removed`: whether the object no longer exists in the API. */
  update(pod: Pod, removed: boolean): void;
  /** Terminates the Pod for the node. If this is called several times, the shortest grace period and the first reason apply. */
  end(by: Omit<NodeEnd, 'at'>): void;
  /** Called when the state of this Pod in the runtime may have changed. */
  changed(): void;
  /** Called when the cause of the action's failure has changed. Retries the action without back-off. `key`: from actionKey(). */
  retry(key: string): void;
  /** Called when an image has appeared. Retries containers and volumes that need it. `name`: from storedName(); undefined: any image. */
  imageAppeared(name: string | undefined): void;
  pod(): Pod;
  /** Writes a status that waits for further changes. Resolves when no status is left to write, or the worker has stopped. */
  flushed(): Promise<void>;
  /** Starts to write a status that waits, stops the worker, and aborts its actions under way. Containers keep running. */
  stop(): void;
}
