/**
 * Writes the record of each Pod's life to the API. A record consists of parts of limited size, each a PodRecord object.
 *
 * Boundary: the core determines the steps; record-parts.ts reads and writes the objects; a controller deletes old records.
 * Invariants:
 * - Only actions that destroy evidence wait for the record, and they do not wait while the API cannot write it.
 * - Every reported step is written, with as many retries as needed, unless the API rejects it permanently or the agent ends.
 * - A step that is reported again is not written again, unless its part was deleted or the record exceeds the limits in recorded-steps.ts.
 * - The steps of a Pod that was created after another one with the same UID are written to new parts (see lives.ts of PodRecords).
 * - Until a Pod is released, memory contains the steps of its newest part and the keys of the other parts' steps.
 */

import type { Pod, PodRecord } from '../../api/generated/types.ts';
import { POD_RECORDS } from '../../api/lifepod.io/v1/pod-record/index.ts';
import { areTwoLives } from '../../api/lifepod.io/v1/pod-record/lives.ts';
import { backOffMillis } from '../../client/back-off.ts';
import type { Client } from '../../client/client.ts';
import type { Transition } from '../../lifecycle/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import { ApiError } from '../../machinery/status.ts';
import { pause } from '../../platform/pause.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import { lastSteps } from './close-records.ts';
import { emptyPart, fill, type RecordPart, readRecord, writePart } from './record-parts.ts';
import type { RecordedSteps } from './recorded-steps.ts';
import { toApi } from './step-conversion.ts';

const RETRY_BASE_MILLIS = 100;
const RETRY_MAX_MILLIS = 10_000;
/** Callers of written() stop waiting if the API has not answered after this time. */
const LATE_MILLIS = 1000;

export interface RecorderOptions {
  client: Client;
  nodeName: string;
  timers: Timers;
  log: Log;
  /** After this signal has aborted, a request that waits for its retry is tried once more, and a request that fails is not retried. */
  signal: AbortSignal;
}

export interface PodRecorder {
  record(pod: Pod, transitions: readonly Transition[]): void;
  /**
   * Resolves when the steps of the Pod that were reported before are written, or when a request has failed or takes too long. Undefined if
   * there is nothing to wait for, or if the last request failed or is taking too long.
   */
  written(uid: string): Promise<void> | undefined;
  /**
   * Called when the Pod exists neither on the node nor in the API. Records the last steps, unless they are recorded, and releases the Pod.
   */
  gone(pod: Pod): void;
  /** Called when no more steps of the Pod are expected. Frees the memory for the Pod once all of its steps are written or given up. */
  release(uid: string): void;
  /** Resolves when all steps that were reported are written, or the recorder has given them up. */
  flushed(): Promise<void>;
}

interface PodState {
  pod: Pod;
  /** The end of the writes of a previous Pod with the same UID. */
  former: Promise<void> | undefined;
  /** Undefined until the existing record has been read. */
  recorded: RecordedSteps | undefined;
  part: RecordPart;
  waiting: Transition[];
  draining: Promise<void> | undefined;
  /** Whether the last request has failed or takes too long. */
  stalled: boolean;
  /**
   * The number of calls of record() so far. A waiter is resolved when the steps of its first `reports` calls are written, or when a request
   * fails or takes too long.
   */
  reports: number;
  waiters: { reports: number; resolve(): void }[];
  released: boolean;
}

/** While the writes of a previous Pod are under way, no action waits for those of this one. */
const initialState = (pod: Pod, former?: Promise<void>): PodState => ({
  pod,
  former,
  recorded: undefined,
  part: emptyPart(0),
  waiting: [],
  draining: undefined,
  stalled: former !== undefined,
  reports: 0,
  waiters: [],
  released: false,
});

/** A Pod from closeRecords() has no creation time: it may be an earlier one with this UID, so only another such Pod is the same life. */
function isSameLife(
  { metadata: { creationTimestamp: known } }: Pod,
  { metadata: { creationTimestamp } }: Pod,
): boolean {
  return known === undefined ? creationTimestamp === undefined : !areTwoLives(known, creationTimestamp);
}

