/**
 * Runs the node's image pulls: a limited number at a time, in the order of the requests.
 * Invariants:
 * - Requests for the same image with the same credentials share a pull that has not ended. Requests with other credentials do not share it,
 *   because the registry must authorize each of them.
 * - A pull is aborted when the last request that waits for it is aborted.
 * - The puller adds no part of a credential to an error.
 */

import type { PullProgress } from '../../api/core/v1/pod/status/pull-progress.ts';
import type { Millis } from '../../machinery/time.ts';
import type { Timer, Timers } from '../../platform/platform.ts';
import { storedName } from '../../runtime/images/references.ts';
import type { ContainerRuntime, ImageInfo, RegistryCredential } from '../../runtime/runtime.ts';
import { OutcomeUnknownError } from '../../runtime/runtime.ts';

export const DEFAULT_MAX_PARALLEL_PULLS = 5;
/** containerd has no event for the progress of pulls, so the progress is polled. */
const PROGRESS_MILLIS = 1000;

export interface PulledImage {
  info: ImageInfo;
  /** Without the wait for other pulls. */
  millis: Millis;
}

export interface ImagePuller {
  /**
   * Pulls with the first of the credentials that the registry accepts, or anonymously if `credentials` is empty. If all pulls fail, rejects
   * with the runtime's messages. `onProgress` is called when the pull must wait for other pulls, and about every second once it has run for
   * a second.
   */
  pull(
    reference: string,
    credentials: readonly RegistryCredential[],
    onProgress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<PulledImage>;
}

type ProgressListener = (progress: PullProgress) => void;

interface PullState {
  reference: string;
  progress: PullProgress | undefined;
  /** One listener for each request that waits for the pull. */
  listeners: Set<ProgressListener>;
}

interface Pull {
  state: PullState;
  result: Promise<PulledImage>;
  abort: AbortController;
}

interface PullerOptions {
  runtime: Pick<ContainerRuntime, 'pullImage' | 'imageStatus' | 'pullProgress'>;
  timers: Timers;
  maxParallel: number;
}

function report(pull: PullState, progress: PullProgress): void {
  pull.progress = progress;
  for (const listener of pull.listeners) listener(progress);
}

export function createImagePuller({ runtime, timers, maxParallel }: PullerOptions): ImagePuller {
  const pulls = new Map<string, Pull>();
  const limit = createLimit(maxParallel);
  const polling = createProgressPolling(runtime, timers);

  function begin(key: string, reference: string, credentials: readonly RegistryCredential[]): Pull {
    const abort = new AbortController();
    const state: PullState = { reference, progress: undefined, listeners: new Set() };
    const work = (): Promise<PulledImage> => {
      state.progress = undefined;
      polling.add(state);
      return pullAlone(runtime, timers, reference, abort.signal, credentials);
    };
    const result = limit(work, () => report(state, { state: 'waiting' }), abort.signal);
    const pull: Pull = { state, result, abort };
    const end = (): void => drop(key, pull);
    result.then(end, end);
    pulls.set(key, pull);
    return pull;
  }

  function drop(key: string, pull: Pull): void {
    if (pulls.get(key) === pull) pulls.delete(key);
    polling.remove(pull.state);
  }

  return {
    async pull(reference, credentials, onProgress, signal) {
      signal.throwIfAborted();
      const key = JSON.stringify([reference, credentials]);
      const pull = pulls.get(key) ?? begin(key, reference, credentials);
      const { progress, listeners } = pull.state;
      const listener: ProgressListener = (current) => onProgress(current);
      listeners.add(listener);
      if (progress !== undefined) listener(progress);
      try {
        return await unlessAborted(pull.result, signal);
      } finally {
        listeners.delete(listener);
        if (listeners.size === 0) {
          drop(key, pull);
          pull.abort.abort(new Error('no request waits for the image any more'));
        }
      }
    },
  };
}

async function unlessAborted<T>(result: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const stop = (): void => reject(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  try {
    return await Promise.race([result, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

interface ProgressPolling {
  /** Reports the progress of the pull until remove() is called. */
  add(pull: PullState): void;
  remove(pull: PullState): void;
}

function createProgressPolling(
  runtime: Pick<PullerOptions['runtime'], 'pullProgress'>,
  timers: Timers,
): ProgressPolling {
  const startTimes = new Map<PullState, Millis>();
  let timer: Timer | undefined;
  const poll = async (): Promise<void> => {
    timer = undefined;
    const slow = [...startTimes].filter(([, at]) => timers.now() - at >= PROGRESS_MILLIS).map(([pull]) => pull);
    const names = slow.map(({ reference }) => storedName(reference));
    const found = await runtime.pullProgress?.(names, AbortSignal.timeout(PROGRESS_MILLIS)).catch(() => undefined);
    for (const pull of slow) report(pull, { state: 'pulling', ...found?.get(storedName(pull.reference)) });
    arm();
  };
  const arm = (): void => {
    if (startTimes.size > 0) timer ??= timers.at(timers.now() + PROGRESS_MILLIS, () => void poll());
  };
  return {
    add(pull) {
      startTimes.set(pull, timers.now());
      arm();
    },
    remove(pull) {
      startTimes.delete(pull);
      if (startTimes.size > 0) return;
      timer?.cancel();
      timer = undefined;
    },
  };
}

/**
 * Pulls the image immediately: the pull neither counts toward the limit of createImagePuller() nor is shared with other requests. Rejects
 * if the pull fails or the image does not exist after the pull.
 */
export async function pullAlone(
  runtime: PullerOptions['runtime'],
  timers: Timers,
  reference: string,
  signal: AbortSignal,
  credentials: readonly RegistryCredential[] = [],
): Promise<PulledImage> {
  const began = timers.now();
  await pullWith(runtime, reference, credentials, signal);
  const info = await runtime.imageStatus(reference, signal);
  if (info === undefined) throw new Error(`the image ${JSON.stringify(reference)} no longer exists after its pull`);
  return { info, millis: timers.now() - began };
}

/** Rejects with a message in the form of upstream's aggregate error. */
async function pullWith(
  runtime: PullerOptions['runtime'],
  reference: string,
  credentials: readonly RegistryCredential[],
  signal: AbortSignal,
): Promise<void> {
  const refusals: Error[] = [];
  for (const credential of credentials.length === 0 ? [undefined] : credentials) {
    try {
      await runtime.pullImage(reference, credential, signal);
      return;
    } catch (error) {
      signal.throwIfAborted();
      // Without an answer, it is unknown whether the registry refused the credential: do not try the next one.
      if (error instanceof OutcomeUnknownError) throw error;
      refusals.push(error as Error);
    }
  }
  const messages = [...new Set(refusals.map(({ message }) => message))];
  throw messages.length === 1 ? refusals[0] : new Error(`[${messages.join(', ')}]`);
}

/**
 * The returned function runs tasks in order, at most `most` at a time. `waits` is called when a task enters the queue. If the signal of a
 * waiting task aborts, the task leaves the queue and its promise rejects.
 */
function createLimit(most: number): <T>(work: () => Promise<T>, waits: () => void, signal: AbortSignal) => Promise<T> {
  let active = 0;
  const queue: (() => void)[] = [];
  return async (work, waits, signal) => {
    // A task that ends passes its slot to the next task in the queue, so `active` stays the same.
    if (active < most) active++;
    else {
      await new Promise<void>((resolve, reject) => {
        const leave = (): void => {
          queue.splice(queue.indexOf(enter), 1);
          reject(signal.reason);
        };
        const enter = (): void => {
          signal.removeEventListener('abort', leave);
          resolve();
        };
        queue.push(enter);
        signal.addEventListener('abort', leave, { once: true });
        waits();
      });
    }
    try {
      return await work();
    } finally {
      const next = queue.shift();
      if (next === undefined) active--;
      else next();
    }
  };
}
