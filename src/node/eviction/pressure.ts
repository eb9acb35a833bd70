/** The pressure that the node is under: looked at by eviction, shown by the node's conditions. */
import type { Timers } from '../../platform/platform.ts';
import { type Folders, readSignals } from './signals.ts';
import {
  type EvictionConfig,
  nextPressure,
  noPressure,
  type Observations,
  type Pressure,
  type PressureCondition,
} from './thresholds.ts';

export interface NodePressure {
  config: EvictionConfig;
  folders: Folders;
  conditions(): ReadonlySet<PressureCondition>;
  /** Reads the signals now. `due`: the thresholds to act on, the first one first. */
  look(): Promise<Pick<Pressure, 'due' | 'changesAt'> & { observations: Observations }>;
  /** Called when other conditions hold than before. */
  onChange(listener: () => void): void;
}

/** Resolves when it has looked for the first time. */
export async function createNodePressure(options: {
  config: EvictionConfig;
  folders: Folders;
  timers: Timers;
}): Promise<NodePressure> {
  const { config, folders, timers } = options;
  let state = noPressure;
  let conditions: ReadonlySet<PressureCondition> = new Set();
  const listeners: (() => void)[] = [];
  const pressure: NodePressure = {
    config,
    folders,
    conditions: () => conditions,
    onChange: (listener) => void listeners.push(listener),
    async look() {
      const observations = await readSignals(folders);
      const next = nextPressure(state, config, observations, timers.now());
      state = next.state;
      const changed = [...next.conditions].sort().join() !== [...conditions].sort().join();
      conditions = next.conditions;
      if (changed) for (const listener of listeners) listener();
      return { ...next, observations };
    },
  };
  await pressure.look();
  return pressure;
}
