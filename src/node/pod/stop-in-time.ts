/**
 * Stops of containers at a deadline in milliseconds: CRI counts a grace period in whole seconds, so a second stop, without a
 * grace, kills in time beside the first.
 *
 * Invariant: between the stop signal and the kill of a container there are 2 s, however late the signal comes, unless its deadline
 * is not after its creation: so the core asks for a kill without a signal.
 */
import { MINIMUM_GRACE_MILLIS } from '../../lifecycle/stops.ts';
import type { Millis } from '../../machinery/time.ts';
import type { Timers } from '../../platform/platform.ts';
import type { ContainerRuntime } from '../../runtime/runtime.ts';

export type StopInTime = (podUid: string, id: string, deadline: Millis, signal: AbortSignal) => Promise<void>;

export function createStopInTime(
  runtime: Pick<ContainerRuntime, 'stopContainer' | 'observe'>,
  timers: Timers,
): StopInTime {
  /** By container ID, of those that are being stopped. */
  const signalledAt = new Map<string, Millis>();

  /** The core wants no signal; or nothing of the container is left that could get one. */
  async function isKill(podUid: string, id: string, deadline: Millis, signal: AbortSignal): Promise<boolean> {
    const { containers } = await runtime.observe(podUid, signal);
    const container = containers.find((each) => each.id === id);
    return container === undefined || deadline <= container.createdAt;
  }

  return async (podUid, id, deadline, signal) => {
    const isLate = deadline <= timers.now() && !signalledAt.has(id);
    if (isLate && (await isKill(podUid, id, deadline, signal))) return runtime.stopContainer(id, 0, signal);
    const first = signalledAt.get(id) ?? timers.now();
    signalledAt.set(id, first);
    const killAt = Math.max(deadline, first + MINIMUM_GRACE_MILLIS);
    const graceSeconds = Math.max(0, Math.ceil((killAt - timers.now()) / 1000));
    // What it fails of, the stop with the grace does within the second.
    const kill = timers.at(killAt, () => void runtime.stopContainer(id, 0, signal).catch(() => undefined));
    try {
      await runtime.stopContainer(id, graceSeconds, signal);
      signalledAt.delete(id);
    } catch (error) {
      // The signal may not have arrived. A stop that was given up has sent it.
      if (!signal.aborted) signalledAt.delete(id);
      throw error;
    } finally {
      kill.cancel();
    }
  };
}
