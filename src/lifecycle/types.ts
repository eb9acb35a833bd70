/** The input and output of decide(). See ARCHITECTURE.md, "The core". */
import type { PullProgress } from '../api/core/v1/pod/status/pull-progress.ts';
import type { Termination } from '../api/core/v1/pod/status/termination.ts';
import type { ContainerStatus, Pod, PodStatus } from '../api/generated/types.ts';
import type { Millis } from '../machinery/time.ts';

export type ContainerKind = 'init' | 'app' | 'defer' | 'ephemeral';
export const PROBE_KINDS = ['startup', 'liveness', 'readiness'] as const;
export type ProbeKind = (typeof PROBE_KINDS)[number];
export type HookKind = 'postStart' | 'preStop';

/** image: the image reference; for an entry with imageFrom, the reference of the container that imageFrom names. */
type Attempt = { container: string; attempt: number; image: string };
/** targetId: the run whose process namespace an ephemeral container shares. */
type NewRun = { sandboxId: string; imageId: string; backoffSeconds: number; targetId?: string | undefined };

/** The actions that decide() requests; the executor makes one call for each. Results come back only as observations. */
export type Action =
  | { kind: 'mountVolumes' }
  | { kind: 'createSandbox'; attempt: number }
  /** Looks up the image in the runtime. mustExist (pull policy Never): fails with ErrImageNeverPull if it is absent. */
  | ({ kind: 'checkImage'; mustExist: boolean } & Attempt)
  | ({ kind: 'pullImage' } & Attempt)
  | ({ kind: 'startContainer'; containerKind: ContainerKind } & Attempt & NewRun) // Creates and starts; safe to repeat.
  | { kind: 'runProbe'; container: string; id: string; probe: ProbeKind }
  | { kind: 'runHook'; container: string; id: string; hook: HookKind }
  | { kind: 'stopContainer'; id: string; deadline: Millis } // Stop signal now, kill at the earliest requested deadline.
  | { kind: 'removeContainer'; id: string; container: string; attempt: number }
  | { kind: 'stopSandbox'; id: string }
  | { kind: 'removeSandbox'; id: string }
  | { kind: 'writeDownwardFiles'; version: string } // Writes the volumes' downward API files, which then show that version.
  | { kind: 'unmountVolumes' }
  | { kind: 'removeFiles' } // Unmounts the volumes and removes all files of the Pod from the node.
  | { kind: 'cancel'; key: string } // Cancels an action under way that is no longer wanted (a pull, a hook past its deadline).
  | { kind: 'finalizeDeletion' }; // Deletes the object from the API with grace period 0.

export type ActionOf<Kind extends Action['kind']> = Extract<Action, { kind: Kind }>;

/** Two actions have the same key if they are the same try of the same operation. Keys are only compared, never parsed. */
export function actionKey(action: Action): string {
  // Actions on a run or a sandbox are identified by its ID, all others by the attempt of a container.
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
  stopped: boolean; // It was stopped on request, so its address and host ports are free.
  createdAt: Millis;
  ips: readonly string[]; // The primary address first.
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
  backoffSeconds: number; // The wait between the end of this run and the next one; stored with the container.
  lost?: true; // The runtime has lost it; the Pod's status shows that it ran.
}

/** How the last tries of an action failed; dropped once a try succeeds. */
export interface FailedAction {
  action: Action;
  at: Millis;
  count: number; // Failed tries in a row, from 1.
  reason: string; // The waiting reason of the container: ErrImagePull, CreateContainerConfigError, …
  message: string;
  image?: string; // The image of a volume, if its pull failed.
  due?: true; // The cause of the failure has changed, so the back-off no longer applies.
  unknown?: true; // The runtime did not answer: the next try backs off, but nothing has failed.
}

/** The result of the newest run of a probe. Unknown: the node itself failed, which says nothing about the container. */
export interface ProbeResult {
  serial: number; // Counts the results of this probe, from 1.
  result: 'Success' | 'Warning' | 'Failure' | 'Unknown';
  message: string;
}

/** failure: why the hook failed; absent: it succeeded. */
export type HookResult = { failure?: string };

/** A period in which no agent ran or the runtime did not answer. */
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
  pulls?: Readonly<Record<string, PullProgress>>; // Pulls under way, by actionKey.
  appeared?: ReadonlySet<string>; // Images, as named in the spec, that have appeared since their last lookup.
  volumes: 'pending' | 'mounted' | 'unmounted' | 'gone'; // unmounted: other files of the Pod still exist; gone: no files.
  downward?: string; // The version that the downward API files were last written for.
  underWay: readonly Action[]; // decide() requests none of these again.
  failures: readonly FailedAction[];
  probes: Readonly<Record<string, ProbeResult>>; // By runKey.
  hooks: Readonly<Record<string, HookResult>>; // Hooks that have ended, by runKey.
  outages: readonly Outage[]; // Outages that are over: those since this agent started, and the one before its start.
}

