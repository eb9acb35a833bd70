/**
 * Carries out the actions that decide() requests, without lifecycle rules.
 *
 * Invariant: every action except runProbe and runHook is idempotent. If the outcome of a call is unknown, the action rejects with the
 * call's OutcomeUnknownError.
 */

import type { Pod } from '../../api/generated/types.ts';
import type { Action, HookResult, ProbeResult } from '../../lifecycle/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { ContainerRuntime } from '../../runtime/runtime.ts';
import { type ContainerPorts, createContainerActions } from './container-actions.ts';
import { createPodLimits } from './pod-limits.ts';
import { createSandboxActions, type SandboxPorts } from './sandbox-actions.ts';
import { createStopInTime } from './stop-in-time.ts';
import type { Outcome, WorkerPorts } from './worker/ports.ts';

export interface VolumePort {
  mount(pod: Pod, signal: AbortSignal): Promise<void>;
  /** Rewrites the mounted volumes that contain fields of the Pod or resources of its containers (downward API). */
  rewrite(pod: Pod, signal: AbortSignal): Promise<void>;
  unmount(podUid: string, signal: AbortSignal): Promise<void>;
  /** Unmounts the volumes and deletes the Pod's folders on disk and in memory. */
  remove(podUid: string, signal: AbortSignal): Promise<void>;
}

export interface ExecutorPorts extends SandboxPorts, ContainerPorts {
  runtime: ContainerRuntime;
  finalize(pod: Pod): Promise<Outcome>;
  volumes: VolumePort;
  removeRunFiles(pod: Pod, run: { name: string; attempt: number }): Promise<void>;
  /** Rejects when `signal` aborts, and with an OutcomeUnknownError if the probe has no result. */
  runProbe(pod: Pod, action: Action & { kind: 'runProbe' }, signal: AbortSignal): Promise<Omit<ProbeResult, 'serial'>>;
  /** Rejects when `signal` aborts, and with an OutcomeUnknownError if the hook has no result. */
  runHook(pod: Pod, action: Action & { kind: 'runHook' }, signal: AbortSignal): Promise<HookResult>;
}

export function createExecutor(ports: ExecutorPorts): WorkerPorts['execute'] {
  const { runtime, volumes } = ports;
  const limits = createPodLimits(ports.cgroups);
  const sandboxes = createSandboxActions(ports, limits);
  const containers = createContainerActions(ports, limits);
  const stopInTime = createStopInTime(runtime, ports.timers);
  return async (action, pod, signal, progress) => {
    const uid = uidOf(pod);
    switch (action.kind) {
      case 'mountVolumes':
        await volumes.mount(pod, signal);
        return { volumes: 'mounted' };
      case 'unmountVolumes':
        await volumes.unmount(uid, signal);
        return { volumes: 'unmounted' };
      case 'removeFiles':
        limits.forget(uid);
        await volumes.remove(uid, signal);
        return { volumes: 'gone' };
      case 'createSandbox':
        await sandboxes.create(pod, action.attempt, signal);
        return {};
      case 'checkImage':
        return containers.checkImage(action, signal);
      case 'pullImage':
        return containers.pullImage(action, pod, progress, signal);
      case 'startContainer':
        return containers.start(action, pod, signal);
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
        await sandboxes.stop(pod, action.id, signal);
        return {};
      case 'removeSandbox':
        await sandboxes.remove(pod, action.id, signal);
        return {};
      case 'finalizeDeletion':
        return ports.finalize(pod);
      case 'cancel':
        return {};
    }
  };
}
