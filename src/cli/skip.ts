/**
 * `lifepod skip`: gives up an entry of the list of defer containers of a Pod that ends, for example one that hangs.
 * Source: the specification of defer containers (PUT of a DeferControl to the subresource `defer`).
 */
import { isMirrorPod } from '../api/core/v1/pod/mirror.ts';
import type { ContainerStatus, DeferControl, Pod } from '../api/generated/types.ts';
import { PODS } from '../api/resources.ts';
import type { Client } from '../client/client.ts';
import { type ApiError, isApiError } from '../machinery/status.ts';
import { UserError } from '../platform/files.ts';
import { podName } from './records.ts';
import { resolveTarget, type TargetOptions } from './target.ts';

export async function skip(given: string, entry: string, options: TargetOptions): Promise<void> {
  const { client, namespace } = await resolveTarget(options);
  process.stdout.write(`${await skipEntry(client, namespace, podName(given), entry)}\n`);
}

/** Resolves with a sentence that says what happens now. Rejects with a UserError if the entry cannot be given up. */
export async function skipEntry(client: Client, namespace: string, name: string, entry: string): Promise<string> {
  const pod = await client
    .resource<Pod>(PODS)
    .get(name, namespace)
    .catch((error: unknown) => {
      if (!isApiError(error, 'NotFound')) throw error;
      throw new UserError(`no Pod ${name} in namespace ${namespace}: 'kubectl get pods -A' shows what there is`);
    });
  const control: DeferControl = {
    apiVersion: 'lifepod.io/v1',
    kind: 'DeferControl',
    metadata: { name, namespace },
    skip: entry,
  };
  await client.backend.update(PODS, control, { subresource: 'defer' }).catch((error: unknown) => {
    throw isApiError(error) ? refusal(error, pod, entry) : error;
  });
  return outcome(pod, entry);
}

/** What the request changes, from how the entry was before it. */
export function outcome({ metadata, status }: Pod, entry: string): string {
  const own = status?.deferContainerStatuses?.find(({ name }) => name === entry);
  const called = `defer container ${entry} of Pod ${metadata.name}`;
  const { terminated, running, waiting } = own?.state ?? {};
  if (terminated !== undefined) return `${called} had already ended (${terminated.reason}): nothing changes`;
  if (running !== undefined) return `${called} is given up: it gets its stop signal now`;
  // The status announces an attempt before it starts: the start may be under way.
  if (waiting?.reason === 'ContainerCreating') return `${called} is given up: it is stopped if it starts`;
  return `${called} is given up: it will not run${hasRun(own) ? ' again' : ''}`;
}

const hasRun = (status: ContainerStatus | undefined): boolean => status?.lastState?.terminated !== undefined;

/** The server's refusal, with what the user can do about it where that is known. */
export function refusal(error: ApiError, pod: Pod, entry: string): Error {
  const { metadata, spec, status } = pod;
  const { name } = metadata;
  const entries = (spec?.deferContainers ?? []).map((each) => each.name);
  if (error.code === 404) {
    return error.status.details?.kind === undefined
      ? new UserError('this API server does not know defer containers: name the server of lifepod with --kubeconfig')
      : new UserError(`Pod ${name} has ended meanwhile: 'lifepod why ${name}' says how`);
  }
  if (error.code === 422 && !entries.includes(entry)) {
    const known = entries.length === 0 ? 'it has none' : `it has ${entries.join(', ')}`;
    return new UserError(`Pod ${name} has no defer container ${entry}: ${known}`);
  }
  if (error.code === 409 && status?.termination === undefined && !isMirrorPod(pod)) {
    return new UserError(
      metadata.deletionTimestamp === undefined
        ? `Pod ${name} is not terminating, so there is nothing to skip: its defer containers run when it is deleted or completes`
        : `Pod ${name} was deleted, but its node has not begun to end it: try again in a moment`,
    );
  }
  return error;
}
