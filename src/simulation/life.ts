/** The life of one Pod in virtual time: its inputs and its results. */
import type { Pod, PodStatus } from '../api/generated/types.ts';
import type { Action, HookKind, NodeEnd, PodEvent, ProbeKind, Transition } from '../lifecycle/types.ts';
import type { RunScript, TraceEntry } from '../runtime/simulated/simulated-runtime.ts';

/** Latency of a call of the runtime. */
export const LATENCY_MILLIS = 5;

/** The agent dies at the executed action with this number, counted from 1. */
export interface Crash {
  action: number;
  /** The action is still requested, but its result is lost. */
  asked: boolean;
  /** How long no agent runs; absent: 50 ms. */
  millis?: number;
  /** The machine reboots: every process on it ends too. */
  reboot?: boolean;
}

/** The runtime does not respond for `millis`. */
export interface Outage {
  millis: number;
  /** When it begins; or the number of the executed action, and how long after its request (0: before its first call). */
  at?: number;
  action?: number;
  afterMillis?: number;
  /** The calls under way still take effect. */
  takesEffect?: boolean;
}

/** Containers or records are lost without the agent's doing. */
export interface Loss {
  at: number;
  /**
   * record: the records of exited containers; running: running containers are killed and lose their records; damage: for `millis`,
   * removing the records of exited containers has no effect.
   */
  what: 'record' | 'running' | 'damage';
  names: string[];
  millis?: number;
}

export interface Deletion {
  at: number;
  graceSeconds: number;
  /** The condition DeletionReason, set just before. */
  reason?: string;
}

/** Times are milliseconds from the start of the simulation. */
export interface Life {
  pod: Pod;
  /** Per container name, the run of each attempt; the last one repeats. */
  scripts: Record<string, RunScript[]>;
  deletions?: Deletion[];
  /** The object is removed from the API at once. */
  forcedAt?: number;
  /** A client gives up an entry (PUT pods/NAME/defer). */
  skips?: { at: number; entry: string }[];
  sandboxLostAt?: number;
  /** The runtime loses the records of the init containers before the last one that has begun. */
  initRecordsLostAt?: number;
  losses?: Loss[];
  /** The node terminates the Pod. */
  nodeEnd?: { at: number; by: Omit<NodeEnd, 'at'> };
  /** The node terminates the Pod a second time. */
  nextNodeEnd?: { at: number; by: Omit<NodeEnd, 'at'> };
  maxGracePeriodExtensionSeconds?: number;
  /** How long writing steps to the record takes. */
  recordMillis?: number;
  /** The machine's clock is set, by this many milliseconds. */
  clockSteps?: { at: number; millis: number }[];
  /** How long it takes until the object shows a written status; with defer containers 1 ms by default. */
  statusMillis?: number;
  crashes?: Crash[];
  /** The agent dies at this time. */
  absences?: { at: number; millis: number; reboot?: boolean }[];
  outages?: Outage[];
  /** A crash during the start of a defer container makes the start fail this many milliseconds later, as with containerd. */
  cutOffStartsMillis?: number;
  /** Latency of the start of a container; absent: that of other calls. */
  startMillis?: number | undefined;
  /** Numbers of runtime calls that fail. */
  faults?: number[];
  absentImages?: boolean;
  pullable?: (reference: string) => boolean;
  /** An image with this name appears on the node. */
  imageAppears?: { at: number; name: string };
  /** Called for each try to mount the volumes, counted from 1. */
  mount?: (tries: number) => Promise<void>;
  /** The result of a probe this long after the start of its run; absent: success. */
  probe?: (run: { name: string; attempt: number; probe: ProbeKind }, aliveMillis: number) => 'Success' | 'Failure';
  /** The duration of a hook, and why it fails. */
  hook?: (run: { name: string; attempt: number; hook: HookKind }) => { millis: number; failure?: string };
  /** Edits of the object. */
  edits?: { at: number; edit: (pod: Pod) => Pod }[];
  limitMillis?: number;
}

export interface LifeResult {
  trace: TraceEntry[];
  /** Every call of the runtime. */
  calls: readonly { at: number; call: string }[];
  pod: Pod;
  /** undefined: still there at the limit */
  goneAt: number | undefined;
  /** When the object was removed from the API. */
  removedAt: number | undefined;
  events: (PodEvent & { at: number })[];
  transitions: Transition[];
  statuses: { at: number; status: PodStatus }[];
  actions: { at: number; action: Action }[];
  probes: { at: number; container: string; attempt: number; probe: ProbeKind; result: 'Success' | 'Failure' }[];
  hooks: { at: number; container: string; hook: HookKind }[];
  /** The intervals in which no agent ran. */
  absences: { from: number; to: number }[];
  /** Actions requested while the same action was under way in the same agent. */
  duplicates: string[];
  start: number;
  now: number;
}
