/**
 * One Pod's life in virtual time: the real worker, executor and core on the simulated runtime, with an API that is one object.
 * Agent crashes fall between any two actions: an action is lost before it was asked for, or its answer is.
 */
import type { Pod, PodStatus } from '../api/generated/types.ts';
import type { Client } from '../client/client.ts';
import { type Action, actionKey, type HookKind, type PodEvent, type ProbeKind } from '../lifecycle/types.ts';
import { formatTime } from '../machinery/time.ts';
import type { PodEnvironment } from '../node/container-config.ts';
import { createExecutor } from '../node/executor.ts';
import { runtimeView } from '../node/pod-source.ts';
import { type PodWorker, startWorker } from '../node/worker.ts';
import type { Log } from '../platform/platform.ts';
import { createSimulatedRuntime, type RunScript, type TraceEntry } from '../runtime/simulated/simulated-runtime.ts';
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
  /** Numbers of executed actions at which the agent crashes; `answered`: the action was still asked for. */
  crashes?: { action: number; asked: boolean }[];
  /** Numbers of runtime calls that fail. */
  faults?: number[];
  absentImages?: boolean;
  pullable?: (reference: string) => boolean;
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
  const faults = new Set(life.faults);
  const runtime = createSimulatedRuntime({
    timers,
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
  const crashes = new Map((life.crashes ?? []).map(({ action, asked }) => [action, asked]));
  const result: LifeResult = {
    trace: runtime.trace,
    pod,
    goneAt: undefined,
    removedAt: undefined,
    events: [],
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
    volumes: { mount: async () => undefined, unmount: async () => undefined, remove: async () => undefined },
    environment: async () => environment,
    prepareContainer: async () => undefined,
    prepareSandbox: async () => undefined,
    removeMessage: async () => undefined,
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
    const mine = startWorker(
      { pod, removed },
      {
        timers,
        log: silent,
        node: { ips: ['192.0.2.1'], runtimeName: 'simulated' },
        observe: async (_pod, signal) => runtimeView(await runtime.observe(pod.metadata.uid ?? '', signal), new Map()),
        execute: async (action, of, signal) => {
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
          const answer = execute(action, of, signal);
          if (asked === true) crash();
          return answer.finally(() => underWay.delete(key));
        },
        writeStatus: async (_pod, status) => {
          if (!alive || removed) return;
          result.statuses.push({ at: timers.now(), status });
          change({ ...pod, status: structuredClone(status) });
        },
        event: (_pod, event) => void result.events.push(event),
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
  if (life.forcedAt !== undefined) timers.at(start + life.forcedAt, remove);
  if (life.sandboxLostAt !== undefined)
    timers.at(start + life.sandboxLostAt, () => runtime.loseSandbox(pod.metadata.uid ?? ''));

  boot();
  await timers.run(() => result.goneAt !== undefined, start + (life.limitMillis ?? 3_600_000));
  worker?.stop();
  stopEvents.abort();
  return { ...result, pod, now: timers.now() };
}

/** A Pod of busybox containers as the API would hold it; `each` is added to every app container. */
export function simulatedPod(given: {
  init?: string[];
  sidecars?: string[];
  apps: string[];
  restartPolicy?: string;
  activeDeadlineSeconds?: number;
  graceSeconds?: number;
  each?: object;
}): Pod {
  const container = (name: string) => ({ name, image: 'busybox:1.28', imagePullPolicy: 'IfNotPresent' });
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'simulated', namespace: 'default', uid: 'uid-1', generation: 1 },
    spec: {
      nodeName: 'node',
      restartPolicy: given.restartPolicy ?? 'Always',
      terminationGracePeriodSeconds: given.graceSeconds ?? 30,
      ...(given.activeDeadlineSeconds === undefined ? {} : { activeDeadlineSeconds: given.activeDeadlineSeconds }),
      initContainers: [
        ...(given.sidecars ?? []).map((name) => ({ ...container(name), restartPolicy: 'Always' })),
        ...(given.init ?? []).map(container),
      ],
      containers: given.apps.map((name) => ({ ...container(name), ...given.each })),
    },
    status: { phase: 'Pending' },
  };
}

const environment: PodEnvironment = {
  nodeName: 'node',
  hostIps: ['192.0.2.1'],
  podIps: [],
  allocatable: {},
  services: [],
  configMap: () => undefined,
  secret: () => undefined,
  dns: { clusterDns: [], clusterDomain: 'cluster.local', host: { servers: [], searches: [], options: [] } },
  podDirectory: '/simulated/pod',
  logsRoot: '/simulated/logs',
  seccompRoot: '/simulated/seccomp',
  memoryCapacityBytes: 2 ** 30,
  volumePath: (name) => `/simulated/volumes/${name}`,
};
