/** The life of one Pod in virtual time: its inputs and its results. */
import type { Pod, PodStatus } from '../api/generated/types.ts';
import type { Action, HookKind, NodeEnd, PodEvent, ProbeKind, Transition } from '../lifecycle/types.ts';
import type { RunScript, TraceEntry } from '../runtime/simulated/simulated-runtime.ts';

/** The duration of a call to the runtime. Life.startMillis replaces it for starts of containers. */
export const LATENCY_MILLIS = 5;

/** `action`: the number of the action at which the agent crashes, counted from 1 over all agents of the life. */
export interface Crash {
  action: number;
  /** Whether the action is still requested. If so, its result is lost. */
  asked: boolean;
  /** How long no agent runs; default: 50 ms. */
  millis?: number;
  /** Whether the machine reboots, so that every process on it ends too. */
  reboot?: boolean;
}

export interface Outage {
  millis: number;
  /**
   * The outage begins at the time `at`, or `afterMillis` after the request of action number `action`. With 0 (the default), the outage
   * begins before the action's first call.
   */
  at?: number;
  action?: number;
  afterMillis?: number;
  /** Whether calls in progress when the outage begins still take effect; default: false. */
  takesEffect?: boolean;
}

/** The runtime loses containers or records without a request by the agent. */
export interface Loss {
  at: number;
  /**
   * What happens to the containers `names`. record: the records of exited containers are deleted; running: running containers are killed,
   * and their records are deleted; damage: for `millis` (default: 60 s), exited containers cannot be removed; sandbox: the ready sandbox
   * ends.
   */
  what: 'record' | 'running' | 'damage' | 'sandbox';
  names: string[];
  millis?: number;
}

export interface Deletion {
  at: number;
  graceSeconds: number;
  /** The reason in the condition DeletionReason, which is set just before the deletion; absent: the condition is not set. */
  reason?: string;
}

/** A Pod and everything that happens to it. Times are milliseconds from the start of the simulation. */
export interface Life {
  pod: Pod;
  /** By container: the runs of its attempts. The last run repeats. A container without a script runs until it is killed. */
  scripts: Record<string, RunScript[]>;
  deletions?: Deletion[];
  /** When the object is removed from the API by force, without a grace period. */
  forcedAt?: number;
  /** When clients give up defer containers (PUT pods/NAME/defer). `entry`: the container's name. */
  skips?: { at: number; entry: string }[];
  sandboxLostAt?: number;
  /** When the runtime loses the records of the exited init containers that precede the init container that was started last. */
  initRecordsLostAt?: number;
  losses?: Loss[];
  nodeEnd?: { at: number; by: Omit<NodeEnd, 'at'> };
  nextNodeEnd?: { at: number; by: Omit<NodeEnd, 'at'> };
  maxGracePeriodExtensionSeconds?: number;
  /** How long writing steps to the record takes; absent: they are written immediately. */
  recordMillis?: number;
  /** When the machine's clock is set, and by how many milliseconds; negative: back. */
  clockSteps?: { at: number; millis: number }[];
  /** How long it takes until the object shows a written status. Default: 1 ms with defer containers, otherwise no time. */
  statusMillis?: number;
  crashes?: Crash[];
  /** The agent dies at `at`, and the next agent starts `millis` later. `reboot`: as in Crash. */
  absences?: { at: number; millis: number; reboot?: boolean }[];
  outages?: Outage[];
  /** If a crash loses the result of the start of a defer container, the start fails after this time, as with containerd; absent: never. */
  cutOffStartsMillis?: number;
  /** The duration of the start of a container; default: LATENCY_MILLIS. */
  startMillis?: number | undefined;
  /** The numbers of the runtime calls that fail, counted from 1. */
  faults?: number[];
  /** Whether the runtime has no image at first. Otherwise, it has busybox:1.28. */
  absentImages?: boolean;
  pullable?: (reference: string) => boolean;
  /** When the agent is notified that an image with this name has appeared on the node. */
  imageAppears?: { at: number; name: string };
  /** Mounts the volumes; rejects if the mount fails. `tries`: counted from 1. Default: every mount succeeds. */
  mount?: (tries: number) => Promise<void>;
  /** Returns the result of a probe that ends `aliveMillis` after the start of its container. Default: every probe succeeds. */
  probe?: (run: { name: string; attempt: number; probe: ProbeKind }, aliveMillis: number) => 'Success' | 'Failure';
  /** Returns the duration of a hook, and why it fails. Default: every hook succeeds immediately. */
  hook?: (run: { name: string; attempt: number; hook: HookKind }) => { millis: number; failure?: string };
  edits?: { at: number; edit: (pod: Pod) => Pod }[];
  /** When the simulation ends at the latest; default: after 1 h. */
  limitMillis?: number;
}

export interface LifeResult {
  trace: TraceEntry[];
  /** Every call to the runtime, not counting probes and hooks. */
  calls: readonly { at: number; call: string }[];
  pod: Pod;
  /** When nothing of the Pod was left on the node; undefined if something was left when the simulation ended. */
  goneAt: number | undefined;
  /** When the object was removed from the API; undefined if it was not. */
  removedAt: number | undefined;
  events: (PodEvent & { at: number })[];
  transitions: Transition[];
  statuses: { at: number; status: PodStatus }[];
  actions: { at: number; action: Action }[];
  probes: { at: number; container: string; attempt: number; probe: ProbeKind; result: 'Success' | 'Failure' }[];
  hooks: { at: number; container: string; hook: HookKind }[];
  absences: { from: number; to: number }[];
  /** Actions that were requested while the same agent was executing the same action. */
  duplicates: string[];
  start: number;
  now: number;
}
