/**
 * The sandbox image of a runtime that lifepod did not start: without it no Pod can run, and CRI's Status does not report that.
 *
 * Boundary: reports a missing image as a problem of the runtime whenever the node's status is read; retries on those reads.
 * Invariants:
 *  1. The check ends for good once the image, or a running sandbox of lifepod, has been seen: a later removal of the image does not
 *     make the node unready, because the runtime pulls the image again when it needs it.
 *  2. The runtime pulls the image in its own way, with its own credentials and mirrors: a trial sandbox makes it do so. The sandbox
 *     has lifepod's labels, so that the next engine removes it as an orphan if this engine is killed.
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
  /** The reference of the image; undefined: the runtime does not report it, and pins the image instead. */
  image: string | undefined;
  cgroupDriver: 'cgroupfs' | 'systemd' | undefined;
  timers: Timers;
  /** Ends a trial. */
  signal: AbortSignal;
  /** Called when a trial has ended: the reported problem has changed or is solved. */
  changed(): void;
}

const RETRY_MILLIS: Millis = 10_000;
const UNKNOWN_IMAGE = "the one that its configuration names (containerd: 'containerd config dump', under sandbox)";

/** The runtime's notReady(), which reports the lack of a sandbox image as well. */
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

/** Resolves when a sandbox has run and is removed. */
async function runTrialSandbox({ runtime, cgroupDriver, signal }: SandboxImageOptions): Promise<void> {
  const id = await runtime.runSandbox(
    {
      pod: { uid: randomUUID(), namespace: 'lifepod', name: 'sandbox-image-trial' },
      attempt: 0,
      hostname: '',
      logDirectory: '',
      labels: {},
      annotations: {},
      // The host network keeps CNI out of the trial: only the image and the runtime itself take part.
      hostNetwork: true,
      // With systemd's cgroup driver, runc accepts only a slice as parent.
      cgroupParent: cgroupDriver === 'systemd' ? 'system.slice' : undefined,
    },
    signal,
  );
  await runtime.stopSandbox(id, signal);
  await runtime.removeSandbox(id, signal);
}

/** The runtime's message, without the chain of its internal calls. */
export function trialFailure({ message }: Error): string {
  const [, image, why] = /failed to get sandbox image "([^"]+)": (.*)$/s.exec(message) ?? [];
  if (image === undefined || why === undefined) return `the container runtime cannot run a sandbox: ${message}`;
  const reason = why.replace(/^(failed to (pull|pull and unpack|resolve)( image| reference)?( "[^"]*")?: )+/, '');
  return `the container runtime has no sandbox image, and cannot pull it: ${image}: ${reason}`;
}
