/**
 * The agent of a node in virtual time: the real worker and executor on the simulated runtime and API. The agent dies as the life specifies.
 * The next agent starts with the data that an agent finds on its node: the Pod's journal, a termination that the node decided, and the time
 * of the previous agent's last sign of life.
 */

import type { PodRecord } from '../api/generated/types.ts';
import type { Client } from '../client/client.ts';
import { nodeEndAfter } from '../lifecycle/termination-causes.ts';
import type { Journal, NodeEnd } from '../lifecycle/types.ts';
import { uidOf } from '../machinery/meta.ts';
import { type PodWorker, startWorker } from '../node/pod/worker/worker.ts';
import { closeRecords, lastSteps } from '../node/record/close-records.ts';
import { toApi } from '../node/record/step-conversion.ts';
import { pause } from '../platform/pause.ts';
import { silentLog } from '../platform/silent-log.ts';
import { type AgentOptions, never, workerPorts } from './agent-ports.ts';
import type { LifeResult } from './life.ts';
import type { SimulatedApi } from './simulated-api.ts';

/** The interval between an agent's signs of life, which are the renewals of the node's Lease. */
export const SIGN_OF_LIFE_MILLIS = 10_000;
const ABSENT_MILLIS = 50;

export interface SimulatedAgent {
  boot(): void;
  /** Whether an agent runs and, if the Pod's object was removed, has decided whether to adopt the Pod. */
  readonly settled: boolean;
  worker(): PodWorker | undefined;
  /** Kills the agent, if one runs, and starts the next one after `millis`. `reboot`: the machine reboots, too. */
  crash(millis?: number, reboot?: boolean): void;
  /** Terminates the Pod as the node would. If no agent runs, the next agent finds this decision. */
  end(by: Omit<NodeEnd, 'at'>): void;
}

interface Absence {
  from: number;
  to: number;
}

export function createSimulatedAgent(options: AgentOptions): SimulatedAgent {
  const { timers, runtime, api, result } = options;
  let worker: PodWorker | undefined;
  let kept: Journal = { stops: {} };
  let nodeEnd: NodeEnd | undefined;
  let alive: { since: number } | undefined;
  let adopting = false;
  /** The time of the previous agent's last sign of life; undefined if there was no previous agent. */
  let lastSign: number | undefined;

  const crash = (millis = ABSENT_MILLIS, reboot = false): void => {
    if (alive === undefined) return;
    const now = timers.now();
    lastSign = now - ((now - alive.since) % SIGN_OF_LIFE_MILLIS);
    alive = undefined;
    worker?.stop();
    worker = undefined;
    if (reboot) runtime.reboot();
    result.absences.push({ from: now, to: now + millis });
    timers.at(now + millis, boot);
  };
  const boot = (): void => {
    const now = timers.now();
    const self = { since: now };
    alive = self;
    const isAlive = (): boolean => alive === self;
    const outage: Absence | undefined = lastSign === undefined ? undefined : { from: lastSign, to: now };
    if (outage === undefined || !api.removed) begin(outage, isAlive);
    else {
      adopting = true;
      void adoptRemoved(options, isAlive, () => begin(outage, isAlive)).finally(() => {
        adopting = false;
      });
    }
  };
  const begin = (outage: Absence | undefined, isAlive: () => boolean): void => {
    const first = { pod: api.pod, removed: api.removed, journal: kept, nodeEnd, outage };
    const keep = (journal: Journal): void => {
      kept = journal;
    };
    const mine = startWorker(first, workerPorts(options, { isAlive, crash }, keep));
    if (isAlive()) worker = mine;
    else mine.stop();
  };

  return {
    boot,
    get settled() {
      return alive !== undefined && !adopting;
    },
    crash,
    worker: () => worker,
    end(by) {
      nodeEnd = nodeEndAfter(nodeEnd, by, timers.now());
      worker?.end(by);
    },
  };
}

/**
 * For a Pod whose object was removed: calls `begin` if the runtime has a sandbox or container of the Pod, otherwise completes the Pod's
 * record. Does neither if the agent dies before the runtime can be observed.
 */
async function adoptRemoved(
  { life, timers, runtime, api, result }: AgentOptions,
  isAlive: () => boolean,
  begin: () => void,
): Promise<void> {
  for (;;) {
    const found = await runtime.observe(uidOf(life.pod), never).catch(() => undefined);
    if (!isAlive()) return;
    if (found === undefined) await pause(timers, 1000);
    else if (found.sandboxes.length + found.containers.length > 0) return begin();
    else break;
  }
  await closeRecords({
    client: clientOf(api, result),
    nodeName: 'node-1',
    log: silentLog,
    signal: never,
    isKnown: () => !api.removed,
    gone: () => void result.transitions.push(...lastSteps(timers.now())),
  });
  result.goneAt ??= timers.now();
}

/** A client that returns the record as written so far. */
function clientOf(api: SimulatedApi, { transitions }: LifeResult): Client {
  const { name, namespace, uid = '' } = api.pod.metadata;
  const record: PodRecord = {
    apiVersion: 'lifepod.io/v1',
    kind: 'PodRecord',
    metadata: { name: uid, ...(namespace && { namespace }) },
    podName: name,
    podUID: uid,
    transitions: transitions.map(toApi),
  };
  const list = async () => ({ items: transitions.length === 0 ? [] : [record], metadata: {} });
  return { resource: () => ({ list }) } as unknown as Client;
}
