/**
 * One decision in the making: what it looks at, what it has asked for, what it will remember.
 */
import type { Millis } from '../machinery/time.ts';
import { newPlan, type Plan } from './plan.ts';
import type { Stop } from './stops.ts';
import type { Input, Memory, ProbeMemory } from './types.ts';
import { type PodView, viewOf } from './view.ts';

export interface Turn {
  input: Input;
  view: PodView;
  plan: Plan;
  now: Millis;
  /** The parts of Memory that the rules write while they look. */
  probes: Record<string, ProbeMemory>;
  stops: Record<string, Stop>;
  signalledAt: Record<string, Millis>;
}

export function newTurn(input: Input): Turn {
  const { memory, observed, now } = input;
  const known = new Set(observed.containers.map(({ id }) => id));
  const ofKnown = <T>(record: Readonly<Record<string, T>>): Record<string, T> =>
    Object.fromEntries(Object.entries(record).filter(([key]) => known.has(key.split('/')[0] ?? '')));
  return {
    input,
    view: viewOf(input),
    plan: newPlan(observed, now),
    now,
    probes: ofKnown(memory.probes),
    stops: ofKnown(memory.stops),
    signalledAt: ofKnown(memory.signalledAt),
  };
}

export const emptyMemory = (): Memory => ({
  announced: new Set(),
  recorded: new Set(),
  probes: {},
  stops: {},
  signalledAt: {},
  ended: {},
  interrupted: new Set(),
  unstarted: new Set(),
});

/** spec.terminationGracePeriodSeconds, in milliseconds. */
export const graceMillis = (view: PodView): Millis => (view.spec.terminationGracePeriodSeconds ?? 30) * 1000;
