/**
 * The types of the core: what decide() is given and what it answers.
 * See ARCHITECTURE.md, "The core".
 */
import type { Container, EphemeralContainer, Pod, PodStatus } from '../api/generated/types.ts';
import type { Millis } from '../machinery/time.ts';

export type ContainerKind = 'init' | 'app' | 'defer' | 'ephemeral';

export interface SandboxState {
  id: string;
  attempt: number;
  ready: boolean;
  createdAt: Millis;
  ips: string[];
}

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
  /** Seconds of restart back-off that preceded this attempt; 0 for the first and second. Stored as an annotation of the container. */
  backoffSeconds: number;
}

/** What is known of an image that the Pod needs, keyed by the reference in the spec. */
export type ImageState =
  | { state: 'present'; imageId: string }
  /** Not there and not asked for. */
  | { state: 'absent' }
  | { state: 'failed'; at: Millis; failures: number; reason: string; message: string };

/** How the last try of an action failed; gone once a try succeeds. Keyed by actionKey(). */
export interface Failure {
  at: Millis;
  failures: number;
  reason: string;
  message: string;
}

export interface Observed {
  sandboxes: readonly SandboxState[];
  containers: readonly ContainerState[];
  images: Readonly<Record<string, ImageState>>;
  volumes: 'pending' | 'mounted' | 'gone';
  /** Keys of actions under way: decide() asks for none of them again. */
  inFlight: ReadonlySet<string>;
  failures: Readonly<Record<string, Failure>>;
  node: { name: string; ips: string[] };
}

/** What the worker must remember between decisions; rebuild() makes it anew after a restart. */
export interface Memory {
  /** Keys of Events that were given out. */
  announced: Readonly<Record<string, true>>;
  /** Set when the termination was first seen; the deadline only shrinks. */
  termination?: { reason: string; message: string; startedAt: Millis; deadline: Millis };
  /** Attempts of containers whose records were removed: name -> highest attempt. */
  attempts: Readonly<Record<string, number>>;
  /** Sandbox attempt during which all init containers had succeeded, for when their records are gone. */
  initializedInSandbox?: number;
}

export type AnyContainer = Container | EphemeralContainer;

/** One call of the executor. Results come back only as observations. */
export type Action =
  | { kind: 'mountVolumes' }
  | { kind: 'pullImage'; image: string; container: string; always: boolean }
  | { kind: 'createSandbox'; attempt: number }
  /** Creates and starts; safe to repeat by (name, attempt). */
  | {
      kind: 'startContainer';
      name: string;
      containerKind: ContainerKind;
      attempt: number;
      sandboxId: string;
      imageId: string;
      backoffSeconds: number;
    }
  /** Stop signal now, kill at `deadline`. Asked again with an earlier deadline, the earlier one holds. */
  | { kind: 'stopContainer'; id: string; name: string; deadline: Millis }
  | { kind: 'removeContainer'; id: string; name: string; attempt: number }
  | { kind: 'stopSandbox'; id: string }
  | { kind: 'removeSandbox'; id: string }
  | { kind: 'unmountVolumes' }
  /** Deletes the object from the API with grace 0: the Pod is gone. */
  | { kind: 'finalizeDeletion' };

/** An Event on the Pod. */
export interface PodEvent {
  type: 'Normal' | 'Warning';
  reason: string;
  message: string;
  /** spec.initContainers{name}; absent: the Pod itself */
  fieldPath?: string;
}

export interface Input {
  pod: Pod;
  /** The object is gone from the API (force-deleted): only clean up. */
  removed: boolean;
  observed: Observed;
  memory: Memory;
  now: Millis;
}

export interface Decision {
  actions: Action[];
  /** The status as it should be; undefined where the node must not write one (the object is gone). */
  status: PodStatus | undefined;
  memory: Memory;
  events: PodEvent[];
  /** When to ask again though nothing happened. */
  wakeAt: Millis | undefined;
  /** Nothing is left of the Pod on this node. */
  done: boolean;
}