/** The node that the Pod is bound to, as shown in the Pod's status. */
export interface NodeFacts {
  ips: readonly string[]; // The primary address first.
  runtimeName: string; // containerd, as in containerd://<id>
  maxGracePeriodExtensionSeconds?: number; // Also limits outages; absent: DEFAULT_MAX_EXTENSION_SECONDS.
  terminatingPhase?: false; // The phase does not change while defer containers run.
}

/** A termination by the node itself. */
export interface NodeEnd {
  reason: 'NodePressure' | 'NodeShutdown' | 'Preempted';
  message: string; // For status.message of the Pod.
  at: Millis;
  graceSeconds: number; // The grace period that the node grants; the Pod's own applies if it is shorter. 0: none.
  evicted?: true; // Evicted under pressure, even if `reason` is another, earlier reason.
}

/** Why a run is ended although its Pod is not terminating, or why a defer container is ended before it has finished. */
export interface Stop {
  message?: string; // For the Killing Event; absent: the message for a terminating Pod.
  at: Millis; // A run that exited before this time ended on its own.
  deadline: Millis;
  restart: boolean; // The container runs again, even if its exit code alone would not cause a restart.
  replaced?: true; // Ended to run another image: the next run needs no back-off.
  entry?: 'DeadlineExceeded' | 'GivenUp' | 'Skipped'; // The reason with which the defer container then ends.
}

/** Facts about a Pod that neither the status nor the runtime shows, stored for the next agent before any action of the decision begins. */
export interface Journal {
  stops: Record<string, Stop>; // By container ID.
  preStops?: Record<string, HookResult>; // Results of preStop hooks, by runKey.
  ended?: Readonly<Record<string, EntryEnd>>; // Ends of defer containers that the status does not have yet, by name.
  termination?: Termination;
}

/** How a defer container ended. */
export interface EntryEnd {
  at: Millis;
  reason: string; // Completed, Error, OOMKilled, DeadlineExceeded, GivenUp, SandboxLost, Skipped
  exitCode: number;
  message?: string;
  run?: ContainerState; // The run that gave the end; absent: the container did not run, or no run decided its end.
  recorded?: ContainerStatus; // The container status that already records the end.
}

/** The state of one probe of one run. */
export interface ProbeMemory {
  serial: number; // The serial of the newest result that was counted.
  dueAt: Millis; // When it runs next.
  successes: number;
  failures: number;
  passing?: boolean | undefined; // Absent: not decided yet.
  succeededAt?: Millis | undefined; // The time of the last result Success.
}

/** The state that the Pod's worker keeps between decisions. rebuildMemory() rebuilds it after a restart of the agent. */
export interface Memory extends Journal {
  announced: ReadonlySet<string>; // Keys of the facts that were reported as Events and still hold.
  recorded: ReadonlySet<string>; // Keys of the transitions that were reported and still hold.
  initializedInSandbox?: number; // Attempt of the sandbox in which all init containers have succeeded.
  probes: Readonly<Record<string, ProbeMemory>>; // By runKey.
  signalledAt: Readonly<Record<string, Millis>>; // When a run was first to get its stop signal, by container ID.
  ended: Readonly<Record<string, EntryEnd>>;
  interrupted: ReadonlySet<string>; // IDs of defer containers' runs whose start the previous agent may have left incomplete.
  unstarted: ReadonlySet<string>; // IDs of runs that this agent found in state created: their start may still be under way.
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
  key: string; // Identifies the step: every report of the same step has the same key, even from another agent.
  at: Millis;
  type: string; // Scheduled, SandboxReady, Pulling, Pulled, Started, Exited, …: see report.ts
  container?: string; // Absent: the Pod itself.
  containerKind?: ContainerKind;
  attempt?: number;
  exitCode?: number;
  reason?: string;
  message?: string;
  deadline?: Millis; // The deadline that the step sets or moves.
}

export interface Input {
  pod: Pod;
  removed: boolean; // The object was removed from the API (force-deleted): only clean up.
  node: NodeFacts;
  nodeEnd?: NodeEnd; // Set once the node terminates the Pod.
  observed: Observed;
  memory: Memory;
  now: Millis;
}

export interface Decision {
  actions: Action[];
  status: PodStatus | undefined; // The status to write; undefined if none may be written (the object was removed).
  memory: Memory;
  journal: Journal | undefined; // To be stored before any action begins; undefined: nothing new.
  events: PodEvent[];
  transitions: Transition[]; // What has happened since the previous decision, in chronological order.
  wakeAt: Millis | undefined; // When to decide again, even without a new observation; undefined: only on a new observation.
  done: boolean; // Nothing of the Pod is left on this node, and nothing is left to do for it.
}
