/**
 * `lifepod skip`: gives up a defer container (an entry) of a terminating Pod, for example because it hangs.
 * Source: the specification of defer containers (PUT of a DeferControl to the subresource `defer`).
 */
import { isMirrorPod } from '../api/core/v1/pod/mirror.ts';
import type { ContainerStatus, DeferControl, Pod } from '../api/generated/types.ts';
import { PODS } from '../api/resources.ts';
import { type ApiError, isApiError } from '../machinery/status.ts';
import { UserError } from '../platform/files.ts';
import type { Hints } from './hints.ts';
import { printLine } from './progress/standard-output.ts';
import { podName } from './records.ts';
import { mayNotSkip } from './refusals.ts';
import { resolveTarget, type TargetOptions } from './target.ts';
import { type PodSource, presentPod } from './workloads/present-pod.ts';

export async function skip(podArgument: string, entry: string, options: TargetOptions): Promise<void> {
  const target = await resolveTarget(options);
  printLine(await skipEntry(target, podArgument, entry));
}

/** Resolves with a sentence about the effect. Rejects with an error of refusal() if the API refuses the request. */
export async function skipEntry(source: PodSource, given: string, entry: string): Promise<string> {
  const { client, hints } = source;
  const pod = await presentPod(source, given, 'so there is nothing to skip');
  const { name, namespace } = pod.metadata;
  if (name !== podName(given)) {
    const none = `no Pod ${podName(given)} in namespace ${source.namespace}`;
    throw new UserError(`${none}: the Pod with this UID is ${name} in namespace ${namespace}`);
  }
  const control: DeferControl = {
    apiVersion: 'lifepod.io/v1',
    kind: 'DeferControl',
    metadata: { name, namespace },
    skip: entry,
  };
  await client.api.update(PODS, control, { subresource: 'defer' }).catch((error: unknown) => {
    throw isApiError(error) ? refusal(error, pod, entry, hints) : error;
  });
  return outcome(pod, entry);
}

/** Returns a sentence about the effect on the entry. The first argument is the Pod before the request. */
export function outcome({ metadata, status }: Pod, entry: string): string {
  const own = status?.deferContainerStatuses?.find(({ name }) => name === entry);
  const subject = `defer container ${entry} of Pod ${metadata.name}`;
  const { terminated, running, waiting } = own?.state ?? {};
  if (terminated !== undefined) return `${subject} had already ended (${terminated.reason}): nothing changes`;
  if (status?.termination?.skip?.includes(entry) === true) {
    const before = `${subject} was given up before:`;
    if (running !== undefined) return `${before} its stop signal was sent, and it is killed if it does not end`;
    if (waiting?.reason === 'ContainerCreating') return `${before} it is stopped if it starts`;
    return `${before} it will not run${hasRun(own) ? ' again' : ''}`;
  }
  if (running !== undefined) return `${subject} is given up: its stop signal is sent now`;
  // The status shows an attempt before it starts, so the container may be about to start.
  if (waiting?.reason === 'ContainerCreating') return `${subject} is given up: it is stopped if it starts`;
  return `${subject} is given up: it will not run${hasRun(own) ? ' again' : ''}`;
}

const hasRun = (status: ContainerStatus | undefined): boolean => status?.lastState?.terminated !== undefined;

/** Returns the error to print for a refused request: a UserError if the cause is known, else `error` itself. */
export function refusal(error: ApiError, pod: Pod, entry: string, hints: Hints): Error {
  const { metadata, spec, status } = pod;
  const { name, namespace = 'default' } = metadata;
  if (error.code === 403) return mayNotSkip(namespace);
  const entries = (spec?.deferContainers ?? []).map((each) => each.name);
  if (error.code === 404) {
    return error.status.details?.kind === undefined
      ? new UserError(
          'this API server does not support defer containers: give the kubeconfig of a lifepod server with --kubeconfig',
        )
      : new UserError(
          `Pod ${name} has ended in the meantime: '${hints.lifepod(`why ${name} -n ${namespace}`)}' shows how`,
        );
  }
  if (error.code === 422 && !entries.includes(entry)) {
    const known = entries.length === 0 ? 'it has none' : `it has ${entries.join(', ')}`;
    return new UserError(`Pod ${name} has no defer container ${entry}: ${known}`);
  }
  if (error.code === 409 && status?.termination === undefined && !isMirrorPod(pod)) {
    return new UserError(
      metadata.deletionTimestamp === undefined
        ? `Pod ${name} is not terminating, so there is nothing to skip: its defer containers run when it is deleted or completes`
        : `Pod ${name} was deleted, but its node has not begun to terminate it: try again in a few seconds`,
    );
  }
  return error;
}
