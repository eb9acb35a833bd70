/**
 * The life of one Pod in virtual time: the real worker, executor and core on the simulated runtime, with an API that is one object. The
 * agent can crash, and the runtime can stop responding, at any time.
 */

import { uidOf } from '../machinery/meta.ts';
import { pullAlone } from '../node/images/puller.ts';
import { createExecutor } from '../node/pod/executor.ts';
import type { WorkerPorts } from '../node/pod/worker/ports.ts';
import type { Timers } from '../platform/platform.ts';
import { createVirtualTimers } from '../platform/virtual-timers.ts';
import { createSimulatedRuntime, type SimulatedRuntime } from '../runtime/simulated/simulated-runtime.ts';
import { LATENCY_MILLIS, type Life, type LifeResult, type Loss } from './life.ts';
import { createSimulatedAgent } from './simulated-agent.ts';
import { createSimulatedApi, type SimulatedApi } from './simulated-api.ts';
import { simulatedEnvironment } from './simulated-environment.ts';

export { LATENCY_MILLIS, type Life, type LifeResult } from './life.ts';

export async function live(life: Life): Promise<LifeResult> {
  const start = 1_700_000_000_000;
  const timers = createVirtualTimers(start);
  let machineAhead = 0;
  for (const { at, millis } of life.clockSteps ?? [])
    timers.at(start + at, () => {
      machineAhead += millis;
    });
  const machine: Timers = {
    now: () => timers.now() + machineAhead,
    at: (time, callback) => timers.at(time - machineAhead, callback),
  };
  const runtime = runtimeOf(life, machine);
  const result: LifeResult = {
    trace: runtime.trace,
    calls: runtime.calls,
    pod: life.pod,
    start,
    now: start,
    goneAt: undefined,
    removedAt: undefined,
    events: [],
    transitions: [],
    statuses: [],
    actions: [],
    probes: [],
    hooks: [],
    absences: [],
    duplicates: [],
  };
  const api = createSimulatedApi(life.pod, timers, () => {
    if (api.removed) result.removedAt ??= timers.now();
    agent.worker()?.update(api.pod, api.removed);
  });
  const execute = executorOf(life, timers, runtime, api, result);
  const agent = createSimulatedAgent({ life, timers, machine, runtime, api, execute, result });
  const stopEvents = new AbortController();
  void runtime.events(() => agent.worker()?.changed(), stopEvents.signal);

  const at = (time: number | undefined, happens: () => void): void => {
    if (time !== undefined) timers.at(start + time, happens);
  };
  for (const deletion of life.deletions ?? []) at(deletion.at, () => api.deletePod(deletion));
  for (const { at: time, edit } of life.edits ?? []) at(time, () => api.change(edit(api.pod)));
  for (const { at: time, entry } of life.skips ?? []) at(time, () => api.skip(entry));
  const { imageAppears } = life;
  at(imageAppears?.at, () => agent.worker()?.imageAppeared(imageAppears?.name));
  for (const nodeEnd of [life.nodeEnd, life.nextNodeEnd])
    if (nodeEnd !== undefined) at(nodeEnd.at, () => agent.end(nodeEnd.by));
  at(life.forcedAt, api.remove);
  const uid = uidOf(life.pod);
  at(life.sandboxLostAt, () => runtime.loseSandbox(uid));
  at(life.initRecordsLostAt, () => {
    const init = (life.pod.spec?.initContainers ?? []).map(({ name }) => name);
    const last = result.trace.findLast(({ what, name }) => what === 'start' && init.includes(name));
    runtime.loseRecords(uid, init.slice(0, init.indexOf(last?.name ?? '')));
  });
  for (const loss of life.losses ?? []) at(loss.at, () => lose(runtime, uid, loss));
  for (const { at: time, millis, takesEffect = false } of life.outages ?? [])
    at(time, () => runtime.goAway({ millis, takesEffect }));
  for (const { at: time, millis, reboot } of life.absences ?? []) at(time, () => agent.crash(millis, reboot));

  agent.boot();
  await timers.run(() => result.goneAt !== undefined && agent.settled, start + (life.limitMillis ?? 3_600_000));
  if (life.recordMillis !== undefined) await timers.run(() => false, timers.now() + 2 * life.recordMillis);
  agent.worker()?.stop();
  stopEvents.abort();
  return { ...result, pod: api.pod, now: timers.now() };
}

function runtimeOf(life: Life, timers: Timers): SimulatedRuntime {
  let calls = 0;
  const faults = new Set(life.faults);
  const { startMillis = LATENCY_MILLIS } = life;
  return createSimulatedRuntime({
    timers,
    latencyMillis: (call) => (call === 'startContainer' ? startMillis : LATENCY_MILLIS),
    fault: (call) => {
      if (faults.has(++calls)) throw new Error(`simulated fault of ${call}`);
    },
    script: ({ name, attempt }) => {
      const scripts = life.scripts[name] ?? [];
      return scripts[Math.min(attempt, scripts.length - 1)] ?? {};
    },
    images: life.absentImages ? [] : ['busybox:1.28'],
    pullable: life.pullable,
  });
}

function lose(runtime: SimulatedRuntime, uid: string, { what, names, millis = 60_000 }: Loss): void {
  if (what === 'record') runtime.loseRecords(uid, names);
  else if (what === 'sandbox') runtime.loseSandbox(uid);
  else if (what === 'running') runtime.vanish(uid, names);
  else runtime.damageRecords(uid, names, millis);
}

function executorOf(
  life: Life,
  timers: Timers,
  runtime: SimulatedRuntime,
  api: SimulatedApi,
  result: LifeResult,
): WorkerPorts['execute'] {
  let mounts = 0;
  /** Resolves after `millis`. Rejects if the signal aborts, or if the runtime is or becomes unreachable. */
  const wait = (what: string, millis: number, signal: AbortSignal): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    timers.at(timers.now() + millis, resolve);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    return runtime.through(what, promise);
  };
  const beginOf = (container: string) =>
    result.trace.findLast(({ what, name }) => what === 'start' && name === container);
  return createExecutor({
    timers,
    runtime,
    async finalize() {
      api.remove();
      return {};
    },
    volumes: {
      mount: async () => life.mount?.(++mounts),
      rewrite: async () => undefined,
      unmount: async () => undefined,
      remove: async () => undefined,
    },
    environment: async () => simulatedEnvironment,
    pullImage: (_pod, reference, _progress, signal) => pullAlone(runtime, timers, reference, signal),
    prepareContainer: async () => undefined,
    prepareSandbox: () => undefined,
    warn: () => undefined,
    removeRunFiles: async () => undefined,
    runProbe: async (_pod, { id, container, probe }, signal) => {
      await wait(`probe of ${container}`, LATENCY_MILLIS, signal);
      const { attempt = 0, at = 0 } = beginOf(container) ?? {};
      const seen = life.probe?.({ name: container, attempt, probe }, timers.now() - at) ?? 'Success';
      result.probes.push({ at: timers.now(), container, attempt, probe, result: seen });
      return { result: seen, message: seen === 'Success' ? '' : `simulated failure of ${id}` };
    },
    runHook: async (_pod, { container, hook }, signal) => {
      const { attempt = 0 } = beginOf(container) ?? {};
      const { millis, failure } = life.hook?.({ name: container, attempt, hook }) ?? { millis: 0 };
      result.hooks.push({ at: timers.now(), container, hook });
      await wait(`hook of ${container}`, millis, signal);
      return failure === undefined ? {} : { failure };
    },
  });
}
