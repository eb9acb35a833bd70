/**
 * One Pod's life in virtual time: the real worker, executor and core on the simulated runtime, with an API that is one object.
 * Agent crashes fall between any two actions: an action is lost before it was asked for, or its answer is.
 */
import type { Pod, PodStatus } from '../api/generated/types.ts';
import type { Client } from '../client/client.ts';
import type { Stops } from '../lifecycle/stops.ts';
import {
  type Action,
  actionKey,
  type HookKind,
  type NodeEnd,
  type PodEvent,
  type ProbeKind,
  type Transition,
} from '../lifecycle/types.ts';
import { formatTime } from '../machinery/time.ts';
import { createExecutor } from '../node/executor.ts';
import { pullAlone } from '../node/images/puller.ts';
import { runtimeView } from '../node/pod-source.ts';
import { type PodWorker, startWorker } from '../node/worker.ts';
import type { Log, Timers } from '../platform/platform.ts';
import { createSimulatedRuntime, type RunScript, type TraceEntry } from '../runtime/simulated/simulated-runtime.ts';
import { createSteadyStamps } from '../runtime/steady-stamps.ts';
import { simulatedEnvironment } from './simulated-environment.ts';
import { slowRecord } from './slow-record.ts';
import { createVirtualTimers } from './virtual-timers.ts';

export interface Life {
  pod: Pod;
  /** Per container name, the run of each attempt; the last one repeats. */
  scripts: Record<string, RunScript[]>;
  /** Milliseconds from the start of the simulation. */
  deletions?: { at: number; graceSeconds: number }[];
  /** The object is taken from the API at once. */
  forcedAt?: number;
  sandboxLostAt?: number;
  /** The runtime loses the records of the init containers before the last one that has begun. */
  initRecordsLostAt?: number;
  /** The node ends the Pod. */
  nodeEnd?: { at: number; by: Omit<NodeEnd, 'at'> };
  /** And again. */
  nextNodeEnd?: { at: number; by: Omit<NodeEnd, 'at'> };
  maxGracePeriodExtensionSeconds?: number;
  /** How long it takes to write steps into the record. */
  recordMillis?: number;
  /** The machine's clock is set, by so many milliseconds. */
  clockSteps?: { at: number; millis: number }[];
  /** How long it takes until the object shows a status that was written; with defer containers by default 1 ms. */
  statusMillis?: number;
  /** Numbers of executed actions at which the agent crashes; `answered`: the action was still asked for. */
  crashes?: { action: number; asked: boolean }[];
  /** A crash while a defer container is started lets the start fail so many milliseconds later, as with containerd. */
  cutOffStartsMillis?: number;
  /** Numbers of runtime calls that fail. */
  faults?: number[];
  absentImages?: boolean;
  pullable?: (reference: string) => boolean;
  /** An image of that name comes to the node. */
  imageAppears?: { at: number; name: string };
  /** A try to make the volumes, counted from 1. */
  mount?: (tries: number) => Promise<void>;
  /** How a probe of a run goes, so long after its start; absent: it succeeds. */
  probe?: (run: { name: string; attempt: number; probe: ProbeKind }, aliveMillis: number) => 'Success' | 'Failure';
  /** How long a hook takes, and why it fails. */
  hook?: (run: { name: string; attempt: number; hook: HookKind }) => { millis: number; failure?: string };
  /** Changes of the object, by the milliseconds from the start. */
  edits?: { at: number; edit: (pod: Pod) => Pod }[];
  limitMillis?: number;
}

export interface LifeResult {
  trace: TraceEntry[];
  pod: Pod;
  /** undefined: still there at the limit */
  goneAt: number | undefined;
  /** When the object was removed from the API. */
  removedAt: number | undefined;
  events: PodEvent[];
  transitions: Transition[];
  statuses: { at: number; status: PodStatus }[];
  actions: { at: number; action: Action }[];
  probes: { at: number; container: string; attempt: number; probe: ProbeKind }[];
  hooks: { at: number; container: string; hook: HookKind }[];
  /** Actions asked for while the same one was under way in one agent. */
  duplicates: string[];
  start: number;
  now: number;
}

export const LATENCY_MILLIS = 5;
const silent: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent };

