/** Says what to do if the API server refuses the log of a container. Pure. */
import type { Pod } from '../../api/generated/types.ts';
import { type ApiError, isApiError } from '../../machinery/status.ts';
import { UserError } from '../../platform/files.ts';
import type { Hints } from '../hints.ts';
import { type PodContainer, waitsForItsTurn } from '../pod-containers.ts';
import { mayNotReadLogs } from '../refusals.ts';

/** Returns the error to print: a UserError with the next step if the cause is known, else `error` itself. Source: the kubelet's messages. */
export function logRefusal(error: ApiError, pod: Pod, container: PodContainer, hints: Hints): Error {
  const { name, namespace = 'default' } = pod.metadata;
  const { message } = error;
  if (isApiError(error, 'Forbidden')) return mayNotReadLogs(namespace);
  const log = (option = ''): string => hints.lifepod(`logs ${name} -n ${namespace} -c ${container.name}${option}`);
  const why = `'${hints.lifepod(`why ${name} -n ${namespace}`)}' shows`;
  if (/^previous terminated container .* not found$/.test(message))
    return new UserError(`${message}: '${log()}' prints the log of its latest run`);
  if (!/^container .* is (?:waiting to start|not available)/.test(message)) return error;
  if (container.status?.state?.terminated !== undefined) return neverStarted(pod, container, hints);
  if (!waitsForItsTurn(pod, container)) return new UserError(`${message}; ${why} what to do`);
  if (container.kind === 'defer' && pod.status?.termination === undefined)
    return new UserError(
      `defer container ${container.name} in pod ${name} has not run: its turn comes when the Pod terminates; '${log(' -f')}' waits for it`,
    );
  return new UserError(`${message}; '${log(' -f')}' waits for it, and ${why} what it waits for`);
}

/** Returns the error for a container that has no log, although it or its Pod has ended. */
export function neverStarted({ metadata }: Pod, { name }: PodContainer, hints: Hints): UserError {
  const { name: pod, namespace = 'default' } = metadata;
  return new UserError(
    `container ${name} in pod ${pod} has never started: '${hints.lifepod(`why ${pod} -n ${namespace}`)}' shows why`,
  );
}
