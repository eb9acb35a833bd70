/**
 * The runtime's times in the engine's own time. The runtime stamps what happens with the machine's clock; the engine counts from its
 * start and follows no step of that clock (platform/node.ts). Each stamp is read once, by the difference of the two clocks
 * when it is first seen, which is moments after it was made: a step that comes later moves it no more.
 */
import type { Clock, Millis } from '../platform/platform.ts';
import type { ContainerObservation, PodObservation } from './runtime.ts';

type Stamps = Pick<ContainerObservation, 'createdAt' | 'startedAt' | 'finishedAt'>;

export interface SteadyStamps {
  /** The observation of the Pod with its times in the engine's. */
  read(podUid: string, seen: PodObservation): PodObservation;
  readAll(seen: Map<string, PodObservation>): Map<string, PodObservation>;
}

/** `machine`: the machine's clock. What seems to lie ahead has just happened. */
export function createSteadyStamps(engine: Clock, machine: Clock): SteadyStamps {
  /** By Pod UID, then ID of sandbox or container. */
  const known = new Map<string, Map<string, Stamps>>();
  const readStamp = (stamp: Millis): Millis => {
    const ahead = machine.now() - engine.now();
    // Reading the clocks is no step.
    return Math.min(engine.now(), Math.abs(ahead) < STEP_MILLIS ? stamp : stamp - ahead);
  };
  const read = (podUid: string, seen: PodObservation): PodObservation => {
    const before = known.get(podUid);
    const next = new Map<string, Stamps>();
    const steady = <T extends Partial<Stamps> & { id: string; createdAt: Millis }>(each: T): T => {
      const old = before?.get(each.id);
      const stamps: Stamps = { createdAt: old?.createdAt ?? readStamp(each.createdAt) };
      for (const key of ['startedAt', 'finishedAt'] as const) {
        const stamp = each[key];
        if (stamp !== undefined) stamps[key] = old?.[key] ?? readStamp(stamp);
      }
      next.set(each.id, stamps);
      return { ...each, ...stamps };
    };
    const observation = { sandboxes: seen.sandboxes.map(steady), containers: seen.containers.map(steady) };
    if (next.size === 0) known.delete(podUid);
    else known.set(podUid, next);
    return observation;
  };
  return {
    read,
    readAll(seen) {
      for (const uid of known.keys()) if (!seen.has(uid)) known.delete(uid);
      return new Map([...seen].map(([uid, observation]) => [uid, read(uid, observation)]));
    },
  };
}

/** A smaller difference is left alone: clocks that are set right bit by bit have it all the time. */
const STEP_MILLIS = 500;
