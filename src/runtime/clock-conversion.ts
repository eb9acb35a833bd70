/**
 * Converts the runtime's times to the engine's clock. The runtime uses the machine's clock, which can be set; the engine's clock is not
 * affected (platform/node-js.ts). Each time is converted when it is first read, and remains the same when the machine's clock is set later.
 */
import type { Millis } from '../machinery/time.ts';
import type { Clock } from '../platform/platform.ts';
import type { ContainerObservation, PodObservation } from './runtime.ts';

type Stamps = Pick<ContainerObservation, 'createdAt' | 'startedAt' | 'finishedAt'>;

export interface SteadyStamps {
  read(podUid: string, seen: PodObservation): PodObservation;
  /** Returns the observations by Pod UID with all times converted. Forgets the times of Pods that are missing in `seen`. */
  readAll(seen: Map<string, PodObservation>): Map<string, PodObservation>;
}

/** `machine`: the runtime's clock. A converted time is at most the current time of `engine`. */
export function createSteadyStamps(engine: Clock, machine: Clock): SteadyStamps {
  /** By Pod UID, then by ID of the sandbox or container. */
  const known = new Map<string, Map<string, Stamps>>();
  const readStamp = (stamp: Millis): Millis => {
    const ahead = machine.now() - engine.now();
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

/**
 * Smaller differences of the two clocks are not corrected. They may result from reading the clocks one after the other, or from small
 * corrections of the machine's clock.
 */
const STEP_MILLIS = 500;
