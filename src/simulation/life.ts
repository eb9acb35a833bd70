/** The life of one Pod in virtual time: what is given of it, and what is seen of it. */
import type { Pod, PodStatus } from '../api/generated/types.ts';
import type { Action, HookKind, NodeEnd, PodEvent, ProbeKind, Transition } from '../lifecycle/types.ts';
import type { RunScript, TraceEntry } from '../runtime/simulated/simulated-runtime.ts';

/** Latency of a call of the runtime. */
export const LATENCY_MILLIS = 5;

/** The agent dies at the executed action of that number, counted from 1. */
export interface Crash {
  action: number;
  /** The action was still asked for; its answer is lost. */
  asked: boolean;
  /** How long no agent runs; absent: 50 ms. */
  millis?: number;
  /** The machine reboots: every process on it ends too. */
  reboot?: boolean;
}

/** The runtime does not answer for `millis`. */
export interface Outage {
  millis: number;
  /** When it begins; or the executed action of that number, and how long after it was asked for (0: before its first call). */
  at?: number;
  action?: number;
  afterMillis?: number;
  /** What the calls under way asked for still happens. */
  takesEffect?: boolean;
}

/** Something of these containers is lost behind the agent's back. */
export interface Loss {
  at: number;
  /**
   * record: the records of exited ones; running: running ones are killed and their records with them; damage: for `millis`, a
   * removal of the records of exited ones has no effect.
   */
  what: 'record' | 'running' | 'damage';
  names: string[];
  millis?: number;
}

export interface Deletion {
  at: number;
  graceSeconds: number;
  /** The condition DeletionReason is set just before. */
  reason?: string;
}

/** Times are milliseconds from the start of the simulation. */
export interface Life {
  pod: Pod;
  /** Per container name, the run of each attempt; the last one repeats. */
  scripts: Record<string, RunScript[]>;
  deletions?: Deletion[];
  /** The object is taken from the API at once. */
  forcedAt?: number;
  /** A client gives up an entry (PUT pods/NAME/defer). */
  skips?: { at: number; entry: string }[];
  sandboxLostAt?: number;
  /** The runtime loses the records of the init containers before the last one that has begun. */
  initRecordsLostAt?: number;
  losses?: Loss[];
  /** The node ends the Pod. */
  nodeEnd?: { at: number; by: Omit<NodeEnd, 'at'> };
  /** And again. */
  nextNodeEnd?: { at: number; by: Omit<NodeEnd, 'at'> };
  maxGracePeriodExtensionSeconds?: number;
  /** How long it takes to write steps into the record. */
  recordMillis?: number;
  /** The machine's clock is set, by so many milliseconds. */
  clockSteps?: { at: number; millis: number }[];
  /** How long it takes until the object shows a status that was written; with defer containers by default 1 ms. */
  statusMillis?: number;
  crashes?: Crash[];
  /** The agent dies at a time. */
  absences?: { at: number; millis: number; reboot?: boolean }[];
  outages?: Outage[];
  /** A crash while a defer container is started lets the start fail so many milliseconds later, as with containerd. */
  cutOffStartsMillis?: number;
  /** Latency of the start of a container; absent: that of any call. */
  startMillis?: number | undefined;
  /** Numbers of runtime calls that fail. */
  faults?: number[];
  absentImages?: boolean;
  pullable?: (reference: string) => boolean;
  /** An image of that name comes to the node. */
  imageAppears?: { at: number; name: string };
  /** A try to make the volumes, counted from 1. */
  mount?: (tries: number) => Promise<void>;
  /** How a probe of a run goes, so long after its start; absent: it succeeds. */
  probe?: (run: { name: string; attempt: number; probe: ProbeKind }, aliveMillis: number) => 'Success' | 'Failure';
  /** How long a hook takes, and why it fails. */
  hook?: (run: { name: string; attempt: number; hook: HookKind }) => { millis: number; failure?: string };
  /** Changes of the object. */
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
  /** Times in which no agent ran. */
  absences: { from: number; to: number }[];
  /** Actions asked for while the same one was under way in one agent. */
  duplicates: string[];
  start: number;
  now: number;
}
