/**
 * Checks whether a runtime that lifepod did not start has its sandbox image. No Pod can run without the image, and the Status call of CRI
 * does not report a missing image.
 *
 * Invariants:
 * - The check ends permanently after it has seen the image or a running sandbox of lifepod, or after a trial has succeeded. If the image is
 *   removed later, the node stays ready, because the runtime pulls a missing image itself.
 * - The runtime pulls the image itself, with its own credentials and mirrors, when the check runs a trial sandbox. The sandbox has
 *   lifepod's labels, so that the next engine removes it as an orphan if this engine is killed.
 */
import { randomUUID } from 'node:crypto';
import type { Millis } from '../../machinery/time.ts';
import type { Timers } from '../../platform/platform.ts';
import type { ContainerRuntime } from '../../runtime/runtime.ts';

export interface SandboxImageOptions {
  runtime: Pick<
    ContainerRuntime,
    'notReady' | 'imageStatus' | 'listImages' | 'observeAll' | 'runSandbox' | 'stopSandbox' | 'removeSandbox'
  >;
  /** Undefined if the runtime does not report the reference; such a runtime pins the image instead. */
  image: string | undefined;
  cgroupDriver: 'cgroupfs' | 'systemd' | undefined;
  timers: Timers;
  signal: AbortSignal;
  /** Called when a trial has ended, because the reported problem may have changed or may be solved. */
  changed(): void;
}

const RETRY_MILLIS: Millis = 10_000;
const UNKNOWN_IMAGE = "the one that its configuration names (containerd: 'containerd config dump', under sandbox)";

/** Returns a function that replaces the runtime's notReady() and also reports a missing sandbox image. */
export function notReadyWithoutSandboxImage(options: SandboxImageOptions): ContainerRuntime['notReady'] {
  const { runtime, image, timers, changed } = options;
  let seen = false;
  let running = false;
  let tryAgainAt = Number.NEGATIVE_INFINITY;
  let problem = `the container runtime pulls its sandbox image: ${image ?? UNKNOWN_IMAGE}`;

  const isPresent = async (signal: AbortSignal): Promise<boolean> => {
    if (image !== undefined) return (await runtime.imageStatus(image, signal)) !== undefined;
    return (await runtime.listImages(signal)).some(({ pinned }) => pinned === true);
  };
  const hasSandbox = async (signal: AbortSignal): Promise<boolean> =>
    [...(await runtime.observeAll(signal)).values()].some(({ sandboxes }) => sandboxes.some(({ ready }) => ready));
  const tryOut = async (): Promise<void> => {
    running = true;
    try {
      await runTrialSandbox(options);
      seen = true;
    } catch (error) {
      problem = trialFailure(error as Error);
      tryAgainAt = timers.now() + RETRY_MILLIS;
    }
    running = false;
    if (!options.signal.aborted) changed();
  };

  return async (signal) => {
    const problems = await runtime.notReady(signal);
    if (seen || problems.length > 0) return problems;
    seen ||= (await isPresent(signal)) || (await hasSandbox(signal));
    if (seen) return [];
    if (!running && timers.now() >= tryAgainAt) void tryOut();
    return [problem];
  };
}

async function runTrialSandbox({ runtime, cgroupDriver, signal }: SandboxImageOptions): Promise<void> {
  const id = await runtime.runSandbox(
    {
      pod: { uid: randomUUID(), namespace: 'lifepod', name: 'sandbox-image-trial' },
      attempt: 0,
      hostname: '',
      logDirectory: '',
      labels: {},
      annotations: {},
      // With the host network, the trial does not depend on CNI.
      hostNetwork: true,
      // With the systemd cgroup driver, runc accepts only a slice as the parent.
      cgroupParent: cgroupDriver === 'systemd' ? 'system.slice' : undefined,
    },
    signal,
  );
  await runtime.stopSandbox(id, signal);
  await runtime.removeSandbox(id, signal);
}

/** If the image cannot be pulled, the text contains the runtime's message without the prefixes that the runtime's internal calls added. */
export function trialFailure({ message }: Error): string {
  const [, image, why] = /failed to get sandbox image "([^"]+)": (.*)$/s.exec(message) ?? [];
  if (image === undefined || why === undefined) return `the container runtime cannot run a sandbox: ${message}`;
  const reason = why.replace(/^(failed to (pull|pull and unpack|resolve)( image| reference)?( "[^"]*")?: )+/, '');
  return `the container runtime has no sandbox image, and cannot pull it: ${image}: ${reason}`;
}
