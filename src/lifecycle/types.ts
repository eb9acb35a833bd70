/** What decide() is given and what it answers. See ARCHITECTURE.md, "The core". */
import type { PullProgress } from '../api/core/v1/pod/status/pull-progress.ts';
import type { Termination } from '../api/core/v1/pod/status/termination.ts';
import type { ContainerStatus, Pod, PodStatus } from '../api/generated/types.ts';
import type { Millis } from '../machinery/time.ts';

export type ContainerKind = 'init' | 'app' | 'defer' | 'ephemeral';
export const PROBE_KINDS = ['startup', 'liveness', 'readiness'] as const;
export type ProbeKind = (typeof PROBE_KINDS)[number];
export type HookKind = 'postStart' | 'preStop';

/** image: its reference, for an entry with imageFrom that of the other container. */
type Attempt = { container: string; attempt: number; image: string };
/** targetId: the run whose process namespace an ephemeral container shares. */
type NewRun = { sandboxId: string; imageId: string; backoffSeconds: number; targetId?: string | undefined };

/** The actions that decide() asks for, one call of the executor each. Results come back only as observations. */
export type Action =
  | { kind: 'mountVolumes' }
  | { kind: 'createSandbox'; attempt: number }
  /** Looks for the image in the runtime; mustExist (pull policy Never): fails with ErrImageNeverPull where it is absent. */
  | ({ kind: 'checkImage'; mustExist: boolean } & Attempt)
  | ({ kind: 'pullImage' } & Attempt)
  | ({ kind: 'startContainer'; containerKind: ContainerKind } & Attempt & NewRun) // Creates and starts; safe to repeat.
  | { kind: 'runProbe'; container: string; id: string; probe: ProbeKind }
  | { kind: 'runHook'; container: string; id: string; hook: HookKind }
  | { kind: 'stopContainer'; id: string; deadline: Millis } // Stop signal now, kill at the earliest deadline asked for.
  | { kind: 'removeContainer'; id: string; container: string; attempt: number }
  | { kind: 'stopSandbox'; id: string }
  | { kind: 'removeSandbox'; id: string }
  | { kind: 'writeDownwardFiles'; version: string } // The downward API files of the volumes; they then show that version.
  | { kind: 'unmountVolumes' }
  | { kind: 'removeFiles' } // Unmounts, and removes all that the Pod had on the node.
  | { kind: 'cancel'; key: string } // Gives up an action under way that is no longer wanted (a pull, a hook past its time).
  | { kind: 'finalizeDeletion' }; // Deletes the object from the API with grace 0: the Pod is gone.

export type ActionOf<Kind extends Action['kind']> = Extract<Action, { kind: Kind }>;

/** Two actions with one key are the same try of the same thing. A key is compared, never taken apart. */
export function actionKey(action: Action): string {
  // What is done to a run or a sandbox is identified by its ID, the rest by the attempt of a container.
  const fields = 'id' in action ? ['id', 'probe', 'hook', 'deadline'] : ['container', 'attempt', 'version', 'key'];
  const known = fields.filter((field) => field in action).map((field) => action[field as keyof Action]);
  const image = action.kind === 'checkImage' || action.kind === 'pullImage' ? [action.image] : [];
  return [action.kind, ...known, ...image].join('/');
}

/** The key of a probe or a hook of one run. */
export const runKey = (containerId: string, what: ProbeKind | HookKind): string => `${containerId}/${what}`;

export interface SandboxState {
  id: string;
  attempt: number;
  ready: boolean;
  stopped: boolean; // On request: its address and ports are free.
  createdAt: Millis;
  ips: readonly string[]; // The primary one first.
}

/** One run of a container: an attempt. */
export interface ContainerState {
  id: string;
  sandboxId: string;
  name: string;
  kind: ContainerKind;
  attempt: number;
  state: 'created' | 'running' | 'exited' | 'unknown';
  createdAt: Millis;
  startedAt?: Millis;
  finishedAt?: Millis;
  exitCode?: number;
  reason?: string;
  message?: string;
  image: string;
  imageId: string;
  backoffSeconds: number; // To wait between the end of this run and the next one; stored with the container.
  lost?: true; // By the runtime: the Pod's status shows that it ran.
}

/** How the last tries of an action failed, until a try succeeds. */
export interface FailedAction {
  action: Action;
  at: Millis;
  count: number; // Failed tries in a row, from 1.
  reason: string; // The waiting reason of the container: ErrImagePull, CreateContainerConfigError, …
  message: string;
  image?: string; // The image of a volume that could not be pulled.
  due?: true; // The cause of the failure has changed: no back-off holds any more.
  unknown?: true; // The runtime did not answer: the next try backs off, and nothing has failed.
}

/** The outcome of the newest run of a probe. Unknown: the node itself failed, which says nothing about the container. */
export interface ProbeResult {
  serial: number; // Counts the results of this probe, from 1.
  result: 'Success' | 'Warning' | 'Failure' | 'Unknown';
  message: string;
}

/** Why a hook failed; absent: it succeeded. */
export type HookResult = { failure?: string };

/** A time in which no agent ran, or the runtime did not answer. */
export type Outage = { from: Millis; to: Millis };

/** The image of a container's next run. */
export type ImageState = { attempt: number; image: string } & (
  | { state: 'present'; imageId: string; pulled?: { millis: number; withWaitingMillis?: number; sizeBytes: number } }
  | { state: 'absent' }
);

