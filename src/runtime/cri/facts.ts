/**
 * Facts about sandboxes and containers in addition to CRI's responses: the Pod to which they belong (so that an event finds its
 * Pod), values that cannot change any more (so that they are queried once), and what an event reported before CRI's own view has it.
 *
 * Invariant: an entry is only a shortcut or a newer fact, never the only record; dropping one costs a query.
 */
import type { Millis } from '../../machinery/time.ts';
import type { ContainerObservation } from '../runtime.ts';

export interface ContainerFacts {
  podUid: string;
  startedAt?: Millis;
  /** As returned by ContainerStatus: a digest if there is one. */
  imageRef?: string;
  /** From the exit event of its first process. */
  exit?: { exitCode: number; finishedAt: Millis };
  outOfMemory?: boolean;
  /** The last observation of an exited container. */
  final?: ContainerObservation;
}

export interface SandboxFacts {
  podUid: string;
  ips?: string[];
  /** Its first process has ended: the sandbox is not ready, whatever CRI still reports. */
  exited?: boolean;
}

export interface Facts {
  containers: Map<string, ContainerFacts>;
  sandboxes: Map<string, SandboxFacts>;
  /** Containers whose start is under way: the caller of the start observes on its own. */
  starting: Set<string>;
}

export const emptyFacts = (): Facts => ({ containers: new Map(), sandboxes: new Map(), starting: new Set() });

/** The entry of the container, created if it is missing. */
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
