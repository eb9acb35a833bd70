/**
 * Stores facts about sandboxes and containers in addition to CRI's responses: their Pod, values that cannot change any more, and exits that
 * CRI has not reported yet.
 *
 * Invariant: an observation is also possible without an entry, from CRI's responses.
 */
import type { Millis } from '../../machinery/time.ts';
import type { ContainerObservation } from '../runtime.ts';

export interface ContainerFacts {
  podUid: string;
  /** As CRI records it, which is later than the start event. A published start time must be the one that a new engine reads. */
  startedAt?: Millis;
  /** The time of the start event, for containers whose start CRI has not recorded. */
  startEventAt?: Millis;
  /** As returned by ContainerStatus: with a digest if there is one. */
  imageRef?: string;
  /** The exit of the container's first process, from an event, a task or a shim. */
  exit?: { exitCode: number; finishedAt: Millis };
  outOfMemory?: boolean;
  /**
   * Resolved when containerd has deleted the container, or its task. containerd deletes the task after it has read all output of the
   * container (log-end.ts). To wait for the deletion, call logEndOf().
   */
  logEnd?: PromiseWithResolvers<void>;
  /** The observation after the exit, or after a start that was cut. While it is set, the container is not queried again. */
  final?: ContainerObservation;
}

export interface SandboxFacts {
  podUid: string;
  ips?: string[];
  /** The sandbox's first process has ended. The sandbox is then not ready, even if CRI still reports it as ready. */
  exited?: boolean;
}

export interface Facts {
  containers: Map<string, ContainerFacts>;
  sandboxes: Map<string, SandboxFacts>;
  /** The IDs of containers whose StartContainer call is under way. Their start is not reported: the caller itself observes the Pod. */
  starting: Set<string>;
}

export const emptyFacts = (): Facts => ({ containers: new Map(), sandboxes: new Map(), starting: new Set() });

export function containerFacts(facts: Facts, id: string, podUid: string): ContainerFacts {
  let known = facts.containers.get(id);
  if (known === undefined) {
    known = { podUid };
    facts.containers.set(id, known);
  }
  return known;
}

export function sandboxFacts(facts: Facts, id: string, podUid: string): SandboxFacts {
  let known = facts.sandboxes.get(id);
  if (known === undefined) {
    known = { podUid };
    facts.sandboxes.set(id, known);
  }
  return known;
}

export function logEndOf(known: ContainerFacts): PromiseWithResolvers<void> {
  known.logEnd ??= Promise.withResolvers();
  return known.logEnd;
}
