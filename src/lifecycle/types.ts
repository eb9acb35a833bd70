/** The input and output of decide(). See ARCHITECTURE.md, "The core". */
import type { PullProgress } from '../api/core/v1/pod/status/pull-progress.ts';
import type { Termination } from '../api/core/v1/pod/status/termination.ts';
import type { ContainerStatus, Pod, PodStatus } from '../api/generated/types.ts';
import type { Millis } from '../machinery/time.ts';

export type ContainerKind = 'init' | 'app' | 'defer' | 'ephemeral';
export const PROBE_KINDS = ['startup', 'liveness', 'readiness'] as const;
export type ProbeKind = (typeof PROBE_KINDS)[number];
export type HookKind = 'postStart' | 'preStop';

/** image: for a defer container with imageFrom, the image reference of the container that imageFrom names. */
type Attempt = { container: string; attempt: number; image: string };
/** targetId: the run whose process namespace an ephemeral container shares. */
type NewRun = { sandboxId: string; imageId: string; backoffSeconds: number; targetId?: string | undefined };

/** The node agent reports the results of an action as observations. */
export type Action =
  | { kind: 'mountVolumes' }
  | { kind: 'createSandbox'; attempt: number }
  /** mustExist (pull policy Never): fails with ErrImageNeverPull if the image is absent. */
  | ({ kind: 'checkImage'; mustExist: boolean } & Attempt)
  | ({ kind: 'pullImage' } & Attempt)
  | ({ kind: 'startContainer'; containerKind: ContainerKind } & Attempt & NewRun) // Safe to repeat.
  | { kind: 'runProbe'; container: string; id: string; probe: ProbeKind }
  | { kind: 'runHook'; container: string; id: string; hook: HookKind }
  | { kind: 'stopContainer'; id: string; deadline: Millis } // Sends the stop signal now; kills at the deadline (see stop-in-time.ts).
  | { kind: 'removeContainer'; id: string; container: string; attempt: number }
  | { kind: 'stopSandbox'; id: string }
  | { kind: 'removeSandbox'; id: string }
  | { kind: 'writeDownwardFiles'; version: string } // `version` names the new state of the volumes' downward API files.
  | { kind: 'unmountVolumes' }
  | { kind: 'removeFiles' } // Also unmounts the volumes.
  | { kind: 'cancel'; key: string }
  | { kind: 'finalizeDeletion' }; // Deletes the object from the API with a grace period of 0.

export type ActionOf<Kind extends Action['kind']> = Extract<Action, { kind: Kind }>;

/** A retry has the same key as the failed action. Keys are compared, never parsed. */
export function actionKey(action: Action): string {
  // For a run or sandbox, the ID replaces the container's name and attempt.
  const fields = 'id' in action ? ['id', 'probe', 'hook', 'deadline'] : ['container', 'attempt', 'version', 'key'];
  let key: string = action.kind;
  for (const field of fields) if (field in action) key += `/${action[field as keyof Action] ?? ''}`;
  return action.kind === 'checkImage' || action.kind === 'pullImage' ? `${key}/${action.image}` : key;
}

export const runKey = (containerId: string, what: ProbeKind | HookKind): string => `${containerId}/${what}`;

export interface SandboxState {
  id: string;
  attempt: number;
  ready: boolean;
  stopped: boolean; // By this agent, so its address and host ports are free.
  createdAt: Millis;
  ips: readonly string[]; // The primary address first.
}

/** `attempt` counts from 0. */
export interface ContainerState {
  id: string;
  sandboxId: string;
  name: string;
  kind: ContainerKind;
  attempt: number;
  state: 'created' | 'running' | 'exited' | 'unknown';
  createdAt: Millis;
  startedAt?: Millis; // Absent: the run has not started, its start failed, or the runtime has lost the run.
  finishedAt?: Millis;
  exitCode?: number;
  reason?: string;
  message?: string;
  image: string;
  imageId: string;
  backoffSeconds: number; // The wait after this run, unless restartAfter() resets it; stored in an annotation.
  lost?: true; // The runtime has lost this run; the Pod's status shows that it ran.
}

/** Counts the tries since the action's last success. */
export interface FailedAction {
  action: Action;
  at: Millis;
  count: number;
  reason: string; // The waiting reason of the container, such as ErrImagePull; Error if the error has no reason.
  message: string;
  image?: string; // Set if the pull of a volume's image failed.
  due?: true; // The cause of the failure has changed, so the back-off no longer applies.
  unknown?: true; // The runtime did not answer, so the try may have succeeded. The next try backs off, but no failure is reported.
}

/** Unknown: the node could not run the probe. */
export interface ProbeResult {
  serial: number; // Counts the results of this probe, from 1.
  result: 'Success' | 'Warning' | 'Failure' | 'Unknown';
  message: string;
}

export type HookResult = { failure?: string };

/** A period in which no agent ran or the runtime did not answer. */
export type Outage = { from: Millis; to: Millis };

