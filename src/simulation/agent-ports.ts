/** The ports of a simulated agent's worker: the simulated runtime and API, with the crashes and outages that the life sets for actions. */

import { type Action, actionKey, type Journal } from '../lifecycle/types.ts';
import { uidOf } from '../machinery/meta.ts';
import { runtimeView } from '../node/pod/observed-pod.ts';
import type { WorkerPorts } from '../node/pod/worker/ports.ts';
import { pause } from '../platform/pause.ts';
import type { Timers } from '../platform/platform.ts';
import { silentLog } from '../platform/silent-log.ts';
import { createSteadyStamps } from '../runtime/clock-conversion.ts';
import type { SimulatedRuntime } from '../runtime/simulated/simulated-runtime.ts';
import type { Life, LifeResult } from './life.ts';
import type { SimulatedApi } from './simulated-api.ts';
import { slowRecord } from './slow-record.ts';

export const never = new AbortController().signal;

export interface AgentOptions {
  life: Life;
  timers: Timers;
  /** The machine's clock, which the life may set forward or back. */
  machine: Timers;
  runtime: SimulatedRuntime;
  api: SimulatedApi;
  execute: WorkerPorts['execute'];
  result: LifeResult;
}

export interface Mortal {
  isAlive(): boolean;
  /** Kills the agent, and starts the next one after `millis` (default: 50 ms). `reboot`: the machine reboots, too. */
  crash(millis?: number, reboot?: boolean): void;
}

/** Returns the ports. After the agent's death, new actions and writes of status, journal and record have no effect. */
export function workerPorts(options: AgentOptions, mortal: Mortal, keep: (journal: Journal) => void): WorkerPorts {
  const { life, timers, runtime, api, result } = options;
  const { isAlive } = mortal;
  const { maxGracePeriodExtensionSeconds } = life;
  const statusMillis = life.statusMillis ?? (life.pod.spec?.deferContainers === undefined ? undefined : 1);
  const stamps = createSteadyStamps(timers, options.machine);
  const uid = uidOf(life.pod);
  return {
    timers,
    log: silentLog,
    node: { ips: ['192.0.2.1'], runtimeName: 'simulated', maxGracePeriodExtensionSeconds },
    observe: async (_pod, signal) => runtimeView(stamps.read(uid, await runtime.observe(uid, signal)), new Map()),
    execute: mortalExecutor(options, mortal),
    writeStatus: async (_pod, status) => {
      if (statusMillis !== undefined) await pause(timers, statusMillis);
      if (!isAlive() || api.removed) return;
      result.statuses.push({ at: timers.now(), status });
      api.writeStatus(status);
    },
    keep: (_pod, journal) => {
      if (isAlive()) keep(structuredClone(journal));
    },
    event: (_pod, event) => void result.events.push({ ...event, at: timers.now() }),
    ...slowRecord(timers, life.recordMillis, (steps) => void (isAlive() && result.transitions.push(...steps))),
    done: () => {
      if (isAlive()) result.goneAt ??= timers.now();
    },
  };
}

/**
 * Returns a function that executes actions, and kills the agent at the actions that the life specifies. Actions after its death have no
 * effect.
 */
function mortalExecutor(options: AgentOptions, { isAlive, crash }: Mortal): WorkerPorts['execute'] {
  const { life, timers, runtime, result } = options;
  const underWay = new Set<string>();
  return async (action, of, signal, progress) => {
    // The agent died before it requested this action, so the action is lost.
    if (!isAlive()) return new Promise(() => undefined);
    const key = actionKey(action);
    if (underWay.has(key)) result.duplicates.push(key);
    underWay.add(key);
    const number = result.actions.push({ at: timers.now(), action });
    beginOutages(options, number);
    // If a life has several crashes for one action, the last one in the list applies.
    const fatal = life.crashes?.findLast((each) => each.action === number);
    if (fatal?.asked === false) {
      crash(fatal.millis, fatal.reboot);
      return new Promise(() => undefined);
    }
    const isCutOff = fatal !== undefined && isEntryStart(action) && life.cutOffStartsMillis !== undefined;
    if (isCutOff) runtime.abandonNextStart(life.cutOffStartsMillis ?? 0);
    const answer = options.execute(action, of, isCutOff ? never : signal, progress);
    if (fatal !== undefined) crash(fatal.millis, fatal.reboot);
    return answer.finally(() => underWay.delete(key));
  };
}

function beginOutages({ life, timers, runtime }: AgentOptions, number: number): void {
  for (const { action, millis, afterMillis = 0, takesEffect = false } of life.outages ?? [])
    if (action === number) {
      const cut = (): void => runtime.goAway({ millis, takesEffect });
      if (afterMillis === 0) cut();
      else timers.at(timers.now() + afterMillis, cut);
    }
}

const isEntryStart = (action: Action): boolean => action.kind === 'startContainer' && action.containerKind === 'defer';
