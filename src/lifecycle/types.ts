/** The types of the core: what decide() is given and what it answers. See ARCHITECTURE.md, "The core". */
import type { Pod, PodStatus } from '../api/generated/types.ts';
import type { Millis } from '../machinery/time.ts';
import type { EntryEnd } from './defer.ts';
import type { ImageState, PullProgress } from './pulls.ts';
import type { Stops } from './stops.ts';

export type ContainerKind = 'init' | 'app' | 'defer' | 'ephemeral';

export interface SandboxState {
  id: string;
  attempt: number;
  ready: boolean;
  /** It was asked to stop, and has: what it held of the network is free. */
  stopped: boolean;
  createdAt: Millis;
  /** First the primary one. */
  ips: readonly string[];
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
  /** Back-off to wait between the end of this run and the next one; stored with the container. */
  backoffSeconds: number;
}

/** How the last tries of an action failed; gone once a try succeeds. */
export interface Failure {
  at: Millis;
  /** Failed tries in a row, from 1. */
  count: number;
  /** ErrImagePull, CreateContainerConfigError, …; what a container's waiting reason shows. */
  reason: string;
  message: string;
  /** Of volumes: the image that could not be pulled for one. */
  image?: string;
  /** What it failed for has changed: no back-off holds any more. */
  due?: true;
}

export type ProbeKind = 'startup' | 'liveness' | 'readiness';
export type HookKind = 'postStart' | 'preStop';

/** How the newest run of a probe went. Unknown: the node itself failed, which says nothing of the container. */
export interface ProbeResult {
  /** Counts the results of this probe, from 1. */
  serial: number;
  result: 'Success' | 'Warning' | 'Failure' | 'Unknown';
  message: string;
}

export interface HookResult {
  /** Why it failed; absent: it succeeded. */
  failure?: string;
}

/** Of a probe or hook of one run. */
export const runKey = (containerId: string, what: ProbeKind | HookKind): string => `${containerId}/${what}`;

export interface Observed {
  sandboxes: readonly SandboxState[];
  containers: readonly ContainerState[];
  /** By container name. */
  images: Readonly<Record<string, ImageState>>;
  /** By actionKey of pulls under way. */
  pulls?: Readonly<Record<string, PullProgress>>;
  /** Images, as the spec names them, of which the runtime has told that they came, and that were not looked for since. */
  appeared?: ReadonlySet<string>;
  /** unmounted: the Pod's other files are still there */
  volumes: 'pending' | 'mounted' | 'unmounted' | 'gone';
  /** Keys (actionKey) of actions under way: decide() asks for none of them again. */
  inFlight: ReadonlySet<string>;
  /** By actionKey. */
  failures: Readonly<Record<string, Failure>>;
  /** By runKey. */
  probes: Readonly<Record<string, ProbeResult>>;
  /** By runKey; hooks that have ended. */
  hooks: Readonly<Record<string, HookResult>>;
}

/** The node that the Pod is bound to, as its status names it. */
export interface NodeFacts {
  /** First the primary one. */
  ips: readonly string[];
  /** containerd, as in containerd://<id> */
  runtimeName: string;
  /** How much longer than its grace period a Pod's extensions may make its end; absent: DEFAULT_MAX_EXTENSION_SECONDS. */
  maxGracePeriodExtensionSeconds?: number;
  /** The phase stays what it is while defer containers run. Absent: it is Terminating. */
  terminatingPhase?: false;
}

/** The node itself ends the Pod. */
export interface NodeEnd {
  reason: 'NodePressure' | 'NodeShutdown' | 'Preempted';
  /** status.message of the Pod. */
  message: string;
  at: Millis;
  /** The time that the node leaves to it; the Pod's own grace period holds where it is shorter. 0: at once. */
  graceSeconds: number;
  evicted?: true; // Under pressure, whatever it was ended for first.
}

/** Why a Pod ends. Completed: by itself. */
export type TerminationReason =
  | 'Deleted'
  | 'Evicted'
  | 'Preempted'
  | 'DeadlineExceeded'
  | 'NodeShutdown'
  | 'NodePressure'
  | 'Completed';

export interface Termination {
  reason: TerminationReason;
  startedAt: Millis;
  /** When what still runs is killed. Only ever moves earlier, but for the extensions of a Pod with defer containers. */
  deadline: Millis;
  /** How much of it are extensions. */
  extendedSeconds?: number;
  /** The node ended it at once: no defer container runs. */
  hard?: true;
  /** The time for defer containers was over, and what ran was told to stop: an extension comes too late. */
  over?: true;
  /** The deletionTimestamp that it reckons with: another one is a second delete. */
  deletionTimestamp?: string;
}

/** What is known of one probe of one run. */
export interface ProbeMemory {
  /** The newest result that was counted. */
  serial: number;
  /** When it is to run next. */
  dueAt: Millis;
  successes: number;
  failures: number;
  /** undefined: not decided yet */
  passing?: boolean;
  /** When a defer container's probe succeeded last. */
  succeededAt?: Millis;
}

