/**
 * Keeps the record of each Pod's life in the API, as PodRecords: parts of it, each with as many steps as it holds.
 *
 * Boundary: what the steps are is the core's; how long records are kept is a controller's.
 * Invariants:
 *  1. Nobody waits for the record but who takes away the last that shows what it tells, and nobody while the API refuses it.
 *     While one write of a Pod is under way, what else is told of the Pod gathers for the next.
 *  2. A step that was told is written, however often that must be tried, unless the API refuses it for good or the agent ends.
 *  3. A step is written once, whoever tells of it again: before the first write of a Pod, what is there is read.
 *  4. Of a Pod the steps of its newest part are held in memory, and the keys of the others, until it is released.
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
import { createTold, type Told } from './recorded-steps.ts';
import { fromApi, toApi } from './step-conversion.ts';

/** Beyond it a new part begins: each write of a part writes it whole. */
const PART_BYTES = 16 * 1024;
const RETRY_BASE_MILLIS = 100;
const RETRY_MAX_MILLIS = 10_000;
/** An API that has not answered by then keeps nobody waiting. */
const LATE_MILLIS = 1000;

export interface RecorderOptions {
  client: Client;
  timers: Timers;
  log: Log;
  /** Ends the tries; what was told before is still written, once. */
  signal: AbortSignal;
}

export interface PodRecorder {
  record(pod: Pod, transitions: readonly Transition[]): void;
  /**
   * Resolves when what was told of the Pod until now is written, or the API has refused it: what waits for the record does not
   * wait for an API that cannot write. undefined: there is nothing to wait for.
   */
  written(uid: string): Promise<void> | undefined;
  /** Nothing is left of the Pod, nor its object: the last steps, as far as they are not told. */
  gone(pod: Pod): void;
  /** Nothing more is to be expected of the Pod. */
  release(uid: string): void;
  /** Resolves when all that was told is written, or given up. */
  flushed(): Promise<void>;
}

interface PodState {
  pod: Pod;
  told: Told | undefined;
  waiting: Transition[];
  /** The newest part: its number, its steps, whether it is in the API. */
  part: number;
  steps: PodTransition[];
  bytes: number;
  exists: boolean;
  draining: Promise<void> | undefined;
  /** The last try has failed, or takes too long. */
  refused: boolean;
  /** How often it was told of, and who waits for what was told until then. */
  tellings: number;
  waiters: { tellings: number; resolve(): void }[];
  released: boolean;
}

export function createPodRecorder(options: RecorderOptions): PodRecorder {
  const { timers, log, signal } = options;
  const records = options.client.resource<PodRecord>(POD_RECORDS);
  const states = new Map<string, PodState>();

  /** Until it works; false where it never will, or the agent has ended. */
  async function insist(state: PodState, attempt: () => Promise<void>): Promise<boolean> {
    const refuse = (): void => {
      state.refused = true;
      settle(state, state.tellings);
    };
    for (let tries = 1; ; tries++) {
      const late = timers.at(timers.now() + LATE_MILLIS, refuse);
      try {
        await attempt();
        state.refused = false;
        return true;
      } catch (error) {
        refuse();
        const { name, namespace } = state.pod.metadata;
        const fields = { pod: `${namespace}/${name}`, error: (error as Error).message };
        if (signal.aborted || isHopeless(error)) {
          log.warn('record: gave up steps of a Pod', fields);
          return false;
        }
        log.warn('record: cannot be written or read, will be tried again', fields);
        await pause(timers, backOffMillis(tries, RETRY_BASE_MILLIS, RETRY_MAX_MILLIS), signal);
      } finally {
        late.cancel();
      }
    }
  }

  /** What an earlier agent has recorded. */
  async function load(state: PodState): Promise<void> {
    const { namespace, uid = '', creationTimestamp } = state.pod.metadata;
    const told = createTold();
    const take = ({ transitions }: PodRecord, part: number): void => {
      told.fresh(transitions.map(fromApi));
      begin(state, part, transitions);
      state.exists = true;
    };
    begin(state, 0, []);
    for (let part = 0; ; part++) {
      const found = await records.get(recordName(uid, part), namespace).catch(unlessMissing);
      if (found !== undefined) take(found, part);
      else if (part > 0 || (creationTimestamp !== undefined && state.pod.status?.startTime === undefined)) break;
      else {
        // The first parts of a long life may be gone.
        const { items } = await records.list({ ...(namespace && { namespace }), fieldSelector: `podUID=${uid}` });
        const parts = items.map((item) => [Number(item.metadata.name.slice(uid.length + 1)), item] as const);
        for (const [number, item] of parts.sort(([a], [b]) => a - b)) take(item, number);
        break;
      }
    }
    state.told = told;
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
        // It was found too old meanwhile; or an answer was lost, and the write was none.
        state.exists = !state.exists;
        return write(state);
      }
      throw error;
    }
  }

  async function drain(state: PodState): Promise<void> {
    // Its end must not come before record() has kept its promise; and what is told in one moment is written at once.
    await Promise.resolve();
    if (state.told === undefined && !(await insist(state, () => load(state)))) state.told = createTold();
    while (state.waiting.length > 0) {
      const steps = (state.told as Told).fresh(state.waiting).map(toApi);
      state.waiting = [];
      const { tellings } = state;
      while (steps.length > 0) {
        for (let next = steps[0]; next !== undefined; next = steps[0]) {
          const bytes = JSON.stringify(next).length;
          if (state.steps.length > 0 && state.bytes + bytes > PART_BYTES) break;
          state.steps.push(next);
          state.bytes += bytes;
          steps.shift();
        }
        if (!(await insist(state, () => write(state)))) state.exists = false;
        if (steps.length > 0) begin(state, state.part + 1, []);
      }
      settle(state, tellings);
    }
    state.draining = undefined;
    if (state.released) states.delete(state.pod.metadata.uid ?? '');
  }

  const self: PodRecorder = {
    record(pod, transitions) {
      const uid = pod.metadata.uid ?? '';
      let state = states.get(uid);
      if (state === undefined) {
        const empty = { told: undefined, waiting: [], part: 0, steps: [], bytes: 0, exists: false };
        const quiet = { draining: undefined, refused: false, tellings: 0, waiters: [], released: false };
        state = { pod, ...empty, ...quiet };
        states.set(uid, state);
      }
      state.released = false;
      state.waiting.push(...transitions);
      state.tellings++;
      state.draining ??= drain(state);
    },
    written(uid) {
      const state = states.get(uid);
      if (state?.draining === undefined || state.refused) return undefined;
      const { tellings, waiters } = state;
      return new Promise((resolve) => waiters.push({ tellings, resolve }));
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

/** Whoever waits for no more than so many. */
function settle(state: PodState, tellings: number): void {
  for (const waiter of state.waiters) if (waiter.tellings <= tellings) waiter.resolve();
  state.waiters = state.waiters.filter((waiter) => waiter.tellings > tellings);
}

function unlessMissing(error: unknown): undefined {
  if (isApiError(error, 'NotFound')) return undefined;
  throw error;
}

/** The same would be refused again. */
const isHopeless = (error: unknown): boolean =>
  error instanceof ApiError &&
  (error.reason === 'Forbidden' || error.reason === 'Invalid' || error.reason === 'BadRequest');
