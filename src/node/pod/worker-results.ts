/** What the probes and hooks of a Pod's runs answered, for its worker. */
import { type Action, type HookResult, type ProbeResult, runKey } from '../../lifecycle/types.ts';
import type { Outcome } from './worker-ports.ts';

export interface WorkerResults {
  /** As the core observes them. */
  observed(): { probes: Record<string, ProbeResult>; hooks: Record<string, HookResult> };
  /** Hooks that ran under the agent before. */
  recovered(hooks: Record<string, HookResult>): void;
  absorb(action: Action, outcome: Outcome): void;
  /** Forgets what is of no run of these IDs. */
  keep(ids: ReadonlySet<string>): void;
}

export function createWorkerResults(): WorkerResults {
  let probes: Record<string, ProbeResult> = {};
  let hooks: Record<string, HookResult> = {};
  return {
    observed: () => ({ probes, hooks }),
    recovered(before) {
      hooks = before;
    },
    absorb(action, { probe, hook }) {
      if (action.kind === 'runProbe' && probe !== undefined) {
        const key = runKey(action.id, action.probe);
        probes[key] = { ...probe, serial: (probes[key]?.serial ?? 0) + 1 };
      }
      if (action.kind === 'runHook' && hook !== undefined) hooks[runKey(action.id, action.hook)] = hook;
    },
    keep(ids) {
      probes = ofRuns(probes, ids);
      hooks = ofRuns(hooks, ids);
    },
  };
}

/** Keys are runKey's. */
const ofRuns = <T>(record: Record<string, T>, ids: ReadonlySet<string>): Record<string, T> =>
  Object.fromEntries(Object.entries(record).filter(([key]) => ids.has(key.split('/')[0] ?? '')));
