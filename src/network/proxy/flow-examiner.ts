/**
 * Examines the entries of connection tracking after changes of UDP frontends, one examination at a time, while rules continue to be
 * written.
 *
 * Invariants:
 *  1. A frontend stays pending until an examination succeeds that began after its last change. A failed one is repeated with back-off.
 *  2. An examination uses the targets that a frontend has now, not those when the examination began: a flow to a new endpoint is not stale.
 *  3. The first call of written() makes all its frontends pending, because the earlier rules are unknown.
 */
import { backOffMillis } from '../../client/back-off.ts';
import { pause } from '../../platform/pause.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import type { UdpFrontend } from './service-rules.ts';
import { changedFrontends, deleteStaleFlows, frontendId } from './stale-flows.ts';

export interface ExaminerOptions {
  timers: Timers;
  log: Log;
  signal: AbortSignal;
  /** The network namespace of ip-netns(8) whose connections are tracked; by default, the namespace of the process. */
  namespace?: string;
  /** Default: deleteStaleFlows(). */
  deleteFlows?: typeof deleteStaleFlows;
}

const RETRY_BASE_MILLIS = 1000;
const RETRY_MAX_MILLIS = 60_000;

export class FlowExaminer {
  readonly #options: ExaminerOptions;
  /** The frontends of the rules in the kernel, by owner. */
  readonly #written = new Map<string, readonly UdpFrontend[]>();
  #isFirst = true;
  /** By frontendId(): the frontends for the next examination, and the frontends of the current one. */
  #pending = new Map<string, UdpFrontend>();
  #current = new Map<string, UdpFrontend>();
  #attempt = Promise.withResolvers<void>();
  #isRunning = false;

  constructor(options: ExaminerOptions) {
    this.#options = options;
  }

  /**
   * Makes the changed frontends pending, and starts an examination unless one is running. Must be called after each transaction, with the
   * owners of frontends whose rules it may have changed, such as the keys of Services. `frontendsOf` returns the frontends that an owner
   * has now. The first transaction must contain all owners. Resolves when an examination that contains the changes has ended, even if it
   * has failed.
   */
  written(owners: Iterable<string>, frontendsOf: (owner: string) => readonly UdpFrontend[]): Promise<void> {
    const before: UdpFrontend[] = [];
    const after: UdpFrontend[] = [];
    for (const owner of owners) {
      for (const frontend of this.#written.get(owner) ?? []) before.push(frontend);
      const frontends = frontendsOf(owner);
      for (const frontend of frontends) after.push(frontend);
      if (frontends.length === 0) this.#written.delete(owner);
      else this.#written.set(owner, frontends);
    }
    const changed = this.#isFirst ? after : changedFrontends(before, after);
    this.#isFirst = false;
    for (const frontend of changed) this.#pending.set(frontendId(frontend), frontend);
    for (const frontend of [after, changed].flat()) {
      const id = frontendId(frontend);
      for (const map of [this.#pending, this.#current]) if (map.has(id)) map.set(id, frontend);
    }
    if (this.#pending.size === 0 || this.#options.signal.aborted) return Promise.resolve();
    const { promise } = this.#attempt;
    if (!this.#isRunning) void this.#run();
    return promise;
  }

  async #run(): Promise<void> {
    const { timers, log, signal, deleteFlows = deleteStaleFlows } = this.#options;
    this.#isRunning = true;
    let failures = 0;
    while (this.#pending.size > 0 && !signal.aborted) {
      [this.#current, this.#pending] = [this.#pending, new Map()];
      const { resolve } = this.#attempt;
      this.#attempt = Promise.withResolvers();
      try {
        await deleteFlows(this.#current, this.#options);
        failures = 0;
        resolve();
      } catch (error) {
        resolve();
        if (signal.aborted) break;
        for (const [id, frontend] of this.#current) if (!this.#pending.has(id)) this.#pending.set(id, frontend);
        log.error('cannot delete entries of connection tracking', { error });
        await pause(timers, backOffMillis(++failures, RETRY_BASE_MILLIS, RETRY_MAX_MILLIS), signal);
      }
      this.#current = new Map();
    }
    this.#isRunning = false;
  }
}