export interface Observed {
  sandboxes: readonly SandboxState[];
  containers: readonly ContainerState[];
  images: Readonly<Record<string, ImageState>>; // By container name.
  pulls?: Readonly<Record<string, PullProgress>>; // By actionKey: those under way.
  appeared?: ReadonlySet<string>; // Images, as the spec names them, that appeared since they were last looked for.
  volumes: 'pending' | 'mounted' | 'unmounted' | 'gone'; // unmounted: the Pod's other files are still there.
  downward?: string; // The version that the downward API files were last written for.
  underWay: readonly Action[]; // decide() asks for none of them again.
  failures: readonly FailedAction[];
  probes: Readonly<Record<string, ProbeResult>>; // By runKey.
  hooks: Readonly<Record<string, HookResult>>; // By runKey: those that have ended.
  outages: readonly Outage[]; // Those that are over, since this agent started and the one before it.
}

/** The node that the Pod is bound to, as its status names it. */
export interface NodeFacts {
  ips: readonly string[]; // The primary one first.
  runtimeName: string; // containerd, as in containerd://<id>
  maxGracePeriodExtensionSeconds?: number; // Holds for outages, too; absent: DEFAULT_MAX_EXTENSION_SECONDS.
  terminatingPhase?: false; // The phase stays as it was while defer containers run.
}

/** The node itself ends the Pod. */
export interface NodeEnd {
  reason: 'NodePressure' | 'NodeShutdown' | 'Preempted';
  message: string; // For status.message of the Pod.
  at: Millis;
  graceSeconds: number; // What the node leaves; the Pod's own grace period holds where it is shorter. 0: at once.
  evicted?: true; // Under pressure, whatever it was ended for first.
}

/** Why a run is ended though its Pod lives on, or a defer container before it is done. */
export interface Stop {
  message?: string; // Of its Killing Event; absent: that of a Pod that ends.
  at: Millis; // A run that ended before has ended by itself.
  deadline: Millis;
  restart: boolean; // It runs again though its exit code alone would not want it.
  replaced?: true; // For another image: the next run is no repetition, and needs no back-off.
  entry?: 'DeadlineExceeded' | 'GivenUp' | 'Skipped'; // The reason with which a defer container ends then.
}

/** What the node stores of a Pod for the next agent and no status or runtime shows. It is written before any action begins. */
export interface Journal {
  stops: Record<string, Stop>; // By container ID.
  preStops?: Record<string, HookResult>; // Results of preStop hooks, by runKey.
  ended?: Readonly<Record<string, EntryEnd>>; // How defer containers ended, by name, until the status has it.
  termination?: Termination;
}

/** How a defer container ended. */
export interface EntryEnd {
  at: Millis;
  reason: string; // Completed, Error, OOMKilled, DeadlineExceeded, GivenUp, SandboxLost, Skipped
  exitCode: number;
  message?: string;
  run?: ContainerState; // The run that it ended with; absent: none of its runs counts.
  recorded?: ContainerStatus; // The status that has it already.
}

/** What is known of one probe of one run. */
export interface ProbeMemory {
  serial: number; // Of the newest result that was counted.
  dueAt: Millis; // When it is to run next.
  successes: number;
  failures: number;
  passing?: boolean | undefined; // Absent: not decided yet.
  succeededAt?: Millis | undefined; // Of the last result Success.
}

/** What the worker keeps between decisions; rebuildMemory() makes it anew after a restart of the agent. */
export interface Memory extends Journal {
  announced: ReadonlySet<string>; // Keys of the facts that were given out as Events and still hold.
  recorded: ReadonlySet<string>; // Keys of the transitions that were given out and still hold.
  initializedInSandbox?: number; // Attempt of the sandbox in which all init containers have succeeded.
  probes: Readonly<Record<string, ProbeMemory>>; // By runKey.
  signalledAt: Readonly<Record<string, Millis>>; // When a run was first to get its stop signal, by container ID.
  ended: Readonly<Record<string, EntryEnd>>;
  interrupted: ReadonlySet<string>; // IDs of defer containers' runs whose start the agent before may have cut off.
  unstarted: ReadonlySet<string>; // IDs of runs that this agent found created: their start may be under way.
}

/** An Event on the Pod. */
export interface PodEvent {
  type: 'Normal' | 'Warning';
  reason: string;
  message: string;
  fieldPath?: string; // spec.initContainers{name}; absent: the Pod itself.
}

/** A step in the life of a Pod, for its record. */
export interface Transition {
  key: string; // The same step has the same key, whichever agent gives it out and however often.
  at: Millis;
  type: string; // Scheduled, SandboxReady, Pulling, Pulled, Started, Exited, …: see report.ts
  container?: string; // Absent: the Pod itself.
  containerKind?: ContainerKind;
  attempt?: number;
  exitCode?: number;
  reason?: string;
  message?: string;
  deadline?: Millis; // That it sets or moves.
}

export interface Input {
  pod: Pod;
  removed: boolean; // The object is gone from the API (force-deleted): only clean up.
  node: NodeFacts;
  nodeEnd?: NodeEnd; // Once the node ends the Pod.
  observed: Observed;
  memory: Memory;
  now: Millis;
}

export interface Decision {
  actions: Action[];
  status: PodStatus | undefined; // As it should be; undefined where none may be written (the object is gone).
  memory: Memory;
  journal: Journal | undefined; // To be written before any action begins; undefined: nothing new.
  events: PodEvent[];
  transitions: Transition[]; // What has happened since the decision before, in the order of its time.
  wakeAt: Millis | undefined; // When to ask again though nothing happens until then.
  done: boolean; // Nothing of the Pod is left on this node, nor anything to do for it.
}
