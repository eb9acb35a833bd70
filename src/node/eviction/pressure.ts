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
  look(): Promise<Pick<Pressure, 'due' | 'changesAt'> & { observations: Observations }>;
  /** The listener is called when the set of conditions changes. */
  onChange(listener: () => void): void;
}

/** Resolves after the first reading of the signals. */
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
