/**
 * The agent of a node in virtual time: the real worker and executor on the simulated runtime and API. It dies when its life says so,
 * and restarts with what an agent finds on its node: the Pod's journal, the termination that the node decided, and the time since
 * the last sign of life.
 */
import type { Pod, PodRecord } from '../api/generated/types.ts';
import type { Client } from '../client/client.ts';
import { nodeEndAfter } from '../lifecycle/termination.ts';
import { type Action, actionKey, type Journal, type NodeEnd } from '../lifecycle/types.ts';
import { notFound } from '../machinery/status.ts';
import { runtimeView } from '../node/pod/observed-pod.ts';
import { type PodWorker, startWorker } from '../node/pod/worker.ts';
import type { WorkerPorts } from '../node/pod/worker-ports.ts';
import { closeRecords, lastSteps } from '../node/record/close-records.ts';
import { toApi } from '../node/record/step-conversion.ts';
import { pause } from '../platform/pause.ts';
import type { Log, Timers } from '../platform/platform.ts';
import type { SimulatedRuntime } from '../runtime/simulated/simulated-runtime.ts';
import { createSteadyStamps } from '../runtime/steady-stamps.ts';
import type { Life, LifeResult } from './life.ts';
import type { SimulatedApi } from './simulated-api.ts';
import { slowRecord } from './slow-record.ts';

/** The interval between an agent's signs of life. Source: the renewal of the node's Lease. */
export const SIGN_OF_LIFE_MILLIS = 10_000;
const ABSENT_MILLIS = 50;
const never = new AbortController().signal;

export const silent: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent };

export interface AgentOptions {
  life: Life;
  timers: Timers;
  /** The machine's clock, which may be set. */
  machine: Timers;
  runtime: SimulatedRuntime;
  api: SimulatedApi;
  execute: WorkerPorts['execute'];
  result: LifeResult;
}

export interface SimulatedAgent {
  boot(): void;
  /** No restart of the agent is pending, and no adoption is under way. */
  readonly settled: boolean;
  worker(): PodWorker | undefined;
  /** The agent dies, and the next one starts after `millis`. */
  crash(millis?: number, reboot?: boolean): void;
  /** The node terminates the Pod. */
  end(by: Omit<NodeEnd, 'at'>): void;
}

export function createSimulatedAgent(options: AgentOptions): SimulatedAgent {
  const { life, timers, runtime, api, result } = options;
  const uid = life.pod.metadata.uid ?? '';
  const wait = (millis: number): Promise<void> => pause(timers, millis);
  let worker: PodWorker | undefined;
  /** What the agent stores of the Pod on its node. */
  let kept: Journal = { stops: {} };
  let nodeEnd: NodeEnd | undefined;
  let alive: { since: number } | undefined;
  let adopting = false;
  /** The last sign of life of the previous agent. */
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
    const outage = lastSign === undefined ? undefined : { from: lastSign, to: now };
    alive = { since: now };
    if (outage === undefined || !api.removed) begin(outage);
    else {
      adopting = true;
      void adopt(outage, alive).finally(() => {
        adopting = false;
      });
    }
  };
  /** A Pod whose object was removed has a worker only if the runtime has something of it. */
  const adopt = async (outage: Absence, self: object): Promise<void> => {
    for (;;) {
      const found = await runtime.observe(uid, never).catch(() => undefined);
      if (alive !== self) return;
      if (found === undefined) await wait(1000);
      else if (found.sandboxes.length + found.containers.length > 0) return begin(outage);
      else break;
    }
    await closeRecords({
      ...{ client: clientOf(api, result), log: silent, signal: never },
      isKnown: () => false,
      gone: () => void result.transitions.push(...lastSteps(timers.now())),
    });
    result.goneAt ??= timers.now();
  };

  const begin = (outage: Absence | undefined): void => {
    const self = alive;
    const isAlive = (): boolean => alive === self;
    const first = {
      ...{ pod: api.pod, removed: api.removed, journal: kept },
      ...(nodeEnd === undefined ? {} : { nodeEnd }),
      ...(outage === undefined ? {} : { outage }),
    };
    const mine = startWorker(first, ports(isAlive));
    if (isAlive()) worker = mine;
    else mine.stop();
  };

  const ports = (isAlive: () => boolean): WorkerPorts => {
    const { maxGracePeriodExtensionSeconds } = life;
    const extensionLimit = maxGracePeriodExtensionSeconds === undefined ? {} : { maxGracePeriodExtensionSeconds };
    const statusMillis = life.statusMillis ?? (life.pod.spec?.deferContainers === undefined ? undefined : 1);
    const stamps = createSteadyStamps(timers, options.machine);
    return {
      timers,
      log: silent,
      node: { ips: ['192.0.2.1'], runtimeName: 'simulated', ...extensionLimit },
      observe: async (_pod, signal) => runtimeView(stamps.read(uid, await runtime.observe(uid, signal)), new Map()),
      execute: performer(isAlive),
      writeStatus: async (_pod, status) => {
        if (statusMillis !== undefined) await wait(statusMillis);
        if (!isAlive() || api.removed) return;
        result.statuses.push({ at: timers.now(), status });
        api.writeStatus(status);
      },
      keep: (_pod, journal) => {
        if (isAlive()) kept = structuredClone(journal);
      },
      event: (_pod, event) => void result.events.push({ ...event, at: timers.now() }),
      ...slowRecord(timers, life.recordMillis, (steps) => void (isAlive() && result.transitions.push(...steps))),
      done: () => {
        if (isAlive()) result.goneAt ??= timers.now();
      },
    };
  };

  /** Executes the actions of one agent, with the crashes and outages of the life between them. */
  const performer = (isAlive: () => boolean): WorkerPorts['execute'] => {
    const underWay = new Set<string>();
    return async (action, of, signal, progress) => {
      // An action that the crashed agent was about to request.
      if (!isAlive()) return new Promise(() => undefined);
      const key = actionKey(action);
      if (underWay.has(key)) result.duplicates.push(key);
      underWay.add(key);
      const number = result.actions.push({ at: timers.now(), action });
      for (const { action: at, millis, afterMillis = 0, takesEffect = false } of life.outages ?? [])
        if (at === number) {
          const cut = (): void => runtime.goAway({ millis, takesEffect });
          if (afterMillis === 0) cut();
          else timers.at(timers.now() + afterMillis, cut);
        }
      // If a life has two crashes for one action, the last one applies.
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

interface Absence {
  from: number;
  to: number;
}

const isEntryStart = (action: Action): boolean => action.kind === 'startContainer' && action.containerKind === 'defer';

/** What closeRecords() reads: the record written so far, and whether the object exists. */
function clientOf(api: SimulatedApi, { transitions }: LifeResult): Client {
  const { name, namespace, uid = '' } = api.pod.metadata;
  const record: PodRecord = {
    ...{
      apiVersion: 'lifepod.io/v1',
      kind: 'PodRecord',
      podName: name,
      podUID: uid,
      transitions: transitions.map(toApi),
    },
    metadata: { name: uid, ...(namespace && { namespace }) },
  };
  const get = async (): Promise<Pod> => {
    if (api.removed) throw notFound({ group: '', resource: 'pods' }, name);
    return api.pod;
  };
  const list = async () => ({ items: transitions.length === 0 ? [] : [record], metadata: {} });
  return { resource: () => ({ get, list }) } as unknown as Client;
}
