/**
 * The node agent: a worker for each Pod that is bound to this node, and for each that the runtime still has though
 * its object is gone.
 *
 * Boundary: rules are in src/lifecycle, calls in executor.ts; here is only who is told what.
 * Invariants:
 *  1. One worker a Pod UID. A Pod of the same name with another UID gets its own.
 *  2. After a start, what the runtime holds is adopted, never restarted; what no object stands for is cleaned up.
 */
import { rm } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { isMirrorPod } from '../api/core/v1/pod/mirror.ts';
import type { Pod, PodStatus, Service } from '../api/generated/types.ts';
import type { Client } from '../client/client.ts';
import { createEventRecorder } from '../client/events.ts';
import { createInformer } from '../client/informer.ts';
import type { NodeConnection } from '../machinery/node-connection.ts';
import { isApiError } from '../machinery/status.ts';
import type { Platform } from '../platform/platform.ts';
import type { ContainerRuntime, ContainerStreams } from '../runtime/runtime.ts';
import { podLogDirectory } from './container-config.ts';
import { prepareContainer, prepareSandbox, removeMessageFile } from './container-files.ts';
import { createExecutor } from './executor.ts';
import { limitStarts } from './handlers/exec-gate.ts';
import { runHook } from './handlers/hook.ts';
import { runProbe } from './handlers/probe.ts';
import type { HandlerTarget } from './handlers/target.ts';
import { ROTATION_LIMITS, type RotationLimits, startLogRotation } from './log-rotation.ts';
import { createLogSource } from './logs.ts';
import { readCapacity } from './machine.ts';
import { createEnvironmentSource } from './pod-environment.ts';
import { createMessageReader, podFromRecords, runtimeView } from './pod-source.ts';
import { createRunLookup } from './run-lookup.ts';
import { throughMirrors } from './static-pods/mirrors.ts';
import { createStaticPods } from './static-pods/static-pods.ts';
import { statusPatch } from './status-patch.ts';
import { createStreamSource } from './streams.ts';
import { createVolumeManager } from './volumes.ts';
import { type PodWorker, type RuntimeView, startWorker } from './worker.ts';

export interface NodeAgentOptions extends Platform {
  client: Client;
  runtime: ContainerRuntime & ContainerStreams;
  runtimeName: string;
  nodeName: string;
  nodeIps: readonly string[];
  dataDir: string;
  clusterDns: readonly string[];
  clusterDomain: string;
  /** In place of ROTATION_LIMITS. */
  logRotation?: Partial<RotationLimits>;
  signal: AbortSignal;
}

export interface NodeAgent {
  /** For the API server: the streams of the containers. */
  connection: NodeConnection;
  /** Ends the static Pods, gracefully; their manifests count no more. Resolves when nothing of them is left. */
  endStaticPods(): Promise<void>;
  /** Resolves when the Events recorded until now are written. */
  flushed(): Promise<void>;
}

