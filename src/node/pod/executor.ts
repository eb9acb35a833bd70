/**
 * Carries out the actions that decide() asks for, one call of the runtime or of the volumes each.
 *
 * Boundary: no rule of a Pod's life is here. Every action may be repeated; an action's effect shows in the next
 * observation, beside what Outcome tells. An action whose call has an unknown outcome rejects with that OutcomeUnknownError.
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
  /** Writes what mounted volumes show of the Pod's fields. */
  rewrite(pod: Pod, signal: AbortSignal): Promise<void>;
  unmount(podUid: string, signal: AbortSignal): Promise<void>;
  /** unmount(), and all other files of the Pod go. */
  remove(podUid: string, signal: AbortSignal): Promise<void>;
}

export interface ExecutorPorts {
  timers: Timers;
  runtime: ContainerRuntime;
  /** As PodSource.finalize(). */
  finalize(pod: Pod): Promise<Outcome>;
  volumes: VolumePort;
  /** The facts for the Pod's configuration; the container's references are resolved where one is given. */
  environment(
    pod: Pod,
    container: Container | EphemeralContainer | undefined,
    signal: AbortSignal,
  ): Promise<PodEnvironment>;
  /** Makes the files and mounts that the container's configuration names. */
  prepareContainer(
    pod: Pod,
    container: Container | EphemeralContainer,
    attempt: number,
    env: PodEnvironment,
    signal: AbortSignal,
  ): Promise<void>;
  /** Removes what a run has left whose record is gone. */
  removeRunFiles(pod: Pod, run: { name: string; attempt: number }): Promise<void>;
  /** Both reject when `signal` aborts, and with an OutcomeUnknownError where there is no result. */
  runProbe(pod: Pod, action: Action & { kind: 'runProbe' }, signal: AbortSignal): Promise<Omit<ProbeResult, 'serial'>>;
  runHook(pod: Pod, action: Action & { kind: 'runHook' }, signal: AbortSignal): Promise<HookResult>;
  /** With the Pod's pull secrets. Rejects with the registry's reasons. */
  pullImage(
    pod: Pod,
    reference: string,
    progress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<PulledImage>;
  /** Makes the folder of the Pod's logs. */
  prepareSandbox(config: SandboxConfig): void;
  /** An Event on the Pod. */
  warn(pod: Pod, reason: string, message: string): void;
  /** Of the Pods' control groups; absent: the runtime's own. */
  cgroups?: Pick<PodCgroups, 'create' | 'release' | 'precedesSandbox'> | undefined;
}

export function createExecutor(ports: ExecutorPorts): WorkerPorts['execute'] {
  const { runtime, volumes, timers } = ports;
  const stopInTime = createStopInTime(runtime, timers);

  /** Of the images that Pods use here, by ID: an ID's image never changes. */
  const images = new Map<string, ImageInfo>();

  /** By Pod UID: the writes of the limits of its control group, by this engine. */
  const limited = new Map<string, Promise<void> | undefined>();
  const limit = (pod: Pod): Promise<void> | undefined => {
    const uid = pod.metadata.uid ?? '';
    const writes = ports.cgroups?.create(pod).catch((error: unknown) => {
      limited.delete(uid);
      const what = `failed to ensure that the pod: ${uid} cgroups exist and are correctly applied`;
      throw new ActionError('CreateContainerError', `${what}: ${reasonOf(error)}`);
    });
    limited.set(uid, writes);
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
        limited.delete(uid);
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
        limited.delete(uid);
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
      await limit(pod);
      await runtime.runSandbox(config, signal);
    } else await Promise.all([runtime.runSandbox(config, signal), limit(pod)]);
    return {};
  }

  /** The control group of a deleted Pod is removed at the same time, unless the Pod has another sandbox. */
  async function removeSandbox(id: string, pod: Pod, signal: AbortSignal): Promise<void> {
    const isLast = isDeleted(pod) && !limited.has(pod.metadata.uid ?? '');
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
        .catch(failsWith('ImageInspectError', (why) => `Failed to inspect image "${reference}": ${why}`));
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
      throw error instanceof OutcomeUnknownError ? error : pullFailure(reference, reasonOf(error));
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
      // Whoever made the sandbox may have died, or failed, before the Pod had its limits.
      limited.get(pod.metadata.uid ?? '') ?? limit(pod),
    ]);
    // It was removed meanwhile: what the pull policy says of an absent image holds.
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
const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
