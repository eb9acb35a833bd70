/**
 * The pulls of the node: so many at once, the others in the order in which they were asked for.
 * Boundary: decides neither whether to pull nor when to try again.
 * Invariants:
 *  1. Who asks for the same image with the same credentials while it is pulled shares the pull; other credentials do not,
 *     for the registry is to judge each.
 *  2. A pull ends when nobody waits for it any more.
 *  3. Nothing of a credential is in an error.
 */
import type { PullProgress } from '../../api/core/v1/pod/status/pull-progress.ts';
import type { Millis, Timer, Timers } from '../../platform/platform.ts';
import { storedName } from '../../runtime/images/references.ts';
import type { ContainerRuntime, ImageInfo, RegistryCredential } from '../../runtime/runtime.ts';
import { OutcomeUnknownError } from '../../runtime/runtime.ts';

export const DEFAULT_MAX_PARALLEL_PULLS = 5;
/** containerd has no event for bytes that arrive. */
const PROGRESS_MILLIS = 1000;

export interface PulledImage {
  info: ImageInfo;
  /** Of the pull alone, without its waiting for others. */
  millis: Millis;
}

export interface ImagePuller {
  /** Tries the credentials in order, and without any where there are none. Rejects with the registry's reasons. */
  pull(
    reference: string,
    credentials: readonly RegistryCredential[],
    onProgress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<PulledImage>;
}

interface Pull {
  reference: string;
  result: Promise<PulledImage>;
  abort: AbortController;
  /** Absent: it waits for others. */
  startedAt?: Millis;
  /** undefined: nothing is worth telling yet. */
  progress: PullProgress | undefined;
  waiting: Set<(progress: PullProgress) => void>;
}

interface PullerOptions {
  runtime: Pick<ContainerRuntime, 'pullImage' | 'imageStatus' | 'pullProgress'>;
  timers: Timers;
  maxParallel: number;
}

export function createImagePuller({ runtime, timers, maxParallel }: PullerOptions): ImagePuller {
  const pulls = new Map<string, Pull>();
  const limit = createLimit(maxParallel);
  let timer: Timer | undefined;

  const tell = (pull: Omit<Pull, 'result'>, progress: PullProgress): void => {
    pull.progress = progress;
    for (const listener of pull.waiting) listener(progress);
  };
  const running = (): Pull[] => [...pulls.values()].filter(({ startedAt }) => startedAt !== undefined);

  const look = async (): Promise<void> => {
    const looked = running().filter(({ startedAt = 0 }) => timers.now() - startedAt >= PROGRESS_MILLIS);
    const names = looked.map(({ reference }) => storedName(reference));
    const found = await runtime.pullProgress?.(names, AbortSignal.timeout(PROGRESS_MILLIS)).catch(() => undefined);
    for (const pull of looked) tell(pull, { state: 'pulling', ...found?.get(storedName(pull.reference)) });
    timer = undefined;
    lookLater();
  };
  const lookLater = (): void => {
    if (running().length > 0) timer ??= timers.at(timers.now() + PROGRESS_MILLIS, () => void look());
  };

  function begin(key: string, reference: string, credentials: readonly RegistryCredential[]): Pull {
    const abort = new AbortController();
    const unbegun: Omit<Pull, 'result'> = { reference, abort, waiting: new Set(), progress: undefined };
    const work = (): Promise<PulledImage> => {
      unbegun.progress = undefined;
      unbegun.startedAt = timers.now();
      lookLater();
      return pullAlone(runtime, timers, reference, abort.signal, credentials);
    };
    const pull: Pull = Object.assign(unbegun, {
      result: limit(work, () => tell(unbegun, { state: 'waiting' }), abort.signal),
    });
    const end = (): void => {
      if (pulls.get(key) === pull) pulls.delete(key);
      if (running().length > 0) return;
      timer?.cancel();
      timer = undefined;
    };
    pull.result.then(end, end);
    pulls.set(key, pull);
    lookLater();
    return pull;
  }

  return {
    async pull(reference, credentials, onProgress, signal) {
      signal.throwIfAborted();
      const key = JSON.stringify([reference, credentials]);
      const pull = pulls.get(key) ?? begin(key, reference, credentials);
      const listener = (progress: PullProgress): void => onProgress(progress);
      pull.waiting.add(listener);
      if (pull.progress !== undefined) listener(pull.progress);
      const { promise: aborted, reject } = Promise.withResolvers<never>();
      const stop = (): void => reject(signal.reason);
      signal.addEventListener('abort', stop, { once: true });
      try {
        return await Promise.race([pull.result, aborted]);
      } finally {
        signal.removeEventListener('abort', stop);
        pull.waiting.delete(listener);
        if (pull.waiting.size === 0) {
          if (pulls.get(key) === pull) pulls.delete(key);
          pull.abort.abort(new Error('nobody waits for the image any more'));
        }
      }
    },
  };
}

/** One pull, whatever else is pulled. */
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
  if (info === undefined) throw new Error(`the image ${JSON.stringify(reference)} is gone after its pull`);
  return { info, millis: timers.now() - began };
}

/** Upstream's aggregate: one reason as it is, several in brackets, each once. */
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
      // No registry has refused anything: the next credential would be asked of nobody.
      if (error instanceof OutcomeUnknownError) throw error;
      refusals.push(error as Error);
    }
  }
  const messages = [...new Set(refusals.map(({ message }) => message))];
  throw messages.length === 1 ? refusals[0] : new Error(`[${messages.join(', ')}]`);
}

/** Runs at most so many at once; who waits is told so, is served in order, or leaves when its signal aborts. */
function createLimit(most: number): <T>(work: () => Promise<T>, waits: () => void, signal: AbortSignal) => Promise<T> {
  let active = 0;
  const queue: (() => void)[] = [];
  return async (work, waits, signal) => {
    // Who leaves hands the place over.
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
