/**
 * A probe or hook rejects with an OutcomeUnknownError if it has no result, because the runtime did not answer or the container ended during
 * its probe.
 */
import type { Container, Pod } from '../../api/generated/types.ts';
import type { EventRecorder } from '../../client/events.ts';
import type { Platform } from '../../platform/platform.ts';
import { type ContainerRuntime, OutcomeUnknownError } from '../../runtime/runtime.ts';
import { containersByName } from '../container/by-name.ts';
import type { ExecutorPorts } from '../pod/executor.ts';
import { limitStarts, type StartGate } from '../streams/exec-gate.ts';
import { runHook } from './hook.ts';
import { runProbe } from './probe.ts';
import { stillRuns } from './still-runs.ts';
import type { HandlerTarget } from './target.ts';

export interface PodHandlerOptions extends Platform {
  runtime: ContainerRuntime;
  events: EventRecorder;
  startGate: StartGate;
  /** Undefined if the Pod has no address. */
  podIp(pod: Pod): string | undefined;
}

export function createPodHandlers(options: PodHandlerOptions): Pick<ExecutorPorts, 'runProbe' | 'runHook'> {
  const { runtime, timers, log, events } = options;
  const targetOf = (pod: Pod, name: string, containerId: string): HandlerTarget => {
    const container: Container | undefined = containersByName(pod).get(name);
    if (container === undefined) throw new Error(`no container ${name} in the spec`);
    return { pod, container, containerId, podIp: options.podIp(pod) ?? '' };
  };
  const handlers = { runtime: limitStarts(runtime, options.startGate), timers };
  return {
    async runProbe(pod, { container, id, probe: kind }, abort) {
      const target = targetOf(pod, container, id);
      const { startupProbe, livenessProbe, readinessProbe } = target.container;
      const probe = { startup: startupProbe, liveness: livenessProbe, readiness: readinessProbe }[kind];
      if (probe === undefined) return { result: 'Success', message: '' };
      const outcome = await runProbe(target, probe, handlers, abort);
      if (outcome.result === 'Success' || outcome.result === 'Warning') return outcome;
      const runs = await stillRuns(target, options, abort);
      // If the runtime hangs, a command times out even if it was never started, so the failure of an exec probe has no meaning.
      if (runs === true || (runs === undefined && probe.exec === undefined)) return outcome;
      const why = runs === false ? 'the container has ended' : 'the container runtime does not answer';
      throw new OutcomeUnknownError(`the ${kind} probe of container ${container} has no result: ${why}`);
    },
    async runHook(pod, { container, id, hook }, abort) {
      const target = targetOf(pod, container, id);
      const handler = target.container.lifecycle?.[hook];
      try {
        const { httpFallback } = handler === undefined ? {} : await runHook(target, handler, handlers, abort);
        if (httpFallback !== undefined) events.event(pod, 'Warning', 'LifecycleHTTPFallback', httpFallback);
        return {};
      } catch (error) {
        abort.throwIfAborted();
        if (error instanceof OutcomeUnknownError) throw error;
        const failure = (error as Error).message;
        log.warn('lifecycle hook failed', { pod: pod.metadata.name, container, hook, failure });
        return { failure };
      }
    },
  };
}
