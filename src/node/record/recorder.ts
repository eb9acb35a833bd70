/**
 * Writes the record of each Pod's life to the API. A record consists of parts, one PodRecord object each, of limited size.
 *
 * Boundary: the core determines the steps; a controller deletes old records.
 * Invariants:
 *  1. Only actions that destroy evidence wait for the record, and they do not wait while the API cannot write it.
 *     Steps that are reported during a write of the same Pod are collected for the next write.
 *  2. Every reported step is written, with as many retries as needed, unless the API rejects it permanently or the agent ends.
 *  3. A step is written once, even if it is reported again: the existing record is read before the first write of a Pod.
 *  4. Until a Pod is released, memory contains the steps of its newest part and the keys of the other parts' steps.
 */

import type { Pod, PodRecord, PodTransition } from '../../api/generated/types.ts';
import { POD_RECORDS, recordName } from '../../api/lifepod.io/v1/pod-record/index.ts';
import { backOffMillis } from '../../client/back-off.ts';
import type { Client } from '../../client/client.ts';
import type { Transition } from '../../lifecycle/types.ts';
import { ApiError, isApiError } from '../../machinery/status.ts';
import { pause } from '../../platform/pause.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import { lastSteps } from './close-records.ts';
import { createRecordedSteps, type RecordedSteps } from './recorded-steps.ts';
import { fromApi, toApi } from './step-conversion.ts';

/** The size at which a new part begins. It bounds the cost of a write, which always writes a whole part. */
const PART_BYTES = 16 * 1024;
const RETRY_BASE_MILLIS = 100;
const RETRY_MAX_MILLIS = 10_000;
/** Callers of written() stop waiting if the API has not answered after this time. */
const LATE_MILLIS = 1000;

export interface RecorderOptions {
  client: Client;
  timers: Timers;
  log: Log;
  /** Ends retries. Steps that were reported before are still attempted once. */
  signal: AbortSignal;
}

export interface PodRecorder {
  record(pod: Pod, transitions: readonly Transition[]): void;
  /**
   * Resolves when the steps of the Pod reported so far are written, or a write has failed or takes too long: callers do not wait for
   * an API that cannot write. Undefined if there is nothing to wait for.
   */
  written(uid: string): Promise<void> | undefined;
  /** Nothing is left of the Pod, not even its object: records the last steps, unless they are recorded. */
  gone(pod: Pod): void;
  /** No more steps of the Pod are expected: frees its memory once everything is written. */
  release(uid: string): void;
  /** Resolves when all reported steps are written or given up. */
  flushed(): Promise<void>;
}

interface PodState {
  pod: Pod;
  /** Undefined until the existing record was read. */
  recorded: RecordedSteps | undefined;
  waiting: Transition[];
  /** The newest part: its number, its steps, their size, and whether it exists in the API. */
  part: number;
  steps: PodTransition[];
  bytes: number;
  exists: boolean;
  draining: Promise<void> | undefined;
  /** The last attempt has failed or takes too long. */
  stalled: boolean;
  /** The number of calls of record(). Each waiter waits until the calls up to its number are written. */
  reports: number;
  waiters: { reports: number; resolve(): void }[];
  released: boolean;
}

