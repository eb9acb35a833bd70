/**
 * Carries out the actions that decide() requests, each with a call to the runtime, the volumes or the API.
 *
 * Boundary: this file contains no lifecycle rules. Every action is idempotent. Its effect appears in the next observation,
 * except for what Outcome reports. An action whose call has an unknown outcome rejects with that OutcomeUnknownError.
 */

import type { PullProgress } from '../../api/core/v1/pod/status/pull-progress.ts';
import type { Container, EphemeralContainer, Pod } from '../../api/generated/types.ts';
import type { Action, HookResult, ImageState, ProbeResult } from '../../lifecycle/types.ts';
import type { Timers } from '../../platform/platform.ts';
import {
  type ContainerRuntime,
  type ImageInfo,
  OutcomeUnknownError,
  type SandboxConfig,
} from '../../runtime/runtime.ts';
import { containersByName } from '../container/by-name.ts';
import { containerConfig, type PodEnvironment, sandboxConfig } from '../container/container-config.ts';
import { podDnsConfig } from '../container/dns-config.ts';
import { sandboxMetadata } from '../container/sandbox-metadata.ts';
import { checkImageName, pullFailure } from '../images/failures.ts';
import type { PulledImage } from '../images/puller.ts';
import type { PodCgroups } from '../resources/pod-cgroups.ts';
import { ActionError, failsWith } from './action-error.ts';
import { createStopInTime } from './stop-in-time.ts';
import type { Outcome, WorkerPorts } from './worker-ports.ts';

/** The part of the volume manager that actions need. */
export interface VolumePort {
  mount(pod: Pod, signal: AbortSignal): Promise<void>;
  /** Rewrites the Pod's fields (downward API) in mounted volumes. */
  rewrite(pod: Pod, signal: AbortSignal): Promise<void>;
  unmount(podUid: string, signal: AbortSignal): Promise<void>;
  /** Unmounts the volumes and deletes all other files of the Pod. */
  remove(podUid: string, signal: AbortSignal): Promise<void>;
}