/** pulled: absent if the image was already present. */
export type ImageState = { attempt: number; image: string } & (
  | { state: 'present'; imageId: string; pulled?: { millis: number; withWaitingMillis?: number; sizeBytes: number } }
  | { state: 'absent' }
);

export interface Observed {
  sandboxes: readonly SandboxState[];
  containers: readonly ContainerState[];
  images: Readonly<Record<string, ImageState>>; // By container name.
  pulls?: Readonly<Record<string, PullProgress>>; // By actionKey.
  appeared?: ReadonlySet<string>; // Containers whose image appeared during an action on it, or after the action had failed.
  volumes: 'pending' | 'mounted' | 'unmounted' | 'gone'; // pending: not mounted by this agent; gone: no file of the Pod exists.
  downward?: string; // The version of this agent's last writeDownwardFiles.
  underWay: readonly Action[];
  failures: readonly FailedAction[];
  probes: Readonly<Record<string, ProbeResult>>; // By runKey.
  hooks: Readonly<Record<string, HookResult>>; // Hooks that have ended, by runKey.
  outages: readonly Outage[]; // Outages that are over and that no decision of this agent has counted.
}

export interface NodeFacts {
  ips: readonly string[]; // The primary address first.
  runtimeName: string; // The prefix of container IDs in the status, such as containerd.
  maxGracePeriodExtensionSeconds?: number; // Limits extensions and, separately, outages; absent: DEFAULT_MAX_EXTENSION_SECONDS.
  terminatingPhase?: false; // The phase does not become Terminating while defer containers run.
}

export interface NodeEnd {
  reason: 'NodePressure' | 'NodeShutdown' | 'Preempted';
  message: string;
  at: Millis;
  graceSeconds: number; // The Pod's own grace period applies if it is shorter. 0: none.
  evicted?: true; // Evicted under pressure, even if `reason` is another, earlier reason.
}

/** Why a run is stopped independently of the termination of its Pod. */
export interface Stop {
  message?: string; // The message of the Killing Event; absent: the message for a terminating Pod.
  at: Millis; // A run that exited before this time ended on its own.
  deadline: Millis;
  restart: boolean; // true: the container runs again, even if its exit code would not cause a restart.
  replaced?: true; // The next run has another image and needs no back-off.
  entry?: 'DeadlineExceeded' | 'GivenUp' | 'Skipped'; // The reason with which the defer container ends; absent: see endOfRun().
}

/** Facts that the status and the runtime may lack, stored for the next agent before any action of the same decision begins. */
export interface Journal {
  stops: Record<string, Stop>; // By container ID.
  preStops?: Record<string, HookResult>; // By runKey.
  ended?: Readonly<Record<string, EntryEnd>>; // Ends that the status does not have yet, by name of the defer container.
  termination?: Termination;
}

export interface EntryEnd {
  at: Millis;
  reason: string; // Completed, Error, OOMKilled, DeadlineExceeded, GivenUp, SandboxLost, Skipped
  exitCode: number;
  message?: string;
  run?: ContainerState;
  recorded?: ContainerStatus; // A status that already records the end.
}

export interface ProbeMemory {
  serial: number; // The serial of the newest counted result; 0: none.
  dueAt: Millis;
  successes: number; // In a row.
  failures: number; // In a row.
  passing?: boolean | undefined; // Absent: not decided yet.
  succeededAt?: Millis | undefined;
}

/** The state that the Pod's worker keeps between decisions. rebuildMemory() rebuilds it after a restart of the agent. */
export interface Memory extends Journal {
  announced: ReadonlySet<string>; // Keys of the facts that were reported as Events and still hold.
  recorded: ReadonlySet<string>; // Keys of the transitions that were reported and still hold.
  initializedInSandbox?: number; // The attempt of the last sandbox in which all init containers had their turn.
  probes: Readonly<Record<string, ProbeMemory>>; // By runKey.
  signalledAt: Readonly<Record<string, Millis>>; // When the stop signal was first requested, by container ID.
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

export interface Transition {
  key: string; // The same if another agent reports the step again. For keys with an @, see report.ts.
  at: Millis;
  type: string; // For the types, see report.ts.
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
  removed: boolean;
  node: NodeFacts;
  nodeEnd?: NodeEnd;
  observed: Observed;
  memory: Memory;
  now: Millis;
}

export interface Decision {
  actions: Action[];
  status: PodStatus | undefined; // Undefined: the object was removed, so no status may be written.
  memory: Memory;
  journal: Journal | undefined; // To be stored before any action begins; undefined: nothing new.
  events: PodEvent[];
  transitions: Transition[]; // In chronological order, without the transitions of this agent's previous decision.
  wakeAt: Millis | undefined; // When to decide again if nothing changes before; undefined: only after a change.
  done: boolean; // Nothing of the Pod is left on this node, and its object needs no final deletion.
}
