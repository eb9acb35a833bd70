/**
 * Records the exits of containers that end while containerd is not running, as reported by their shims. Otherwise the exit codes would be
 * lost: when containerd 2.x starts, it removes the shims of ended containers, and CRI reports exit code 255 and reason `Unknown`.
 *
 * Invariant: after watch() has resolved and until unwatch(), the exit of each container whose shim responds over ttrpc is recorded here.
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
  /**
   * Queries all shims that use ttrpc and are not being watched yet. Resolves, after at most 2 s, with the number of shims that use ttrpc.
   * containerd may then be started. Never rejects.
   */
  watch(): Promise<number>;
  /** Stops watching, because a running containerd reports exits itself. */
  unwatch(): void;
  /** Returns undefined if no exit of the container was recorded, or if keepOnly() has deleted it. */
  exitOf(containerId: string): ContainerExit | undefined;
  keepOnly(containerIds: ReadonlySet<string>): void;
}

interface ExitAnswer {
  exitStatus: number;
  exitedAt: Timestamp | null;
}

/** How long watch() waits for the shims. A shim normally responds within a few ms. */
const ANSWER_MILLIS = 2000;

/** `state`: containerd's state folder, as for findBundledShims(). */
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
    // The shim responds to Wait when the container ends, or immediately if the container has already ended.
    void call<ExitAnswer>('Wait').then(
      (answer) => note(containerId, answer),
      (error) => {
        // A shim that rejects the call does not close the connection, and an open connection keeps this process alive.
        shim.close();
        if (asked.get(containerId)?.shim !== shim) return;
        asked.delete(containerId);
        log.debug('a shim does not report the exit of its container', { containerId, error: String(error) });
      },
    );
    // Once the shim has responded to State, it has also received Wait, which was sent earlier on the same connection.
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
