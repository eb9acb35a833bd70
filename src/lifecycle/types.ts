/** Defines the input and output of decide(). See ARCHITECTURE.md, "The core". */
import type { PullProgress } from '../api/core/v1/pod/status/pull-progress.ts';
import type { Termination } from '../api/core/v1/pod/status/termination.ts';
import type { ContainerStatus, Pod, PodStatus } from '../api/generated/types.ts';
import type { Millis } from '../machinery/time.ts';

export type ContainerKind = 'init' | 'app' | 'defer' | 'ephemeral';
export const PROBE_KINDS = ['startup', 'liveness', 'readiness'] as const;
export type ProbeKind = (typeof PROBE_KINDS)[number];
export type HookKind = 'postStart' | 'preStop';

/** image: the image reference; for a defer container with imageFrom, the reference of the container that imageFrom names. */
type Attempt = { container: string; attempt: number; image: string };
/** targetId: the ID of the run whose process namespace an ephemeral container shares; undefined: it shares none. */
type NewRun = { sandboxId: string; imageId: string; backoffSeconds: number; targetId?: string | undefined };

/** The actions that decide() requests. The executor carries them out; their results come back only as observations. */
export type Action =
  | { kind: 'mountVolumes' }
  | { kind: 'createSandbox'; attempt: number }
  /** Looks up the image in the runtime. mustExist (pull policy Never): fails with ErrImageNeverPull if the image is absent. */
  | ({ kind: 'checkImage'; mustExist: boolean } & Attempt)
  | ({ kind: 'pullImage' } & Attempt)
  | ({ kind: 'startContainer'; containerKind: ContainerKind } & Attempt & NewRun) // Creates and starts the run; safe to repeat.
  | { kind: 'runProbe'; container: string; id: string; probe: ProbeKind }
  | { kind: 'runHook'; container: string; id: string; hook: HookKind }
  | { kind: 'stopContainer'; id: string; deadline: Millis } // Sends the stop signal now; kills at the deadline (see stop-in-time.ts).
  | { kind: 'removeContainer'; id: string; container: string; attempt: number }
  | { kind: 'stopSandbox'; id: string }
  | { kind: 'removeSandbox'; id: string }
  | { kind: 'writeDownwardFiles'; version: string } // Rewrites the volumes' downward API files; `version` names their new state.
  | { kind: 'unmountVolumes' }
  | { kind: 'removeFiles' } // Unmounts the volumes and removes all files of the Pod from the node.
  | { kind: 'cancel'; key: string } // Cancels an action that is under way and no longer wanted, such as a pull or a hook past its deadline.
  | { kind: 'finalizeDeletion' }; // Deletes the object from the API with a grace period of 0.

export type ActionOf<Kind extends Action['kind']> = Extract<Action, { kind: Kind }>;

/** Identifies the operation of an action: a retry has the same key as the action that failed. Keys are compared, never parsed. */
export function actionKey(action: Action): string {
  // `fields` identify the action: for a run or sandbox, its ID instead of the container's name and attempt. Absent fields are skipped.
  const fields = 'id' in action ? ['id', 'probe', 'hook', 'deadline'] : ['container', 'attempt', 'version', 'key'];
  let key: string = action.kind;
  for (const field of fields) if (field in action) key += `/${action[field as keyof Action] ?? ''}`;
  return action.kind === 'checkImage' || action.kind === 'pullImage' ? `${key}/${action.image}` : key;
}

/** Returns the key of a probe or a hook of one run. */
export const runKey = (containerId: string, what: ProbeKind | HookKind): string => `${containerId}/${what}`;

export interface SandboxState {
  id: string;
  attempt: number;
  ready: boolean;
  stopped: boolean; // This agent has stopped it, so its address and host ports are free.
  createdAt: Millis;
  ips: readonly string[]; // The primary address first.
}

/** One run of a container. `attempt`: its number, from 0. */
export interface ContainerState {
  id: string;
  sandboxId: string;
  name: string;
  kind: ContainerKind;
  attempt: number;
  state: 'created' | 'running' | 'exited' | 'unknown';
  createdAt: Millis;
  startedAt?: Millis; // Absent: it has not started, its start failed, or the runtime has lost it.
  finishedAt?: Millis;
  exitCode?: number;
  reason?: string;
  message?: string;
  image: string;
  imageId: string;
  backoffSeconds: number; // The wait from the end of this run to the next start, unless restartAfter() resets it; stored in an annotation.
  lost?: true; // The runtime has lost this run; the Pod's status shows that it ran.
}

/** The failed or unanswered tries of an action since its last success. */
export interface FailedAction {
  action: Action;
  at: Millis;
  count: number; // Tries in a row that failed or were not answered, from 1.
  reason: string; // The waiting reason of the container, such as ErrImagePull; Error if the error has no reason.
  message: string;
  image?: string; // The image of a volume, if the pull of this image failed; otherwise absent.
  due?: true; // The cause of the failure has changed, so the back-off no longer applies.
  unknown?: true; // The runtime did not answer, so the try may have succeeded: the next try backs off, but no failure is reported.
}

/** The result of the newest run of a probe. Unknown: the node could not run the probe, so its outcome is not known. */
export interface ProbeResult {
  serial: number; // Counts the results of this probe, from 1.
  result: 'Success' | 'Warning' | 'Failure' | 'Unknown';
  message: string;
}

/** failure: why the hook failed; absent: it succeeded. */
export type HookResult = { failure?: string };

/** A period in which no agent ran or the runtime did not answer. */
export type Outage = { from: Millis; to: Millis };

