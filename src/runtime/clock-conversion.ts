/**
 * Converts the runtime's times to the engine's time. The runtime stamps events with the machine's clock; the engine counts from its
 * start and follows no step of that clock (platform/node.ts). Each stamp is converted once, by the difference of the two clocks
 * when it is first seen, moments after it was made: a later step does not change it any more.
 */
import type { Millis } from '../machinery/time.ts';
import type { Clock } from '../platform/platform.ts';
import type { ContainerObservation, PodObservation } from './runtime.ts';

type Stamps = Pick<ContainerObservation, 'createdAt' | 'startedAt' | 'finishedAt'>;

export interface SteadyStamps {
  /** The observation of the Pod, with its times converted to the engine's. */
  read(podUid: string, seen: PodObservation): PodObservation;
  readAll(seen: Map<string, PodObservation>): Map<string, PodObservation>;
}

/** `machine`: the machine's clock. A time in the future counts as now. */
export function createSteadyStamps(engine: Clock, machine: Clock): SteadyStamps {
  /** By Pod UID, then by ID of the sandbox or container. */
  const known = new Map<string, Map<string, Stamps>>();
  const readStamp = (stamp: Millis): Millis => {
    const ahead = machine.now() - engine.now();
    // A small difference is only due to reading one clock after the other.
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

/** A smaller difference is ignored: it is normal while a clock is being adjusted gradually. */
const STEP_MILLIS = 500;