export interface ExecutorPorts {
  timers: Timers;
  runtime: ContainerRuntime;
  /** As PodSource.finalize(). */
  finalize(pod: Pod): Promise<Outcome>;
  volumes: VolumePort;
  /** Returns the facts for the Pod's configuration. With a container, also resolves the objects that it references. */
  environment(
    pod: Pod,
    container: Container | EphemeralContainer | undefined,
    signal: AbortSignal,
  ): Promise<PodEnvironment>;
  /** Creates the files and mounts that the container's configuration refers to. */
  prepareContainer(
    pod: Pod,
    container: Container | EphemeralContainer,
    attempt: number,
    env: PodEnvironment,
    signal: AbortSignal,
  ): Promise<void>;
  /** Deletes the files of a run whose container has been removed from the runtime. */
  removeRunFiles(pod: Pod, run: { name: string; attempt: number }): Promise<void>;
  /** Like runHook(), rejects when `signal` aborts, and with an OutcomeUnknownError when there is no result. */
  runProbe(pod: Pod, action: Action & { kind: 'runProbe' }, signal: AbortSignal): Promise<Omit<ProbeResult, 'serial'>>;
  runHook(pod: Pod, action: Action & { kind: 'runHook' }, signal: AbortSignal): Promise<HookResult>;
  /** Pulls with the Pod's pull secrets. Rejects with the registry's error. */
  pullImage(
    pod: Pod,
    reference: string,
    progress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<PulledImage>;
  /** Creates the folder of the Pod's logs. */
  prepareSandbox(config: SandboxConfig): void;
  /** Emits a Warning Event on the Pod. */
  warn(pod: Pod, reason: string, message: string): void;
  /** Manages the Pods' control groups. Absent if the runtime chooses the control groups. */
  cgroups?: Pick<PodCgroups, 'create' | 'release' | 'precedesSandbox'> | undefined;
}

export function createExecutor(ports: ExecutorPorts): WorkerPorts['execute'] {
  const { runtime, volumes, timers } = ports;
  const stopInTime = createStopInTime(runtime, timers);

  /** The images that Pods on this node use, by ID. The image of an ID never changes. */
  const images = new Map<string, ImageInfo>();

  /** By Pod UID: resolves when this engine has written the limits of the Pod's control group. */
  const limitWrites = new Map<string, Promise<void> | undefined>();
  const writeLimits = (pod: Pod): Promise<void> | undefined => {
    const uid = pod.metadata.uid ?? '';
    const writes = ports.cgroups?.create(pod).catch((error: unknown) => {
      limitWrites.delete(uid);
      const summary = `failed to ensure that the pod: ${uid} cgroups exist and are correctly applied`;
      throw new ActionError('CreateContainerError', `${summary}: ${messageOf(error)}`);
    });
    limitWrites.set(uid, writes);
    return writes;
  };

  return async (action, pod, signal, progress) => {
    const uid = pod.metadata.uid ?? '';
    switch (action.kind) {
      case 'mountVolumes':
        await volumes.mount(pod, signal);
        return { volumes: 'mounted' };
      case 'unmountVolumes':
        await volumes.unmount(uid, signal);
        return { volumes: 'unmounted' };
      case 'removeFiles':
        limitWrites.delete(uid);
        await volumes.remove(uid, signal);
        return { volumes: 'gone' };
      case 'createSandbox':
        return createSandbox(pod, action.attempt, signal);
      case 'checkImage':
      case 'pullImage':
        return image(action, pod, progress, signal);
      case 'startContainer':
        return startContainer(action, pod, signal);
      case 'writeDownwardFiles':
        await volumes.rewrite(pod, signal);
        return { downward: action.version };
      case 'runProbe':
        return { probe: await ports.runProbe(pod, action, signal) };
      case 'runHook':
        return { hook: await ports.runHook(pod, action, signal) };
      case 'stopContainer':
        await stopInTime(uid, action.id, action.deadline, signal);
        return {};
      case 'removeContainer':
        await runtime.removeContainer(action.id, signal);
        await ports.removeRunFiles(pod, { name: action.container, attempt: action.attempt });
        return {};
      case 'stopSandbox':
        await runtime.stopSandbox(action.id, signal);
        limitWrites.delete(uid);
        if (!isDeleted(pod)) await ports.cgroups?.release(pod);
        return {};
      case 'removeSandbox':
        await removeSandbox(action.id, pod, signal);
        return {};
      case 'finalizeDeletion':
        return ports.finalize(pod);
      case 'cancel':
        return {};
    }
  };

  async function createSandbox(pod: Pod, attempt: number, signal: AbortSignal): Promise<Outcome> {
    const env = await ports.environment(pod, undefined, signal);
    const config = sandboxConfig(pod, attempt, env);
    for (const cut of podDnsConfig(pod, env.dns).cut) ports.warn(pod, 'DNSConfigForming', cut);
    const { cut } = sandboxMetadata(pod);
    if (cut !== undefined) ports.warn(pod, 'SandboxMetadataCut', cut);
    ports.prepareSandbox(config);
    if (ports.cgroups?.precedesSandbox === true) {
      await writeLimits(pod);
      await runtime.runSandbox(config, signal);
    } else await Promise.all([runtime.runSandbox(config, signal), writeLimits(pod)]);
    return {};
  }

  /** Removes a deleted Pod's control group at the same time, unless the Pod has another sandbox. */
  async function removeSandbox(id: string, pod: Pod, signal: AbortSignal): Promise<void> {
    const isLast = isDeleted(pod) && !limitWrites.has(pod.metadata.uid ?? '');
    const release = isLast ? ports.cgroups?.release(pod) : undefined;
    for (const result of await Promise.allSettled([runtime.removeSandbox(id, signal), release]))
      if (result.status === 'rejected') throw result.reason;
  }

  async function image(
    action: Action & { kind: 'checkImage' | 'pullImage' },
    pod: Pod,
    progress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { container, attempt, image: reference } = action;
    const found = (info: ImageInfo, pulled?: Extract<ImageState, { state: 'present' }>['pulled']): Outcome => {
      images.set(info.id, info);
      const state = {
        attempt,
        image: reference,
        state: 'present',
        imageId: info.id,
        ...(pulled === undefined ? {} : { pulled }),
      } as const;
      return { image: { container, state } };
    };
    checkImageName(reference);
    if (action.kind === 'checkImage') {
      const info = await runtime
        .imageStatus(reference, signal)
        .catch(failsWith('ImageInspectError', (cause) => `Failed to inspect image "${reference}": ${cause}`));
      if (info !== undefined) return found(info);
      if (action.mustExist)
        throw new ActionError(
          'ErrImageNeverPull',
          `Container image "${reference}" is not present with pull policy of Never`,
        );
      return { image: { container, state: { attempt, image: reference, state: 'absent' } } };
    }
    const began = timers.now();
    try {
      const { info, millis } = await ports.pullImage(pod, reference, progress, signal);
      return found(info, { millis, withWaitingMillis: timers.now() - began, sizeBytes: info.sizeBytes });
    } catch (error) {
      throw error instanceof OutcomeUnknownError ? error : pullFailure(reference, messageOf(error));
    }
  }

  async function startContainer(
    action: Action & { kind: 'startContainer' },
    pod: Pod,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const container = containersByName(pod).get(action.container);
    if (container === undefined)
      throw new ActionError('CreateContainerConfigError', `no container ${action.container} in the spec`);
    const [env, info] = await Promise.all([
      ports.environment(pod, container, signal),
      images.get(action.imageId) ?? runtime.imageStatus(action.imageId, signal),
      // The engine may have died, or failed, after it created the sandbox and before it wrote the limits.
      limitWrites.get(pod.metadata.uid ?? '') ?? writeLimits(pod),
    ]);
    // The image was removed in the meantime: report it as absent, so that the pull policy applies again.
    if (info === undefined)
      return {
        image: {
          container: action.container,
          state: { attempt: action.attempt, image: action.image, state: 'absent' },
        },
      };
    await ports.prepareContainer(pod, container, action.attempt, env, signal);
    const sandbox = sandboxConfig(pod, 0, env);
    const config = containerConfig(
      pod,
      { ...container, image: action.image },
      action.containerKind,
      action.attempt,
      action.backoffSeconds,
      info,
      env,
    );
    if (action.targetId !== undefined) config.targetContainerId = action.targetId;
    const id = await runtime.createContainer(action.sandboxId, sandbox, config, signal).catch((error: unknown) => {
      images.delete(action.imageId);
      return failsWith('CreateContainerError')(error);
    });
    await runtime.startContainer(id, signal).catch(failsWith('RunContainerError'));
    return {};
  }
}

const isDeleted = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
