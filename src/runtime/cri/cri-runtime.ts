/**
 * Implements the interface of runtime.ts for a container runtime with a CRI v1 socket (containerd, CRI-O). Uses containerd's own services
 * for features that CRI lacks. Each observation lists the sandboxes and containers from the runtime; facts.ts only supplements these lists.
 *
 * Invariants:
 *  1. A call that changes a sandbox or container is not retried, except in stop-and-remove.ts: the caller observes the Pod again and then
 *     decides.
 *  2. Stop and remove treat NotFound as success only if the container or the sandbox itself has ended or does not exist any more.
 */
import type { Metrics } from '../../platform/metrics.ts';
import { machineClock } from '../../platform/node-js.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import { createSteadyStamps } from '../clock-conversion.ts';
import type { ShimExits } from '../containerd/shim-exits.ts';
import { removeWholeImage } from '../images/removal.ts';
import {
  type ContainerRuntime,
  type ContainerStreams,
  OutcomeUnknownError,
  type RuntimeUsage,
  type RuntimeVersion,
  type SandboxPods,
} from '../runtime.ts';
import { callMetrics } from './call-metrics.ts';
import { callErrorOf, connect, hasCode } from './connection.ts';
import { isStartCanceled, isStartCut } from './cut-start.ts';
import { followEvents } from './events/follow-events.ts';
import { shareEvents } from './events/shared-events.ts';
import { execSync } from './exec.ts';
import { containerFacts, emptyFacts, sandboxFacts } from './facts.ts';
import { garbageCalls } from './garbage-collection.ts';
import { followImages } from './images/image-events.ts';
import { imageMountCalls } from './images/image-mounts.ts';
import { imageFolder, imageStatus, imagesInUse, listImages, pullImage } from './images/image-service.ts';
import { pullProgress } from './images/pull-progress.ts';
import { ATTEMPT_LABEL, CONTAINER_NAME_LABEL, type Labels, POD_UID_LABEL } from './labels.ts';
import { logEnded } from './log-end.ts';
import { createObserver, type Observer } from './observer.ts';
import { containerMessage, sandboxMessage } from './requests.ts';
import { sandboxPods } from './sandbox-pods.ts';
import { featuresOf, notReady, readStatus } from './status.ts';
import { type EndingParts, removeContainer, removeSandbox, stopContainer, stopSandbox } from './stop-and-remove.ts';
import { streamCalls } from './streams.ts';
import { usageCalls } from './usage.ts';

export interface RuntimeOptions {
  /** Such as unix:///run/containerd/containerd.sock. */
  endpoint: string;
  log: Log;
  timers: Timers;
  /**
   * The labels of this lifepod instance. All created sandboxes and containers get these labels, and only objects with these labels are
   * observed, so that several engines can share a runtime.
   */
  namespaceLabels?: Labels;
  metrics?: Metrics;
  /** Exits that the shims reported while containerd was down. They are used if CRI reports a container's exit as unknown. */
  shimExits?: ShimExits | undefined;
}

const SERVICE = 'runtime.v1.RuntimeService';

export type CriRuntime = ContainerRuntime & ContainerStreams & RuntimeUsage & SandboxPods;

/** Rejects with an OutcomeUnknownError if the runtime does not respond, or with a RuntimeCallError if the runtime lacks CRI v1. */
export async function connectRuntime(options: RuntimeOptions): Promise<CriRuntime> {
  const connection = connect(options.endpoint, options.metrics && callMetrics(options.metrics));
  const facts = emptyFacts();
  const scope = options.namespaceLabels ?? {};
  const observer = createObserver(connection, facts, scope, options.shimExits);
  const stamps = createSteadyStamps(options.timers, machineClock);
  const version = async (signal: AbortSignal): Promise<RuntimeVersion> => {
    const answer = await connection.unary<Record<'runtimeName' | 'runtimeVersion' | 'runtimeApiVersion', string>>(
      `${SERVICE}/Version`,
      { version: 'v1' },
      signal,
    );
    return { name: answer.runtimeName, version: answer.runtimeVersion, apiVersion: answer.runtimeApiVersion };
  };
  const { name: runtimeName } = await version(new AbortController().signal).catch((error: unknown) => {
    connection.close();
    throw error;
  });
  const surroundings: Surroundings = { connection, facts, observer, scope, timers: options.timers };
  const runtime: CriRuntime = {
    version,
    notReady: (signal) => notReady(connection, signal),
    features: async (signal) => featuresOf(await readStatus(connection, false, signal)),
    ...sandboxCalls(surroundings),
    ...containerCalls(surroundings),
    ...streamCalls(connection),
    ...usageCalls(connection, scope),
    execSync: (id, command, timeoutMillis, signal) =>
      execSync(connection, options.timers, { id, command, timeoutMillis }, signal),
    observeAll: async (signal) => stamps.readAll(await observer.observeAll(signal)),
    sandboxPods: (signal) => sandboxPods(observer, scope, signal),
    observe: async (podUid, signal) => stamps.read(podUid, await observer.observe(podUid, signal)),
    events: shareEvents((...follower) =>
      followEvents({ ...options, connection, facts, observer, scope, runtimeName }, ...follower),
    ),
    imageChanges: (listener, signal) => followImages({ ...options, connection }, listener, signal),
    imageStatus: (reference, signal) => imageStatus(connection, reference, signal),
    pullImage: (reference, credential, signal) => pullImage(connection, reference, credential, signal),
    pullProgress: (names, signal) => pullProgress(connection, names, signal),
    imagesInUse: (signal) => imagesInUse(connection, signal),
    imageFolder: (signal) => imageFolder(connection, signal),
    listImages: (signal) => listImages(connection, signal),
    removeImage: (id, signal) => removeWholeImage(connection, id, options.timers, signal),
    close: async () => connection.close(),
  };
  return runtimeName === 'containerd'
    ? Object.assign(runtime, imageMountCalls({ ...options, connection }), garbageCalls(connection))
    : runtime;
}