export function createPodRecorder(options: RecorderOptions): PodRecorder {
  const { nodeName } = options;
  const records = options.client.resource<PodRecord>(POD_RECORDS);
  const states = new Map<string, PodState>();

  /**
   * If reading the existing record was given up, gives up the steps too, because their write would replace the existing steps. The next
   * call of record() reads again.
   */
  async function drain(state: PodState): Promise<void> {
    // Yield first, so that record() stores this promise before drain() clears it, and so that steps of one turn are written together.
    await state.former;
    state.former = undefined;
    if (state.recorded === undefined) {
      const read = async (): Promise<void> => void Object.assign(state, await readRecord(records, nodeName, state.pod));
      await retry(state, options, read);
    }
    while (state.waiting.length > 0) {
      const steps = (state.recorded?.fresh(state.waiting) ?? []).map(toApi);
      state.waiting = [];
      const { reports } = state;
      while (steps.length > 0) {
        fill(state.part, steps);
        if (!(await retry(state, options, () => writePart(records, nodeName, state.pod, state.part))))
          state.part.exists = false;
        if (steps.length > 0) state.part = emptyPart(state.part.number + 1);
      }
      settle(state, reports);
    }
    state.draining = undefined;
    if (state.released && states.get(uidOf(state.pod)) === state) states.delete(uidOf(state.pod));
  }

  const self: PodRecorder = {
    record(pod, transitions) {
      const uid = uidOf(pod);
      const known = states.get(uid);
      const state = known !== undefined && isSameLife(known.pod, pod) ? known : initialState(pod, known?.draining);
      states.set(uid, state);
      state.released = false;
      state.waiting.push(...transitions);
      state.reports++;
      state.draining ??= drain(state);
    },
    written(uid) {
      const state = states.get(uid);
      if (state?.draining === undefined || state.stalled) return undefined;
      const { reports, waiters } = state;
      return new Promise((resolve) => waiters.push({ reports, resolve }));
    },
    gone(pod) {
      self.record(pod, lastSteps(options.timers.now()));
      self.release(uidOf(pod));
    },
    release(uid) {
      const state = states.get(uid);
      if (state === undefined) return;
      state.released = true;
      if (state.draining === undefined) states.delete(uid);
    },
    flushed: async () => {
      await Promise.all([...states.values()].map(({ draining }) => draining));
    },
  };
  return self;
}

/**
 * Calls `attempt` until it succeeds, and then resolves to true. Resolves to false if `attempt` fails permanently (see isPermanent()), or
 * fails after the agent has ended.
 */
async function retry(
  state: PodState,
  { timers, log, signal }: RecorderOptions,
  attempt: () => Promise<void>,
): Promise<boolean> {
  const stall = (): void => {
    state.stalled = true;
    settle(state, state.reports);
  };
  for (let tries = 1; ; tries++) {
    const late = timers.at(timers.now() + LATE_MILLIS, stall);
    try {
      await attempt();
      state.stalled = false;
      return true;
    } catch (error) {
      stall();
      const { name, namespace } = state.pod.metadata;
      const fields = { pod: `${namespace}/${name}`, error: (error as Error).message };
      if (signal.aborted || isPermanent(error)) {
        log.warn('record: gave up steps of a Pod', fields);
        return false;
      }
      log.warn('record: cannot read or write the record of a Pod, retrying', fields);
      await pause(timers, backOffMillis(tries, RETRY_BASE_MILLIS, RETRY_MAX_MILLIS), signal);
    } finally {
      late.cancel();
    }
  }
}

function settle(state: PodState, reports: number): void {
  for (const waiter of state.waiters) if (waiter.reports <= reports) waiter.resolve();
  state.waiters = state.waiters.filter((waiter) => waiter.reports > reports);
}

const isPermanent = (error: unknown): boolean =>
  error instanceof ApiError &&
  (error.reason === 'Forbidden' || error.reason === 'Invalid' || error.reason === 'BadRequest');
