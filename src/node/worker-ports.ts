/** What the worker of a Pod is given to observe with and to act with. */
import type { Pod, PodStatus } from '../api/generated/types.ts';
import type { ImageState, PullProgress } from '../lifecycle/pulls.ts';
import type { Stops } from '../lifecycle/stops.ts';
import type {
  Action,
  ContainerState,
  HookResult,
  NodeFacts,
  Observed,
  PodEvent,
  ProbeResult,
  SandboxState,
  Transition,
} from '../lifecycle/types.ts';
import type { Log, Timers } from '../platform/platform.ts';

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

export interface WorkerPorts {
  timers: Timers;
  log: Log;
  node: NodeFacts;
  observe(pod: Pod, signal: AbortSignal): Promise<RuntimeView>;
  /** `progress`: is told how a pull goes that takes its time. */
  execute(action: Action, pod: Pod, signal: AbortSignal, progress: (progress: PullProgress) => void): Promise<Outcome>;
  writeStatus(pod: Pod, status: PodStatus): Promise<void>;
  /** Writes them down for the next worker of the Pod, at once. */
  keepStops(pod: Pod, stops: Stops): void;
  event(pod: Pod, event: PodEvent): void;
  /** Keeps steps of the Pod's life; may be told of one again by another worker of the Pod. */
  record(pod: Pod, transitions: Transition[]): void;
  /** Resolves when what was told until now is kept, or cannot be; undefined: it is. */
  recorded(): Promise<void> | undefined;
  /** Nothing of the Pod is left on the node. */
  done(): void;
}