type SandboxCalls = Pick<ContainerRuntime, 'runSandbox' | 'stopSandbox' | 'removeSandbox'>;

interface Surroundings extends EndingParts {
  scope: Labels;
}

function sandboxCalls(surroundings: Surroundings): SandboxCalls {
  const { connection, facts, observer, scope } = surroundings;
  return {
    runSandbox: async (config, signal) => {
      const id = await createOrFind(
        async () => {
          const request = { config: sandboxMessage(config, scope), runtimeHandler: config.runtimeHandler ?? '' };
          const answer = await connection.unary<{ podSandboxId: string }>(`${SERVICE}/RunPodSandbox`, request, signal);
          return answer.podSandboxId;
        },
        () =>
          observer.listSandboxes(
            { labels: { [POD_UID_LABEL]: config.pod.uid, [ATTEMPT_LABEL]: String(config.attempt) } },
            signal,
          ),
      );
      sandboxFacts(facts, id, config.pod.uid);
      return id;
    },
    stopSandbox: (id, signal) => stopSandbox(surroundings, id, signal),
    removeSandbox: (id, signal) => removeSandbox(surroundings, id, signal),
  };
}

type ContainerCalls = Pick<
  ContainerRuntime,
  'createContainer' | 'startContainer' | 'stopContainer' | 'removeContainer' | 'reopenContainerLog' | 'logEnded'
>;

function containerCalls(surroundings: Surroundings): ContainerCalls {
  const { connection, facts, observer, scope } = surroundings;
  return {
    createContainer: async (sandboxId, sandbox, config, signal) => {
      const labels = {
        [POD_UID_LABEL]: config.pod.uid,
        [CONTAINER_NAME_LABEL]: config.name,
        [ATTEMPT_LABEL]: String(config.attempt),
      };
      const id = await createOrFind(
        async () => {
          const privileged = sandbox.privileged ?? config.security.privileged ?? false;
          const answer = await connection.unary<{ containerId: string }>(
            `${SERVICE}/CreateContainer`,
            {
              podSandboxId: sandboxId,
              config: containerMessage(config, sandbox, scope),
              sandboxConfig: sandboxMessage(sandbox, scope, privileged),
            },
            signal,
          );
          return answer.containerId;
        },
        () => observer.listContainers({ labels }, signal),
        async ({ id, state }) => {
          const status = state === 'CONTAINER_EXITED' ? await observer.containerStatus(id, signal) : undefined;
          if (status === undefined || !isStartCut(status)) return false;
          await removeContainer(surroundings, id, signal);
          return true;
        },
      );
      containerFacts(facts, id, config.pod.uid);
      return id;
    },
    startContainer: async (id, signal) => {
      facts.starting.add(id);
      try {
        await connection.unary(`${SERVICE}/StartContainer`, { containerId: id }, signal);
      } catch (error) {
        if (signal.aborted) throw error;
        await checkStarted(observer, id, error, signal);
      } finally {
        facts.starting.delete(id);
      }
    },
    stopContainer: (id, graceSeconds, signal) => stopContainer(surroundings, id, graceSeconds, signal),
    removeContainer: (id, signal) => removeContainer(surroundings, id, signal),
    logEnded: (id, signal) => logEnded(surroundings, id, signal),
    reopenContainerLog: async (id, signal) => {
      await connection.unary(`${SERVICE}/ReopenContainerLog`, { containerId: id }, signal);
    },
  };
}

/** Runtimes report this conflict with different words, often without a code. */
const isNameTaken = (error: unknown): boolean =>
  hasCode(error, 'AlreadyExists') ||
  /is reserved for|already exists|already in use/.test(callErrorOf(error)?.details ?? '');

/**
 * Calls `create`, and resolves with the ID of the new object. If the name is already in use, resolves with the ID of the object that `find`
 * finds. If `find` finds none, rejects with the error of `create`, because another creation is normally still under way. `makeRoom` removes
 * an unusable existing object, and resolves with whether `create` should be called again.
 */
async function createOrFind<Listed extends { id: string }>(
  create: () => Promise<string>,
  find: () => Promise<Listed[]>,
  makeRoom?: (existing: Listed) => Promise<boolean>,
): Promise<string> {
  try {
    return await create();
  } catch (error) {
    if (!isNameTaken(error)) throw error;
    const existing = (await find())[0];
    if (existing === undefined) throw error;
    if (await makeRoom?.(existing)) return await create();
    return existing.id;
  }
}

/**
 * Resolves if the container has been started even though the call to start it failed with `error`, and rejects otherwise. A container whose
 * start failed has no start time. The outcome is unknown if the start was canceled (cut-start.ts).
 */
async function checkStarted(observer: Observer, id: string, error: unknown, signal: AbortSignal): Promise<void> {
  const status = await observer.containerStatus(id, signal).catch(() => undefined);
  if (status === undefined) throw error;
  if (isStartCanceled(status)) throw new OutcomeUnknownError(status.message, { cause: error });
  if (status.startedAt === 0) throw error;
}