export async function live(life: Life): Promise<LifeResult> {
  const start = 1_700_000_000_000;
  const timers = createVirtualTimers(start);
  let calls = 0;
  let mounts = 0;
  const faults = new Set(life.faults);
  let machineAhead = 0;
  for (const { at, millis } of life.clockSteps ?? [])
    timers.at(start + at, () => {
      machineAhead += millis;
    });
  const machine: Timers = {
    now: () => timers.now() + machineAhead,
    at: (time, callback) => timers.at(time - machineAhead, callback),
  };
  const runtime = createSimulatedRuntime({
    timers: machine,
    latencyMillis: () => LATENCY_MILLIS,
    fault: (call) => {
      if (faults.has(++calls)) throw new Error(`simulated fault of ${call}`);
    },
    script: ({ name, attempt }) => {
      const scripts = life.scripts[name] ?? [];
      return scripts[Math.min(attempt, scripts.length - 1)] ?? {};
    },
    images: life.absentImages ? [] : ['busybox:1.28'],
    ...(life.pullable === undefined ? {} : { pullable: life.pullable }),
  });

  let pod = structuredClone(life.pod);
  let removed = false;
  let worker: PodWorker | undefined;
  let executed = 0;
  let kept: Stops = {};
  const crashes = new Map((life.crashes ?? []).map(({ action, asked }) => [action, asked]));
  const result: LifeResult = {
    trace: runtime.trace,
    pod,
    goneAt: undefined,
    removedAt: undefined,
    events: [],
    transitions: [],
    statuses: [],
    actions: [],
    probes: [],
    hooks: [],
    duplicates: [],
    start,
    now: start,
  };

  const wait = (millis: number): Promise<void> =>
    new Promise((resolve) => void timers.at(timers.now() + millis, resolve));
  const change = (next: Pod): void => {
    pod = next;
    worker?.update(pod, removed);
  };
  const remove = (): void => {
    removed = true;
    result.removedAt ??= timers.now();
    worker?.update(pod, removed);
  };
  const client = { resource: () => ({ delete: async () => remove() }) } as unknown as Client;
  const execute = createExecutor({
    timers,
    runtime,
    client,
    volumes: {
      mount: async () => life.mount?.(++mounts),
      unmount: async () => undefined,
      remove: async () => undefined,
    },
    environment: async () => simulatedEnvironment,
    pullImage: (_pod, reference, _progress, signal) => pullAlone(runtime, timers, reference, signal),
    prepareContainer: async () => undefined,
    prepareSandbox: async () => undefined,
    warn: () => undefined,
    removeRunFiles: async () => undefined,
    runProbe: async (_pod, { id, container, probe }) => {
      await wait(LATENCY_MILLIS);
      const began = result.trace.findLast(({ what, name }) => what === 'start' && name === container);
      const attempt = began?.attempt ?? 0;
      result.probes.push({ at: timers.now(), container, attempt, probe });
      const seen = life.probe?.({ name: container, attempt, probe }, timers.now() - (began?.at ?? 0)) ?? 'Success';
      return { result: seen, message: seen === 'Success' ? '' : `simulated failure of ${id}` };
    },
    runHook: async (_pod, { container, hook }, signal) => {
      const began = result.trace.findLast(({ what, name }) => what === 'start' && name === container);
      const { millis, failure } = life.hook?.({ name: container, attempt: began?.attempt ?? 0, hook }) ?? { millis: 0 };
      result.hooks.push({ at: timers.now(), container, hook });
      await wait(millis);
      signal.throwIfAborted();
      return failure === undefined ? {} : { failure };
    },
  });

  const statusMillis = life.statusMillis ?? (pod.spec?.deferContainers === undefined ? undefined : 1);
  const { maxGracePeriodExtensionSeconds } = life;
  const extensionLimit = maxGracePeriodExtensionSeconds === undefined ? {} : { maxGracePeriodExtensionSeconds };
  const boot = (): void => {
    const underWay = new Set<string>();
    let alive = true;
    const crash = (): void => {
      if (!alive) return;
      alive = false;
      worker?.stop();
      worker = undefined;
      timers.at(timers.now() + 50, boot);
    };
    const stamps = createSteadyStamps(timers, machine);
    const mine = startWorker(
      { pod, removed, stops: kept },
      {
        timers,
        log: silent,
        node: { ips: ['192.0.2.1'], runtimeName: 'simulated', ...extensionLimit },
        observe: async ({ metadata: { uid = '' } }, signal) =>
          runtimeView(stamps.read(uid, await runtime.observe(uid, signal)), new Map()),
        execute: async (action, of, signal, progress) => {
          // The rest of what the crashed agent was about to ask for.
          if (!alive) return new Promise(() => undefined);
          const key = actionKey(action);
          if (underWay.has(key)) result.duplicates.push(key);
          underWay.add(key);
          result.actions.push({ at: timers.now(), action });
          const asked = crashes.get(++executed);
          if (asked === false) {
            crash();
            return new Promise(() => undefined);
          }
          const { cutOffStartsMillis } = life;
          const isCutOff =
            asked &&
            action.kind === 'startContainer' &&
            action.containerKind === 'defer' &&
            cutOffStartsMillis !== undefined;
          if (isCutOff) runtime.abandonNextStart(cutOffStartsMillis);
          const answer = execute(action, of, isCutOff ? new AbortController().signal : signal, progress);
          if (asked === true) crash();
          return answer.finally(() => underWay.delete(key));
        },
        writeStatus: async (_pod, status) => {
          if (statusMillis !== undefined) await wait(statusMillis);
          if (!alive || removed) return;
          result.statuses.push({ at: timers.now(), status });
          change({ ...pod, status: structuredClone(status) });
        },
        keepStops: (_pod, stops) => {
          if (alive) kept = structuredClone(stops);
        },
        event: (_pod, event) => void result.events.push(event),
        ...slowRecord(timers, life.recordMillis, (steps) => void (alive && result.transitions.push(...steps))),
        done: () => {
          if (alive) result.goneAt ??= timers.now();
        },
      },
    );
    if (alive) worker = mine;
    else mine.stop();
  };
  const stopEvents = new AbortController();
  void runtime.events(() => worker?.changed(), stopEvents.signal);

  for (const { at, graceSeconds } of life.deletions ?? []) timers.at(start + at, () => deletePod(graceSeconds));
  const deletePod = (graceSeconds: number): void => {
    if (removed) return;
    const before = pod.metadata.deletionGracePeriodSeconds;
    if (before !== undefined && before <= graceSeconds) return;
    const metadata = {
      ...pod.metadata,
      deletionTimestamp: formatTime(timers.now() + graceSeconds * 1000),
      deletionGracePeriodSeconds: graceSeconds,
    };
    change({ ...pod, metadata });
  };
  for (const { at, edit } of life.edits ?? []) timers.at(start + at, () => change(edit(pod)));
  const { imageAppears } = life;
  if (imageAppears !== undefined) timers.at(start + imageAppears.at, () => worker?.imageAppeared(imageAppears.name));
  for (const nodeEnd of [life.nodeEnd, life.nextNodeEnd])
    if (nodeEnd !== undefined) timers.at(start + nodeEnd.at, () => worker?.end(nodeEnd.by));
  if (life.forcedAt !== undefined) timers.at(start + life.forcedAt, remove);
  if (life.sandboxLostAt !== undefined)
    timers.at(start + life.sandboxLostAt, () => runtime.loseSandbox(pod.metadata.uid ?? ''));
  if (life.initRecordsLostAt !== undefined)
    timers.at(start + life.initRecordsLostAt, () => {
      const init = (pod.spec?.initContainers ?? []).map(({ name }) => name);
      const last = result.trace.findLast(({ what, name }) => what === 'start' && init.includes(name));
      runtime.loseRecords(pod.metadata.uid ?? '', init.slice(0, init.indexOf(last?.name ?? '')));
    });

  boot();
  await timers.run(() => result.goneAt !== undefined, start + (life.limitMillis ?? 3_600_000));
  if (life.recordMillis !== undefined) await timers.run(() => false, timers.now() + 2 * life.recordMillis);
  worker?.stop();
  stopEvents.abort();
  return { ...result, pod, now: timers.now() };
}
