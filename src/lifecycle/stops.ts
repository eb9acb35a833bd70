/**
 * Why runs are ended though their Pod lives on, and those of defer containers at their deadline. It decides on what comes after
 * them, more than their exit codes do: so it is written down before they hear of it, and a new agent is given what was.
 */
import type { Millis } from '../machinery/time.ts';
import type { Turn } from './turn.ts';

export interface Stop {
  /** The message of its Killing Event; absent: that of a Pod that ends. */
  message?: string;
  /** What ended before has ended by itself. */
  at: Millis;
  deadline: Millis;
  /** It runs again though its exit code alone would not want it. */
  restart: boolean;
  /** For another image: the next run is no repetition, and needs no back-off. */
  replaced?: true;
}

/** By container ID. */
export type Stops = Readonly<Record<string, Stop>>;

/** All that hold, where one of them is new. */
export const stopsToKeep = ({ stops, input: { memory } }: Turn): Stops | undefined =>
  Object.keys(stops).some((id) => memory.stops[id] === undefined) ? stops : undefined;
