/**
 * Exits of containers while no containerd runs, as reported by their shims. A containerd 2.x that starts removes the shim of a
 * container that has ended, and its exit code with it: CRI then reports 255 and `Unknown`.
 *
 * Invariant: once watch() has resolved, the exit of each container whose shim responds is recorded here, until unwatch().
 */
import type { Millis } from '../../machinery/time.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import { delay } from '../cri/connection.ts';
import { decodeMessage, encodeMessage } from '../cri/definitions.ts';
import { type Timestamp, timestampMillis } from '../cri/responses.ts';
import { findBundledShims, type Shim } from './shims.ts';
import { connectTtrpc, type Ttrpc } from './ttrpc.ts';

export interface ContainerExit {
  exitCode: number;
  finishedAt: Millis;
}

export interface ShimExits {
  /** Queries all shims not queried yet. Resolves with their number when a containerd may start, after at most 2 s; never rejects. */
  watch(): Promise<number>;
  /** Stops watching, because a running containerd reports exits itself. */
  unwatch(): void;
  /** undefined: the container has not ended between watch() and unwatch(). */
  exitOf(containerId: string): ContainerExit | undefined;
  /** Forgets all other containers. */
  keepOnly(containerIds: ReadonlySet<string>): void;
}

interface ExitAnswer {
  exitStatus: number;
  exitedAt: Timestamp | null;
}

/** A shim normally responds within a few ms. */
const ANSWER_MILLIS = 2000;

/** `state`: as for findBundledShims(). */
export function createShimExits(options: { state: string; log: Log; timers: Timers }): ShimExits {
  const { state, log, timers } = options;
  const exits = new Map<string, ContainerExit>();
  const asked = new Map<string, { shim: Ttrpc; answered: Promise<void> }>();

  const note = (containerId: string, { exitStatus, exitedAt }: ExitAnswer): void => {
    exits.set(containerId, { exitCode: exitStatus, finishedAt: timestampMillis(exitedAt) ?? timers.now() });
  };
  const ask = ({ containerId, socket, version }: Shim): void => {
    const shim = connectTtrpc(socket);
    const request = encodeMessage('containerd.shim.TaskRequest', { id: containerId });
    const call = async <Answer>(method: string): Promise<Answer> => {
      const payload = await shim.call(`containerd.task.v${version}.Task`, method, request);
      return decodeMessage(`containerd.shim.${method}Response`, payload);
    };
    // The shim responds when the container ends; if it has already ended, at once.
    void call<ExitAnswer>('Wait').then(
      (answer) => note(containerId, answer),
      (error) => {
        // A shim that refuses the call keeps the connection open, and the connection keeps this process alive.
        shim.close();
        if (asked.get(containerId)?.shim !== shim) return;
        asked.delete(containerId);
        log.debug('a shim does not report the exit of its container', { containerId, error: String(error) });
      },
    );
    // Once the shim has answered this call, it has also received the one above.
    const answered = call<ExitAnswer & { status: string }>('State').then(
      (answer) => {
        if (answer.status === 'STOPPED') note(containerId, answer);
      },
      () => undefined,
    );
    asked.set(containerId, { shim, answered });
  };
  const findShims = (): Shim[] => {
    try {
      return findBundledShims(state).filter(({ protocol }) => protocol === 'ttrpc');
    } catch (error) {
      log.warn('cannot query shims for exits while containerd is down', { state, error: String(error) });
      return [];
    }
  };
  return {
    async watch() {
      const shims = findShims();
      for (const shim of shims) if (!asked.has(shim.containerId)) ask(shim);
      const enough = new AbortController();
      await Promise.race([
        Promise.all([...asked.values()].map(({ answered }) => answered)),
        delay(ANSWER_MILLIS, timers, enough.signal).catch(() => undefined),
      ]);
      enough.abort();
      return shims.length;
    },
    unwatch() {
      const shims = [...asked.values()];
      asked.clear();
      for (const { shim } of shims) shim.close();
    },
    exitOf: (containerId) => exits.get(containerId),
    keepOnly(containerIds) {
      for (const id of exits.keys()) if (!containerIds.has(id)) exits.delete(id);
    },
  };
}
