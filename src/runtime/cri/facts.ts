/**
 * What is known of sandboxes and containers besides what CRI says when asked: to whom they belong (so an event finds its
 * Pod), what cannot change any more (so it is asked for once), and what an event told before CRI's own view has it.
 *
 * Invariants: an entry is only a shortcut or a newer fact, never the only record; dropping one costs a question.
 */
import type { Millis } from '../../machinery/time.ts';
import type { ContainerObservation } from '../runtime.ts';

export interface ContainerFacts {
  podUid: string;
  startedAt?: Millis;
  /** As ContainerStatus gives it: a digest where there is one. */
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
  /** Its first process ended: it is not ready, whatever CRI still says. */
  exited?: boolean;
}

export interface Facts {
  containers: Map<string, ContainerFacts>;
  sandboxes: Map<string, SandboxFacts>;
  /** Containers whose start was asked for and not yet answered: who asked looks by himself. */
  starting: Set<string>;
}

export const emptyFacts = (): Facts => ({ containers: new Map(), sandboxes: new Map(), starting: new Set() });

/** The entry of the container, made where there is none. */
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
