import { type Action, type HookResult, type ProbeResult, runKey } from '../../../lifecycle/types.ts';
import type { Outcome } from './ports.ts';

export interface WorkerResults {
  observed(): { probes: Record<string, ProbeResult>; hooks: Record<string, HookResult> };
  /** Sets the results that rebuildMemory() has recovered from an earlier agent. Called before the first decision. */
  recovered(hooks: Record<string, HookResult>): void;
  absorb(action: Action, outcome: Outcome): void;
  /** Drops the results of all runs except those with these container IDs. */
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

const ofRuns = <T>(record: Record<string, T>, ids: ReadonlySet<string>): Record<string, T> =>
  Object.fromEntries(Object.entries(record).filter(([key]) => ids.has(key.split('/')[0] ?? '')));