export async function startNodeAgent(options: NodeAgentOptions): Promise<NodeAgent> {
  const { client, runtime, timers, log, signal, nodeName, dataDir } = options;
  const pods = client.resource<Pod>({ group: '', version: 'v1', resource: 'pods' });
  const logsRoot = join(dataDir, 'logs', 'pods');
  const recorder = createEventRecorder(client, { component: 'kubelet', host: nodeName, timers, log, signal });
  const capacity = await readCapacity(dataDir);
  const volumes = createVolumeManager({
    rootDirectory: join(dataDir, 'pods'),
    ...{ client, timers, log, nodeName, allocatable: capacity.allocatable },
  });
  signal.addEventListener('abort', () => volumes.close(), { once: true });
  const services = createInformer<Service>(
    client.resource({ group: '', version: 'v1', resource: 'services' }),
    { log, timers, signal },
    {},
  );
  const sandboxIps = new Map<string, readonly string[]>();
  const environment = createEnvironmentSource({
    client,
    nodeName,
    hostIps: options.nodeIps,
    allocatable: capacity.allocatable,
    memoryCapacityBytes: capacity.memoryBytes,
    clusterDns: options.clusterDns,
    clusterDomain: options.clusterDomain,
    resolvConf: '/etc/resolv.conf',
    logsRoot,
    seccompRoot: join(dataDir, 'seccomp'),
    services: () => services.list(),
    podIps: (pod) => sandboxIps.get(pod.metadata.uid ?? '') ?? [],
    podDirectory: volumes.podDirectory,
    volumePath: volumes.hostPath,
  });
  const targetOf = (pod: Pod, name: string, containerId: string): HandlerTarget => {
    const container = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])].find(
      (each) => each.name === name,
    );
    if (container === undefined) throw new Error(`no container ${name} in the spec`);
    const podIp = pod.spec?.hostNetwork === true ? options.nodeIps[0] : sandboxIps.get(pod.metadata.uid ?? '')?.[0];
    return { pod, container, containerId, podIp: podIp ?? '' };
  };
  const handlers = { runtime, timers };
  const probing = { runtime: limitStarts(runtime, timers, 4 * availableParallelism()), timers };
  const execute = createExecutor({
    timers,
    runtime,
    client,
    volumes,
    environment,
    prepareContainer,
    prepareSandbox,
    removeMessage: (pod, container, attempt) =>
      removeMessageFile(volumes.podDirectory(pod.metadata.uid ?? ''), container, attempt),
    async runProbe(pod, { container, id, probe: kind }, abort) {
      const target = targetOf(pod, container, id);
      const { startupProbe, livenessProbe, readinessProbe } = target.container;
      const probe = { startup: startupProbe, liveness: livenessProbe, readiness: readinessProbe }[kind];
      return probe === undefined ? { result: 'Success', message: '' } : runProbe(target, probe, probing, abort);
    },
    async runHook(pod, { container, id, hook }, abort) {
      const target = targetOf(pod, container, id);
      const handler = target.container.lifecycle?.[hook];
      try {
        const { httpFallback } = handler === undefined ? {} : await runHook(target, handler, handlers, abort);
        if (httpFallback !== undefined) recorder.event(pod, 'Warning', 'LifecycleHTTPFallback', httpFallback);
        return {};
      } catch (error) {
        abort.throwIfAborted();
        const failure = (error as Error).message;
        log.warn('lifecycle hook failed', { pod: pod.metadata.name, container, hook, failure });
        return { failure };
      }
    },
  });

  const writeStatus = async (pod: Pod, status: PodStatus): Promise<void> => {
    const { name, namespace, uid } = pod.metadata;
    try {
      await pods.patch(
        name,
        namespace,
        'application/strategic-merge-patch+json',
        { metadata: { uid }, status: statusPatch(pod, status) },
        'status',
      );
    } catch (error) {
      if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
    }
  };

  const staticPods = createStaticPods({ ...options, apply: (pod, removed) => apply(pod, removed), writeStatus });
  const executeFor: typeof execute = async (action, pod, abort) => {
    if (action.kind !== 'finalizeDeletion' || !staticPods.owns(pod)) return execute(action, pod, abort);
    staticPods.finalize(pod);
    return {};
  };

  const workers = new Map<string, PodWorker>();
  const runs = createRunLookup(logsRoot, (uid) => workers.get(uid)?.pod());
  const start = (pod: Pod, removed: boolean): void => {
    const uid = pod.metadata.uid ?? '';
    const readMessages = createMessageReader({
      podDirectory: volumes.podDirectory(uid),
      logDirectory: podLogDirectory(pod, logsRoot),
    });
    const observe = async (of: Pod, abort: AbortSignal): Promise<RuntimeView> => {
      const seen = await runtime.observe(uid, abort);
      const ips = seen.sandboxes.find(({ ready }) => ready)?.ips;
      if (ips !== undefined) sandboxIps.set(uid, ips);
      const view = runtimeView(seen, await readMessages(of, seen.containers, abort));
      runs.observed(uid, view);
      return view;
    };
    const worker = startWorker(
      { pod, removed },
      {
        timers,
        log: log.child({ pod: `${pod.metadata.namespace}/${pod.metadata.name}` }),
        node: { ips: options.nodeIps, runtimeName: options.runtimeName },
        observe,
        execute: executeFor,
        writeStatus: async (of, status) =>
          staticPods.owns(of) ? staticPods.writeStatus(of, status) : writeStatus(of, status),
        event: (of, { type, reason, message, fieldPath }) => recorder.event(of, type, reason, message, fieldPath),
        done: () => {
          workers.delete(uid);
          sandboxIps.delete(uid);
          runs.observed(uid, { sandboxes: [], containers: [] });
          rm(podLogDirectory(pod, logsRoot), { recursive: true, force: true })
            .catch((error: unknown) => log.warn('logs of a removed Pod stay', { uid, error: String(error) }))
            .finally(() => staticPods.ended(uid));
        },
      },
    );
    workers.set(uid, worker);
    if (signal.aborted) worker.stop();
  };
  const apply = (pod: Pod, removed: boolean): void => {
    const worker = workers.get(pod.metadata.uid ?? '');
    if (worker !== undefined) worker.update(pod, removed);
    else if (!removed) start(pod, false);
  };

  signal.addEventListener(
    'abort',
    () => {
      for (const worker of workers.values()) worker.stop();
    },
    { once: true },
  );

  // Events are listened to before the first observation, so that nothing falls between the two.
  // What the runtime has and no object stands for is ended: first it must be known what objects there are.
  const listed = Promise.withResolvers<void>();
  const resync = async (): Promise<void> => {
    await listed.promise;
    const records = await runtime.observeAll(signal);
    for (const [uid, seen] of records) if (!workers.has(uid)) start(podFromRecords(uid, seen), true);
    for (const worker of workers.values()) worker.changed();
  };
  runtime
    .events((event) => {
      if (event.type === 'changed') workers.get(event.podUid)?.changed();
      else resync().catch((error: unknown) => log.warn('resync failed', { error: String(error) }));
    }, signal)
    .catch((error: unknown) => log.error('runtime events ended', { error: String(error) }));

  startLogRotation({
    ...ROTATION_LIMITS,
    ...options.logRotation,
    ...{ timers, log, signal, logs: runs.writtenLogs, reopen: runtime.reopenContainerLog },
  });
  await staticPods.start();
  const changed = (pod: Pod, removed: boolean): void =>
    isMirrorPod(pod) ? staticPods.mirrorSeen(pod, removed) : apply(pod, removed);
  const informer = createInformer<Pod>(
    pods,
    { fieldSelector: `spec.nodeName=${nodeName}`, log, timers, signal },
    {
      added: (pod) => changed(pod, false),
      updated: (pod, old) => {
        if (pod.metadata.uid !== old.metadata.uid) changed(old, true);
        changed(pod, false);
      },
      deleted: (pod) => changed(pod, true),
    },
  );
  await Promise.all([informer.synced, services.synced]);
  listed.resolve();
  await resync();
  await volumes.cleanOrphans(new Set(workers.keys()), signal);
  return {
    connection: throughMirrors(
      { ...createLogSource(runs.logs, timers.now), ...createStreamSource(runs, runtime) },
      staticPods.ownUid,
    ),
    endStaticPods: () => staticPods.endAll(),
    flushed: () => recorder.flushed(),
  };
}