/** What the worker keeps between decisions; rebuildMemory() makes it anew after a restart of the agent. */
export interface Memory {
  /** Keys of the facts that were given out as Events and still hold. */
  announced: ReadonlySet<string>;
  /** Keys of the transitions that were given out and still hold. */
  recorded: ReadonlySet<string>;
  termination?: Termination;
  /** Attempt of the sandbox in which all init containers have succeeded. */
  initializedInSandbox?: number;
  /** By runKey. */
  probes: Readonly<Record<string, ProbeMemory>>;
  stops: Stops;
  /** When a run was first to get its stop signal, by container ID. */
  signalledAt: Readonly<Record<string, Millis>>;
  /** How defer containers ended, by name: it stays so until the status tells it. */
  ended: Readonly<Record<string, EntryEnd>>;
  /** IDs of defer containers' runs that the agent before may have cut off while it started them. */
  interrupted: ReadonlySet<string>;
  /** IDs of defer containers' runs that had not started when this agent came: the start may still be under way, and be given up. */
  unstarted: ReadonlySet<string>;
}

/** One call of the executor. Results come back only as observations. */
export type Action =
  | { kind: 'mountVolumes' }
  | { kind: 'createSandbox'; attempt: number }
  /** Looks for the image in the runtime; mustExist (pull policy Never): fails with ErrImageNeverPull where it is absent. */
  | { kind: 'checkImage'; container: string; attempt: number; image: string; mustExist: boolean }
  | { kind: 'pullImage'; container: string; attempt: number; image: string }
  /** Creates and starts; to repeat it by (container, attempt) is safe. */
  | {
      kind: 'startContainer';
      container: string;
      containerKind: ContainerKind;
      attempt: number;
      sandboxId: string;
      /** The reference that was checked or pulled: of an entry with imageFrom the image of that container. */
      image: string;
      imageId: string;
      backoffSeconds: number;
      /** The run whose process namespace an ephemeral container shares. */
      targetId?: string;
    }
  | { kind: 'runProbe'; container: string; id: string; probe: ProbeKind }
  | { kind: 'runHook'; container: string; id: string; hook: HookKind }
  /** Stop signal now, kill at the deadline. Asked again with an earlier deadline, the earlier one holds. */
  | { kind: 'stopContainer'; id: string; deadline: Millis }
  | { kind: 'removeContainer'; id: string; container: string; attempt: number }
  | { kind: 'stopSandbox'; id: string }
  | { kind: 'removeSandbox'; id: string }
  | { kind: 'unmountVolumes' }
  /** Unmounts, and removes all that the Pod had on the node. */
  | { kind: 'removeFiles' }
  /** Gives up an action under way that is no longer wanted (a pull, a hook past its time). */
  | { kind: 'cancel'; key: string }
  /** Deletes the object from the API with grace 0: the Pod is gone. */
  | { kind: 'finalizeDeletion' };

/** The identity of an action: two with one key are the same try of the same thing. */
export function actionKey(action: Action): string {
  switch (action.kind) {
    case 'mountVolumes':
    case 'unmountVolumes':
    case 'removeFiles':
    case 'finalizeDeletion':
      return action.kind;
    case 'createSandbox':
      return `createSandbox/${action.attempt}`;
    case 'checkImage':
    case 'pullImage':
      return `${action.kind}/${action.container}/${action.attempt}/${action.image}`;
    case 'startContainer':
      return `${action.kind}/${action.container}/${action.attempt}`;
    case 'runProbe':
      return `runProbe/${runKey(action.id, action.probe)}`;
    case 'runHook':
      return `runHook/${runKey(action.id, action.hook)}`;
    case 'stopContainer':
      return `stopContainer/${action.id}/${action.deadline}`;
    case 'removeContainer':
    case 'stopSandbox':
    case 'removeSandbox':
      return `${action.kind}/${action.id}`;
    case 'cancel':
      return `cancel/${action.key}`;
  }
}

/** An Event on the Pod. */
export interface PodEvent {
  type: 'Normal' | 'Warning';
  reason: string;
  message: string;
  /** spec.initContainers{name}; absent: the Pod itself */
  fieldPath?: string;
}

/** A step in the life of a Pod, for its record. */
export interface Transition {
  /** The same step has the same key, whoever tells of it and however often. */
  key: string;
  at: Millis;
  /** Scheduled, SandboxReady, Pulling, Pulled, Started, Exited, …: see transitions.ts */
  type: string;
  /** Absent: the Pod itself. */
  container?: string;
  containerKind?: ContainerKind;
  attempt?: number;
  exitCode?: number;
  reason?: string;
  message?: string;
  /** A deadline that it sets or moves. */
  deadline?: Millis;
}

export interface Input {
  pod: Pod;
  /** The object is gone from the API (force-deleted): only clean up. */
  removed: boolean;
  node: NodeFacts;
  /** Set once the node ends the Pod. */
  nodeEnd?: NodeEnd;
  observed: Observed;
  memory: Memory;
  now: Millis;
}

export interface Decision {
  actions: Action[];
  /** The status as it should be; undefined where none may be written (the object is gone). */
  status: PodStatus | undefined;
  memory: Memory;
  /** To be written down before anything else is done, for the next agent; undefined: nothing new. */
  stops: Stops | undefined;
  events: PodEvent[];
  /** What has happened since the decision before, in the order of its time. */
  transitions: Transition[];
  /** When to ask again though nothing happens until then. */
  wakeAt: Millis | undefined;
  /** Nothing of the Pod is left on this node, nor anything to do for it. */
  done: boolean;
}