export function createPodRecorder(options: RecorderOptions): PodRecorder {
  const { timers, log, signal } = options;
  const records = options.client.resource<PodRecord>(POD_RECORDS);
  const states = new Map<string, PodState>();

  /** Retries until the attempt succeeds. Returns false if the API rejects it permanently or the agent has ended. */
  async function retry(state: PodState, attempt: () => Promise<void>): Promise<boolean> {
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

  /** Reads the steps that earlier agents recorded. */
  async function load(state: PodState): Promise<void> {
    const { namespace, uid = '', creationTimestamp } = state.pod.metadata;
    const recorded = createRecordedSteps();
    const take = ({ transitions }: PodRecord, part: number): void => {
      recorded.fresh(transitions.map(fromApi));
      begin(state, part, transitions);
      state.exists = true;
    };
    begin(state, 0, []);
    for (let part = 0; ; part++) {
      const found = await records.get(recordName(uid, part), namespace).catch(unlessMissing);
      if (found !== undefined) take(found, part);
      else if (part > 0 || (creationTimestamp !== undefined && state.pod.status?.startTime === undefined)) break;
      else {
        // The first parts of a long record may have been deleted.
        const { items } = await records.list({ ...(namespace && { namespace }), fieldSelector: `podUID=${uid}` });
        const parts = items.map((item) => [Number(item.metadata.name.slice(uid.length + 1)), item] as const);
        for (const [number, item] of parts.sort(([a], [b]) => a - b)) take(item, number);
        break;
      }
    }
    state.recorded = recorded;
  }

  function begin(state: PodState, part: number, steps: PodTransition[]): void {
    Object.assign(state, { part, steps: [...steps], bytes: JSON.stringify(steps).length, exists: false });
  }

  async function write(state: PodState): Promise<void> {
    const { name: podName, namespace, uid: podUID = '' } = state.pod.metadata;
    const record: PodRecord = {
      apiVersion: `${POD_RECORDS.group}/${POD_RECORDS.version}`,
      kind: 'PodRecord',
      metadata: { name: recordName(podUID, state.part), ...(namespace && { namespace }) },
      ...{ podName, podUID, transitions: state.steps },
    };
    try {
      await (state.exists ? records.update(record) : records.create(record));
      state.exists = true;
    } catch (error) {
      if (isApiError(error, state.exists ? 'NotFound' : 'AlreadyExists')) {
        // The part was deleted as too old in the meantime, or it was created by a request whose response was lost.
        state.exists = !state.exists;
        return write(state);
      }
      throw error;
    }
  }

  async function drain(state: PodState): Promise<void> {
    // Yield first: record() must have stored this promise before it settles, and steps reported in the same turn are written together.
    await Promise.resolve();
    if (state.recorded === undefined && !(await retry(state, () => load(state))))
      state.recorded = createRecordedSteps();
    while (state.waiting.length > 0) {
      const steps = (state.recorded as RecordedSteps).fresh(state.waiting).map(toApi);
      state.waiting = [];
      const { reports } = state;
      while (steps.length > 0) {
        for (let next = steps[0]; next !== undefined; next = steps[0]) {
          const bytes = JSON.stringify(next).length;
          if (state.steps.length > 0 && state.bytes + bytes > PART_BYTES) break;
          state.steps.push(next);
          state.bytes += bytes;
          steps.shift();
        }
        if (!(await retry(state, () => write(state)))) state.exists = false;
        if (steps.length > 0) begin(state, state.part + 1, []);
      }
      settle(state, reports);
    }
    state.draining = undefined;
    if (state.released) states.delete(state.pod.metadata.uid ?? '');
  }

  const self: PodRecorder = {
    record(pod, transitions) {
      const uid = pod.metadata.uid ?? '';
      let state = states.get(uid);
      if (state === undefined) {
        state = {
          pod,
          recorded: undefined,
          waiting: [],
          part: 0,
          steps: [],
          bytes: 0,
          exists: false,
          draining: undefined,
          stalled: false,
          reports: 0,
          waiters: [],
          released: false,
        };
        states.set(uid, state);
      }
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
      self.record(pod, lastSteps(timers.now()));
      self.release(pod.metadata.uid ?? '');
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

/** Resolves the waiters for the first `reports` calls of record(). */
function settle(state: PodState, reports: number): void {
  for (const waiter of state.waiters) if (waiter.reports <= reports) waiter.resolve();
  state.waiters = state.waiters.filter((waiter) => waiter.reports > reports);
}

function unlessMissing(error: unknown): undefined {
  if (isApiError(error, 'NotFound')) return undefined;
  throw error;
}

/** Whether the API would reject the same request again. */
const isPermanent = (error: unknown): boolean =>
  error instanceof ApiError &&
  (error.reason === 'Forbidden' || error.reason === 'Invalid' || error.reason === 'BadRequest');