/** The image as it was found or pulled for one attempt of a container. pulled: absent if the image was already present. */
export type ImageState = { attempt: number; image: string } & (
  | { state: 'present'; imageId: string; pulled?: { millis: number; withWaitingMillis?: number; sizeBytes: number } }
  | { state: 'absent' }
);

export interface Observed {
  sandboxes: readonly SandboxState[];
  containers: readonly ContainerState[];
  images: Readonly<Record<string, ImageState>>; // By container name.
  pulls?: Readonly<Record<string, PullProgress>>; // Progress of pulls under way that have reported it, by actionKey.
  appeared?: ReadonlySet<string>; // Containers whose image appeared while an action on it was under way or after it had failed.
  volumes: 'pending' | 'mounted' | 'unmounted' | 'gone'; // pending: not mounted by this agent; gone: no file of the Pod exists.
  downward?: string; // The version of the last writeDownwardFiles of this agent; absent: none.
  underWay: readonly Action[]; // decide() requests none of these again.
  failures: readonly FailedAction[];
  probes: Readonly<Record<string, ProbeResult>>; // By runKey.
  hooks: Readonly<Record<string, HookResult>>; // Hooks that have ended, by runKey.
  outages: readonly Outage[]; // Outages that are over and that no decision of this agent has seen yet, such as the one before its start.
}

/** Facts and settings of the node that the Pod is bound to. */
export interface NodeFacts {
  ips: readonly string[]; // The primary address first.
  runtimeName: string; // The prefix of container IDs in the status: containerd, as in containerd://<id>
  maxGracePeriodExtensionSeconds?: number; // Limits extensions and, separately, outages; absent: DEFAULT_MAX_EXTENSION_SECONDS.
  terminatingPhase?: false; // false: the phase does not become Terminating while defer containers run.
}

/** A termination by the node itself. */
export interface NodeEnd {
  reason: 'NodePressure' | 'NodeShutdown' | 'Preempted';
  message: string; // For status.message of the Pod.
  at: Millis;
  graceSeconds: number; // The grace period that the node grants; the Pod's own applies if it is shorter. 0: none.
  evicted?: true; // Evicted under pressure, even if `reason` is another, earlier reason.
}

/** Why a run is ended for a reason of its own, rather than by the order in which the containers of a terminating Pod stop. */
export interface Stop {
  message?: string; // The message of the Killing Event; absent: the Event has the message for a terminating Pod.
  at: Millis; // A run that exited before this time ended on its own.
  deadline: Millis;
  restart: boolean; // true: the container runs again, even if its exit code alone would not cause a restart.
  replaced?: true; // The run is ended to run another image: the next run needs no back-off.
  entry?: 'DeadlineExceeded' | 'GivenUp' | 'Skipped'; // The reason with which the defer container then ends; absent: see endOfRun().
}

/** Facts about a Pod that its status and the runtime may lack, stored for the next agent before any action of the same decision begins. */
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
  run?: ContainerState; // The run that gave the end; absent: no run gave it, or `recorded` is set.
  recorded?: ContainerStatus; // The container status that already records the end; absent: none does.
}

/** The state of one probe of one run. */
export interface ProbeMemory {
  serial: number; // The serial of the newest result that was counted; 0: none was.
  dueAt: Millis; // When the probe runs next.
  successes: number; // Successful results in a row.
  failures: number; // Failed results in a row.
  passing?: boolean | undefined; // Absent: not decided yet.
  succeededAt?: Millis | undefined; // The time of the last result Success; absent: there was none.
}

/** The state that the Pod's worker keeps between decisions. rebuildMemory() rebuilds it after a restart of the agent. */
export interface Memory extends Journal {
  announced: ReadonlySet<string>; // Keys of the facts that were reported as Events and still hold.
  recorded: ReadonlySet<string>; // Keys of the transitions that were reported and still hold.
  initializedInSandbox?: number; // Attempt of the last sandbox in which all init containers had their turn; absent: none.
  probes: Readonly<Record<string, ProbeMemory>>; // By runKey.
  signalledAt: Readonly<Record<string, Millis>>; // When the stop signal of a run was first requested, by container ID.
  ended: Readonly<Record<string, EntryEnd>>;
  interrupted: ReadonlySet<string>; // IDs of defer containers' runs whose start the previous agent may have left incomplete.
  unstarted: ReadonlySet<string>; // IDs of runs that were in state created when this agent began: their start may be under way.
}

export interface PodEvent {
  type: 'Normal' | 'Warning';
  reason: string;
  message: string;
  fieldPath?: string; // Such as spec.initContainers{name}; absent: the Event is about the Pod itself.
}

/** A step in the life of a Pod, for its record. */
export interface Transition {
  key: string; // Identifies the step, even if another agent reports the step again; about keys with an @, see report.ts.
  at: Millis;
  type: string; // Scheduled, SandboxReady, Pulling, Pulled, Started, Exited, …: see report.ts
  container?: string; // Absent: the step is about the Pod itself.
  containerKind?: ContainerKind;
  attempt?: number;
  exitCode?: number;
  reason?: string;
  message?: string;
  deadline?: Millis; // The deadline that the step sets or moves, or the time of the next try or the kill.
}

export interface Input {
  pod: Pod;
  removed: boolean; // The object no longer exists in the API: the Pod is only stopped and its remains are removed.
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
  transitions: Transition[]; // The steps that hold now and did not at this agent's previous decision, in chronological order.
  wakeAt: Millis | undefined; // When to decide again even if the input has not changed; undefined: only after a change.
  done: boolean; // Nothing of the Pod is left on this node, and nothing is left to do for it.
}
